//! Pitfalls of Paystack's protocol, one fixture each.

mod charges;
mod checkout;
mod disputes;
mod errors;
mod mandates;
mod notifications;
mod refunds;
mod settlements;
mod verification;

use serde_json::{Value, json};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::Money;

/// The key of the documented example signature.
const KEY: &str = "sk_test_abc123";

fn host() -> FakeHost {
    FakeHost::new().manifest(crate::MANIFEST).secret("secret_key", KEY)
}

fn naira(minor: u64) -> Money {
    Money { minor, currency: "NGN".into() }
}

fn success(data: Value) -> Value {
    json!({"status": true, "message": "ok", "data": data})
}

fn parsed(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap()
}

/// A recorded verification response.
fn transaction() -> Value {
    json!({
        "id": 4099260516_u64, "domain": "test", "status": "success", "reference": "re4lyvq3s3",
        "receipt_number": null, "amount": 40333, "requested_amount": 30050, "message": null,
        "gateway_response": "Successful", "paid_at": "2024-08-22T09:15:02.000Z",
        "created_at": "2024-08-22T09:14:24.000Z", "paidAt": "2024-08-22T09:15:02.000Z",
        "createdAt": "2024-08-22T09:14:24.000Z", "transaction_date": "2024-08-22T09:14:24.000Z",
        "channel": "card", "currency": "NGN", "ip_address": "197.210.54.33", "metadata": "",
        "log": {"history": []}, "fees": 10283, "fees_split": null, "fees_breakdown": null,
        "authorization": {
            "authorization_code": "AUTH_uh8bcl3zbn", "bin": "408408", "last4": "4081",
            "exp_month": "12", "exp_year": "2030", "channel": "card", "card_type": "visa ",
            "bank": "TEST BANK", "country_code": "NG", "brand": "visa", "reusable": true,
            "signature": "SIG_yEXu7dLBeqG0kU7g95Ke", "account_name": null
        },
        "customer": {
            "id": 181873746, "first_name": null, "last_name": null, "email": "demo@test.com",
            "customer_code": "CUS_1rkzaqsv4rrhqo6", "phone": null, "metadata": null
        },
        "plan": null, "split": {}, "order_id": null, "pos_transaction_data": null, "source": null,
        "connect": null, "plan_object": {}, "subaccount": {}
    })
}

/// The recorded response with some fields replaced.
fn transaction_with(changes: Value) -> Value {
    let mut data = transaction();
    for (name, value) in changes.as_object().into_iter().flatten() {
        data[name] = value.clone();
    }
    data
}
