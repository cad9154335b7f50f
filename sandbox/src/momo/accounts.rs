//! The state of an account: credentials, tokens, requests to pay and refunds.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Momo,
    http::{ApiError, ApiResult, Caller, Params, header},
    merchant::TimerEvent,
    refunds::Refund,
    requests::PaymentRequest,
};
use crate::{env::Env, money, outbox::Delivery, server::error_response, timer_queue::TimerQueue};

/// Currencies without decimals.
const WITHOUT_DECIMALS: [&str; 4] = ["UGX", "RWF", "XAF", "XOF"];

/// A product of MoMo, with a subscription key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    Collection,
    Disbursement,
}

impl Product {
    pub(super) fn of_path(path: &str) -> Product {
        match path.starts_with("/disbursement/") {
            true => Product::Disbursement,
            false => Product::Collection,
        }
    }
}

/// The credentials of an account. The default is an account in Uganda.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credentials {
    /// A UUID.
    pub api_user: String,
    pub api_key: String,
    /// Of the product Collection.
    pub subscription_key: String,
    /// Of the product Disbursement.
    pub disbursement_subscription_key: String,
    pub target_environment: String,
    /// The only currency of the account.
    pub currency: String,
    /// The only host of callback URLs. Empty: any host.
    pub callback_host: String,
}

impl Default for Credentials {
    fn default() -> Credentials {
        Credentials {
            api_user: "5a2f8c1e-0d47-4b6a-9c3f-7e1b2d4a6c80".to_owned(),
            api_key: "tollhouse_api_key".to_owned(),
            subscription_key: "tollhouse_collection_key".to_owned(),
            disbursement_subscription_key: "tollhouse_disbursement_key".to_owned(),
            target_environment: "mtnuganda".to_owned(),
            currency: "UGX".to_owned(),
            callback_host: String::new(),
        }
    }
}

impl Credentials {
    pub(super) fn subscription_key(&self, product: Product) -> &str {
        match product {
            Product::Collection => &self.subscription_key,
            Product::Disbursement => &self.disbursement_subscription_key,
        }
    }
}

pub(super) struct Account {
    pub credentials: Credentials,
    /// Product and expiry time of each token.
    pub access_tokens: BTreeMap<String, (Product, Timestamp)>,
    /// Keyed by `X-Reference-Id`.
    pub payments: BTreeMap<String, PaymentRequest>,
    /// Keyed by `X-Reference-Id`.
    pub refunds: BTreeMap<String, Refund>,
    /// In hundredths of the major unit.
    pub balance: u64,
    pub timers: TimerQueue<TimerEvent>,
}

impl Account {
    pub(super) fn new(api_user: &str) -> Account {
        Account {
            credentials: Credentials { api_user: api_user.to_owned(), ..Credentials::default() },
            access_tokens: BTreeMap::new(),
            payments: BTreeMap::new(),
            refunds: BTreeMap::new(),
            balance: 0,
            timers: TimerQueue::default(),
        }
    }

    pub(super) fn merchant(&self) -> String {
        format!("Merchant {:.8}", self.credentials.api_user)
    }

    /// Reads amount and currency. Returns the amount in hundredths, and as it was written.
    pub(super) fn read_amount(&self, params: &Params) -> ApiResult<(u64, String)> {
        let written = params.required("amount")?;
        let currency = params.required("currency")?;
        if currency != self.credentials.currency {
            let message = "Currency not supported.";
            return Err(ApiError::internal("INVALID_CURRENCY", message));
        }
        let has_decimals = !WITHOUT_DECIMALS.contains(&currency.as_str());
        let valid = |minor: &u64| *minor > 0 && (has_decimals || minor.is_multiple_of(100));
        let minor = money::minor(&json!(written)).filter(valid);
        Ok((minor.ok_or_else(ApiError::bad_request)?, written))
    }

    /// Reads the optional `X-Callback-Url`, whose host must be that of the API user.
    pub(super) fn read_callback_url(&self, headers: &HeaderMap) -> ApiResult<Option<String>> {
        let Some(text) = header(headers, "x-callback-url") else { return Ok(None) };
        let url = url::Url::parse(text).map_err(|_| ApiError::bad_request())?;
        let host = &self.credentials.callback_host;
        if !host.is_empty() && url.host_str() != Some(host.as_str()) {
            let message = "Callback URL with different host name to configured for API User.";
            return Err(ApiError::internal("INVALID_CALLBACK_URL_HOST", message));
        }
        Ok(Some(text.to_owned()))
    }
}

/// Sends a callback. MoMo sends each once, without a signature.
pub(super) fn notify(env: &Env, url: Option<&str>, reference: &str, body: &Value) {
    let Some(url) = url else { return };
    let delivery = Delivery {
        ordering_key: format!("momo {reference}"),
        method: reqwest::Method::PUT,
        url: url.to_owned(),
        body: body.to_string(),
        signatures: Vec::new(),
        retry_ms: |_| None,
    };
    env.outbox.enqueue(delivery, env.clock.now());
}

pub(super) async fn balance(State(momo): State<Momo>, caller: Caller) -> ApiResult {
    momo.0.with_account(&caller.api_user, |account, _| {
        Ok(Json(json!({
            "availableBalance": money::major(account.balance).to_string(),
            "currency": account.credentials.currency,
        })))
    })
}

/// Control endpoint of the simulators: opens an account. Omitted fields have the values of the
/// default account.
pub(super) async fn set_account(State(momo): State<Momo>, body: String) -> Response {
    match serde_json::from_str::<Credentials>(&body) {
        Ok(credentials) => {
            momo.open_account(credentials);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => error_response(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}
