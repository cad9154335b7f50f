//! Access tokens: issued for a merchant, with an expiry by the clock.

use axum::{Json, extract::State, http::HeaderMap};
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Jenga,
    accounts::Account,
    http::{ApiError, ApiResult, Params, header},
};
use crate::env::Env;

const TOKEN_LIFETIME_SECONDS: i64 = 15 * 60;

impl Account {
    pub(super) fn has_valid_token(&self, token: &str, now: Timestamp) -> bool {
        self.access_tokens.get(token).is_some_and(|expires| now < *expires)
    }

    fn issue_token(&mut self, env: &Env) -> Value {
        let now = env.clock.now();
        let expires = now.plus_seconds(TOKEN_LIFETIME_SECONDS);
        self.access_tokens.retain(|_, expires| now < *expires);
        let token = env.random.code(40);
        self.access_tokens.insert(token.clone(), expires);
        json!({
            "accessToken": token,
            "refreshToken": env.random.code(40),
            "expiresIn": time(expires),
            "issuedAt": time(now),
            "tokenType": "Bearer",
        })
    }
}

/// Formats `2026-11-21T10:00:00Z`.
fn time(at: Timestamp) -> String {
    at.to_datetime().format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) async fn authenticate(
    State(jenga): State<Jenga>,
    headers: HeaderMap,
    params: Params,
) -> ApiResult {
    let api_key = header(&headers, "api-key").ok_or_else(ApiError::unauthorized)?.to_owned();
    let code = params.required("merchantCode")?;
    let secret = params.required("consumerSecret")?;
    jenga.0.with_accounts(|accounts, env| {
        let account = accounts.get_mut(&code).filter(|account| {
            let own = &account.credentials;
            own.api_key == api_key && own.consumer_secret == secret
        });
        Ok(Json(account.ok_or_else(ApiError::unauthorized)?.issue_token(env)))
    })
}
