//! Pitfalls of Monnify's protocol, one fixture each.

mod charges;
mod checkout;
mod debits;
mod errors;
mod examples;
mod instruments;
mod mandates;
mod money;
mod notifications;
mod refunds;
mod settlements;
mod statuses;
mod tokens;
mod verification;
mod virtual_accounts;

use serde_json::{Value, json};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::Money;

/// The key of the documented example signature.
const SECRET: &str = "91MUDL9N6U3BQRXBQ2PJ9M0PW4J22M1Y";

/// Queries for a payment: as a transaction, and then as a debit.
const QUERY: &str = "/api/v2/merchant/transactions/query?paymentReference=pay-1";
const DEBIT: &str = "/api/v1/direct-debit/mandate/debit-status?paymentReference=pay-1";

/// URLs of the transactions `MNFY|20220121154928|000001` and `MNFY|1`.
const PAGE: &str = "/api/v2/transactions/MNFY%7C20220121154928%7C000001";
const PAGE_1: &str = "/api/v2/transactions/MNFY%7C1";

/// A host with a cached access token.
fn host() -> FakeHost {
    stranger().cached("access_token", "t0k3n")
}

fn stranger() -> FakeHost {
    let host = FakeHost::new().manifest(crate::MANIFEST).setting("contract_code", "5867418298");
    host.secret("api_key", "MK_TEST_SAF7HR5F3F").secret("secret_key", SECRET)
}

fn naira(minor: u64) -> Money {
    Money { minor, currency: "NGN".into() }
}

fn success(body: Value) -> Value {
    json!({
        "requestSuccessful": true, "responseMessage": "success", "responseCode": "0",
        "responseBody": body,
    })
}

fn refused(code: &str, message: &str) -> Value {
    json!({"requestSuccessful": false, "responseMessage": message, "responseCode": code})
}

fn parsed(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap()
}

fn transaction() -> Value {
    json!({
        "transactionReference": "MNFY|20220121154928|000001", "paymentReference": "pay-1",
        "amountPaid": "403.33", "totalPayable": "403.33", "settlementAmount": "393.23",
        "paidOn": "21/01/2022 03:49:28 PM", "paymentStatus": "PAID", "paymentDescription": "Loan",
        "transactionHash": "9e1bc1", "currency": "NGN", "paymentMethod": "CARD",
        "product": {"type": "WEB_SDK", "reference": "pay-1"},
        "cardDetails": {
            "cardType": "VISA DEBIT", "last4": "1111", "expMonth": "9", "expYear": "22",
            "bin": "411111", "bankCode": "058", "bankName": "GTBank", "reusable": true,
            "countryCode": "NG", "cardToken": "MNFY_8C1F7E2A", "supportsTokenization": true,
            "maskedPan": "411111******1111"
        },
        "accountDetails": null, "accountPayments": [],
        "customer": {"email": "demo@test.com", "name": "Demo"}, "metaData": {"order": 7}
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
