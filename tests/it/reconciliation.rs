//! Reconciliation with what providers list: transactions, settlements and days.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::money::reconciliation as slice;
use tollhouse_platform::store::{self, Tx, params};
use tollhouse_sandbox::{Fault, FaultKind, ListedKind, ListedLine, ListingChange};

use crate::{
    app::{PAYSTACK_KEY, Reply, TestApp},
    console::Browser,
    exceptions::{exceptions, sum},
    lending::{SUCCESS_CARD, create_user, saved_card},
    portal,
    principals::entries,
};

const DAY: i64 = 86_400;
/// The net amount of a payment of 2,500.50, and Paystack's fees, in minor units.
const NET: i64 = 236_299;
const FEES: i64 = 13_751;

/// Returns the id of the service account at a provider.
pub async fn account(app: &TestApp, provider: &str) -> String {
    let listed = app.operator(Method::GET, "/providers", Value::Null).await.data().clone();
    let found = listed.as_array().expect("a list").iter().find(|one| one["provider"] == provider);
    found.expect("an account")["account"].as_str().expect("an id").to_owned()
}

/// Inserts a difference that concerns no company, and the end of a list. Returns the ids of the
/// difference and of the account.
pub async fn insert_difference(app: &TestApp) -> [String; 2] {
    let (account, now) = (account(app, "provider_a").await, app.app.clock.now());
    let id = account.clone();
    let insert = async move |tx: &mut Tx| -> store::Result<()> {
        tx.sql(
            "INSERT INTO exceptions (company_id, id, kind, charge_id, expected_minor, currency, seen_minor, seen_currency, state,
                 created_at, account_id, subject, day)
             VALUES ('', 'difference', 'payment_not_recorded', 'difference', 0, 'NGN', 5, 'NGN', 'open', $2, $1, 'payment:1', 0)",
        )
        .params(params![&id, now])
        .execute()
        .await?;
        tx.sql(
            "INSERT INTO account_listings (account_id, begun_at, since, until, step, pages, check_at, listed_at)
             VALUES ($1, 0, $2, $2, 'done', 0, $2, $2)",
        )
        .params(params![&id, now])
        .execute()
        .await
    };
    app.app.store.write(insert).await.expect("a difference");
    ["difference".to_owned(), account]
}

/// Lists the transactions of the service account, and waits for the check.
pub async fn reconcile(app: &TestApp) {
    let path = format!("/accounts/{}/reconcile", account(app, "provider_a").await);
    let begun = app.operator(Method::POST, &path, json!({})).await;
    assert_eq!(begun.status, 200, "{}", begun.body);
    app.run_until_idle().await;
    app.advance(30).await;
}

/// Returns the report of the day that is this number of days before today.
async fn day(app: &TestApp, days_ago: i64) -> Value {
    let path =
        format!("/accounts/{}/days/{}", account(app, "provider_a").await, date(app, days_ago));
    app.operator(Method::GET, &path, Value::Null).await.data().clone()
}

fn date(app: &TestApp, days_ago: i64) -> String {
    let at = app.app.clock.now().plus_seconds(-days_ago * DAY);
    at.to_datetime().format("%Y-%m-%d").to_string()
}

/// Returns the totals of a day: kind, listed, matched.
fn totals(day: &Value) -> Vec<(String, i64, i64)> {
    let total = |total: &Value| {
        let number = |field: &str| total[field].as_i64().expect("a number");
        (total["kind"].as_str().expect("a kind").to_owned(), number("listed"), number("matched"))
    };
    day["totals"].as_array().expect("a list").iter().map(total).collect()
}

/// Returns the kinds of the open exceptions, in order of detection.
async fn open(app: &TestApp) -> Vec<String> {
    let open = exceptions(app, "?state=open").await;
    open.iter().map(|one| one["kind"].as_str().expect("a kind").to_owned()).collect()
}

fn exception_path(exception: &Value) -> String {
    let id = exception["id"].as_str().expect("an id");
    match exception["company"].as_str() {
        Some(company) => format!("/companies/{company}/exceptions/{id}"),
        None => format!("/exceptions/{id}"),
    }
}

async fn resolve(app: &TestApp, exception: &Value, action: &str) -> Reply {
    let path = format!("{}/resolve", exception_path(exception));
    let body = json!({ "action": action, "reason": "asked Paystack" });
    app.operator(Method::POST, &path, body).await
}

fn change(app: &TestApp, change: ListingChange) {
    assert!(app.simulators.paystack().change_listing("order-1", change));
}

