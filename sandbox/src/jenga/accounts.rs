//! The state of an account: credentials, tokens and pushes.

use std::collections::BTreeMap;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use tollhouse_platform::clock::Timestamp;

use super::{Jenga, merchant::TimerEvent, pushes::Push, signatures};
use crate::{server::error_response, timer_queue::TimerQueue};

/// The private key of the default account, in PEM. It is for tests only, and protects nothing.
pub const PRIVATE_KEY: &str = include_str!("private_key.pem");

/// The credentials of an account. The default is the service account of `cargo sandbox`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credentials {
    pub merchant_code: String,
    pub api_key: String,
    pub consumer_secret: String,
    /// The bank account to which pushes are paid.
    pub account_number: String,
    pub merchant_name: String,
    /// In PEM: the counterpart of the key that signs requests.
    pub public_key: String,
}

impl Default for Credentials {
    fn default() -> Credentials {
        Credentials {
            merchant_code: "9397187322".to_owned(),
            api_key: "tollhouse_jenga_api_key".to_owned(),
            consumer_secret: "tollhouse_jenga_consumer_secret".to_owned(),
            account_number: "1450160649886".to_owned(),
            merchant_name: "Tollhouse".to_owned(),
            public_key: include_str!("public_key.pem").to_owned(),
        }
    }
}

pub(super) struct Account {
    pub credentials: Credentials,
    /// Expiry time of each token.
    pub access_tokens: BTreeMap<String, Timestamp>,
    /// Keyed by reference.
    pub pushes: BTreeMap<String, Push>,
    pub timers: TimerQueue<TimerEvent>,
}

impl Account {
    pub(super) fn new(merchant_code: &str) -> Account {
        Account {
            credentials: Credentials {
                merchant_code: merchant_code.to_owned(),
                ..Credentials::default()
            },
            access_tokens: BTreeMap::new(),
            pushes: BTreeMap::new(),
            timers: TimerQueue::default(),
        }
    }
}

/// Control endpoint of the simulators: opens an account. Omitted fields have the values of the
/// default account.
pub(super) async fn set_account(State(jenga): State<Jenga>, body: String) -> Response {
    match serde_json::from_str::<Credentials>(&body) {
        Ok(credentials) if !signatures::is_public_key(&credentials.public_key) => {
            let message = "public_key must be an RSA public key in PEM";
            error_response(StatusCode::BAD_REQUEST, message)
        }
        Ok(credentials) => {
            jenga.open_account(credentials);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => error_response(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}
