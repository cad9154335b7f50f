//! Actions on disputes, debts and exceptions.

use serde_json::json;

use super::{Action, Log};
use crate::lending::{direct_debit_body, loan_body, policy_body};

/// Actions on a dispute, which ends before its payment is refunded.
pub fn dispute_actions() -> Vec<Action> {
    vec![(
        "post",
        "/companies/{company}/disputes/{dispute}/answer",
        json!({ "action": "accept", "message": "Our mistake" }),
        "dispute.answer",
        Log::Company,
    )]
}

/// Actions on loans, collection policies, direct debits and refunds of card verification charges.
pub fn lending_actions() -> Vec<Action> {
    let log = Log::Company;
    let policy = "/companies/{company}/collection-policy";
    let (debit, retry, exception, resolve) = (
        "/companies/{company}/direct-debits/{direct_debit}",
        "/companies/{company}/card-refunds/{refund}/retry",
        "/companies/{company}/exceptions/{exception}",
        "/companies/{company}/exceptions/{exception}/resolve",
    );
    let mandate = direct_debit_body("ada", "AUTH_hidden_from_logs");
    let resolution = json!({ "action": "none", "reason": "asked the payer" });
    vec![
        ("put", "/companies/{company}/loans/{loan}", loan_body("ada"), "loan.put", log),
        ("put", policy, policy_body(), "collection_policy.put", log),
        ("put", debit, mandate, "direct_debit.put", log),
        ("post", retry, json!({}), "card_refund.retry", log),
        ("patch", exception, json!({ "note": "asked the payer" }), "exception.edit", log),
        ("post", resolve, resolution, "exception.resolve", log),
    ]
}

/// Actions on exceptions of the service, and on provider accounts.
pub fn reconciliation_actions() -> Vec<Action> {
    let (exception, resolve, close, reconcile) = (
        "/exceptions/{service_exception}",
        "/exceptions/{service_exception}/resolve",
        "/accounts/{account}/days/{day}/close",
        "/accounts/{account}/reconcile",
    );
    let (log, resolution) = (Log::Service, json!({ "action": "none", "reason": "asked" }));
    vec![
        ("patch", exception, json!({ "note": "asked" }), "exception.edit", log),
        ("post", resolve, resolution, "exception.resolve", log),
        ("post", close, json!({}), "day.close", log),
        ("post", reconcile, json!({}), "account.reconcile", log),
    ]
}
