//! Conformance suite of providers with virtual accounts and account enquiry.
//!
//! A new provider needs an implementation of [`AccountSubject`] and a line in [`conforms`].

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store::Tx;
use tollhouse_sandbox::{Fault, FaultKind};

use super::{
    Subject,
    monnify::{Monnify, account_order},
};
use crate::{
    app::{Reply, TestApp},
    lending::{create_loan, create_user, get_loan},
    telemetry::scrape,
};

/// A provider with virtual accounts, and its simulator.
pub trait AccountSubject: Subject {
    /// The provider's operation that opens accounts, for faults.
    const OPEN: &'static str;
    /// Method and path of that operation.
    const OPEN_REQUEST: (&'static str, &'static str);
    /// The code of a bank, and the numbers of an account that it has and of one that it lacks.
    const BANK: (&'static str, &'static str, &'static str);

    /// Transfers this amount to a virtual account. Returns the provider's reference.
    fn transfer(app: &TestApp, account_number: &str, minor: u64) -> String;
    /// Opens a virtual account without the host. Returns its number.
    async fn open_elsewhere(app: &TestApp) -> String;
}

macro_rules! conforms {
    ($($module:ident: $subject:ty;)*) => {
        $(mod $module {
            use super::*;
            type S = $subject;

            both! {
                async fn a_user_has_one_virtual_account_for_each_purpose(app: TestApp) { opens::<S>(app).await }
                async fn an_account_without_a_required_identity_is_rejected(app: TestApp) { needs_identity::<S>(app).await }
                async fn an_account_whose_response_was_lost_is_opened_once(app: TestApp) { opens_once::<S>(app).await }
                async fn a_transfer_is_a_payment_of_the_user(app: TestApp) { receives_payment::<S>(app).await }
                async fn a_transfer_repays_the_loan_of_the_account(app: TestApp) { repays::<S>(app).await }
                async fn a_transfer_is_recorded_once(app: TestApp) { receives_once::<S>(app).await }
                async fn a_transfer_repays_a_loan_once(app: TestApp) { repays_once::<S>(app).await }
                async fn a_transfer_is_recorded_after_failures_of_the_provider(app: TestApp) { retries::<S>(app).await }
                async fn a_transfer_to_a_closed_account_is_recorded(app: TestApp) { receives_after_closing::<S>(app).await }
                async fn a_transfer_that_the_provider_does_not_know_yet_is_queried_again(app: TestApp) { queries_again::<S>(app).await }
                async fn a_transfer_to_an_account_of_another_system_raises_an_alarm(app: TestApp) { alarms_unmatched::<S>(app).await }
                async fn each_company_receives_the_transfers_of_its_users(app: TestApp) { separates_companies::<S>(app).await }
                async fn a_payment_of_another_system_is_not_recorded(app: TestApp) { ignores_others::<S>(app).await }
                async fn the_holder_of_an_account_is_resolved(app: TestApp) { resolves::<S>(app).await }
            }
        })*
    };
}
conforms! {
    provider_c: Monnify;
}

/// Sets up the service account, and a user.
async fn set_up<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    create_user(app, "ada").await;
}

fn order<S: Subject>(loan: Option<&str>) -> Value {
    crate::codes::merged(account_order(loan), json!({ "payment_service": S::NAME }))
}

async fn create<S: Subject>(app: &TestApp, loan: Option<&str>) -> Reply {
    app.post("/virtual-account/create", order::<S>(loan)).await
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().expect("a text")
}

/// Transfers an amount to an account, and runs the jobs of its webhook.
async fn transfer<S: AccountSubject>(app: &TestApp, account: &Value, minor: u64) -> String {
    let reference = S::transfer(app, text(account, "account_number"), minor);
    app.run_until_idle().await;
    reference
}

async fn payments(app: &TestApp) -> Vec<Value> {
    let list = app.get("/payment/list").await;
    list.data()["docs"].as_array().expect("a list").clone()
}

