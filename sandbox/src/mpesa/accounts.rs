//! The state of an account: credentials, tokens, prompts and commands.

use std::collections::BTreeMap;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use tollhouse_platform::clock::Timestamp;

use super::{
    Mpesa,
    commands::Command,
    http::{ApiError, Params},
    merchant::TimerEvent,
    push::Push,
    times,
};
use crate::{server::error_response, timer_queue::TimerQueue};

/// The credentials of an account. The default is the service account of `cargo sandbox`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credentials {
    pub consumer_key: String,
    pub consumer_secret: String,
    pub shortcode: String,
    pub passkey: String,
    /// The operator who may reverse payments.
    pub initiator: String,
    pub initiator_password: String,
}

impl Default for Credentials {
    fn default() -> Credentials {
        Credentials {
            consumer_key: "tollhouse_service_account".to_owned(),
            consumer_secret: "tollhouse_consumer_secret".to_owned(),
            shortcode: "174379".to_owned(),
            passkey: "tollhouse_passkey".to_owned(),
            initiator: "tollhouseapi".to_owned(),
            initiator_password: "tollhouse_initiator_password".to_owned(),
        }
    }
}

pub(super) struct Account {
    pub credentials: Credentials,
    /// Expiry time of each token.
    pub access_tokens: BTreeMap<String, Timestamp>,
    /// Keyed by `CheckoutRequestID`.
    pub pushes: BTreeMap<String, Push>,
    /// Accepted commands without a result, by `ConversationID`.
    pub commands: BTreeMap<String, Command>,
    /// In whole shillings.
    pub balance: u64,
    pub timers: TimerQueue<TimerEvent>,
}

impl Account {
    pub(super) fn new(consumer_key: &str) -> Account {
        Account {
            credentials: Credentials {
                consumer_key: consumer_key.to_owned(),
                ..Credentials::default()
            },
            access_tokens: BTreeMap::new(),
            pushes: BTreeMap::new(),
            commands: BTreeMap::new(),
            balance: 0,
            timers: TimerQueue::default(),
        }
    }

    pub(super) fn merchant(&self) -> String {
        format!("Merchant {}", self.credentials.shortcode)
    }

    /// Checks the shortcode and the password, which contains the passkey and the timestamp.
    pub(super) fn check_password(&self, params: &Params) -> Result<(), ApiError> {
        let shortcode = params.required("BusinessShortCode")?;
        let timestamp = timestamp(params)?;
        let password = params.required("Password")?;
        if shortcode != self.credentials.shortcode {
            return Err(ApiError::failed("Merchant does not exist"));
        }
        let plain = format!("{shortcode}{}{timestamp}", self.credentials.passkey);
        if password != BASE64_STANDARD.encode(plain) {
            return Err(ApiError::failed("Wrong credentials"));
        }
        Ok(())
    }
}

/// Returns the timestamp of a password. Daraja checks its format, not its age.
pub(super) fn timestamp(params: &Params) -> Result<String, ApiError> {
    params.valid("Timestamp", times::is_timestamp)
}

/// Control endpoint of the simulators: opens an account. Omitted fields have the values of the
/// default account.
pub(super) async fn set_account(State(mpesa): State<Mpesa>, body: String) -> Response {
    match serde_json::from_str::<Credentials>(&body) {
        Ok(credentials) => {
            mpesa.open_account(credentials);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => error_response(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}
