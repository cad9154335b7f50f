//! A transaction as JSON: amounts are strings in Monnify's responses and numbers in its webhooks.

use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use super::{
    accounts::Account,
    times::{day_first, iso, utc},
    transactions::{Origin, Transaction, fee},
};
use crate::money::{major, major_text};

/// The reported amounts, in minor units.
pub(super) struct Amounts {
    paid: u64,
    payable: u64,
    pub fee: u64,
    settlement: u64,
}

impl Amounts {
    pub(super) fn from_transaction(transaction: &Transaction) -> Amounts {
        let reported = transaction.reported_amount.as_ref().map(|(amount, _)| *amount);
        let paid = transaction.reported_charged_minor.or(reported).unwrap_or(transaction.paid);
        let payable = reported.unwrap_or(transaction.payable);
        let fee = transaction.listed_fee_minor.unwrap_or_else(|| fee(paid));
        Amounts { paid, payable, fee, settlement: paid.saturating_sub(fee) }
    }
}

impl Account {
    pub(super) fn status_json(&self, transaction: &Transaction) -> Value {
        let amounts = Amounts::from_transaction(transaction);
        let paid_on = transaction.paid_at.map(day_first);
        let mut body = self.common_json(transaction);
        body["amountPaid"] = json!(major_text(amounts.paid));
        body["totalPayable"] = json!(major_text(amounts.payable));
        body["settlementAmount"] = json!(major_text(amounts.settlement));
        body["transactionHash"] = json!(self.hash(transaction, amounts.paid, paid_on.as_deref()));
        body["paidOn"] = json!(paid_on);
        body["cardDetails"] = card_json(transaction);
        body["accountDetails"] = source_json(transaction, amounts.paid, true);
        body["accountPayments"] = match &body["accountDetails"] {
            Value::Null => json!([]),
            payment => json!([payment]),
        };
        body
    }

    /// A transaction as in lists: amounts are numbers, and times are in UTC.
    pub(super) fn list_item_json(&self, transaction: &Transaction) -> Value {
        let amounts = Amounts::from_transaction(transaction);
        let common = self.common_json(transaction);
        let merchant_code = self.number.to_string();
        json!({
            "customerDTO": {
                "email": transaction.email, "name": transaction.name, "merchantCode": merchant_code,
            },
            "providerAmount": 0,
            "paymentMethod": transaction.method,
            "createdOn": utc(transaction.created_at),
            "amount": major(amounts.payable),
            "flagged": false,
            "providerCode": "98271",
            "fee": major(amounts.fee),
            "currencyCode": common["currency"],
            "completedOn": transaction.paid_at.map(utc),
            "paymentDescription": transaction.description,
            "paymentStatus": transaction.status.name(),
            "transactionReference": transaction.reference,
            "paymentReference": transaction.payment_reference,
            "merchantCode": merchant_code,
            "merchantName": self.merchant(),
            "payableAmount": major(amounts.payable),
            "amountPaid": major(amounts.paid),
            "completed": transaction.paid_at.is_some(),
        })
    }

    pub(super) fn notification_json(&self, transaction: &Transaction) -> Value {
        let amounts = Amounts::from_transaction(transaction);
        let by_transfer = transaction.method == "ACCOUNT_TRANSFER";
        let mut data = self.common_json(transaction);
        data["amountPaid"] = major(amounts.paid);
        data["totalPayable"] = major(amounts.payable);
        data["settlementAmount"] = major(amounts.settlement);
        data["paidOn"] = json!(transaction.paid_at.map(iso));
        data["cardDetails"] = match card_json(transaction) {
            Value::Null => json!({}),
            card => card,
        };
        data["paymentSourceInformation"] = match source_json(transaction, amounts.paid, false) {
            Value::Null => json!([]),
            source => json!([source]),
        };
        data["destinationAccountInformation"] = match by_transfer {
            true => json!({
                "bankCode": "035", "bankName": "Wema bank", "accountNumber": "7023576853",
            }),
            false => json!({}),
        };
        data
    }

    fn common_json(&self, transaction: &Transaction) -> Value {
        let currency =
            transaction.reported_amount.as_ref().map_or(&transaction.currency, |(_, c)| c);
        let (kind, reference) = match &transaction.origin {
            Origin::Checkout => ("WEB_SDK", &transaction.payment_reference),
            Origin::CardToken => ("API_NOTIFICATION", &transaction.payment_reference),
            Origin::Debit(code) => ("DIRECT_DEBIT", code),
            Origin::Reserved(account) => ("RESERVED_ACCOUNT", account),
        };
        json!({
            "transactionReference": transaction.reference,
            "paymentReference": transaction.payment_reference,
            "paymentStatus": transaction.status.name(),
            "paymentDescription": transaction.description,
            "currency": currency,
            "paymentMethod": transaction.method,
            "product": { "type": kind, "reference": reference },
            "customer": { "email": transaction.email, "name": transaction.name },
            "metaData": transaction.meta.clone().unwrap_or_else(|| json!({})),
        })
    }

    fn hash(&self, transaction: &Transaction, paid: u64, paid_on: Option<&str>) -> String {
        let secret = self.secret_key.as_deref().unwrap_or_default();
        let (paid, paid_on) = (major_text(paid), paid_on.unwrap_or_default());
        let Transaction { reference, payment_reference, .. } = transaction;
        let all = [secret, payment_reference, &paid, paid_on, reference].join("|");
        hex::encode(Sha512::digest(all))
    }
}

fn card_json(transaction: &Transaction) -> Value {
    let Some(card) = transaction.card else { return Value::Null };
    json!({
        "cardType": card.kind,
        "last4": card.last4(),
        "expMonth": "12",
        "expYear": "30",
        "bin": card.bin(),
        "bankCode": null,
        "bankName": null,
        "reusable": transaction.token.is_some(),
        "countryCode": null,
        "cardToken": transaction.token,
        "supportsTokenization": transaction.token.is_some(),
        "maskedPan": card.masked(),
    })
}

/// The source account of a transfer.
fn source_json(transaction: &Transaction, paid: u64, as_text: bool) -> Value {
    if transaction.method != "ACCOUNT_TRANSFER" || paid == 0 {
        return Value::Null;
    }
    json!({
        "accountName": "TEST CUSTOMER",
        "accountNumber": "0123456789",
        "bankCode": "058",
        "amountPaid": if as_text { json!(major_text(paid)) } else { major(paid) },
        "sessionId": format!("{:030}", transaction.number),
    })
}
