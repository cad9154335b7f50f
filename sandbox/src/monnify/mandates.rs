//! Mandates: authorized by the customer on a page, activated by the clock, ended by the merchant or
//! by their dates.

use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Monnify,
    accounts::{Account, Page},
    http::{ApiError, ApiKey, ApiResult, Params, Reply},
    merchant::TimerEvent,
    times::{self, space_separated, utc},
};
use crate::{Outcome, env::Env, money::major, provider::MerchantAccount};

/// Time limit for the customer's authorization.
const AUTHORIZATION_SECONDS: i64 = 24 * 60 * 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MandateState {
    PendingAuthorization,
    PendingActivation,
    Activated,
    AuthorizationExpired,
    Expired,
    Cancelled,
    Failed,
}

impl MandateState {
    fn name(self) -> &'static str {
        match self {
            MandateState::PendingAuthorization => "PENDING AUTHORIZATION",
            MandateState::PendingActivation => "PENDING ACTIVATION",
            MandateState::Activated => "ACTIVATED",
            MandateState::AuthorizationExpired => "AUTHORIZATION EXPIRED",
            MandateState::Expired => "EXPIRED",
            MandateState::Cancelled => "CANCELLED",
            MandateState::Failed => "FAILED",
        }
    }

    fn has_ended(self) -> bool {
        use MandateState::{AuthorizationExpired, Cancelled, Expired, Failed};
        matches!(self, AuthorizationExpired | Expired | Cancelled | Failed)
    }
}

pub(super) struct Mandate {
    /// Increases with each mandate.
    pub number: u64,
    pub code: String,
    pub reference: String,
    pub email: String,
    /// The id of its hosted page.
    pub page: String,
    pub redirect_url: Option<String>,
    pub stage: MandateState,
    /// Maximum of one debit, in minor units.
    pub amount: u64,
    debit_amount: Option<u64>,
    contract_code: String,
    auto_renew: bool,
    starts_at: Timestamp,
    ends_at: Timestamp,
    link: String,
    /// Fields that are only returned: names, address and account of the customer, and the
    /// description.
    echoed: Value,
}

/// Fields that are returned as given.
const ECHOED_FIELDS: [&str; 7] = [
    "customerName", "customerPhoneNumber", "customerAddress", "customerAccountName",
    "customerAccountNumber", "customerAccountBankCode", "mandateDescription",
];

impl Mandate {
    pub(super) fn is_open(&self) -> bool {
        self.stage == MandateState::PendingAuthorization
    }

    pub(super) fn customer_name(&self) -> Option<String> {
        self.echoed["customerName"].as_str().map(str::to_owned)
    }
}

