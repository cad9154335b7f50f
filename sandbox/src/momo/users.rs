//! Provisioning of API users, as in MTN's sandbox: a new user has an account in euros.

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
};
use serde_json::{Value, json};

use super::{
    Momo,
    accounts::{Account, Credentials},
    http::{ApiError, ApiResult, Params, header, reference_id},
};

fn subscription_key(headers: &HeaderMap) -> ApiResult<&str> {
    let key = header(headers, "ocp-apim-subscription-key").filter(|key| !key.is_empty());
    key.ok_or_else(ApiError::subscription_key)
}

/// Creates a user. The subscription key serves all products, and the API key is created later.
pub(super) async fn create(
    State(momo): State<Momo>,
    headers: HeaderMap,
    params: Params,
) -> ApiResult<StatusCode> {
    let key = subscription_key(&headers)?;
    let api_user = reference_id(&headers)?;
    let callback_host = params.required("providerCallbackHost")?;
    momo.0.with_accounts(|accounts, env| {
        if accounts.contains_key(&api_user) {
            return Err(ApiError::duplicate());
        }
        let mut account = Account::new(&api_user);
        account.credentials = Credentials {
            api_user: api_user.clone(),
            // Never returned: login is impossible until a key is created.
            api_key: env.random.code(32),
            subscription_key: key.to_owned(),
            disbursement_subscription_key: key.to_owned(),
            target_environment: "sandbox".to_owned(),
            currency: "EUR".to_owned(),
            callback_host,
        };
        accounts.insert(api_user, account);
        Ok(StatusCode::CREATED)
    })
}

pub(super) async fn fetch(
    State(momo): State<Momo>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> ApiResult {
    let key = subscription_key(&headers)?;
    momo.0.with_accounts(|accounts, _| {
        let account =
            accounts.get(&id).filter(|account| account.credentials.subscription_key == key);
        let credentials = &account.ok_or_else(ApiError::not_found)?.credentials;
        Ok(Json(json!({
            "providerCallbackHost": credentials.callback_host,
            "targetEnvironment": credentials.target_environment,
        })))
    })
}

/// Creates a key, which replaces the former one.
pub(super) async fn create_key(
    State(momo): State<Momo>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> ApiResult<(StatusCode, Json<Value>)> {
    let key = subscription_key(&headers)?;
    momo.0.with_accounts(|accounts, env| {
        let account = accounts.get_mut(&id);
        let account = account.filter(|account| account.credentials.subscription_key == key);
        let account = account.ok_or_else(ApiError::not_found)?;
        account.credentials.api_key = env.random.code(32);
        Ok((StatusCode::CREATED, Json(json!({ "apiKey": account.credentials.api_key }))))
    })
}
