//! Bank transfers: into a checkout, of the requested amount or another, and to a reserved account.

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::json;

use super::{
    Monnify,
    accounts::Account,
    times::space_separated,
    transactions::{Origin, Status},
};
use crate::{env::Env, money::major, server::error_response};

/// The merchant's setting for transfers that are too small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnderpaymentPolicy {
    /// The money is returned, and a webhook reports it.
    #[default]
    Rejected,
    /// The transaction is partially paid.
    Kept,
}

impl Account {
    pub(super) fn transfer(
        &mut self,
        env: &Env,
        payment_reference: &str,
        amount: u64,
        underpaid: UnderpaymentPolicy,
    ) -> bool {
        let Some(transaction) = self.transactions.get_mut(payment_reference) else { return false };
        let open = matches!(transaction.status, Status::Pending | Status::PartiallyPaid);
        if !open || transaction.origin != Origin::Checkout {
            return false;
        }
        "ACCOUNT_TRANSFER".clone_into(&mut transaction.method);
        if transaction.paid + amount < transaction.payable
            && underpaid == UnderpaymentPolicy::Rejected
        {
            self.notify_rejection(env, payment_reference, amount);
        } else {
            self.record_payment(env, payment_reference, amount);
        }
        true
    }

    fn notify_rejection(&self, env: &Env, payment_reference: &str, amount: u64) {
        let Some(transaction) = self.transactions.get(payment_reference) else { return };
        let data = json!({
            "metaData": transaction.meta,
            "product": { "reference": payment_reference, "type": "WEB_SDK" },
            "amount": major(transaction.payable),
            // An object here, a list in all other webhooks.
            "paymentSourceInformation": {
                "bankCode": "058",
                "amountPaid": major(amount),
                "accountName": "TEST CUSTOMER",
                "sessionId": format!("{:030}", transaction.number),
                "accountNumber": "0123456789",
            },
            "transactionReference": transaction.reference,
            "createdOn": space_separated(env.clock.now()),
            "created_on": space_separated(env.clock.now()),
            "paymentReference": payment_reference,
            "paymentRejectionInformation": {
                "bankCode": "035",
                "destinationAccountNumber": "7023576853",
                "bankName": "Wema bank",
                "rejectionReason": "UNDER_PAYMENT",
                "expectedAmount": major(transaction.payable),
            },
            "paymentDescription": transaction.description,
            "customer": { "name": transaction.name, "email": transaction.email },
        });
        self.notify(env, "REJECTED_PAYMENT", payment_reference, &data);
    }
}

#[derive(Deserialize)]
struct Transfer {
    #[serde(default)]
    reference: String,
    /// A reserved account, in place of a checkout.
    account_number: Option<String>,
    amount_minor: u64,
    #[serde(default)]
    underpaid: UnderpaymentPolicy,
}

/// Control endpoint of the simulators: simulates a transfer into a checkout or to a reserved account.
pub(super) async fn create_transfer(State(monnify): State<Monnify>, body: String) -> Response {
    let Ok(transfer) = serde_json::from_str::<Transfer>(&body) else {
        let wanted = "reference or account_number, and amount_minor are required; underpaid is rejected or kept";
        return error_response(StatusCode::BAD_REQUEST, wanted);
    };
    let Transfer { reference, account_number, amount_minor, underpaid } = transfer;
    if let Some(number) = account_number {
        return match monnify.transfer_to_account(&number, amount_minor) {
            Some(reference) => Json(json!({ "reference": reference })).into_response(),
            None => error_response(StatusCode::NOT_FOUND, "no account has this number"),
        };
    }
    match monnify.transfer(&reference, amount_minor, underpaid) {
        true => StatusCode::NO_CONTENT.into_response(),
        false => error_response(StatusCode::NOT_FOUND, "no open checkout has this reference"),
    }
}