async fn opens<S: AccountSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let account = create::<S>(app, None).await.data().clone();
    assert_eq!((&account["user_id"], &account["loan"]), (&json!("ada"), &Value::Null));
    assert!(text(&account, "account_number").len() == 10, "{account}");
    assert_eq!(create::<S>(app, None).await.data(), &account);
    create_loan(app, "loan-1", "ada", &[(30, 1_000.0)]).await;
    let of_loan = create::<S>(app, Some("loan-1")).await.data().clone();
    assert_ne!(of_loan["account_number"], account["account_number"]);
    let path = format!("/virtual-account/fetch/{}", text(&account, "id"));
    assert_eq!(app.get(&path).await.data(), &account);
    let listed = app.get("/virtual-account/list/ada").await;
    let listed = listed.data().as_array().expect("a list").clone();
    assert!(listed.len() == 2 && listed.contains(&account) && listed.contains(&of_loan));

    for (change, failure) in [
        (json!({ "user_id": "eve" }), (404, "user not found")),
        (json!({ "loan": "loan-2" }), (404, "loan not found")),
        (json!({ "currency": "USD" }), (400, "the currency field must be one of NGN")),
        (
            json!({ "payment_service": "provider_a" }),
            (400, "the payment_service field must be a provider with virtual accounts"),
        ),
    ] {
        let order = crate::codes::merged(order::<S>(None), change);
        assert_eq!(app.post("/virtual-account/create", order).await.failure(), failure);
    }
    let path = format!("/virtual-account/delete/{}", text(&account, "id"));
    let deleted = app.request(&app.company, Method::DELETE, &path, None).await;
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    let again = app.request(&app.company, Method::DELETE, &path, None).await;
    assert_eq!(again.failure(), (404, "virtual account not found"));
    app.run_until_idle().await;
    assert!(S::requests(app).iter().any(|(method, _)| method == "DELETE"));
    assert_ne!(create::<S>(app, None).await.data()["account_number"], account["account_number"]);
}

async fn needs_identity<S: AccountSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let without =
        |identity: Value| crate::codes::merged(order::<S>(None), json!({ "identity": identity }));
    let message = format!("the identity field must be one that {} accepts", S::NAME);
    for identity in [Value::Null, json!({ "type": "passport", "number": "A1" })] {
        let refused = app.post("/virtual-account/create", without(identity)).await;
        assert_eq!(refused.failure(), (400, &*message));
    }
    assert_eq!(app.get("/virtual-account/list/ada").await.data(), &json!([]));
    assert_eq!(create::<S>(app, None).await.status, 200);
}

async fn opens_once<S: AccountSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    app.simulators.faults().push(Fault::new(S::OPEN, FaultKind::CutAfter));
    assert_eq!(create::<S>(app, None).await.status, 502);
    assert_eq!(app.get("/virtual-account/list/ada").await.data(), &json!([]));
    let account = create::<S>(app, None).await.data().clone();
    // The first request opened the account: the provider refuses the second one.
    let (method, path) = S::OPEN_REQUEST;
    let requests = S::requests(app);
    let opened = requests.iter().filter(|(m, p)| m == method && p == path).count();
    assert_eq!(opened, 2, "{requests:?}");
    transfer::<S>(app, &account, 100_000).await;
    assert_eq!(payments(app).await.len(), 1);
}

async fn receives_payment<S: AccountSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let account = create::<S>(app, None).await.data().clone();
    let reference = transfer::<S>(app, &account, 250_050).await;
    let [payment] = &payments(app).await[..] else { panic!("one payment") };
    assert_eq!((&payment["status"], &payment["amount"]), (&json!("success"), &json!(2500.5)));
    assert_eq!((text(payment, "user_id"), text(payment, "email")), ("ada", "ada@example.com"));
    assert_eq!(payment["metadata"]["virtual_account"], account["id"]);
    assert_eq!(payment["service_ref"], reference);
    assert_eq!(payment["payment_channel"], "bank_transfer");
    assert_eq!(app.events(), ["payment.success"]);
    let wallet = app.wallet().await;
    assert_eq!(wallet["balance"].as_f64(), Some(2500.5 - S::FEES));
    assert_eq!(wallet["pending"], 0);
    // A repeated initialization opens no page.
    let mut again = app.order(text(payment, "reference"));
    again["payment_service"] = json!(S::NAME);
    let again = app.post("/payment/initialize", again).await;
    assert_eq!(again.data()["checkout"]["url"], Value::Null, "{}", again.body);
    // It can be refunded like every other payment.
    let path = format!("/companies/{}/payments/{}/refund", app.company.id, text(payment, "id"));
    assert_eq!(app.operator(Method::POST, &path, json!({})).await.status, 200);
    app.run_until_idle().await;
}

