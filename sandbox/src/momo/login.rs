//! Access tokens: issued per product for an API user and its key, with an expiry by the clock.

use axum::{Json, extract::State, http::HeaderMap};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Momo,
    accounts::{Account, Product},
    http::{ApiError, ApiResult, header},
};
use crate::env::Env;

const TOKEN_LIFETIME_SECONDS: i64 = 3_600;

impl Account {
    pub(super) fn has_valid_token(&self, product: Product, token: &str, now: Timestamp) -> bool {
        let issued = self.access_tokens.get(token);
        issued.is_some_and(|(of, expires)| *of == product && now < *expires)
    }

    fn issue_token(&mut self, env: &Env, product: Product) -> Value {
        let now = env.clock.now();
        self.access_tokens.retain(|_, (_, expires)| now < *expires);
        let token = env.random.code(40);
        let expires = now.plus_seconds(TOKEN_LIFETIME_SECONDS);
        self.access_tokens.insert(token.clone(), (product, expires));
        json!({
            "access_token": token,
            "token_type": "access_token",
            "expires_in": TOKEN_LIFETIME_SECONDS,
        })
    }
}

/// Returns API user and API key.
fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let encoded = header(headers, "authorization")?.strip_prefix("Basic ")?;
    let decoded = BASE64_STANDARD.decode(encoded.trim()).ok()?;
    let (user, key) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((user.to_owned(), key.to_owned()))
}

fn log_in(momo: &Momo, product: Product, headers: &HeaderMap, body: &str) -> ApiResult {
    if !body.is_empty() {
        return Err(ApiError::bad_request());
    }
    let (user, key) = credentials(headers).ok_or_else(ApiError::login_failed)?;
    momo.0.with_accounts(|accounts, env| {
        let account = accounts.get_mut(&user).filter(|account| account.credentials.api_key == key);
        let account = account.ok_or_else(ApiError::login_failed)?;
        let subscription = account.credentials.subscription_key(product);
        if header(headers, "ocp-apim-subscription-key") != Some(subscription) {
            return Err(ApiError::subscription_key());
        }
        Ok(Json(account.issue_token(env, product)))
    })
}

pub(super) async fn collection(
    State(momo): State<Momo>,
    headers: HeaderMap,
    body: String,
) -> ApiResult {
    log_in(&momo, Product::Collection, &headers, &body)
}

pub(super) async fn disbursement(
    State(momo): State<Momo>,
    headers: HeaderMap,
    body: String,
) -> ApiResult {
    log_in(&momo, Product::Disbursement, &headers, &body)
}
