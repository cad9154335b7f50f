//! Fees: which plan sets the price, one charge per key, no overdraft, and fee refunds.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::{join, join_all};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{sync::Notify, time::timeout};
use tollhouse_app::{
    operations::monitor::Monitor,
    tenants::{
        companies,
        wallet::{self, PostOutcome},
    },
};
use tollhouse_platform::{
    error::{Error, Result},
    random::Random,
    store,
    values::money,
};

use crate::app::{Company, Reply, TestApp};

const NOT_COVERED: &str = "insufficient balance, please top up your wallet.";

/// A path of the test company.
fn own(app: &TestApp, rest: &str) -> String {
    format!("/companies/{}{rest}", app.company.id)
}

async fn get(app: &TestApp, path: &str) -> Value {
    app.operator(Method::GET, path, Value::Null).await.data().clone()
}

/// Sets prices of the default plan.
async fn set_default(app: &TestApp, prices: Value) {
    app.operator(Method::PATCH, "/prices", prices).await.data();
}

/// Sets prices of the company's own plan.
async fn set_own(app: &TestApp, prices: Value) -> Reply {
    app.operator(Method::PATCH, &own(app, "/prices"), prices).await
}

async fn credit(app: &TestApp, company: &Company, amount: i64) {
    let path = format!("/companies/{}/wallet/credit", company.id);
    app.operator(Method::POST, &path, json!({ "amount": amount, "key": "top-up" })).await.data();
}