impl Account {
    fn open_mandate(&mut self, env: &Env, params: &Params) -> ApiResult {
        let reference = params.required("mandateReference")?;
        let contract_code = self.check_contract(params)?;
        let email = params.email("customerEmailAddress")?;
        for name in ["customerName", "customerAccountBankCode", "mandateDescription"] {
            params.required(name)?;
        }
        let account_number = params.required("customerAccountNumber")?;
        if account_number.len() != 10 || !account_number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ApiError::invalid("customerAccountNumber is not a valid account number"));
        }
        let date = |name: &str| {
            let at = times::parse(&params.required(name)?);
            at.ok_or_else(|| ApiError::invalid(format!("{name} is not a valid date")))
        };
        let (starts_at, ends_at) = (date("mandateStartDate")?, date("mandateEndDate")?);
        if ends_at <= starts_at || ends_at <= env.clock.now() {
            return Err(ApiError::invalid("mandateEndDate must be after mandateStartDate and now"));
        }
        if self.mandates.values().any(|mandate| mandate.reference == reference) {
            return Err(ApiError::invalid("Duplicate mandate reference"));
        }
        let code = format!("MTDD|{}", env.random.code(26).to_uppercase());
        let page = env.random.code(20);
        let shown = ECHOED_FIELDS.iter().map(|name| ((*name).to_owned(), json!(params.text(name))));
        let mandate = Mandate {
            number: env.next_id(),
            code: code.clone(),
            reference,
            email,
            link: format!("{}/checkout/{page}", env.url),
            page: page.clone(),
            redirect_url: params.text("redirectUrl"),
            stage: MandateState::PendingAuthorization,
            amount: params.required_amount("mandateAmount")?,
            debit_amount: params.amount("debitAmount")?,
            contract_code,
            auto_renew: params.flag("autoRenew"),
            starts_at,
            ends_at,
            echoed: shown.collect(),
        };
        // Only this response reports `PENDING`; later queries report the state of the mandate.
        let body = summary_json(&mandate, "PENDING", "Your request for a mandate is submitted.");
        let deadline = env.clock.now().plus_seconds(AUTHORIZATION_SECONDS);
        self.timers.schedule(deadline, TimerEvent::MandateAuthorizationExpiry(code.clone()));
        self.timers.schedule(ends_at, TimerEvent::MandateExpiry(code.clone()));
        self.pages.insert(page, Page::Mandate(code.clone()));
        self.mandates.insert(code, mandate);
        Ok(Reply(body))
    }

    /// Applies the customer's choice on the page of an open mandate.
    pub(super) fn decide_mandate(&mut self, env: &Env, code: &str, outcome: Outcome) {
        match outcome {
            Outcome::Success => {
                self.set_state(env, code, MandateState::PendingActivation);
                self.schedule(env, TimerEvent::MandateActivation(code.to_owned()));
            }
            Outcome::Failed => self.set_state(env, code, MandateState::Failed),
            Outcome::Abandoned => {}
        }
    }

    pub(super) fn activate_mandate(&mut self, env: &Env, code: &str) {
        if self.mandates.get(code).is_some_and(|m| m.stage == MandateState::PendingActivation) {
            self.set_state(env, code, MandateState::Activated);
        }
    }

    pub(super) fn expire_authorization(&mut self, env: &Env, code: &str) {
        if self.mandates.get(code).is_some_and(Mandate::is_open) {
            self.set_state(env, code, MandateState::AuthorizationExpired);
        }
    }

    pub(super) fn expire_mandate(&mut self, env: &Env, code: &str) {
        if self.mandates.get(code).is_some_and(|m| !m.stage.has_ended() && !m.auto_renew) {
            self.set_state(env, code, MandateState::Expired);
        }
    }

    fn set_state(&mut self, env: &Env, code: &str, stage: MandateState) {
        let Some(mandate) = self.mandates.get_mut(code) else { return };
        mandate.stage = stage;
        let (data, subject) = (notification_json(mandate), mandate.reference.clone());
        self.notify(env, "MANDATE_UPDATE", &subject, &data);
    }

    fn cancel_mandate(&mut self, env: &Env, code: &str) -> ApiResult {
        let mandate = self.mandates.get(code);
        let mandate = mandate.ok_or_else(|| ApiError::not_found("There is no such mandate"))?;
        if mandate.stage.has_ended() {
            return Err(ApiError::invalid("Mandate has ended already"));
        }
        self.set_state(env, code, MandateState::Cancelled);
        let mandate = &self.mandates[code];
        let message = "Mandate has been requested to be cancelled.";
        Ok(Reply(summary_json(mandate, mandate.stage.name(), message)))
    }
}

fn summary_json(mandate: &Mandate, status: &str, message: &str) -> Value {
    json!({
        "responseMessage": message,
        "mandateReference": mandate.reference,
        "mandateCode": mandate.code,
        "mandateStatus": status,
    })
}

fn common_json(mandate: &Mandate) -> Value {
    let mut data = mandate.echoed.clone();
    data["mandateCode"] = json!(mandate.code);
    data["externalMandateReference"] = json!(mandate.reference);
    data["mandateStatus"] = json!(mandate.stage.name());
    data["mandateAmount"] = major(mandate.amount);
    data["autoRenew"] = json!(mandate.auto_renew);
    data["contractCode"] = json!(mandate.contract_code);
    data["customerEmailAddress"] = json!(mandate.email);
    data
}

fn list_item_json(mandate: &Mandate) -> Value {
    let name = mandate.customer_name().unwrap_or_default();
    let mut row = common_json(mandate);
    row["startDate"] = json!(utc(mandate.starts_at));
    row["endDate"] = json!(utc(mandate.ends_at));
    row["debitAmount"] = mandate.debit_amount.map_or(Value::Null, major);
    row["authorizationMessage"] = json!(format!("Ask {name} to authorise the mandate."));
    row["authorizationLink"] = json!(mandate.link);
    row
}

fn notification_json(mandate: &Mandate) -> Value {
    let mut data = common_json(mandate);
    data["startDate"] = json!(space_separated(mandate.starts_at));
    data["endDate"] = json!(space_separated(mandate.ends_at));
    data
}

pub(super) async fn create(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    monnify.with_account(&key, |account, env| account.open_mandate(env, &params))
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    /// Comma-separated.
    #[serde(rename = "mandateReferences")]
    references: Option<String>,
}

pub(super) async fn list(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    Query(query): Query<ListQuery>,
) -> ApiResult {
    let wanted = query.references.ok_or_else(|| ApiError::missing("mandateReferences"))?;
    let wanted: Vec<&str> = wanted.split(',').map(str::trim).collect();
    monnify.with_account(&key, |account, _| {
        let found = account.mandates.values().filter(|m| wanted.contains(&m.reference.as_str()));
        Ok(Reply(found.map(list_item_json).collect()))
    })
}

pub(super) async fn cancel(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    Path(code): Path<String>,
) -> ApiResult {
    monnify.with_account(&key, |account, env| account.cancel_mandate(env, &code))
}
