//! Tokens: reusable cards and bank accounts.

use axum::extract::{Path, State};
use serde_json::json;

use super::{
    Flutterwave,
    accounts::Account,
    cards::Card,
    http::{ApiError, ApiKey, ApiResult, Params, Reply},
};
use crate::env::Env;

#[derive(Clone)]
pub(super) struct Token {
    /// Charges must name the e-mail of the first charge.
    pub email: String,
    pub instrument: Instrument,
}

#[derive(Clone)]
pub(super) enum Instrument {
    Card(&'static Card),
    /// The reference of the mandate.
    Mandate(String),
}

impl Account {
    /// Issues a token and returns its text.
    pub(super) fn issue_token(&mut self, email: &str, instrument: Instrument, env: &Env) -> String {
        let kind = match instrument {
            Instrument::Card(_) => "t1nf",
            Instrument::Mandate(_) => "1bt",
        };
        let text = format!("flw-{kind}-{}-{}", env.random.code(32), self.network());
        self.tokens.insert(text.clone(), Token { email: email.to_owned(), instrument });
        text
    }
}

/// Changes the e-mail address of a saved card's customer.
pub(super) async fn update(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Path(text): Path<String>,
    params: Params,
) -> ApiResult {
    let email = params.email()?;
    let name = params.text("full_name").or_else(|| {
        let names = [params.text("first_name"), params.text("last_name")];
        Some(names.into_iter().flatten().collect::<Vec<_>>().join(" ")).filter(|n| !n.is_empty())
    });
    flutterwave.with_account(&key, |account, env| {
        let token = account.tokens.get_mut(&text);
        let token = token.ok_or_else(|| ApiError::invalid("Token not found"))?;
        token.email.clone_from(&email);
        let customer = account.upsert_customer(&email, name, params.text("phone_number"), env);
        let data = json!({
            "customer_email": customer.email,
            "customer_full_name": customer.name,
            "customer_phone_number": customer.phone_number,
            "created_at": customer.created_at,
        });
        Ok(Reply::new("Token details updated", data))
    })
}
