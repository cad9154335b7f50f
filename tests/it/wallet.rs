//! Wallets: no duplicate transactions, no negative balances, and every amount in the ledger.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::tenants::wallet::{self, LedgerAccount, LedgerTransaction, Overdraft};
use tollhouse_platform::values::money::{Minor, Money};

use crate::app::{Reply, TestApp};

const NOT_COVERED: (u16, &str) = (400, "insufficient balance, please top up your wallet.");
const USED: (u16, &str) = (409, "the key was already used for another transaction");

/// `credit` or `debit`.
async fn order(app: &TestApp, direction: &str, body: Value) -> Reply {
    let path = format!("/companies/{}/wallet/{direction}", app.company.id);
    app.operator(Method::POST, &path, body).await
}

async fn entries(app: &TestApp, query: &str) -> Value {
    let path = format!("/companies/{}/wallet/entries{query}", app.company.id);
    app.operator(Method::GET, &path, Value::Null).await.data().clone()
}

/// Converts an amount of the API to minor units.
fn minor(amount: &Value) -> i64 {
    let text = amount.as_number().expect("a number").to_string();
    let (sign, digits) = text.strip_prefix('-').map_or((1, &*text), |digits| (-1, digits));
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    assert!(decimals.len() <= 2, "{text} has more than two decimals");
    sign * format!("{whole}{decimals:0<2}").parse::<i64>().expect("digits")
}

/// The sums of all entries, by account and currency.
async fn sums(app: &TestApp) -> BTreeMap<(String, String), i64> {
    let listed = entries(app, "?limit=1000").await;
    let docs = listed["docs"].as_array().expect("a list");
    assert_eq!(listed["total"], docs.len());
    let mut sums = BTreeMap::new();
    for entry in docs {
        let text = |field: &str| entry[field].as_str().expect(field).to_owned();
        *sums.entry((text("account"), text("currency"))).or_default() += minor(&entry["amount"]);
    }
    sums
}

/// Checks that the wallet's balances are the sums of its entries.
async fn check_sums(app: &TestApp) {
    let (wallet, sums) = (app.wallet().await, sums(app).await);
    for (currency, balance) in wallet["balances"].as_object().expect("an object") {
        for (shown, account) in [("balance", "wallet"), ("pending", "pending")] {
            let sum =
                sums.get(&(account.to_owned(), currency.clone())).copied().unwrap_or_default();
            assert_eq!(minor(&balance[shown]), sum, "{shown} in {currency}");
        }
    }
}

