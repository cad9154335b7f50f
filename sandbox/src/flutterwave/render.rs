//! A transaction as JSON, which differs between Flutterwave's responses and webhooks.

use serde_json::{Value, json};

use super::{
    accounts::Account,
    cards::Card,
    tokens::Instrument,
    transactions::{Status, Transaction},
};
use crate::money::major;

impl Account {
    /// A transaction as in verification: with the token and the merchant's metadata.
    pub(super) fn verification_json(&self, transaction: &Transaction) -> Value {
        let mut data = self.common_json(transaction);
        match &transaction.instrument {
            Some(Instrument::Card(card)) => {
                data["card"] = card_json(card, "NIGERIA NG");
                data["card"]["token"] = json!(transaction.token);
            }
            Some(Instrument::Mandate(reference)) => {
                data["account"] = self.bank_account_json(reference);
                data["account"]["first_name"] = json!("TEST");
                data["account"]["last_name"] = json!("CUSTOMER");
            }
            None => {}
        }
        data["meta"] = json!(transaction.meta);
        data
    }

    /// A transaction as in webhooks: without the token, and with another name for the same country.
    pub(super) fn notification_json(&self, transaction: &Transaction) -> Value {
        let mut data = self.common_json(transaction);
        match &transaction.instrument {
            Some(Instrument::Card(card)) => data["card"] = card_json(card, "NG"),
            Some(Instrument::Mandate(reference)) => {
                data["account"] = self.bank_account_json(reference);
                data["account"]["account_name"] = json!("TEST CUSTOMER");
            }
            None => {}
        }
        data
    }

    /// A transaction as in lists: ids are strings, and the customer is flattened.
    pub(super) fn list_item_json(&self, transaction: &Transaction) -> Value {
        let mut row = self.common_json(transaction);
        if let Some(row) = row.as_object_mut() {
            let customer = row.remove("customer").unwrap_or_default();
            row.insert("customer_name".to_owned(), customer["name"].clone());
            row.insert("customer_email".to_owned(), customer["email"].clone());
        }
        row["id"] = json!(transaction.id.to_string());
        row["account_id"] = json!(self.id.to_string());
        row
    }

    fn common_json(&self, transaction: &Transaction) -> Value {
        let (amount, currency) = transaction.reported();
        let charged = transaction.charged();
        let settled = (transaction.status == Status::Successful).then(|| {
            let fee = transaction.fee.unwrap_or_default();
            major(charged.saturating_sub(fee))
        });
        let customer = self.customers.get(&transaction.email);
        json!({
            "id": transaction.id,
            "tx_ref": transaction.tx_ref,
            "flw_ref": transaction.flw_ref,
            "device_fingerprint": "N/A",
            "amount": major(amount),
            "currency": currency,
            "charged_amount": major(charged),
            "app_fee": transaction.fee.map(major),
            "merchant_fee": 0,
            "processor_response": transaction.processor_response,
            "auth_model": transaction.auth_model,
            "ip": "127.0.0.1",
            "narration": transaction.narration,
            "status": transaction.status.name(),
            "payment_type": transaction.payment_type,
            "created_at": transaction.created_at,
            "account_id": self.id,
            "amount_settled": settled,
            "customer": {
                "id": customer.map(|customer| customer.id),
                "name": customer.map(|customer| &customer.name),
                "phone_number": customer.and_then(|c| c.phone_number.as_deref()).unwrap_or("N/A"),
                "email": transaction.email,
                "created_at": customer.map(|customer| customer.created_at),
            },
        })
    }

    fn bank_account_json(&self, mandate: &str) -> Value {
        let mandate = self.mandates.get(mandate);
        json!({
            "account_number": mandate.map(|mandate| &mandate.account_number),
            "bank_code": mandate.map(|mandate| &mandate.account_bank),
        })
    }
}

fn card_json(card: &Card, country: &str) -> Value {
    json!({
        "first_6digits": card.bin(),
        "last_4digits": card.last4(),
        "issuer": card.issuer(),
        "country": country,
        "type": card.scheme,
        "expiry": card.expiry,
    })
}
