//! Pitfalls of Flutterwave's protocol, one fixture each.

mod channels;
mod charges;
mod checkout;
mod disputes;
mod errors;
mod examples;
mod instruments;
mod money;
mod notifications;
mod refunds;
mod reversal;
mod settlements;
mod verification;

use serde_json::{Value, json};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::Money;

const KEY: &str = "FLWSECK_TEST-abc123-X";
/// The shared text of the documented example signature.
const HASH: &str = "my-secret-hash";

/// The URL that verifies the payment.
const VERIFY: &str = "/transactions/verify_by_reference?tx_ref=3456787654";

fn host() -> FakeHost {
    let host = FakeHost::new().manifest(crate::MANIFEST);
    host.secret("secret_key", KEY).secret("webhook_hash", HASH)
}

/// A host for verification: Flutterwave has no refunds or chargebacks of the transaction.
fn verifying_host() -> FakeHost {
    host().answer("GET", "/refunds", 200, success(json!([]))).answer(
        "GET",
        "/chargebacks",
        200,
        success(json!([])),
    )
}

fn naira(minor: u64) -> Money {
    Money { minor, currency: "NGN".into() }
}

fn success(data: Value) -> Value {
    json!({"status": "success", "message": "ok", "data": data})
}

fn refused(message: &str) -> Value {
    json!({"status": "error", "message": message, "data": null})
}

fn parsed(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap()
}

/// A recorded verification response.
fn transaction() -> Value {
    json!({
        "id": 782728102, "tx_ref": "3456787654", "flw_ref": "FLW-MOCK-0a6b",
        "device_fingerprint": "69e6b7f0", "amount": 60, "currency": "NGN", "charged_amount": 60,
        "app_fee": 0.84, "merchant_fee": 0, "processor_response": "Approved by Financial Institution",
        "auth_model": "PIN", "ip": "197.210.54.33", "narration": "CARD Transaction ",
        "status": "successful", "payment_type": "card", "created_at": "2022-12-11T07:06:45.000Z",
        "account_id": 1941914,
        "card": {
            "first_6digits": "539983", "last_4digits": "7238",
            "issuer": "GUARANTY TRUST BANK Mastercard Naira Debit Card", "country": "NIGERIA NG",
            "type": "MASTERCARD", "token": "flw-t1nf-f9b3bf384cd30d6fca42b6df9d27bd2f-k3n",
            "expiry": "12/24"
        },
        "meta": {"__CheckoutInitAddress": "https://checkout.flutterwave.com/v3/hosted/pay", "order": 7},
        "amount_settled": 59.16,
        "customer": {
            "id": 481105569, "name": "Demo", "phone_number": "N/A", "email": "demo@test.com",
            "created_at": "2022-12-11T07:06:45.000Z"
        }
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
