//! Saved cards, direct debits, and loans repaid by them.

use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;
use tollhouse_sandbox::{ListedKind, ListedLine};

use super::{Lab, PAYSTACK_KEY, reply};
use crate::lending::{SUCCESS_CARD, direct_debit_body, loan_body, policy_body};

pub const MANDATE: &str = "AUTH_the_mandate_of_somebody";
const DEBITED_NUMBER: &str = "0123498765";

async fn save_card(lab: &Lab, number: &str) -> Value {
    let card = json!({
        "user_id": "ada", "currency": "NGN", "checkout": { "success_url": "https://lender.example/saved" },
    });
    let card = lab.call("POST /api/v1/card/create", card).await;
    let url = card["checkout"]["url"].as_str().expect("a checkout URL");
    let body = json!({ "outcome": "success", "card": number });
    let paid = lab.client.post(format!("{url}/complete")).json(&body).send().await;
    assert!(paid.expect("a response").status().is_success());
    lab.name("card", &card["id"]);
    card
}

/// Obtains a mandate from a payer, and cancels it.
async fn obtain_mandate(lab: &Lab) {
    let before = lab.named("direct_debit");
    let account = json!({ "bank_code": "058", "account_number": DEBITED_NUMBER });
    let order = json!({
        "user_id": "ada", "currency": "NGN", "account": account,
        "checkout": { "success_url": "https://lender.example/authorized" },
    });
    let mandate = lab.call("POST /api/v1/direct-debit/create", order).await;
    lab.name("direct_debit", &mandate["id"]);
    let url = mandate["checkout"]["url"].as_str().expect("a checkout URL");
    let body = json!({ "outcome": "success" });
    let given = lab.client.post(format!("{url}/complete")).json(&body).send().await;
    assert!(given.expect("a response").status().is_success());
    lab.settle().await;
    lab.clock.advance_to(lab.clock.now().plus_seconds(10));
    lab.settle().await;
    let fetched = lab.send("GET /api/v1/direct-debit/fetch/{direct_debit}", "").await;
    assert_eq!(fetched["data"]["status"], "ready", "{fetched}");
    let reference = fetched["data"]["service_ref"].as_str().expect("a reference");
    let base = lab.simulators.url();
    let url = format!("{base}/paystack/customer/authorization/verify/{reference}");
    let given = reply(lab.client.get(url).bearer_auth(PAYSTACK_KEY)).await.body;
    lab.name("mandate_token", &given["data"]["authorization_code"]);
    lab.personal.lock().unwrap().push(DEBITED_NUMBER.to_owned());
    lab.send("DELETE /api/v1/direct-debit/delete/{direct_debit}?delete_default=true", "").await;
    lab.send("DELETE /api/v1/direct-debit/delete/{direct_debit}", "").await;
    lab.settle().await;
    lab.name("direct_debit", &json!(before));
}

