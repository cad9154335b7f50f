//! Direct debit: mandates are authorized on the hosted page and activated by the clock.

use axum::{
    extract::{Path, Query, State},
    http::StatusCode,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Paystack,
    accounts::{Account, Authorization, Instrument, Page},
    http::{ApiError, ApiKey, ApiResult, Params, Reply},
    merchant::TimerEvent,
};
use crate::{Outcome, env::Env, provider::MerchantAccount};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MandateState {
    /// The customer has not acted on the page yet.
    Open,
    /// The customer declined, and may still authorize it.
    Refused,
    /// Authorized, not yet active at the bank.
    Created,
    Active,
    Revoked,
}

pub(super) struct Mandate {
    pub id: u64,
    pub reference: String,
    pub access_code: String,
    pub email: String,
    pub callback_url: Option<String>,
    pub stage: MandateState,
    account_number: String,
    bank_code: String,
    /// The code, once the customer has authorized the mandate.
    authorization: Option<String>,
    authorized_at: Option<Timestamp>,
}

impl Mandate {
    pub(super) fn is_open(&self) -> bool {
        matches!(self.stage, MandateState::Open | MandateState::Refused)
    }

    /// The status by which lists filter; `None` before the authorization.
    fn status(&self) -> Option<&'static str> {
        match self.stage {
            MandateState::Open | MandateState::Refused => None,
            MandateState::Created => Some("pending"),
            MandateState::Active => Some("active"),
            MandateState::Revoked => Some("revoked"),
        }
    }
}

impl Account {
    fn open_mandate(&mut self, env: &Env, email: String, params: &Params) -> ApiResult {
        if params.text("channel").is_some_and(|c| c != "direct_debit") {
            return Err(ApiError::invalid("invalid_params", "Invalid channel", "Use direct_debit"));
        }
        self.customer(&email, env);
        let detail = |name: &str| {
            let value = params.get("account").and_then(|account| account[name].as_str());
            value.unwrap_or_default().to_owned()
        };
        let mandate = Mandate {
            id: env.next_id(),
            reference: env.random.code(20),
            access_code: env.random.code(15),
            email,
            callback_url: params.text("callback_url"),
            stage: MandateState::Open,
            account_number: detail("number"),
            bank_code: detail("bank_code"),
            authorization: None,
            authorized_at: None,
        };
        let data = json!({
            "redirect_url": format!("{}/checkout/{}", env.url, mandate.access_code),
            "access_code": mandate.access_code,
            "reference": mandate.reference,
        });
        self.pages.insert(mandate.access_code.clone(), Page::Mandate(mandate.reference.clone()));
        self.mandates.insert(mandate.reference.clone(), mandate);
        Ok(Reply::new("Authorization initialized", data))
    }

    /// Applies the customer's choice on the page of an open mandate.
    pub(super) fn decide_mandate(&mut self, env: &Env, reference: &str, outcome: Outcome) {
        let Some(mandate) = self.mandates.get_mut(reference) else { return };
        match outcome {
            Outcome::Abandoned => return,
            Outcome::Failed => {
                mandate.stage = MandateState::Refused;
                return;
            }
            Outcome::Success => {}
        }
        mandate.stage = MandateState::Created;
        mandate.authorized_at = Some(env.clock.now());
        let email = mandate.email.clone();
        let authorization = self.authorize(Instrument::Mandate, &email, env);
        if let Some(mandate) = self.mandates.get_mut(reference) {
            mandate.authorization = Some(authorization.code);
        }
        self.schedule(env, TimerEvent::Mandate(reference.to_owned()));
        self.notify_mandate(env, reference, "direct_debit.authorization.created");
    }

    pub(super) fn activate_mandate(&mut self, env: &Env, reference: &str) {
        let Some(mandate) = self.mandates.get_mut(reference) else { return };
        if mandate.stage != MandateState::Created {
            return;
        }
        mandate.stage = MandateState::Active;
        let code = mandate.authorization.clone().unwrap_or_default();
        if let Some(authorization) = self.authorizations.get_mut(&code) {
            authorization.active = true;
        }
        self.notify_mandate(env, reference, "direct_debit.authorization.active");
    }

    fn authorization_of_mandate(&self, mandate: &Mandate) -> Option<&Authorization> {
        self.authorizations.get(mandate.authorization.as_ref()?)
    }

    fn notify_mandate(&self, env: &Env, reference: &str, event: &str) {
        let Some(mandate) = self.mandates.get(reference) else { return };
        let Some(authorization) = self.authorization_of_mandate(mandate) else { return };
        let mut customer = self.customer_json(&mandate.email);
        customer["code"] = customer["customer_code"].take();
        let data = json!({
            "authorization_code": authorization.code,
            "active": authorization.active,
            "last4": last4(&mandate.account_number),
            "channel": "direct_debit",
            "card_type": "mandate",
            "bank": "TEST BANK",
            "exp_month": 1,
            "exp_year": authorization.exp_year,
            "country_code": "NG",
            "brand": "TEST BANK",
            "reusable": true,
            "signature": authorization.signature,
            "account_name": "TEST CUSTOMER",
            "integration": self.integration,
            "domain": self.domain(),
            "reference": mandate.reference,
            "customer": customer,
        });
        self.notify(env, event, reference, &data);
    }