async fn repays<S: AccountSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    create_loan(app, "loan-1", "ada", &[(30, 1_000.0)]).await;
    let account = create::<S>(app, Some("loan-1")).await.data().clone();
    transfer::<S>(app, &account, 40_000).await;
    assert_eq!(get_loan(app, "loan-1").await["amount_paid"], 400);
    transfer::<S>(app, &account, 70_000).await;
    let loan = get_loan(app, "loan-1").await;
    assert_eq!((&loan["amount_paid"], &loan["paid"]), (&json!(1_000), &json!(true)));
    let list = app.get("/recollection/list").await;
    let recollections = list.data()["docs"].as_array().expect("a list").clone();
    assert_eq!(recollections.len(), 2);
    for recollection in &recollections {
        assert_eq!(recollection["status"], "success", "{recollection}");
        assert_eq!(recollection["payment_channel"], "virtual_account");
    }
    assert!(recollections.iter().any(|one| one["message"] == "overpaid by 100 NGN"), "{list:?}");
    assert!(payments(app).await.is_empty());
    // Nothing is owed any longer.
    transfer::<S>(app, &account, 10_000).await;
    assert_eq!(payments(app).await[0]["status"], "success");
    assert_eq!(app.events(), ["recollection.success", "recollection.success", "payment.success"]);
}

async fn receives_once<S: AccountSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let account = create::<S>(app, None).await.data().clone();
    app.simulators.faults().push(Fault::new("notification", FaultKind::Duplicate));
    transfer::<S>(app, &account, 100_000).await;
    app.advance(3_600).await;
    assert_eq!(payments(app).await.len(), 1);
    assert_eq!(app.events(), ["payment.success"]);
    // Another transfer of the same amount is another payment.
    transfer::<S>(app, &account, 100_000).await;
    assert_eq!(payments(app).await.len(), 2);
}

/// The webhook of a transfer that repaid the loan in full is delivered again.
async fn repays_once<S: AccountSubject>(app: &TestApp) {
    let url = S::set_up(app).await;
    create_user(app, "ada").await;
    create_loan(app, "loan-1", "ada", &[(30, 1_000.0)]).await;
    let account = create::<S>(app, Some("loan-1")).await.data().clone();
    let reference = transfer::<S>(app, &account, 100_000).await;
    assert_eq!(get_loan(app, "loan-1").await["paid"], true);
    for _ in 0..2 {
        notify::<S>(app, &url, &reference).await;
        app.run_until_idle().await;
    }
    assert_eq!(jobs_left(app).await, 0);
    assert!(payments(app).await.is_empty());
    assert_eq!(get_loan(app, "loan-1").await["amount_paid"], 1_000);
    assert_eq!(app.events(), ["recollection.success"]);
}

async fn retries<S: AccountSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let account = create::<S>(app, None).await.data().clone();
    app.simulators.faults().push(Fault::new("verify", FaultKind::Error500).times(2));
    transfer::<S>(app, &account, 100_000).await;
    app.advance(3_600).await;
    let [payment] = &payments(app).await[..] else { panic!("one payment") };
    assert_eq!(payment["status"], "success");
}

async fn receives_after_closing<S: AccountSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let account = create::<S>(app, None).await.data().clone();
    let path = format!("/virtual-account/delete/{}", text(&account, "id"));
    assert_eq!(app.request(&app.company, Method::DELETE, &path, None).await.status, 200);
    app.run_until_idle().await;
    transfer::<S>(app, &account, 100_000).await;
    assert_eq!(payments(app).await[0]["status"], "success");
}

async fn ignores_others<S: AccountSubject>(app: &TestApp) {
    let url = S::set_up(app).await;
    create_user(app, "ada").await;
    create::<S>(app, None).await.data();
    S::take_reference(app, "elsewhere-1").await;
    notify::<S>(app, &url, "elsewhere-1").await;
    app.run_until_idle().await;
    assert!(payments(app).await.is_empty());
    assert_eq!(jobs_left(app).await, 0);
}

