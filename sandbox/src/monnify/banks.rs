//! Banks, and the names of the holders of their accounts.

use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::json;

use super::{
    Monnify,
    http::{ApiError, ApiKey, ApiResult, Reply},
};

const BANKS: [(&str, &str); 4] =
    [("058", "GTBank"), ("035", "Wema bank"), ("057", "Zenith bank"), ("50515", "Moniepoint MFB")];
const DIGITS: usize = 10;
/// Accounts whose numbers begin with this do not exist; all others belong to a test customer.
const UNKNOWN_PREFIX: &str = "000";
const HOLDER: &str = "TEST CUSTOMER";

pub(super) async fn list(ApiKey(_): ApiKey) -> ApiResult {
    let banks = BANKS.map(|(code, name)| json!({ "name": name, "code": code }));
    Ok(Reply(json!(banks)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccountQuery {
    account_number: Option<String>,
    bank_code: Option<String>,
}

pub(super) async fn resolve(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    Query(query): Query<AccountQuery>,
) -> ApiResult {
    let number = query.account_number.ok_or_else(|| ApiError::missing("accountNumber"))?;
    let bank = query.bank_code.ok_or_else(|| ApiError::missing("bankCode"))?;
    if !BANKS.iter().any(|(code, _)| *code == bank) {
        return Err(ApiError::invalid("Invalid bank code"));
    }
    if number.len() != DIGITS || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ApiError::invalid("Invalid account number"));
    }
    if number.starts_with(UNKNOWN_PREFIX) {
        return Err(ApiError::not_found("Account not found"));
    }
    let reserved = monnify.with_account(&key, |account, _| {
        let mut all = account.reserved.values();
        let own = all.find(|reserved| reserved.account_number == number);
        own.map(|reserved| reserved.account_name.clone())
    });
    let name = reserved.unwrap_or_else(|| HOLDER.to_owned());
    Ok(Reply(json!({ "accountNumber": number, "accountName": name, "bankCode": bank })))
}
