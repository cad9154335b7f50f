use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tollhouse_sandbox::monnify::sign;

use super::{Subject, accounts::AccountSubject, mandates::MandateSubject};
use crate::app::{TestApp, reply};

const KEY: &str = "MK_TEST_SERVICE001";
const SECRET: &str = "the_secret_of_the_services_own_account";
const CONTRACT: &str = "4934121686";

pub struct Monnify;

/// Sets up the service account. Returns its notification URL.
pub async fn set_up(app: &TestApp) -> String {
    app.install(artifacts::PROVIDER_C).await;
    let base_url = format!("{}/monnify", app.simulators.url());
    let credentials = json!({
        "api_key": KEY, "secret_key": SECRET, "contract_code": CONTRACT, "base_url": base_url,
    });
    let set = json!({ "credentials": credentials, "active": true });
    let account = app.operator(Method::PUT, "/providers/provider_c", set).await.data().clone();
    let url = account["notification_url"].as_str().expect("a URL").to_owned();
    app.simulators.monnify().set_webhook(KEY, SECRET, &url);
    url
}

/// A virtual account for the user `ada`, or for a loan.
pub fn account_order(loan: Option<&str>) -> Value {
    json!({
        "user_id": "ada", "currency": "NGN", "loan": loan, "payment_service": "provider_c",
        "identity": { "type": "bvn", "number": "22222222222" },
    })
}

async fn provider_request(app: &TestApp, method: Method, path: &str) -> RequestBuilder {
    let url = |path: &str| format!("{}/monnify/api{path}", app.simulators.url());
    let login = app.client.post(url("/v1/auth/login")).basic_auth(KEY, Some(SECRET));
    let token = reply(login).await.body["responseBody"]["accessToken"].clone();
    app.client.request(method, url(path)).bearer_auth(token.as_str().expect("a token"))
}

async fn queried(app: &TestApp, reference: &str) -> Value {
    let path = format!("/v2/merchant/transactions/query?paymentReference={reference}");
    reply(provider_request(app, Method::GET, &path).await).await.body["responseBody"].clone()
}

impl Subject for Monnify {
    const NAME: &'static str = "provider_c";
    const CHECKOUT: (&'static str, &'static str) =
        ("POST", "/api/v1/merchant/transactions/init-transaction");
    const REFUND: (&'static str, &'static str) = ("POST", "/api/v1/refunds/initiate-refund");
    const CHARGE: (&'static str, &'static str) =
        ("POST", "/api/v1/merchant/cards/charge-card-token");
    const FEES: f64 = 37.51; // 1.5 %
    const SUPPORTS_USD: bool = false;

    async fn set_up(app: &TestApp) -> String {
        set_up(app).await
    }

    fn requests(app: &TestApp) -> Vec<(String, String)> {
        app.simulators.monnify().requests()
    }

    fn notification(reference: &str) -> String {
        let data = json!({ "paymentReference": reference, "transactionReference": "MNFY|1", "amountPaid": 2500.5, "paymentStatus": "PAID" });
        json!({ "eventType": "SUCCESSFUL_TRANSACTION", "eventData": data }).to_string()
    }

    fn signature(body: &str, authentic: bool) -> (&'static str, String) {
        let secret = if authentic { SECRET } else { "a_secret_of_somebody_else" };
        ("monnify-signature", sign(secret, body.as_bytes()))
    }

    fn tamper(app: &TestApp, reference: &str, minor: u64, currency: &str) {
        assert!(app.simulators.monnify().tamper(reference, minor, currency));
    }

    fn tamper_taken(app: &TestApp, reference: &str, minor: u64) {
        assert!(app.simulators.monnify().tamper_charged_amount(reference, minor));
    }

    async fn take_reference(app: &TestApp, reference: &str) {
        let order = json!({
            "paymentReference": reference, "amount": 2500.5, "currencyCode": "NGN", "contractCode": CONTRACT,
            "customerEmail": "eve@example.com", "customerName": "Eve", "paymentDescription": "x",
            "redirectUrl": "https://eve.example/",
        });
        let begin =
            provider_request(app, Method::POST, "/v1/merchant/transactions/init-transaction").await;
        assert!(begin.json(&order).send().await.expect("a response").status().is_success());
    }

