//! Fixtures of the lending tests: users, loans, cards and mandates.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store;
use tollhouse_platform::store::params;

use crate::app::{PAYSTACK_KEY, TestApp, reply};

pub const SUCCESS_CARD: &str = "4084084084084081";
pub const OTHER_CARD: &str = "5192602720584796";

/// Creates a user with an e-mail address.
pub async fn create_user(app: &TestApp, user_id: &str) -> Value {
    let user = json!({
        "user_id": user_id, "first_name": "Ada", "last_name": "Obi", "email": format!("{user_id}@example.com"),
    });
    app.post("/user/create", user).await.data().clone()
}

/// The date this number of days after the start of the tests.
pub fn date_in_days(days: i64) -> String {
    let at = crate::app::NOW.plus_seconds(days * 86_400).to_datetime();
    at.format("%Y-%m-%d").to_string()
}

/// Puts a disbursed loan in NGN. `schedule`: the days until each installment, and its amount.
pub async fn create_loan(app: &TestApp, id: &str, user_id: &str, schedule: &[(i64, f64)]) -> Value {
    let amount: f64 = schedule.iter().map(|(_, amount)| amount).sum();
    let schedule: Vec<Value> = schedule
        .iter()
        .map(|(days, amount)| json!({ "due_date": date_in_days(*days), "amount": amount }))
        .collect();
    let loan = json!({
        "user_id": user_id, "amount": amount, "currency": "NGN", "disbursed": true, "schedule": schedule,
    });
    put_loan(app, id, loan).await
}

pub async fn put_loan(app: &TestApp, id: &str, loan: Value) -> Value {
    let path = format!("/companies/{}/loans/{id}", app.company.id);
    app.operator(Method::PUT, &path, loan).await.data().clone()
}

pub async fn get_loan(app: &TestApp, id: &str) -> Value {
    let path = format!("/companies/{}/loans/{id}", app.company.id);
    app.operator(Method::GET, &path, Value::Null).await.data().clone()
}

/// Begins to save a card; its checkout is not completed.
pub async fn create_card(app: &TestApp, user_id: &str) -> Value {
    let card = json!({
        "user_id": user_id, "currency": "NGN", "checkout": { "success_url": "https://lender.example/saved" },
    });
    app.post("/card/create", card).await.data().clone()
}

/// Completes the checkout of a card or a recollection as the customer, with this card number.
pub async fn complete_page(app: &TestApp, begun: &Value, outcome: &str, number: &str) {
    let url = begun["checkout"]["url"].as_str().expect("a checkout URL");
    let body = json!({ "outcome": outcome, "card": number });
    let response = app.client.post(format!("{url}/complete")).json(&body).send().await;
    assert!(response.expect("a response").status().is_success());
    app.run_until_idle().await;
}

pub async fn fetch_card(app: &TestApp, id: &Value) -> Value {
    let id = id.as_str().expect("an id");
    app.get(&format!("/card/fetch/{id}")).await.data().clone()
}

/// Saves a card that can be charged.
pub async fn saved_card(app: &TestApp, user_id: &str, number: &str) -> Value {
    let card = create_card(app, user_id).await;
    complete_page(app, &card, "success", number).await;
    let card = fetch_card(app, &card["id"]).await;
    assert_eq!(card["valid"], true, "{card}");
    card
}

/// Creates a mandate at Paystack that can be debited. Returns its token.
pub async fn paystack_mandate(app: &TestApp, email: &str) -> String {
    let paystack = |method, path: &str| {
        let url = format!("{}/paystack{path}", app.simulators.url());
        app.client.request(method, url).bearer_auth(PAYSTACK_KEY)
    };
    let body = json!({
        "email": email, "channel": "direct_debit", "callback_url": "https://lender.example/",
        "account": { "number": "0123456789", "bank_code": "058" },
    });
    let open = paystack(Method::POST, "/customer/authorization/initialize").json(&body);
    let open = reply(open).await.body;
    let page = open["data"]["redirect_url"].as_str().expect("a page");
    let done = app.client.post(format!("{page}/complete")).json(&json!({ "outcome": "success" }));
    assert!(done.send().await.expect("a response").status().is_success());
    app.advance(10).await;
    let reference = open["data"]["reference"].as_str().expect("a reference");
    let verify = paystack(Method::GET, &format!("/customer/authorization/verify/{reference}"));
    let verified = reply(verify).await.body;
    verified["data"]["authorization_code"].as_str().expect("a code").to_owned()
}

