//! A transaction as JSON, with the inconsistencies of Paystack's API.

use serde_json::{Value, json};

use super::{
    accounts::{Account, Authorization, Instrument},
    transactions::Transaction,
};

impl Account {
    pub(super) fn transaction_json(&self, transaction: &Transaction) -> Value {
        let (amount, currency) = transaction.reported();
        let created = transaction.created_at.to_string();
        let paid = transaction.paid_at.map(|at| at.to_string());
        json!({
            "id": transaction.id,
            "domain": self.domain(),
            "status": transaction.status.name(),
            "reference": transaction.reference,
            "receipt_number": null,
            "amount": transaction.charged(),
            "requested_amount": amount,
            "message": null,
            "gateway_response": transaction.gateway_response,
            "paid_at": paid,
            "created_at": created,
            "paidAt": paid,
            "createdAt": created,
            "transaction_date": created,
            "channel": transaction.channel,
            "currency": currency,
            "ip_address": "127.0.0.1",
            "metadata": transaction.metadata.clone().unwrap_or_else(|| "".into()),
            "log": attempt_log_json(transaction),
            "fees": transaction.fees,
            "fees_split": null,
            "fees_breakdown": null,
            "authorization": self.authorization_of(transaction),
            "customer": self.customer_json(&transaction.email),
            "plan": null,
            "split": {},
            "order_id": null,
            "pos_transaction_data": null,
            "source": null,
            "connect": null,
            "plan_object": {},
            "subaccount": {},
        })
    }

    fn authorization_of(&self, transaction: &Transaction) -> Value {
        let code = transaction.authorization.as_ref();
        match code.and_then(|code| self.authorizations.get(code)) {
            Some(authorization) => authorization_json(authorization),
            None if transaction.status.is_paid() => single_use_authorization_json(transaction),
            None => json!({}),
        }
    }

    pub(super) fn customer_json(&self, email: &str) -> Value {
        let customer = self.customers.get(email);
        json!({
            "id": customer.map(|customer| customer.id),
            "first_name": null,
            "last_name": null,
            "email": email,
            "customer_code": customer.map(|customer| &customer.code),
            "phone": null,
            "metadata": null,
            "risk_action": "default",
            "international_format_phone": null,
        })
    }
}

pub(super) fn authorization_json(authorization: &Authorization) -> Value {
    let Authorization { code, signature, exp_year, .. } = authorization;
    match authorization.instrument {
        Instrument::Card(card) => json!({
            "authorization_code": code,
            "bin": card.bin(),
            "last4": card.last4(),
            "exp_month": "12",
            "exp_year": exp_year.to_string(),
            "channel": "card",
            "card_type": card.card_type,
            "bank": "TEST BANK",
            "country_code": "NG",
            "brand": card.brand,
            "reusable": authorization.active,
            "signature": signature,
            "account_name": null,
        }),
        // A charge of a mandate has no expiry date and no BIN.
        Instrument::Mandate => json!({
            "authorization_code": code,
            "bin": null,
            "last4": null,
            "exp_month": null,
            "exp_year": null,
            "channel": "direct_debit",
            "card_type": null,
            "bank": "TEST BANK",
            "country_code": "NG",
            "brand": null,
            "reusable": true,
            "signature": null,
            "account_name": null,
        }),
    }
}

/// The authorization of channels that are not reusable.
fn single_use_authorization_json(transaction: &Transaction) -> Value {
    let page = transaction.access_code.as_deref().unwrap_or_default();
    json!({
        "authorization_code": format!("AUTH_{}", page.get(..10).unwrap_or(page)),
        "bin": "000XXX",
        "last4": "X000",
        "exp_month": "12",
        "exp_year": "2030",
        "channel": transaction.channel,
        "card_type": "transfer",
        "bank": "TEST BANK",
        "country_code": "NG",
        "brand": "",
        "reusable": false,
        "signature": null,
        "account_name": null,
    })
}

/// Returns the customer's actions on the page; null before the first attempt.
fn attempt_log_json(transaction: &Transaction) -> Value {
    if transaction.status.is_paid() {
        let channel = &transaction.channel;
        return json!({
            "start_time": transaction.created_at.unix_seconds(),
            "time_spent": 4,
            "attempts": 1,
            "errors": 0,
            "success": true,
            "mobile": false,
            "input": [],
            "history": [
                { "type": "action", "message": format!("Attempted to pay with {channel}"), "time": 3 },
                { "type": "success", "message": format!("Successfully paid with {channel}"), "time": 4 },
            ],
        });
    }
    Value::Null
}
