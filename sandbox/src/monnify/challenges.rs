//! Challenges of saved cards: an OTP, or the bank's page.

use axum::extract::State;
use serde_json::{Value, json};

use super::{
    Monnify,
    accounts::{Account, Page},
    http::{ApiError, ApiKey, ApiResult, Params, Reply},
    transactions::Status,
};
use crate::env::Env;

/// Monnify's documents disagree on the OTP of the test cards.
const ACCEPTED_OTPS: [&str; 2] = ["123456", "12345"];

impl Account {
    pub(super) fn request_otp(&mut self, env: &Env, payment_reference: &str) -> Value {
        let id = self.open_challenge(env, payment_reference);
        let mut body = self.charge_json(
            payment_reference, "OTP_AUTHORIZATION_REQUIRED", "OTP Authorization required",
        );
        body["otpData"] = json!({
            "id": id, "message": "Please enter the OTP: 123456 for test cards", "authData": null,
        });
        body
    }

    pub(super) fn request_3ds(&mut self, env: &Env, payment_reference: &str) -> Value {
        let id = self.open_challenge(env, payment_reference);
        let mut body = self.charge_json(
            payment_reference,
            "BANK_AUTHORIZATION_REQUIRED",
            "3D Secure Authorization required",
        );
        let redirect = format!("{}/checkout/{id}", env.url);
        body["secure3dData"] = json!({ "id": id, "redirectUrl": redirect });
        body
    }

    /// Opens a challenge page and returns its id, which identifies the challenge.
    fn open_challenge(&mut self, env: &Env, payment_reference: &str) -> String {
        let id = env.random.code(20);
        if let Some(transaction) = self.transactions.get_mut(payment_reference) {
            transaction.page = Some(id.clone());
            self.pages.insert(id.clone(), Page::Transaction(payment_reference.to_owned()));
        }
        id
    }

    fn authorize(&mut self, env: &Env, params: &Params) -> ApiResult {
        let reference = params.required("transactionReference")?;
        let (challenge, code) = (params.required("tokenId")?, params.required("token")?);
        let transaction =
            self.by_reference(&reference).ok_or_else(ApiError::transaction_not_found)?;
        let waits =
            transaction.status == Status::Pending && transaction.page.as_ref() == Some(&challenge);
        if !waits {
            return Err(ApiError::invalid("Transaction does not wait for an OTP"));
        }
        let own = transaction.payment_reference.clone();
        let passed = ACCEPTED_OTPS.contains(&code.as_str());
        self.finish(env, &own, passed);
        let (status, message) = match passed {
            true => ("SUCCESS", "Transaction Successful"),
            false => ("FAILED", "OTP is invalid"),
        };
        Ok(Reply(self.charge_json(&own, status, message)))
    }
}

pub(super) async fn authorize(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    monnify.with_account(&key, |account, env| account.authorize(env, &params))
}