both! {
    async fn a_new_wallet_is_empty(app: TestApp) {
        let balances = json!({ "NGN": { "balance": 0, "pending": 0 } });
        assert_eq!(app.wallet().await, json!({ "balance": 0, "pending": 0, "currency": "NGN", "balances": balances }));
        assert_eq!(entries(app, "").await["total"], 0);
        for (method, path) in [(Method::GET, ""), (Method::GET, "/entries"), (Method::POST, "/credit"), (Method::POST, "/debit")] {
            let body = if method == Method::POST { json!({ "amount": 5, "key": "x" }) } else { Value::Null };
            let missing = app.operator(method, &format!("/companies/nobody/wallet{path}"), body).await;
            assert_eq!(missing.failure(), (404, "company not found"), "{path}");
        }
    }

    async fn a_balance_beyond_its_range_is_rejected(app: TestApp) {
        let (db, host, company) = (app.app.store.clone(), app.app.clone(), app.company.id.clone());
        let (from, to) = (LedgerAccount::Operator, LedgerAccount::Wallet);
        let money = Money { minor: Minor(i64::MAX - 100), currency: "NGN".into() };
        let movement = LedgerTransaction { key: "all".to_owned(), kind: "test".into(), from, to, money };
        let posted = db.write(async move |tx| wallet::post(tx, &host, &company, &movement, Overdraft::Forbidden).await);
        posted.await.expect("a movement");
        order(app, "credit", json!({ "amount": 1, "key": "a" })).await.data();
        let refused = order(app, "credit", json!({ "amount": 0.01, "key": "b" })).await;
        let message = "the amount field must be lower: the balance would be too large";
        assert_eq!(refused.failure(), (400, message));
        assert_eq!(minor(&app.wallet().await["balance"]), i64::MAX);
        order(app, "debit", json!({ "amount": 1, "key": "c" })).await.data();
    }

    async fn credits_and_debits_are_exact(app: TestApp) {
        for (direction, amount, key, balance) in [
            ("credit", json!(0.29), "a", json!(0.29)), // 28.999… as a float
            ("credit", json!(100.1), "b", json!(100.39)),
            ("credit", json!(0.01), "c", json!(100.4)),
            ("debit", json!(0.4), "d", json!(100)),
            ("credit", json!(9_999_999_999_899.99), "e", json!(9_999_999_999_999.99)),
            ("debit", json!(9_999_999_999_999.99), "f", json!(0)),
        ] {
            let response = order(app, direction, json!({ "amount": amount, "key": key })).await;
            let expected = json!({ "key": key, "amount": amount, "currency": "NGN", "balance": balance });
            assert_eq!(response.data().to_string(), expected.to_string());
            assert_eq!(response.body["message"], "Wallet updated successfully");
            assert_eq!(app.wallet().await["balance"].to_string(), balance.to_string());
            check_sums(app).await;
        }
    }

    async fn an_invalid_credit_or_debit_moves_no_money(app: TestApp) {
        order(app, "credit", json!({ "amount": 100, "key": "top-up" })).await.data();
        let before = (app.wallet().await, entries(app, "").await);
        for (field, value, message) in [
            ("amount", Value::Null, "the amount field is required"),
            ("amount", json!(0), "the amount field must be greater than 0"),
            ("amount", json!(-1), "the amount field must be greater than 0"),
            ("amount", json!("5"), "the amount field must be a number"),
            ("amount", json!([5]), "the amount field must be a number"),
            ("amount", json!(0.001), "the amount field must be a number with at most 2 decimals"),
            ("amount", json!(10_000_000_000_000.01), "the amount field must be at most 10000000000000"),
            ("currency", json!(5), "the currency field must be a string"),
            ("currency", json!("naira"), "the currency field must be at most 3 characters"),
            ("currency", json!("ngn"), "the currency field must be a currency code of three capital letters"),
            ("currency", json!("NG"), "the currency field must be a currency code of three capital letters"),
            ("key", Value::Null, "the key field is required"),
            ("key", json!(""), "the key field is required"),
            ("key", json!(5), "the key field must be a string"),
            ("key", json!("a b"), "the key field must be visible characters only"),
            ("key", json!("x".repeat(101)), "the key field must be at most 100 characters"),
        ] {
            for direction in ["credit", "debit"] {
                let mut body = json!({ "amount": 5, "key": "order" });
                body[field] = value.clone();
                assert_eq!(order(app, direction, body.clone()).await.failure(), (400, message), "{body}");
            }
        }
        assert_eq!(order(app, "credit", json!({})).await.failure().1, "the amount field is required");
        assert_eq!((app.wallet().await, entries(app, "").await), before);
    }

    async fn a_key_moves_money_once(app: TestApp) {
        let top_up = json!({ "amount": 100, "key": "top-up" });
        let first = order(app, "credit", top_up.clone()).await.data().clone();
        assert_eq!(order(app, "credit", top_up.clone()).await.data(), &first);
        for (direction, body) in [
            ("credit", json!({ "amount": 100.01, "key": "top-up" })),
            ("credit", json!({ "amount": 100, "currency": "USD", "key": "top-up" })),
            ("debit", top_up.clone()),
        ] {
            assert_eq!(order(app, direction, body.clone()).await.failure(), USED, "{direction} {body}");
        }
        assert_eq!(app.wallet().await["balances"], json!({ "NGN": { "balance": 100, "pending": 0 } }));

        let debit = json!({ "amount": 30, "key": "payout" });
        order(app, "debit", debit.clone()).await.data();
        order(app, "debit", json!({ "amount": 70, "key": "rest" })).await.data();
        assert_eq!(order(app, "debit", debit).await.data()["balance"], 0); // covered when it was posted
        assert_eq!(entries(app, "").await["total"], 6);
        // The same key in another company is another transaction.
        let other = app.new_company("Beta Lending").await;
        let path = format!("/companies/{}/wallet/credit", other.id);
        assert_eq!(app.operator(Method::POST, &path, top_up).await.data()["balance"], 100);
        assert_eq!(app.wallet().await["balance"], 0);
    }

    async fn a_key_is_returned_as_it_was_sent(app: TestApp) {
        for key in ["operator:x", "operator:operator:x", "x", "payment:x:success", "ключ-🔑"] {
            let response = order(app, "credit", json!({ "amount": 1, "key": key })).await;
            assert_eq!(response.data()["key"], key);
        }
        assert_eq!(app.wallet().await["balance"], 5);
    }

    async fn concurrent_requests_with_one_key_move_money_once(app: TestApp) {
        let body = json!({ "amount": 50, "key": "top-up" });
        let responses = join_all((0..20).map(|_| order(app, "credit", body.clone()))).await;
        assert!(responses.iter().all(|response| response.data()["balance"] == 50), "{responses:?}");
        let body = json!({ "amount": 50, "key": "payout" });
        let responses = join_all((0..20).map(|_| order(app, "debit", body.clone()))).await;
        assert!(responses.iter().all(|response| response.data()["balance"] == 0), "{responses:?}");
        assert_eq!(entries(app, "").await["total"], 4);

        // Of two different requests with one key one succeeds, and the other gets an error.
        let orders = (0..20).map(|n| order(app, "credit", json!({ "amount": 1 + n % 2, "key": "either" })));
        let responses = join_all(orders).await;
        let won = responses.iter().filter(|response| response.status == 200).count();
        assert_eq!(won, 10);
        assert!(responses.iter().filter(|response| response.status != 200).all(|response| response.failure() == USED));
        assert_eq!(entries(app, "").await["total"], 6);
        check_sums(app).await;
    }

    async fn a_debit_beyond_the_balance_moves_nothing(app: TestApp) {
        let debit = async |amount: f64, key: &str| order(app, "debit", json!({ "amount": amount, "key": key })).await;
        assert_eq!(debit(0.01, "early").await.failure(), NOT_COVERED);
        assert_eq!(entries(app, "").await["total"], 0);
        order(app, "credit", json!({ "amount": 100, "key": "top-up" })).await.data();
        let before = (app.wallet().await, entries(app, "").await);
        assert_eq!(debit(100.01, "payout").await.failure(), NOT_COVERED);
        assert_eq!((app.wallet().await, entries(app, "").await), before);
        // A rejected request does not use up its key.
        assert_eq!(debit(100.0, "payout").await.data()["balance"], 0);
        assert_eq!(debit(0.01, "early").await.failure(), NOT_COVERED);
    }

    async fn concurrent_debits_succeed_as_far_as_they_are_covered(app: TestApp) {
        order(app, "credit", json!({ "amount": 100, "key": "top-up" })).await.data();
        let debits = (0..30).map(|n| order(app, "debit", json!({ "amount": 9.99, "key": format!("payout-{n}") })));
        let (done, refused): (Vec<Reply>, Vec<Reply>) =
            join_all(debits).await.into_iter().partition(|response| response.status == 200);
        assert_eq!((done.len(), refused.len()), (10, 20));
        assert!(refused.iter().all(|response| response.failure() == NOT_COVERED));
        let mut balances: Vec<i64> = done.iter().map(|response| minor(&response.data()["balance"])).collect();
        balances.sort_unstable();
        assert_eq!(balances, (0..10).map(|n| 10 + n * 999).collect::<Vec<i64>>()); // each saw its own
        assert_eq!(app.wallet().await["balance"], json!(0.1));
        assert_eq!(entries(app, "").await["total"], 22);
        check_sums(app).await;
    }

    async fn currencies_have_separate_balances(app: TestApp) {
        order(app, "credit", json!({ "amount": 100, "key": "naira" })).await.data();
        let dollars = json!({ "amount": 7, "currency": "USD", "key": "dollars" });
        assert_eq!(order(app, "credit", dollars).await.data()["balance"], 7);
        let beyond = json!({ "amount": 8, "currency": "USD", "key": "payout" });
        assert_eq!(order(app, "debit", beyond).await.failure(), NOT_COVERED);
        let none = json!({ "amount": 1, "currency": "GHS", "key": "payout" });
        assert_eq!(order(app, "debit", none).await.failure(), NOT_COVERED);
        let wallet = json!({
            "balance": 100, "pending": 0, "currency": "NGN",
            "balances": { "NGN": { "balance": 100, "pending": 0 }, "USD": { "balance": 7, "pending": 0 } },
        });
        assert_eq!(app.wallet().await, wallet);
        check_sums(app).await;
    }

    async fn entries_are_filtered_by_day_and_account_and_have_a_reference(app: TestApp) {
        order(app, "credit", json!({ "amount": 5, "key": "payment:order-1" })).await.data();
        app.advance(24 * 3600).await;
        let paid = app.paid_payment("order-1").await;
        let all = entries(app, "").await["docs"].clone();
        let of = |entry: &Value| (entry["kind"].as_str().unwrap().to_owned(), entry["reference"].clone());
        for (kind, reference) in all.as_array().expect("a list").iter().map(of) {
            let expected = if kind == "operator.credit" { Value::Null } else { paid["reference"].clone() };
            assert_eq!(reference, expected, "{kind}");
        }
        let found = async |query: &str| {
            let listed = entries(app, query).await;
            let docs = listed["docs"].as_array().expect("a list").clone();
            assert_eq!(listed["total"], docs.len(), "{query}");
            docs.iter().map(|entry| format!("{} {}", entry["kind"].as_str().unwrap(), entry["account"].as_str().unwrap())).collect::<Vec<_>>()
        };
        let first_day = ["operator.credit operator", "operator.credit wallet"];
        assert_eq!(found("?created_at=21-11-2026").await, first_day);
        assert_eq!(found("?created_at=22-11-2026").await.len(), 6);
        assert_eq!(found("?created_at=21-11-2026/22-11-2026").await.len(), 8);
        assert_eq!(found("?created_at=23-11-2026").await, [""; 0]);
        assert_eq!(found("?account=wallet").await, ["payment.success wallet", "operator.credit wallet"]);
        assert_eq!(found("?account=wallet&created_at=22-11-2026").await, ["payment.success wallet"]);
        assert_eq!(found("?account=provider:provider_a").await.len(), 3);
        assert_eq!(found("?account=billing").await, [""; 0]);
        for (query, message) in [
            ("?created_at=2026-11-21", "the created_at field must be DD-MM-YYYY or DD-MM-YYYY/DD-MM-YYYY"),
            ("?account=walet", "the account field must be wallet, pending, billing, operator, verification, disputed, fees, suspense or provider:NAME"),
            ("?account=provider:", "the account field must be wallet, pending, billing, operator, verification, disputed, fees, suspense or provider:NAME"),
        ] {
            let path = format!("/companies/{}/wallet/entries{query}", app.company.id);
            assert_eq!(app.operator(Method::GET, &path, Value::Null).await.failure(), (400, message), "{query}");
        }
    }

    async fn entries_are_paged_newest_first_in_pairs(app: TestApp) {
        for key in ["first", "second", "third"] {
            order(app, "credit", json!({ "amount": 5, "key": key })).await.data();
            app.advance(1).await;
        }
        let all = entries(app, "").await["docs"].clone();
        let shown = |entry: &Value| [&entry["key"], &entry["kind"], &entry["account"], &entry["amount"]].map(Value::clone);
        let found: Vec<_> = all.as_array().expect("a list").iter().map(shown).collect();
        let pair = |key: &str| {
            let entry = |account: &str, amount: i64| [json!(key), json!("operator.credit"), json!(account), json!(amount)];
            [entry("operator", -5), entry("wallet", 5)]
        };
        assert_eq!(found, [pair("operator:third"), pair("operator:second"), pair("operator:first")].concat());
        for (query, from, to) in [("?limit=2", 0, 2), ("?limit=4&page=2", 4, 6), ("?limit=1&page=3", 2, 3), ("?page=2", 6, 6)] {
            let listed = entries(app, query).await;
            assert_eq!(listed["docs"].as_array().map(|docs| &docs[..]), all.as_array().map(|all| &all[from..to]), "{query}");
            assert_eq!(listed["total"], 6);
        }
    }
}