async fn charge_to(
    app: &TestApp,
    company: &Company,
    (item, quantity): (&'static str, i64),
    key: &str,
) -> Result<PostOutcome> {
    let (host, id, key) = (app.app.clone(), company.id.clone(), key.to_owned());
    let charge = async move |tx: &mut store::Tx| {
        let company = companies::get(tx, &id).await?;
        wallet::charge_fee(tx, &host, &company, item, quantity, &key).await
    };
    app.app.store.write(charge).await
}

async fn charge(
    app: &TestApp,
    item: &'static str,
    quantity: i64,
    key: &str,
) -> Result<PostOutcome> {
    charge_to(app, &app.company, (item, quantity), key).await
}

async fn refund_fee_to(app: &TestApp, company: &Company, key: &str) {
    let (host, id, key) = (app.app.clone(), company.id.clone(), key.to_owned());
    let given =
        app.app.store.write(async move |tx| wallet::refund_fee(tx, &host, &id, &key).await).await;
    given.expect("a fee refund");
}

async fn refund_fee(app: &TestApp, key: &str) {
    refund_fee_to(app, &app.company, key).await;
}

async fn balance(app: &TestApp) -> Value {
    app.wallet().await["balance"].clone()
}

fn message(refused: Result<PostOutcome>) -> String {
    refused.expect_err("a refusal").to_string()
}

/// Converts an amount of the API to minor units.
fn minor(amount: &Value) -> i64 {
    let number = amount.as_number().expect("a number");
    money::Minor::from_major(number).expect("an amount").0
}

/// Returns the fees and fee refunds on a company's wallet, in minor units by ledger key.
async fn billed(app: &TestApp, company: &Company) -> BTreeMap<String, i64> {
    let path = format!("/companies/{}/wallet/entries?limit=1000", company.id);
    let listed = get(app, &path).await;
    let entries = listed["docs"].as_array().expect("a list").clone();
    assert_eq!(listed["total"], entries.len());
    let entries = entries.iter().filter(|entry| entry["account"] == "wallet");
    let billed = entries.filter(|entry| entry["kind"] != "operator.credit");
    let key = |entry: &Value| entry["key"].as_str().expect("a key").to_owned();
    let billed: Vec<_> = billed.map(|entry| (key(entry), minor(&entry["amount"]))).collect();
    let by_key: BTreeMap<String, i64> = billed.iter().cloned().collect();
    assert_eq!(by_key.len(), billed.len(), "two entries under one key: {billed:?}");
    by_key
}

// ---- prices -------------------------------------------------------------------------------------

both! {
    async fn the_companys_plan_overrides_the_default_plan(app: TestApp) {
        let shown = async |path: &str, item: &str| get(app, path).await["prices"][item].clone();
        let company = own(app, "/prices");
        let unpriced = json!({ "price": 0, "plan": null });
        assert_eq!(shown(&company, "otp.email").await, unpriced);
        set_default(app, json!({ "otp.email": 2.5, "otp.sms": 4, "identity.nigeria.bvn": 100 })).await;
        set_own(app, json!({ "otp.email": 1.25, "otp.sms": 0, "identity.ghana.ssnit.face": 7 })).await.data();
        credit(app, &app.company, 1_000).await;
        let (of_company, of_default) = ("company", "default");
        for (n, (item, price, plan)) in [
            ("otp.email", json!(1.25), json!(of_company)),
            ("otp.sms", json!(0), json!(of_company)), // priced at 0, not missing
            ("identity.nigeria.bvn", json!(100), json!(of_default)),
            ("identity.ghana.ssnit.face", json!(7), json!(of_company)),
            ("customer.create", json!(0), Value::Null),
        ].into_iter().enumerate() {
            assert_eq!(shown(&company, item).await, json!({ "price": price, "plan": plan }), "{item}");
            let before = minor(&balance(app).await);
            assert_eq!(charge(app, item, 2, &n.to_string()).await.expect("a charge"), PostOutcome::Posted);
            assert_eq!(before - minor(&balance(app).await), 2 * minor(&price), "{item}");
        }
        assert_eq!(get(app, &company).await["currency"], "NGN");
        // A company's plan changes neither the default plan nor another company's prices.
        assert_eq!(shown("/prices", "otp.email").await, json!({ "price": 2.5, "plan": of_default }));
        assert_eq!(shown("/prices", "identity.ghana.ssnit.face").await, Value::Null);
        let other = app.new_company("Beta Lending").await;
        let other = format!("/companies/{}/prices", other.id);
        assert_eq!(shown(&other, "otp.email").await, json!({ "price": 2.5, "plan": of_default }));

        // A removed price falls back to the default plan, and unnamed prices stay. The response has
        // the new prices.
        let response = set_own(app, json!({ "otp.email": null, "otp.sms": 3.75 })).await.data().clone();
        assert_eq!(response, get(app, &company).await);
        assert_eq!(response["prices"]["otp.email"], json!({ "price": 2.5, "plan": of_default }));
        assert_eq!(response["prices"]["otp.sms"], json!({ "price": 3.75, "plan": of_company }));
        assert_eq!(response["prices"]["identity.ghana.ssnit.face"]["price"], 7);
        set_default(app, json!({ "otp.email": null })).await;
        assert_eq!(shown(&company, "otp.email").await, unpriced);
    }

    async fn an_item_without_a_plan_price_costs_the_plugins_price(app: TestApp) {
        const ITEM: &str = "identity.atlantis.citizen";
        app.install(artifacts::ATLANTIS).await;
        let (company, of_plugin) = (own(app, "/prices"), json!({ "price": 10, "plan": "plugin" }));
        let shown = async |path: &str, item: &str| get(app, path).await["prices"][item].clone();
        let both = async |item: &str| [shown(&company, item).await, shown("/prices", item).await];
        for item in [ITEM, "identity.atlantis.citizen.face", "identity.atlantis.citizen.image"] {
            assert_eq!(both(item).await, [of_plugin.clone(), of_plugin.clone()], "{item}");
        }
        set_default(app, json!({ ITEM: 0 })).await;
        let free = json!({ "price": 0, "plan": "default" });
        assert_eq!(both(ITEM).await, [free.clone(), free.clone()]);
        let response = set_own(app, json!({ ITEM: 12.5 })).await.data().clone();
        assert_eq!(response["prices"][ITEM], json!({ "price": 12.5, "plan": "company" }));
        assert_eq!(both(ITEM).await, [json!({ "price": 12.5, "plan": "company" }), free]);
        set_default(app, json!({ ITEM: null })).await;
        let response = set_own(app, json!({ ITEM: null })).await.data().clone();
        assert_eq!(response["prices"][ITEM], of_plugin);
        app.operator(Method::POST, "/plugins/atlantis/deactivate", json!({})).await.data();
        assert_eq!(both(ITEM).await, [Value::Null, Value::Null]);
    }

    async fn invalid_prices_are_rejected_and_change_nothing(app: TestApp) {
        set_own(app, json!({ "otp.email": 2 })).await.data();
        let no_item = |name: &str| format!("the {name} field must be a billing item, such as otp.email or identity.nigeria.bvn");
        let before = (get(app, &own(app, "/prices")).await, get(app, "/prices").await);
        for (body, message) in [
            (json!({ "otp.email": 5, "otp.emial": 5 }), no_item("otp.emial")),
            (json!({ "otp.email": 5, "identity.nigeria": 5 }), no_item("identity.nigeria")),
            (json!({ "otp.email": 5, "otp.voice": null }), no_item("otp.voice")),
            (json!({ "otp.email": 5, "otp.sms": -0.01 }), "the otp.sms field must be 0 or more".to_owned()),
            (json!({ "otp.email": 5, "otp.sms": "5" }), "the otp.sms field must be a number".to_owned()),
            (json!({ "otp.email": 5, "otp.sms": 0.001 }), "the otp.sms field must be a number with at most 2 decimals".to_owned()),
            (json!({ "otp.email": 5, "otp.sms": 10_000_000_000_000.01 }), "the otp.sms field must be at most 10000000000000".to_owned()),
            (json!([]), "the body must be a JSON object".to_owned()),
        ] {
            for path in [&*own(app, "/prices"), "/prices"] {
                let refused = app.operator(Method::PATCH, path, body.clone()).await;
                assert_eq!(refused.failure(), (400, &*message), "{path} {body}");
            }
        }
        for method in [Method::GET, Method::PATCH] {
            let body = if method == Method::GET { Value::Null } else { json!({ "otp.email": 5 }) };
            let missing = app.operator(method, "/companies/000000000000000000000000/prices", body).await;
            assert_eq!(missing.failure(), (404, "company not found"));
        }
        assert_eq!((get(app, &own(app, "/prices")).await, get(app, "/prices").await), before);
    }

    async fn removing_a_price_waits_for_a_concurrent_insert(app: TestApp) {
        let (begun, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (begins, releases) = (begun.clone(), released.clone());
        let company = app.company.id.clone();
        let set: store::Result<u64> = async {
            let (set, ()) = tokio::join!(
                app.app.store.write(async move |tx| {
                    let set = tx.sql("INSERT INTO prices (company_id, item, amount_minor) VALUES ($1, 'otp.sms', 5)");
                    let set = set.bind(&company).run().await?;
                    begins.notify_one();
                    releases.notified().await;
                    Ok(set)
                }),
                async {
                    begun.notified().await;
                    let taking = set_own(app, json!({ "otp.sms": null }));
                    tokio::pin!(taking);
                    // The removal must wait for the insert; if it does not, it ends by then.
                    let early = timeout(Duration::from_millis(300), &mut taking).await;
                    released.notify_one();
                    let taken = match early {
                        Ok(taken) => taken,
                        Err(_) => taking.await,
                    };
                    assert_eq!(taken.data()["prices"]["otp.sms"]["plan"], Value::Null);
                },
            );
            set
        }
        .await;
        assert_eq!(set.expect("a price"), 1);
        assert_eq!(get(app, &own(app, "/prices")).await["prices"]["otp.sms"]["plan"], Value::Null);
    }

    async fn concurrent_price_updates_do_not_mix(app: TestApp) {
        let set = |n: i64| set_own(app, json!({ "otp.email": n, "otp.sms": n, "customer.create": if n % 2 == 0 { json!(n) } else { Value::Null } }));
        let responses = join_all((1..=12).map(set)).await;
        assert!(responses.iter().all(|response| response.status == 200), "{responses:?}");
        let prices = get(app, &own(app, "/prices")).await["prices"].clone();
        let price = &prices["otp.email"]["price"];
        assert_eq!(&prices["otp.sms"]["price"], price);
        let own = prices["customer.create"]["plan"] == "company";
        assert_eq!(own, minor(price) / 100 % 2 == 0, "{prices}");
    }
}

// ---- charges ------------------------------------------------------------------------------------

both! {
    async fn a_charge_needs_the_feature_of_its_item(app: TestApp) {
        set_default(app, json!({ "otp.email": 5 })).await;
        for (n, (item, feature)) in [
            ("otp.email", "otp"),
            ("otp.sms", "otp"),
            ("customer.create", "users"),
            ("identity.nigeria.bvn", "identity"),
            ("recollection.card", "recollections"),
        ].into_iter().enumerate() {
            let subscribe = async |features: Value| {
                let body = json!({ "features": features });
                app.operator(Method::PUT, &own(app, "/subscription"), body).await.data();
            };
            subscribe(json!(["payments"])).await;
            let refused = charge(app, item, 0, &n.to_string()).await;
            assert!(matches!(&refused, Err(Error::Forbidden(text)) if *text == format!("your plan does not include {feature}")), "{refused:?}");
            subscribe(json!([feature])).await;
            assert_eq!(charge(app, item, 0, &n.to_string()).await.expect("a charge"), PostOutcome::Posted);
        }
        // An unknown item or a negative quantity is an internal error and charges nothing.
        for (item, quantity) in [("otp.emial", 1), ("otp.sms", -1)] {
            let wrong = charge(app, item, quantity, "wrong").await;
            assert!(matches!(wrong, Err(Error::Internal(_))), "{wrong:?}");
        }
        assert_eq!(billed(app, &app.company).await, BTreeMap::new());
    }

    async fn an_uncovered_charge_moves_no_money(app: TestApp) {
        set_own(app, json!({ "otp.sms": 4.01, "otp.email": 10_000_000_000_000_i64 })).await.data();
        credit(app, &app.company, 8).await;
        assert_eq!(message(charge(app, "otp.sms", 2, "two").await), NOT_COVERED);
        assert_eq!(message(charge(app, "otp.email", i64::MAX, "all").await), NOT_COVERED);
        assert_eq!((balance(app).await, billed(app, &app.company).await), (json!(8), BTreeMap::new()));
        // The key of a rejected charge is still unused.
        assert_eq!(charge(app, "otp.sms", 1, "two").await.expect("a charge"), PostOutcome::Posted);
        assert_eq!(balance(app).await, json!(3.99));
        // A USD balance covers no fees.
        let dollars = json!({ "amount": 100, "currency": "USD", "key": "dollars" });
        app.operator(Method::POST, &own(app, "/wallet/credit"), dollars).await.data();
        assert_eq!(message(charge(app, "otp.sms", 1, "more").await), NOT_COVERED);
    }

    async fn a_key_is_charged_once_even_after_a_price_change(app: TestApp) {
        credit(app, &app.company, 100).await;
        assert_eq!(charge(app, "otp.sms", 3, "free").await.expect("a charge"), PostOutcome::Posted);
        set_own(app, json!({ "otp.sms": 10 })).await.data();
        assert_eq!(charge(app, "otp.sms", 3, "free").await.expect("a charge"), PostOutcome::Duplicate);
        assert_eq!(balance(app).await, 100);
        assert_eq!(charge(app, "otp.sms", 3, "paid").await.expect("a charge"), PostOutcome::Posted);
        set_own(app, json!({ "otp.sms": 50 })).await.data();
        // Even if the balance no longer covers the fee.
        assert_eq!(charge(app, "otp.sms", 3, "paid").await.expect("a charge"), PostOutcome::Duplicate);
        assert_eq!(billed(app, &app.company).await, BTreeMap::from([("charge:paid".to_owned(), -3_000)]));
        // Keys are separate per company, and separate from those of operator transactions.
        let other = app.new_company("Beta Lending").await;
        assert_eq!(charge_to(app, &other, ("otp.sms", 1), "paid").await.expect("a charge"), PostOutcome::Posted);
        assert_eq!(charge(app, "otp.email", 1, "top-up").await.expect("a charge"), PostOutcome::Posted);
    }

    async fn the_ledger_scan_accepts_a_company_with_only_free_charges(app: TestApp) {
        assert_eq!(charge(app, "otp.sms", 1, "free").await.expect("a charge"), PostOutcome::Posted);
        assert_eq!(get(app, &own(app, "/wallet/entries")).await["total"], 0);
        assert_eq!(balance(app).await, 0);
        app.advance(300).await;
        let mut watch = Monitor::default();
        watch.poll(&app.app).await;
        watch.poll(&app.app).await;
        let page = app.app.server.telemetry.scrape();
        let value = |name: &str| crate::telemetry::metric_value(&page, &format!("tollhouse_{name}"));
        assert_eq!(value("store_up"), Some(1.0));
        assert_eq!(value("ledger_wrong_balances"), Some(0.0));
        assert!(value("ledger_scan_timestamp_seconds") > Some(0.0), "no ledger scan has completed");
    }

    async fn a_fee_is_refunded_in_full_and_once(app: TestApp) {
        set_own(app, json!({ "otp.sms": 4.01 })).await.data();
        credit(app, &app.company, 100).await;
        refund_fee(app, "sent").await; // never charged
        charge(app, "otp.sms", 3, "sent").await.expect("a charge");
        charge(app, "otp.email", 3, "free").await.expect("a charge");
        charge(app, "otp.sms", 1, "kept").await.expect("a charge");
        set_own(app, json!({ "otp.sms": 99, "otp.email": 99 })).await.data();
        for key in ["sent", "free", "sent", "nothing", "top-up"] {
            refund_fee(app, key).await;
        }
        let keys = [("charge:kept", -401), ("charge:sent", -1203), ("refund:sent", 1203)];
        assert_eq!(billed(app, &app.company).await, keys.map(|(key, minor)| (key.to_owned(), minor)).into());
        assert_eq!(balance(app).await, json!(95.99));
        let listed = get(app, &own(app, "/wallet/entries")).await["docs"].clone();
        let of = |account: &str| {
            let entries = listed.as_array().expect("a list").iter().filter(|e| e["account"] == account && e["key"] == "refund:sent");
            entries.map(|e| (e["kind"].clone(), e["amount"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(of("wallet"), [(json!("otp.sms.refund"), json!(12.03))]);
        assert_eq!(of("billing"), [(json!("otp.sms.refund"), json!(-12.03))]);
        // The key of a refunded fee is not charged again.
        assert_eq!(charge(app, "otp.sms", 1, "sent").await.expect("a charge"), PostOutcome::Duplicate);
    }
}

// ---- concurrency --------------------------------------------------------------------------------

both! {
    async fn concurrent_charges_succeed_up_to_the_balance(app: TestApp) {
        set_default(app, json!({ "otp.sms": 9.99 })).await;
        credit(app, &app.company, 100).await;
        let key = |n: usize| format!("key-{}", n / 2); // each twice
        let charges = (0..40).map(async |n| (key(n), charge(app, "otp.sms", 1, &key(n)).await));
        let done = join_all(charges).await;
        let of = |wanted: PostOutcome| done.iter().filter(|(_, moved)| matches!(moved, Ok(moved) if *moved == wanted)).count();
        assert_eq!((of(PostOutcome::Posted), of(PostOutcome::Duplicate)), (10, 10));
        let refused = done.iter().filter_map(|(_, moved)| moved.as_ref().err());
        assert!(refused.map(ToString::to_string).all(|text| text == NOT_COVERED));
        assert_eq!(balance(app).await, json!(0.1));
        let billed = billed(app, &app.company).await;
        assert!(billed.len() == 10 && billed.values().all(|minor| *minor == -999), "{billed:?}");
    }

    // A key is charged at most once, and refunded at most once by the charged amount.
    async fn concurrent_charges_and_refunds_neither_create_nor_lose_money(app: TestApp) {
        const ITEMS: [&str; 4] = ["otp.sms", "otp.email", "customer.create", "recollection.card"];
        set_default(app, json!({ "otp.sms": 3.33, "otp.email": 17, "recollection.card": 0.01 })).await;
        for seed in 0..4 {
            let random = Random::seeded(seed);
            let company = app.new_company("Beta Lending").await;
            credit(app, &company, 300).await;
            let draw = |most: i64| random.up_to(most);
            let steps: Vec<_> = (0..60).map(|_| (draw(2), draw(14), draw(3), draw(5))).collect();
            let company = &company;
            let run = steps.iter().map(async |(act, key, item, quantity)| {
                let (key, item) = (format!("key-{key}"), ITEMS[usize::try_from(*item).expect("an index")]);
                if *act == 0 {
                    return refund_fee_to(app, company, &key).await;
                }
                if let Err(refused) = charge_to(app, company, (item, *quantity), &key).await {
                    assert_eq!(refused.to_string(), NOT_COVERED, "seed {seed}");
                }
            });
            join_all(run).await;
            let billed = billed(app, company).await;
            for (key, minor) in billed.iter().filter_map(|(key, minor)| Some((key.strip_prefix("refund:")?, minor))) {
                assert_eq!(billed.get(&format!("charge:{key}")), Some(&-minor), "seed {seed}: {billed:?}");
            }
            let wallet = get(app, &format!("/companies/{}/wallet", company.id)).await;
            let left = minor(&wallet["balance"]);
            assert_eq!(left, 30_000 + billed.values().sum::<i64>(), "seed {seed}");
            assert!(left >= 0, "seed {seed}: {wallet}");
            app.check_ledger().await;
        }
    }

    async fn a_charge_concurrent_with_its_refund_is_kept_or_refunded_in_full(app: TestApp) {
        set_default(app, json!({ "otp.sms": 4 })).await;
        credit(app, &app.company, 100).await;
        for round in 0..10 {
            let (before, key) = (minor(&balance(app).await), format!("key-{round}"));
            let charges = join_all((0..3).map(|_| charge(app, "otp.sms", 1, &key)));
            let refunds = join_all((0..3).map(|_| refund_fee(app, &key)));
            let (charged, _) = join(charges, refunds).await;
            let now = charged.iter().filter(|moved| matches!(moved, Ok(PostOutcome::Posted))).count();
            assert_eq!((now, charged.iter().filter(|moved| moved.is_err()).count()), (1, 0));
            assert!([0, 400].contains(&(before - minor(&balance(app).await))));
            refund_fee(app, &key).await;
            assert_eq!(minor(&balance(app).await), before);
        }
    }
}

// ---- low balance --------------------------------------------------------------------------------

/// Returns the data of all low-balance events, oldest first, after advancing the clock until all of
/// them are readable.
async fn low_balance_events(app: &TestApp) -> Vec<Value> {
    app.advance(61).await;
    let path = format!("/events?kind=wallet.low_balance&company={}", app.company.id);
    let read = get(app, &path).await;
    read["events"].as_array().expect("a list").iter().map(|event| event["data"].clone()).collect()
}

both! {
    async fn a_charge_that_crosses_the_threshold_emits_one_low_balance_event(app: TestApp) {
        set_default(app, json!({ "otp.sms": 100 })).await;
        credit(app, &app.company, 1_200).await;
        let low = |balance: i64, threshold: i64| json!({ "balance": balance, "threshold": threshold, "currency": "NGN" });
        charge(app, "otp.sms", 2, "to the threshold").await.expect("a charge");
        assert_eq!(low_balance_events(app).await, Vec::<Value>::new());
        charge(app, "otp.sms", 1, "below").await.expect("a charge");
        charge(app, "otp.sms", 1, "below").await.expect("a charge");
        charge(app, "otp.sms", 1, "further below").await.expect("a charge");
        assert_eq!(low_balance_events(app).await, [low(900, 1_000)]);
        // The refunds raise the balance above the threshold, and a charge crosses it again.
        refund_fee(app, "below").await;
        refund_fee(app, "further below").await;
        charge(app, "otp.sms", 3, "again").await.expect("a charge");
        assert_eq!(low_balance_events(app).await, [low(900, 1_000), low(700, 1_000)]);
        let page = app.app.server.telemetry.scrape();
        let counted = r#"tollhouse_operator_events_total{kind="wallet.low_balance"}"#;
        assert_eq!(crate::telemetry::metric_value(&page, counted), Some(2.0));
    }

    async fn a_company_can_have_its_own_threshold(app: TestApp) {
        set_default(app, json!({ "otp.sms": 0.5 })).await;
        credit(app, &app.company, 20).await;
        let mut charges = 0..;
        let mut expected = Vec::new();
        for (low_balance, emitted) in [(json!(19.5), false), (json!(19.49), true), (json!(0), false), (json!(18.51), false), (Value::Null, false)] {
            let edited = app.operator(Method::PATCH, &own(app, ""), json!({ "low_balance": low_balance })).await;
            assert_eq!(edited.data()["low_balance"], low_balance);
            assert_eq!(get(app, &own(app, "")).await["low_balance"], low_balance);
            charge(app, "otp.sms", 1, &charges.next().expect("a number").to_string()).await.expect("a charge");
            expected.extend(emitted.then(|| low_balance.clone()));
            let thresholds: Vec<Value> = low_balance_events(app).await.iter().map(|data| data["threshold"].clone()).collect();
            assert_eq!(thresholds, expected, "{low_balance}");
        }
        // An unnamed field stays.
        app.operator(Method::PATCH, &own(app, ""), json!({ "low_balance": 5 })).await.data();
        app.operator(Method::PATCH, &own(app, ""), json!({ "name": "Acme" })).await.data();
        assert_eq!(get(app, &own(app, "")).await["low_balance"], 5);
        for (value, message) in [(json!(-1), "0 or more"), (json!("5"), "a number"), (json!(0.001), "a number with at most 2 decimals")] {
            let refused = app.operator(Method::PATCH, &own(app, ""), json!({ "low_balance": value })).await;
            assert_eq!(refused.failure(), (400, &*format!("the low_balance field must be {message}")));
        }
    }

    async fn a_charge_that_is_rolled_back_emits_no_event(app: TestApp) {
        set_default(app, json!({ "otp.sms": 100 })).await;
        credit(app, &app.company, 1_000).await;
        let (host, id) = (app.app.clone(), app.company.id.clone());
        let failed: Result<()> = app.app.store.write(async move |tx| {
            let company = companies::get(tx, &id).await?;
            wallet::charge_fee(tx, &host, &company, "otp.sms", 1, "lost").await?;
            Err(Error::invalid("the billed operation failed"))
        }).await;
        failed.expect_err("a failure");
        assert_eq!((balance(app).await, low_balance_events(app).await), (json!(1_000), vec![]));
        charge(app, "otp.sms", 1, "lost").await.expect("a charge");
        assert_eq!(low_balance_events(app).await.len(), 1);
    }
}