/// Creates a mandate at Paystack and puts it as a user's default direct debit.
pub async fn direct_debit(app: &TestApp, id: &str, user_id: &str) -> Value {
    let email = format!("{user_id}@example.com");
    let token = paystack_mandate(app, &email).await;
    let body = json!({
        "user_id": user_id, "payment_service": "provider_a", "token": token, "email": email,
        "bank": "GTBank", "active": true, "default": true,
    });
    let path = format!("/companies/{}/direct-debits/{id}", app.company.id);
    app.operator(Method::PUT, &path, body).await.data().clone()
}

/// Inserts an open virtual account of a user. Returns its id.
pub async fn insert_virtual_account(app: &TestApp, company_id: &str, user: &Value) -> String {
    let (company_id, user) = (company_id.to_owned(), user.clone());
    let insert = async move |tx: &mut store::Tx| {
        tx.sql(
            "INSERT INTO virtual_accounts (company_id, id, user_key, user_id, payment_service,
                 account_id, account_ref, provider_id, currency, account_number, bank, holder,
                 created_at, updated_at)
             VALUES ($1, 'virtual-account-of-a', $2, $3, 'provider_c', 'a', 'a', 'a', 'NGN',
                 '7000000001', 'Wema bank', 'Ada Obi', 0, 0)",
        )
        .bind(&company_id)
        .bind(user["id"].as_str().expect("an id"))
        .bind(user["user_id"].as_str().expect("an id"))
        .run()
        .await
    };
    app.app.store.write(insert).await.expect("an account");
    "virtual-account-of-a".to_owned()
}

/// Marks the refund of a card's verification charge as failed. Returns the refund's id.
pub async fn fail_card_refund(app: &TestApp, company_id: &str, card: &Value) -> String {
    let (company_id, card) = (company_id.to_owned(), card.as_str().expect("an id").to_owned());
    let fail = async move |tx: &mut store::Tx| {
        tx.sql("UPDATE charges SET refunded_minor = 0 WHERE owner_id = $1")
            .bind(&card)
            .run()
            .await?;
        tx.sql(
            "UPDATE charge_refunds SET state = 'failed' WHERE company_id = $1 AND charge_id IN (
                 SELECT id FROM charges WHERE owner_id = $2) RETURNING id",
        )
        .params(params![company_id, card])
        .one::<(String,)>()
        .await
    };
    app.app.store.write(fail).await.expect("a refund").0
}

/// A loan as internal consumers put it: due in ten days.
pub fn loan_body(user_id: &str) -> Value {
    json!({
        "user_id": user_id, "amount": 100, "currency": "NGN", "disbursed": true,
        "schedule": [{ "due_date": date_in_days(10), "amount": 100 }],
    })
}

/// A collection policy of all instruments, on the due date and three and seven days later.
pub fn policy_body() -> Value {
    json!({
        "instruments": ["default_card", "other_cards", "mandates"], "days": [0, 3, 7],
        "hours": { "from": 8, "to": 20 }, "utc_offset": "+01:00", "utc_offsets": { "KE": "+03:00" },
        "max_attempts": 6,
    })
}

/// Puts a collection policy that differs from [`policy_body`]. Returns the version.
pub async fn put_policy(app: &TestApp, change: Value) -> Value {
    let path = format!("/companies/{}/collection-policy", app.company.id);
    let policy = crate::codes::merged(policy_body(), change);
    app.operator(Method::PUT, &path, policy).await.data().clone()
}

/// A direct debit as internal consumers put it.
pub fn direct_debit_body(user_id: &str, token: &str) -> Value {
    json!({
        "user_id": user_id, "payment_service": "provider_a", "token": token, "email": "ada@example.com",
    })
}

/// Creates a recollection by card or direct debit, whose charge the job queue makes. Returns it after
/// that.
pub async fn charge_instrument(app: &TestApp, body: Value) -> Value {
    let created = create_recollection(app, body).await.data().clone();
    assert_eq!(created["status"], "pending");
    app.run_until_idle().await;
    let path = format!("/recollection/fetch/{}", created["id"].as_str().expect("an id"));
    app.get(&path).await.data().clone()
}

pub async fn create_recollection(app: &TestApp, body: Value) -> crate::app::Reply {
    app.post("/recollection/create", body).await
}

/// All entries of an operator feed.
pub async fn feed_entries(app: &TestApp, name: &str) -> Vec<Value> {
    // The feed holds back what open transactions may still commit.
    app.advance(120).await;
    let url = format!("{}/internal/v1/{name}?limit=1000", app.internal);
    let request = app.client.get(url).bearer_auth(crate::app::OPERATOR_TOKEN);
    let part = reply(request).await.data().clone();
    let entries = part["entries"].as_array().expect("a list").iter();
    entries.map(|entry| entry["data"].clone()).collect()
}
