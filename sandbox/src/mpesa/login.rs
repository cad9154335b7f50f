//! Access tokens: issued for a consumer key and its secret, with an expiry by the clock.

use axum::{
    Json,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Mpesa,
    accounts::Account,
    http::{ApiError, ApiResult},
};
use crate::env::Env;

const TOKEN_LIFETIME_SECONDS: i64 = 3_599;

impl Account {
    pub(super) fn has_valid_token(&self, token: &str, now: Timestamp) -> bool {
        self.access_tokens.get(token).is_some_and(|expires| now < *expires)
    }

    fn issue_token(&mut self, env: &Env) -> Value {
        let now = env.clock.now();
        self.access_tokens.retain(|_, expires| now < *expires);
        let token = env.random.code(28);
        self.access_tokens.insert(token.clone(), now.plus_seconds(TOKEN_LIFETIME_SECONDS));
        json!({ "access_token": token, "expires_in": TOKEN_LIFETIME_SECONDS.to_string() })
    }
}

/// Returns consumer key and secret.
fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let header = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let decoded = BASE64_STANDARD.decode(header.strip_prefix("Basic ")?.trim()).ok()?;
    let (key, secret) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((key.to_owned(), secret.to_owned()))
}

#[derive(Deserialize)]
pub(super) struct TokenQuery {
    grant_type: Option<String>,
}

pub(super) async fn generate(
    State(mpesa): State<Mpesa>,
    Query(query): Query<TokenQuery>,
    headers: HeaderMap,
) -> ApiResult {
    let invalid = |code, message| ApiError::new(StatusCode::BAD_REQUEST, code, message);
    if query.grant_type.as_deref() != Some("client_credentials") {
        return Err(invalid("400.008.02", "Invalid grant type passed"));
    }
    let (key, secret) = credentials(&headers)
        .ok_or_else(|| invalid("400.008.01", "Invalid Authentication passed"))?;
    mpesa.0.with_accounts(|accounts, env| {
        let account = accounts.get_mut(&key);
        let account = account.filter(|account| account.credentials.consumer_secret == secret);
        // Daraja does not describe this error.
        let account = account.ok_or_else(|| ApiError::without_body(StatusCode::BAD_REQUEST))?;
        Ok(Json(account.issue_token(env)))
    })
}