    async fn refund_elsewhere(app: &TestApp, reference: &str, minor: u64) {
        let order = json!({
            "transactionReference": queried(app, reference).await["transactionReference"],
            "refundReference": "elsewhere-1", "refundAmount": minor / 100, "refundReason": "a part",
            "customerNote": "a part",
        });
        let refund = provider_request(app, Method::POST, "/v1/refunds/initiate-refund").await;
        assert!(refund.json(&order).send().await.expect("a response").status().is_success());
    }

    fn reverse(app: &TestApp, reference: &str) {
        assert!(app.simulators.monnify().reverse(reference));
    }

    async fn mandate(app: &TestApp) -> String {
        let order = json!({
            "contractCode": CONTRACT, "mandateReference": "ada-1", "autoRenew": false,
            "customerCancellation": true, "customerName": "Ada Obi", "customerPhoneNumber": "08030000001",
            "customerEmailAddress": "ada@example.com", "customerAddress": "1 Allen Avenue",
            "customerAccountName": "ADA OBI", "customerAccountNumber": "0123456789",
            "customerAccountBankCode": "058", "mandateDescription": "Loan",
            "mandateStartDate": "2026-11-21T10:15:30", "mandateEndDate": "2027-11-21T10:15:30",
            "mandateAmount": "50000.00",
        });
        let create = provider_request(app, Method::POST, "/v1/direct-debit/mandate/create").await;
        let created = reply(create.json(&order)).await.body["responseBody"].clone();
        let find = "/v1/direct-debit/mandate/?mandateReferences=ada-1";
        let found =
            reply(provider_request(app, Method::GET, find).await).await.body["responseBody"][0]
                .clone();
        let page = found["authorizationLink"].as_str().expect("a page");
        let done = app.client.post(format!("{page}/complete"));
        done.json(&json!({ "outcome": "success" })).send().await.expect("a response");
        app.advance(10).await;
        created["mandateCode"].as_str().expect("a code").to_owned()
    }

    async fn reusable_tokens(app: &TestApp, reference: &str) -> Vec<String> {
        let card = queried(app, reference).await["cardDetails"].clone();
        vec![card["cardToken"].as_str().expect("a card token").to_owned()]
    }
}

impl AccountSubject for Monnify {
    const OPEN: &'static str = "reserve";
    const OPEN_REQUEST: (&'static str, &'static str) =
        ("POST", "/api/v2/bank-transfer/reserved-accounts");
    const BANK: (&'static str, &'static str, &'static str) = ("058", "0123456789", "0001234567");

    fn transfer(app: &TestApp, account_number: &str, minor: u64) -> String {
        let reference = app.simulators.monnify().transfer_to_account(account_number, minor);
        reference.expect("an account with this number")
    }

    async fn open_elsewhere(app: &TestApp) -> String {
        let order = json!({
            "accountReference": "elsewhere-1", "accountName": "Eve", "currencyCode": "NGN",
            "contractCode": CONTRACT, "customerEmail": "eve@example.com", "customerName": "Eve",
            "bvn": "22222222222",
        });
        let path = "/v2/bank-transfer/reserved-accounts";
        let opened = provider_request(app, Method::POST, path).await.json(&order);
        let opened = reply(opened).await.body["responseBody"]["accounts"][0].clone();
        opened["accountNumber"].as_str().expect("a number").to_owned()
    }
}

/// Returns a mandate as the provider lists it.
async fn listed(app: &TestApp, mandate: &Value) -> Value {
    let reference = mandate["service_ref"].as_str().expect("a reference");
    let path = format!("/v1/direct-debit/mandate/?mandateReferences={reference}");
    reply(provider_request(app, Method::GET, &path).await).await.body["responseBody"][0].clone()
}

impl MandateSubject for Monnify {
    const BEGIN: (&'static str, &'static str) = ("POST", "/api/v1/direct-debit/mandate/create");
    const KEEPS_REFERENCE: bool = true;

    async fn end(app: &TestApp, mandate: &Value) {
        let code = listed(app, mandate).await["mandateCode"].as_str().expect("a code").to_owned();
        let path = format!("/v1/direct-debit/mandate/cancel-mandate/{}", code.replace('|', "%7C"));
        let ended = provider_request(app, Method::PATCH, &path).await.send().await;
        assert!(ended.expect("a response").status().is_success());
    }

    async fn is_active(app: &TestApp, mandate: &Value) -> bool {
        listed(app, mandate).await["mandateStatus"] == "ACTIVATED"
    }
}
