//! Access tokens: issued for an API key and its secret, with an expiry by the clock.

use axum::{
    extract::State,
    http::{HeaderMap, header},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;
use tollhouse_platform::clock::Timestamp;

use super::{
    Monnify,
    accounts::Account,
    http::{ApiError, ApiResult, Reply},
};
use crate::env::Env;

const TOKEN_LIFETIME_SECONDS: i64 = 3_600;

impl Account {
    pub(super) fn has_valid_token(&self, token: &str, now: Timestamp) -> bool {
        self.access_tokens.get(token).is_some_and(|expires| now < *expires)
    }

    fn log_in(&mut self, env: &Env, secret_key: &str) -> ApiResult {
        if *self.secret_key.get_or_insert_with(|| secret_key.to_owned()) != secret_key {
            return Err(invalid_credentials());
        }
        let now = env.clock.now();
        self.access_tokens.retain(|_, expires| now < *expires);
        let token = env.random.code(64);
        self.access_tokens.insert(token.clone(), now.plus_seconds(TOKEN_LIFETIME_SECONDS));
        Ok(Reply(json!({ "accessToken": token, "expiresIn": TOKEN_LIFETIME_SECONDS })))
    }
}

pub(super) fn is_api_key(key: &str) -> bool {
    let rest = key.strip_prefix("MK_TEST_").or_else(|| key.strip_prefix("MK_PROD_"));
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_graphic()))
}

fn invalid_credentials() -> ApiError {
    ApiError::unauthorized("Invalid credentials")
}

fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let header = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let decoded = BASE64_STANDARD.decode(header.strip_prefix("Basic ")?.trim()).ok()?;
    let (api_key, secret_key) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    let whole = is_api_key(api_key) && !secret_key.is_empty();
    whole.then(|| (api_key.to_owned(), secret_key.to_owned()))
}

pub(super) async fn login(State(monnify): State<Monnify>, headers: HeaderMap) -> ApiResult {
    let (api_key, secret_key) = credentials(&headers).ok_or_else(invalid_credentials)?;
    monnify.with_account(&api_key, |account, env| account.log_in(env, &secret_key))
}