/// Sends the provider's webhook for a payment.
async fn notify<S: Subject>(app: &TestApp, url: &str, reference: &str) {
    let body = S::notification(reference);
    let (header, signature) = S::signature(&body, true);
    let sent = app.client.post(url).header(header, signature).body(body).send().await;
    assert_eq!(sent.expect("a response").status(), 200);
}

/// Number of jobs that record transfers.
async fn jobs_left(app: &TestApp) -> i64 {
    let count = async |tx: &mut Tx| {
        tx.sql("SELECT COUNT(*) FROM jobs WHERE kind = 'virtual_account.transfer'")
            .one::<(i64,)>()
            .await
    };
    app.app.store.select(count).await.expect("a count").0
}

/// The provider may report a transfer before it can be queried.
async fn queries_again<S: AccountSubject>(app: &TestApp) {
    let url = S::set_up(app).await;
    create_user(app, "ada").await;
    create::<S>(app, None).await.data();
    notify::<S>(app, &url, "unknown-1").await;
    app.run_until_idle().await;
    assert_eq!(jobs_left(app).await, 1);
    for _ in 0..110 {
        app.advance(1_800).await;
    }
    assert_eq!(jobs_left(app).await, 0);
    assert!(scrape(app).await.contains("alarm=\"unmatched transfer\"} 1"));
    assert!(payments(app).await.is_empty());
}

async fn alarms_unmatched<S: AccountSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    create::<S>(app, None).await.data();
    let number = S::open_elsewhere(app).await;
    S::transfer(app, &number, 100_000);
    app.run_until_idle().await;
    assert!(payments(app).await.is_empty());
    assert!(scrape(app).await.contains("alarm=\"unmatched transfer\"} 1"));
}

/// Companies share the service account, and each receives the transfers of its own users.
async fn separates_companies<S: AccountSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let other = app.new_company("Beta Lending").await;
    let user = json!({
        "user_id": "ada", "first_name": "Ada", "last_name": "Eze", "email": "eze@example.com",
    });
    app.request(&other, Method::POST, "/user/create", Some(user)).await.data();
    let own = create::<S>(app, None).await.data().clone();
    let create_other = Some(order::<S>(None));
    let of_other = app.request(&other, Method::POST, "/virtual-account/create", create_other).await;
    transfer::<S>(app, of_other.data(), 100_000).await;
    assert!(payments(app).await.is_empty());
    let list = app.request(&other, Method::GET, "/payment/list", None).await;
    assert_eq!(list.data()["docs"][0]["email"], "eze@example.com");
    transfer::<S>(app, &own, 200_000).await;
    assert_eq!(payments(app).await.len(), 1);
}

async fn resolves<S: AccountSubject>(app: &TestApp) {
    S::set_up(app).await;
    let banks = app.get(&format!("/account/banks/{}/NGN", S::NAME)).await;
    let (bank, known, unknown) = S::BANK;
    let listed = banks.data().as_array().expect("a list");
    assert!(listed.iter().any(|one| one["code"] == bank && one["name"] != ""), "{listed:?}");
    let resolve = async |bank: &str, number: &str, provider: &str| {
        let question =
            json!({ "bank_code": bank, "account_number": number, "payment_service": provider });
        app.post("/account/resolve", question).await
    };
    let holder = resolve(bank, known, S::NAME).await;
    assert_eq!(holder.data()["account_number"], known);
    assert!(!text(holder.data(), "account_name").is_empty());
    let absent = resolve(bank, unknown, S::NAME).await;
    assert_eq!(absent.failure(), (404, "bank account not found"));
    let message = format!("{} does not accept the bank_code or account_number field", S::NAME);
    assert_eq!(resolve("999", known, S::NAME).await.failure(), (400, &*message));
    let other = resolve(bank, known, "provider_a").await;
    let rule = "the payment_service field must be a provider with account enquiry";
    assert_eq!(other.failure(), (400, rule));
    for (path, message) in [
        (format!("{}/USD", S::NAME), format!("{} does not support USD", S::NAME)),
        ("provider_x/NGN".to_owned(), "payment service key not found".to_owned()),
        ("provider_a/NGN".to_owned(), "provider_a does not support account enquiry".to_owned()),
    ] {
        let refused = app.get(&format!("/account/banks/{path}")).await;
        assert_eq!(refused.failure(), (400, &*message));
    }
}