    fn mandate_json(&self, mandate: &Mandate) -> Value {
        let customer = self.customer_json(&mandate.email);
        json!({
            "id": mandate.id,
            "status": mandate.status(),
            "mandate_id": mandate.id,
            "authorization_id": mandate.id,
            "authorization_code": mandate.authorization,
            "integration_id": self.integration,
            "account_number": mandate.account_number,
            "bank_code": mandate.bank_code,
            "bank_name": "TEST BANK",
            "authorized_at": mandate.authorized_at,
            "customer": {
                "id": customer["id"], "customer_code": customer["customer_code"],
                "email": mandate.email, "first_name": null, "last_name": null,
            },
        })
    }

    /// Returns the e-mail of a customer, by id or code.
    fn find_customer_email(&self, customer: &str) -> Result<String, ApiError> {
        let named =
            |c: &&super::accounts::Customer| c.code == customer || c.id.to_string() == customer;
        let found = self.customers.values().find(named).map(|customer| customer.email.clone());
        found.ok_or_else(|| {
            let message = "Customer not found";
            ApiError::new(
                StatusCode::NOT_FOUND,
                "customer_not_found",
                message,
                "Check the customer",
            )
        })
    }
}

fn last4(account_number: &str) -> &str {
    let start = account_number.len().saturating_sub(4);
    account_number.get(start..).filter(|digits| digits.len() == 4).unwrap_or("0000")
}

pub(super) async fn initialize(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    let email = params.email()?;
    params.required("channel")?;
    paystack.with_account(&key, |account, env| account.open_mandate(env, email, &params))
}

pub(super) async fn initialize_for_customer(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(customer): Path<String>,
    params: Params,
) -> ApiResult {
    paystack.with_account(&key, |account, env| {
        let email = account.find_customer_email(&customer)?;
        if !params.get("account").is_some_and(Value::is_object) {
            return Err(ApiError::missing("account"));
        }
        account.open_mandate(env, email, &params)
    })
}

pub(super) async fn verify(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(reference): Path<String>,
) -> ApiResult {
    paystack.with_account(&key, |account, _| {
        let mandate =
            account.mandates.get(&reference).ok_or_else(ApiError::authorization_not_found)?;
        let authorization = account
            .authorization_of_mandate(mandate)
            .ok_or_else(ApiError::authorization_not_found)?;
        let customer = account.customer_json(&mandate.email);
        let data = json!({
            "authorization_code": authorization.code,
            "channel": "direct_debit",
            "bank": "TEST BANK",
            "active": authorization.active,
            "customer": { "code": customer["customer_code"], "email": mandate.email },
        });
        Ok(Reply::new("Authorization retrieved successfully", data))
    })
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    status: Option<String>,
}

pub(super) async fn list(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Query(query): Query<ListQuery>,
) -> ApiResult {
    paystack.with_account(&key, |account, _| {
        let fits = |mandate: &&Mandate| match (mandate.status(), &query.status) {
            (Some(status), Some(wanted)) => status == wanted,
            (status, _) => status.is_some(),
        };
        let mandates = account.mandates.values().filter(fits);
        let rows: Vec<Value> = mandates.map(|mandate| account.mandate_json(mandate)).collect();
        let meta =
            json!({ "per_page": 50, "next": null, "count": rows.len(), "total": rows.len() });
        Ok(Reply::page("Mandate authorizations retrieved successfully", rows, meta))
    })
}

/// Retries the activation charge of a mandate.
pub(super) async fn activate(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(customer): Path<String>,
    params: Params,
) -> ApiResult {
    let id = params.required("authorization_id")?;
    paystack.with_account(&key, |account, env| {
        let email = account.find_customer_email(&customer)?;
        let mandate =
            account.mandates.values().find(|m| m.id.to_string() == id && m.email == email);
        let mandate = mandate.ok_or_else(ApiError::authorization_not_found)?;
        let reference = mandate.reference.clone();
        account.schedule(env, TimerEvent::Mandate(reference));
        Ok(Reply::bare("Mandate is queued for retry"))
    })
}

/// Deactivates a saved card or revokes a mandate.
pub(super) async fn deactivate(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    let code = params.required("authorization_code")?;
    paystack.with_account(&key, |account, _| {
        let authorization = account.authorizations.get_mut(&code);
        authorization.ok_or_else(ApiError::authorization_not_found)?.active = false;
        let mut mandates = account.mandates.values_mut();
        if let Some(mandate) = mandates.find(|m| m.authorization.as_ref() == Some(&code)) {
            mandate.stage = MandateState::Revoked;
        }
        Ok(Reply::bare("Authorization has been deactivated"))
    })
}