fn unknown_payment() -> ListedLine {
    ListedLine {
        kind: ListedKind::Payment,
        reference: "ghost".to_owned(),
        amount_minor: 100_000,
        fees_minor: Some(1_000),
        currency: "NGN".to_owned(),
    }
}

async fn refund_part(app: &TestApp, payment: &Value, amount: i64) {
    let id = payment["id"].as_str().expect("an id");
    let path = format!("/companies/{}/payments/{id}/refund", app.company.id);
    app.operator(Method::POST, &path, json!({ "amount": amount })).await.data();
    app.run_until_idle().await;
}

both! {
    async fn payments_refunds_and_lost_disputes_match(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        refund_part(app, &payment, 500).await;
        let id = app.simulators.paystack().open_dispute("order-1", Some(100_000)).expect("a dispute");
        app.run_until_idle().await;
        assert!(app.simulators.paystack().decide_dispute(id, false));
        app.run_until_idle().await;
        reconcile(app).await;
        assert_eq!(open(app).await, [""; 0]);
        let today = day(app, 0).await;
        let one = |kind: &str| (kind.to_owned(), 1, 1);
        assert_eq!(totals(&today), [one("dispute"), one("payment"), one("refund")]);
        assert_eq!((&today["totals"][1]["amount"], &today["totals"][1]["fees"]), (&json!(2500.5), &json!(137.51)));
        let days = app.operator(Method::GET, &format!("/accounts/{}/days", account(app, "provider_a").await), Value::Null).await.data().clone();
        assert_eq!((days.as_array().expect("a list").len(), &days[0]["listed"], &days[0]["matched"], &days[0]["exceptions"]), (31, &json!(3), &json!(3), &json!(0)));
        assert_eq!(sum(app, "suspense").await, 0);
    }

    async fn each_difference_is_an_exception_until_the_list_agrees(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        refund_part(app, &payment, 500).await;
        let paystack = app.simulators.paystack();
        let amount = |minor| ListingChange { amount_minor: Some(minor), ..ListingChange::default() };
        for (listed, kind, seen, suspense) in [
            (amount(300_000), "payment_amount_differs", json!(3000), 300_000 - 250_050),
            (amount(200_000), "payment_amount_differs", json!(2000), 200_000 - 250_050),
            (ListingChange { fees_minor: Some(FEES as u64 + 9), ..ListingChange::default() }, "fee_differs", json!(2500.5), -9),
        ] {
            change(app, listed);
            reconcile(app).await;
            let found = exceptions(app, "?state=open").await;
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!((&found[0]["kind"], &found[0]["seen"], &found[0]["expected"]), (&json!(kind), &seen, &json!(2500.5)));
            assert_eq!((&found[0]["owner_id"], &found[0]["company"]), (&payment["id"], &json!(app.company.id)));
            assert_eq!(sum(app, "suspense").await, suspense, "{kind}");
            assert_eq!(totals(&day(app, 0).await)[0], ("payment".to_owned(), 1, 0));
        }
        change(app, ListingChange::default());
        reconcile(app).await;
        assert_eq!((open(app).await.len(), sum(app, "suspense").await), (0, 0));
        let resolved = exceptions(app, "?state=resolved").await;
        assert!(resolved.iter().all(|one| one["reason"] == "the provider's list and the records agree"), "{resolved:?}");

        let added = ListedLine { kind: ListedKind::Refund, reference: "order-1".to_owned(), amount_minor: 70_000, fees_minor: None, currency: "NGN".to_owned() };
        let id = paystack.add_listed(&added).expect("a refund");
        reconcile(app).await;
        assert_eq!((open(app).await, sum(app, "suspense").await), (vec!["refund_not_recorded".to_owned()], -70_000));
        assert!(paystack.change_listed_refund(&id, ListingChange { hidden: true, ..ListingChange::default() }));
        reconcile(app).await;
        assert_eq!(open(app).await, ["refund_not_recorded"], "an operator decides about what the list no longer has");
    }

    async fn a_payment_that_only_the_provider_knows_belongs_to_no_company(app: TestApp) {
        app.paid_payment("order-1").await;
        app.simulators.paystack().add_listed(&unknown_payment()).expect("a payment");
        reconcile(app).await;
        let found = exceptions(app, "?state=open").await[0].clone();
        assert_eq!(
            ["kind", "company", "owner_kind", "owner_id", "service_ref", "seen", "suspense", "expected"].map(|field| found[field].clone()),
            [json!("payment_not_recorded"), Value::Null, Value::Null, Value::Null, json!("ghost"), json!(1000), json!(0), json!(0)],
            "a test account has no ledger without a charge"
        );
        let path = exception_path(&found);
        app.operator(Method::PATCH, &path, json!({ "mine": true, "note": "asked Paystack" })).await.data();
        let noted = app.operator(Method::GET, &path, Value::Null).await.data().clone();
        assert_eq!((noted["notes"][0]["text"].as_str(), noted["owner"].is_null()), (Some("asked Paystack"), false));
        for (action, message) in [("credit", "no money in suspense"), ("refund", "cannot be refunded")] {
            let refused = resolve(app, &found, action).await;
            assert!(refused.status == 400 && refused.body["message"].as_str().expect("a message").contains(message), "{}", refused.body);
        }
        assert_eq!(resolve(app, &found, "none").await.data()["state"], "resolved");
        assert_eq!(resolve(app, &found, "none").await.status, 400);
        reconcile(app).await;
        assert_eq!(open(app).await, [""; 0], "the same difference stays resolved");
    }

    async fn an_unknown_payment_at_a_live_account_is_in_suspense_of_the_service(app: TestApp) {
        app.paid_payment("order-1").await;
        let credentials = json!({ "secret_key": PAYSTACK_KEY, "base_url": format!("{}/paystack", app.simulators.url()) });
        let live = json!({ "mode": "live", "active": true, "credentials": credentials });
        let live = app.operator(Method::PUT, "/providers/provider_a", live).await.data()["account"].clone();
        app.simulators.paystack().add_listed(&unknown_payment()).expect("a payment");
        let path = format!("/accounts/{}/reconcile", live.as_str().expect("an id"));
        assert_eq!(app.operator(Method::POST, &path, json!({})).await.status, 200);
        app.run_until_idle().await;
        app.advance(30).await;
        let found = exceptions(app, "?state=open").await;
        let found = found.iter().find(|one| one["service_ref"] == "ghost").expect("an exception");
        assert_eq!((&found["suspense"], &found["account"]), (&json!(990), &live));
        assert_eq!(resolve(app, found, "credit").await.failure(), (400, "this difference belongs to no company"));
        assert_eq!(resolve(app, found, "absorb").await.data()["suspense"], 0);
    }

    async fn a_second_refund_of_the_same_amount_is_not_recorded(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        refund_part(app, &payment, 500).await;
        let again = ListedLine { kind: ListedKind::Refund, reference: "order-1".to_owned(), amount_minor: 50_000, fees_minor: None, currency: "NGN".to_owned() };
        app.simulators.paystack().add_listed(&again).expect("a refund");
        reconcile(app).await;
        assert_eq!((open(app).await, sum(app, "suspense").await), (vec!["refund_not_recorded".to_owned()], -50_000));
        assert_eq!(totals(&day(app, 0).await)[1], ("refund".to_owned(), 2, 1));
    }

    async fn a_reversed_payment_and_a_verification_charge_match(app: TestApp) {
        reconcile(app).await;
        app.paid_payment("order-1").await;
        assert!(app.simulators.paystack().reverse("order-1"));
        app.run_until_idle().await;
        create_user(app, "ada").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        reconcile(app).await;
        app.advance(DAY + 60).await;
        reconcile(app).await;
        assert_eq!((open(app).await, sum(app, "suspense").await), (Vec::new(), 0));
    }

    async fn a_payment_without_an_outcome_waits_for_its_verification(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut).times(9));
        app.complete(&payment, "success").await;
        app.simulators.faults().push(Fault::new("verify", FaultKind::Error500).times(50));
        reconcile(app).await;
        assert_eq!((app.fetch("order-1").await["status"].clone(), open(app).await.len()), (json!("pending"), 0));
        assert_eq!(totals(&day(app, 0).await), [("payment".to_owned(), 1, 0)]);
        app.simulators.faults().clear();
        app.advance(DAY).await;
        reconcile(app).await;
        assert_eq!((app.fetch("order-1").await["status"].clone(), totals(&day(app, 1).await)), (json!("success"), vec![("payment".to_owned(), 1, 1)]));
    }

    async fn another_amount_opens_a_resolved_exception_again(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "failed").await;
        app.run_until_idle().await;
        let paid = ListedLine { reference: "order-2".to_owned(), ..unknown_payment() };
        app.simulators.paystack().add_listed(&paid).expect("a payment");
        reconcile(app).await;
        assert_eq!(open(app).await, ["payment_not_recorded"]);
        let found = exceptions(app, "?state=open").await[0].clone();
        assert_eq!(resolve(app, &found, "none").await.data()["state"], "resolved");
        app.simulators.paystack().change_listing("order-2", ListingChange { fees_minor: Some(7), ..ListingChange::default() });
        reconcile(app).await;
        assert_eq!(open(app).await, ["payment_not_recorded"], "another amount opens it again");
    }

    async fn a_payment_that_is_reversed_is_no_longer_missing(app: TestApp) {
        reconcile(app).await;
        app.paid_payment("order-1").await;
        change(app, ListingChange { hidden: true, ..ListingChange::default() });
        app.advance(DAY + 60).await;
        reconcile(app).await;
        assert_eq!((open(app).await, sum(app, "suspense").await), (vec!["payment_not_listed".to_owned()], -NET));
        assert!(app.simulators.paystack().reverse("order-1"));
        app.advance(8 * DAY).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        reconcile(app).await;
        assert!(!open(app).await.contains(&"payment_not_listed".to_owned()), "{:?}", open(app).await);
    }

    async fn an_operator_decides_who_bears_a_difference(app: TestApp) {
        app.paid_payment("order-1").await;
        for (minor, action, wallet, fees) in [
            (300_000, "credit", NET + 49_950, 0),
            (240_000, "credit", NET - 10_050, 0),
            (245_050, "absorb", NET - 10_050, 5_050),
            (255_050, "none", NET - 10_050, 5_050),
        ] {
            change(app, ListingChange { amount_minor: Some(minor), ..ListingChange::default() });
            reconcile(app).await;
            let found = exceptions(app, "?state=open").await;
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(resolve(app, &found[0], action).await.data()["state"], "resolved");
            let sums = (sum(app, "wallet").await, sum(app, "fees").await, sum(app, "suspense").await);
            assert_eq!(sums, (wallet, fees, 0), "{minor} {action}");
        }
        change(app, ListingChange::default());
        reconcile(app).await;
        let found = exceptions(app, "?state=open").await;
        assert_eq!((found.len(), &found[0]["suspense"], &found[0]["seen"]), (1, &json!(50), &json!(2500.5)), "what was decided is now the difference");
        assert_eq!(resolve(app, &found[0], "credit").await.data()["suspense"], 0);
        reconcile(app).await;
        assert_eq!((open(app).await.len(), sum(app, "wallet").await), (0, NET - 5_050));
        let debit = json!({ "amount": 2300, "reason": "paid out", "key": "payout-1" });
        app.operator(Method::POST, &format!("/companies/{}/wallet/debit", app.company.id), debit).await.data();
        change(app, ListingChange { amount_minor: Some(1_000), ..ListingChange::default() });
        reconcile(app).await;
        let found = exceptions(app, "?state=open").await[0].clone();
        let refused = resolve(app, &found, "credit").await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert_eq!(open(app).await, ["payment_amount_differs"], "what the wallet does not cover stays open");
    }

    async fn a_payment_whose_webhook_was_lost_is_verified_first(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut).times(9));
        app.complete(&payment, "success").await;
        reconcile(app).await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!((open(app).await.len(), totals(&day(app, 0).await)), (0, vec![("payment".to_owned(), 1, 1)]));
    }

    async fn what_the_list_lacks_after_a_day_is_an_exception(app: TestApp) {
        reconcile(app).await;
        let payment = app.paid_payment("order-1").await;
        refund_part(app, &payment, 500).await;
        change(app, ListingChange { hidden: true, ..ListingChange::default() });
        reconcile(app).await;
        assert_eq!(open(app).await, [""; 0], "the provider may list it late");
        app.advance(DAY + 60).await;
        reconcile(app).await;
        let found = exceptions(app, "?state=open").await;
        assert_eq!((&found[0]["kind"], &found[0]["seen"], found.len()), (&json!("payment_not_listed"), &Value::Null, 1));
        assert_eq!(sum(app, "suspense").await, -NET);
        change(app, ListingChange::default());
        reconcile(app).await;
        assert_eq!((open(app).await.len(), sum(app, "suspense").await), (0, 0));
    }

    async fn a_settlement_is_compared_with_its_payments(app: TestApp) {
        let paystack = app.simulators.paystack();
        app.paid_payment("order-1").await;
        let first = paystack.settle(None).expect("a settlement");
        reconcile(app).await;
        let today = day(app, 0).await;
        assert_eq!((&today["settlements"][0]["id"], &today["settlements"][0]["gross"]), (&json!(first), &json!(2500.5)));
        assert_eq!(open(app).await, [""; 0]);
        app.paid_payment("order-2").await;
        let second = paystack.settle(Some(200_000)).expect("a settlement");
        reconcile(app).await;
        let found = exceptions(app, "?state=open").await;
        assert_eq!((found.len(), &found[0]["kind"], &found[0]["subject"]), (1, &json!("settlement_differs"), &json!(format!("settlement:{second}"))));
        assert_eq!((&found[0]["expected"], &found[0]["seen"], &found[0]["suspense"]), (&json!(2362.99), &json!(2000), &json!(0)));
    }

    async fn a_day_is_closed_and_later_changes_are_exceptions(app: TestApp) {
        app.paid_payment("order-1").await;
        let path = format!("/accounts/{}/days/{}", account(app, "provider_a").await, date(app, 0));
        let close = async || app.operator(Method::POST, &format!("{path}/close"), json!({})).await;
        reconcile(app).await;
        assert!(close().await.body["message"].as_str().expect("a message").contains("not been listed"));
        change(app, ListingChange { fees_minor: Some(1), ..ListingChange::default() });
        app.advance(2 * DAY).await;
        reconcile(app).await;
        let refused = close().await;
        assert_eq!(refused.failure(), (400, "resolve the open exceptions of the day first: 1"));
        change(app, ListingChange::default());
        reconcile(app).await;
        let closed = close().await.data().clone();
        assert_eq!((&closed["closed"]["totals"], closed["closed"]["by"].is_null()), (&closed["totals"], false));
        assert_eq!(close().await.body["message"], "the day is already closed");
        assert_eq!(entries(app, "/audit", "day.close").await.len(), 1);

        assert_eq!(open(app).await, [""; 0]);
        change(app, ListingChange { fees_minor: Some(2), ..ListingChange::default() });
        reconcile(app).await;
        let mut kinds = open(app).await;
        kinds.sort();
        assert_eq!(kinds, ["closed_day_changed", "fee_differs"]);
        let changed = exceptions(app, "?state=open").await;
        let changed = changed.iter().find(|one| one["kind"] == "closed_day_changed").expect("an exception");
        assert_eq!((&changed["expected_fees"], &changed["seen_fees"]), (&json!(137.51), &json!(0.02)));
        assert_eq!(resolve(app, changed, "none").await.data()["state"], "resolved");
        reconcile(app).await;
        assert_eq!(open(app).await, ["fee_differs"]);
        change(app, ListingChange { fees_minor: Some(3), ..ListingChange::default() });
        reconcile(app).await;
        assert_eq!(open(app).await.len(), 2, "a second change is another one");
        change(app, ListingChange { fees_minor: Some(2), ..ListingChange::default() });
        reconcile(app).await;
        let report = day(app, 2).await;
        assert_eq!((&report["totals"][0]["fees"], &report["closed"]["totals"][0]["fees"]), (&json!(0.02), &json!(137.51)));
    }

    async fn a_day_is_shown_and_closed_on_the_console(app: TestApp) {
        app.paid_payment("order-1").await;
        change(app, ListingChange { fees_minor: Some(1), ..ListingChange::default() });
        let mut browser = Browser::signed_in(app, "ada", "finance-act").await;
        let accounts = browser.get("/console/reconciliation").await;
        assert!(accounts.html.contains("provider_a") && !accounts.html.contains("twilio"), "{}", accounts.html);
        let page = format!("/console/reconciliation/{}", account(app, "provider_a").await);
        let token = browser.get(&page).await.form_token();
        let token = [("form_token", &*token)];
        assert_eq!(browser.submit(&format!("{page}/reconcile"), &token).await.location, page);
        app.run_until_idle().await;
        app.advance(30).await;
        let today = format!("{page}/{}", date(app, 0));
        browser.get(&today).await.shows(&["payment", "2\u{202F}500.50", "fee differs", "Close the day"]);
        let early = browser.submit(&format!("{today}/close"), &token).await;
        assert!(early.status == 400 && early.html.contains("have not been listed"), "{}", early.html);
        let found = exceptions(app, "?state=open").await[0].clone();
        let exception = format!("/console{}", exception_path(&found));
        browser.get(&exception).await.shows(&["fee differs", "The service keeps or bears the difference", "137.50"]);
        let resolution = [token[0], ("action", "absorb"), ("reason", "asked Paystack")];
        assert_eq!(browser.submit(&exception, &resolution).await.location, "/console/exceptions");
        app.advance(2 * DAY).await;
        reconcile(app).await;
        let before = format!("{page}/{}", date(app, 2));
        let mut browser = Browser::signed_in(app, "eve", "finance-act").await;
        let token = browser.get(&before).await.form_token();
        let token = [("form_token", &*token)];
        assert_eq!(browser.submit(&format!("{before}/close"), &token).await.location, before);
        let closed = browser.get(&before).await;
        closed.shows(&["Closed by", "eve"]);
        assert!(!closed.html.contains("Close the day"), "{}", closed.html);
    }

    async fn an_account_of_a_company_has_no_ledger(app: TestApp) {
        let company = format!("/companies/{}", app.company.id);
        let own = json!({
            "active": true,
            "credentials": { "secret_key": PAYSTACK_KEY, "base_url": format!("{}/paystack", app.simulators.url()) },
        });
        let own = app.operator(Method::PUT, &format!("{company}/providers/provider_a"), own).await.data().clone();
        app.paid_payment("order-1").await;
        change(app, ListingChange { fees_minor: Some(1), ..ListingChange::default() });
        let path = format!("/accounts/{}/reconcile", own["account"].as_str().expect("an id"));
        assert_eq!(app.operator(Method::POST, &path, json!({})).await.status, 200);
        app.run_until_idle().await;
        app.advance(30).await;
        let found = exceptions(app, "?state=open").await;
        assert_eq!((&found[0]["kind"], &found[0]["suspense"], &found[0]["company"]), (&json!("fee_differs"), &json!(0), &json!(app.company.id)));
        assert_eq!(sum(app, "suspense").await, 0);

        // Its members see the days, and not who works on an exception.
        let exception = format!("{company}/exceptions/{}", found[0]["id"].as_str().expect("an id"));
        let note = json!({ "mine": true, "note": "asked the provider" });
        app.operator(Method::PATCH, &exception, note).await.data();
        let account = own["account"].as_str().expect("an id");
        let path = format!("{company}/accounts/{account}/days/{}", date(app, 0));
        let seen = app.operator(Method::GET, &path, Value::Null).await.data().clone();
        assert_eq!(seen["exceptions"][0]["owner"], "operator");
        let ada = portal::member(app, &app.company, "company-finance").await;
        let pages = format!("/portal{company}/reconciliation");
        ada.get(&pages).await.shows(&["Reconciliation", "provider_a"]);
        ada.get(&format!("{pages}/{account}")).await.shows(&["Days of a provider account", &date(app, 0)]);
        let day = ada.get(&format!("{pages}/{account}/{}", date(app, 0))).await;
        day.shows(&["fee differs", "payment"]);
        assert!(!day.html.contains("operator") && !day.html.contains("Close the day"), "{}", day.html);
        let services = format!("{pages}/{}", self::account(app, "provider_a").await);
        assert_eq!(ada.get(&services).await.status, 404);
    }

    async fn a_sweep_begins_the_daily_list_once(app: TestApp) {
        app.paid_payment("order-1").await;
        let lists = |app: &TestApp| app.simulators.paystack().requests().iter().filter(|(_, path)| path.starts_with("/settlement")).count();
        for (seconds, expected) in [(0, 1), (60, 1), (DAY, 2)] {
            app.advance(seconds).await;
            slice::sweep(app.app.clone()).await.expect("a sweep");
            app.run_until_idle().await;
            assert_eq!(lists(app), expected, "after {seconds} seconds");
        }
    }

    async fn an_interrupted_list_is_continued(app: TestApp) {
        app.paid_payment("order-1").await;
        app.simulators.faults().push(Fault::new("refund_list", FaultKind::Error500).times(1));
        let path = format!("/accounts/{}/reconcile", account(app, "provider_a").await);
        app.operator(Method::POST, &path, json!({})).await;
        app.run_until_idle().await;
        let lists = |app: &TestApp| app.simulators.paystack().requests().iter().filter(|(_, path)| path.starts_with("/transaction?")).count();
        let listed = lists(app);
        assert!(day(app, 0).await["listed_until"].is_null());
        app.advance(3_600).await;
        assert!(!day(app, 0).await["listed_until"].is_null());
        assert_eq!(lists(app), listed, "pages that were recorded are not listed again");
    }
}