/// Verifies, charges and deletes cards, repays a loan by card, and debits a mandate.
pub async fn collect(lab: &Lab) {
    let card = save_card(lab, SUCCESS_CARD).await;
    let verified = lab.send("POST /api/v1/card/verify/{card}", "{}").await;
    assert_eq!(verified["data"]["valid"], true, "{verified}");
    let reference = card["service_ref"].as_str().expect("a reference");
    let url = format!("{}/paystack/transaction/verify/{reference}", lab.simulators.url());
    let transaction = reply(lab.client.get(url).bearer_auth(PAYSTACK_KEY)).await.body;
    lab.name("card_token", &transaction["data"]["authorization"]["authorization_code"]);
    lab.call("PUT /api/v1/card/default/set/{card}", json!({})).await;
    lab.name("loan", &json!("loan-1"));
    lab.call("PUT /internal/v1/companies/{company}/loans/{loan}", loan_body("ada")).await;
    let policy = "/internal/v1/companies/{company}/collection-policy";
    lab.call(&format!("PUT {policy}"), policy_body()).await;
    lab.send(&format!("GET {policy}"), "").await;
    lab.call(&format!("POST {policy}/simulate"), json!({ "policy": policy_body() })).await;
    lab.send(&format!("GET {policy}/versions"), "").await;
    lab.send("GET /internal/v1/companies/{company}/loans/{loan}/attempts", "").await;
    lab.name("direct_debit", &json!("dd-1"));
    let debit = "PUT /internal/v1/companies/{company}/direct-debits/{direct_debit}";
    lab.call(debit, direct_debit_body("ada", MANDATE)).await;
    obtain_mandate(lab).await;
    let create = "POST /api/v1/recollection/create";
    let charge = json!({
        "loan": "loan-1", "with_provider": true, "payment_channel": "card", "amount": 10, "reference": "order-1",
    });
    lab.name("recollection", &lab.call(create, charge).await["id"]);
    lab.settle().await;
    lab.call("POST /api/v1/recollection/verify/{reference}", json!({})).await;
    let debit = json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "direct_debit", "direct_debit": "dd-1" });
    lab.call(create, debit).await;
    lab.settle().await;
    lab.name("refund", &json!("none"));
    lab.send("POST /internal/v1/companies/{company}/card-refunds/{refund}/retry", "{}").await;
    lab.pay("order-disputed").await;
    lab.settle().await;
    lab.simulators.paystack().open_dispute("order-disputed", Some(100)).expect("a dispute");
    lab.settle().await;
    let disputes = lab.send("GET /internal/v1/companies/{company}/disputes", "").await;
    lab.name("dispute", &disputes["data"]["disputes"][0]["id"]);
    let answer = json!({ "action": "accept", "message": "closed" });
    lab.call("POST /internal/v1/companies/{company}/disputes/{dispute}/answer", answer).await;
    let exceptions = lab.send("GET /internal/v1/exceptions", "").await;
    lab.name("exception", &exceptions["data"]["exceptions"][0]["id"]);
    let exception = "/internal/v1/companies/{company}/exceptions/{exception}";
    let note = json!({ "mine": true, "note": "asked the payer" });
    lab.call(&format!("PATCH {exception}"), note).await;
    let resolution = json!({ "action": "none", "reason": "closed" });
    lab.call(&format!("POST {exception}/resolve"), resolution).await;
    reconcile(lab).await;
    route(lab).await;
    let first = card["id"].clone();
    save_card(lab, "4084080000671803").await;
    lab.send("DELETE /api/v1/card/delete/{card}", "").await;
    lab.name("card", &first);
}

/// Sets and removes a routing policy.
async fn route(lab: &Lab) {
    let policy = json!({ "route": { "providers": [{ "provider": "provider_a" }] } });
    lab.call("PUT /internal/v1/companies/{company}/routing", policy).await;
    lab.call("DELETE /internal/v1/companies/{company}/routing", json!({})).await;
}

/// Every route of reconciliation, with an exception of no company.
async fn reconcile(lab: &Lab) {
    let accounts = lab.send("GET /internal/v1/providers", "").await;
    let accounts = accounts["data"].as_array().expect("a list");
    let paystack = accounts.iter().find(|one| one["provider"] == "provider_a").expect("an account");
    lab.name("account", &paystack["account"]);
    let now = lab.call("POST /internal/v1/clock/advance", json!({ "seconds": 1 })).await;
    let now = Timestamp::parse(now["now"].as_str().expect("a time")).expect("a time");
    let day = now.plus_seconds(-2 * 86_400).to_datetime().format("%Y-%m-%d").to_string();
    lab.name("day", &json!(day));
    let unknown = ListedLine {
        kind: ListedKind::Payment,
        reference: "unknown".to_owned(),
        amount_minor: 100_000,
        fees_minor: None,
        currency: "NGN".to_owned(),
    };
    lab.simulators.paystack().add_listed(&unknown).expect("a payment");
    lab.call("POST /internal/v1/accounts/{account}/reconcile", json!({})).await;
    // The check waits for the verification of what differs.
    for _ in 0..2 {
        lab.settle().await;
    }
    lab.send("GET /internal/v1/accounts/{account}/days", "").await;
    lab.send("GET /internal/v1/accounts/{account}/days/{day}", "").await;
    lab.call("POST /internal/v1/accounts/{account}/days/{day}/close", json!({})).await;
    let open = lab.send("GET /internal/v1/exceptions?state=open", "").await;
    let open = open["data"]["exceptions"].as_array().expect("a list");
    let found = open.iter().find(|one| one["company"].is_null()).expect("an exception");
    lab.name("service_exception", &found["id"]);
    lab.send("GET /internal/v1/exceptions/{service_exception}", "").await;
    lab.call("PATCH /internal/v1/exceptions/{service_exception}", json!({ "note": "asked" })).await;
    let resolution = json!({ "action": "none", "reason": "closed" });
    lab.call("POST /internal/v1/exceptions/{service_exception}/resolve", resolution).await;
}