// ---- payments -----------------------------------------------------------------------------------

/// Transactions of a payment: kind, and change of the wallet and the pending balance.
async fn moved(app: &TestApp, payment: &Value) -> BTreeSet<(String, i64, i64)> {
    let listed = entries(app, "?limit=1000").await;
    let id = payment["id"].as_str().expect("an id");
    let pairs = listed["docs"].as_array().expect("a list").chunks(2);
    let text = |entry: &Value, field: &str| entry[field].as_str().expect(field).to_owned();
    let pairs = pairs.filter(|pair| text(&pair[0], "key").starts_with(&format!("payment:{id}:")));
    let of = |pair: &[Value], account: &str| {
        pair.iter().filter(|e| e["account"] == account).map(|e| minor(&e["amount"])).sum()
    };
    pairs.map(|pair| (text(&pair[0], "kind"), of(pair, "wallet"), of(pair, "pending"))).collect()
}

both! {
    async fn a_payment_on_the_service_account_is_pending_until_settlement(app: TestApp) {
        for (outcome, balance, kinds) in [
            ("failed", json!(0), vec![("payment.pending", 0, 250_050), ("payment.settled", 0, -250_050)]),
            ("success", json!(2362.99), vec![("payment.pending", 0, 250_050), ("payment.settled", 0, -250_050), ("payment.success", 236_299, 0)]),
        ] {
            let payment = app.initialize(outcome).await;
            let wallet = app.wallet().await;
            assert_eq!((&wallet["balance"], &wallet["pending"]), (&json!(0), &json!(2500.5)));
            app.complete(&payment, outcome).await;
            app.advance(60).await;
            assert_eq!(app.fetch(outcome).await["status"], outcome);
            let wallet = app.wallet().await;
            assert_eq!((&wallet["balance"], &wallet["pending"]), (&balance, &json!(0)));
            let expected = kinds.into_iter().map(|(kind, wallet, pending)| (kind.to_owned(), wallet, pending));
            assert_eq!(moved(app, &payment).await, expected.collect(), "{outcome}");
            check_sums(app).await;
        }
    }

    async fn a_payment_on_the_companys_own_account_moves_nothing(app: TestApp) {
        let path = format!("/companies/{}/providers/provider_a", app.company.id);
        app.use_paystack(&path, "sk_test_the_companys_own").await;
        for outcome in ["success", "failed"] {
            let payment = app.initialize(outcome).await;
            app.complete(&payment, outcome).await;
            app.advance(60).await;
            assert_eq!(app.fetch(outcome).await["status"], outcome);
        }
        assert_eq!(entries(app, "").await["total"], 0);
        assert_eq!(app.wallet().await["balances"], json!({ "NGN": { "balance": 0, "pending": 0 } }));
    }

    async fn a_pending_balance_cannot_be_spent(app: TestApp) {
        app.initialize("order-1").await;
        let refused = order(app, "debit", json!({ "amount": 1, "key": "payout" })).await;
        assert_eq!(refused.failure(), NOT_COVERED);
        assert_eq!(app.wallet().await["pending"], json!(2500.5));
    }
}
