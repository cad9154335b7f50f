//! Termii's own one-time passwords, which its client libraries offer.

use std::{collections::VecDeque, ops::RangeInclusive};

use axum::{Json, extract::State};
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{ApiError, ApiResult, Params, Termii};
use crate::locked;

const MAX_TOKENS: usize = 1_000;

/// Newest first.
#[derive(Default)]
pub(super) struct Tokens(VecDeque<Token>);

struct Token {
    id: String,
    pin: String,
    number: String,
    attempts_left: u64,
    expires_at: Timestamp,
}

impl Token {
    fn generate(termii: &Termii, params: &Params, number: &str) -> Result<Token, ApiError> {
        let env = &termii.0.env;
        let minutes = params.required_in_range("pin_time_to_live", 0..=60)?;
        let length = params.required_in_range("pin_length", 4..=8)?;
        params.one_of("pin_type", &["NUMERIC", "ALPHANUMERIC"])?;
        let pin = match params.required("pin_type")? {
            "NUMERIC" => (0..length).map(|_| env.random.below(10).to_string()).collect(),
            _ => env.random.code(usize::try_from(length).unwrap_or_default()).to_uppercase(),
        };
        Ok(Token {
            id: env.random.code(32),
            pin,
            number: number.to_owned(),
            attempts_left: params.required_in_range("pin_attempts", 1..=u64::MAX)?,
            expires_at: env.clock.now().plus_seconds(60 * i64::try_from(minutes).unwrap_or(0)),
        })
    }
}

impl Params {
    fn required_in_range(&self, name: &str, range: RangeInclusive<u64>) -> Result<u64, ApiError> {
        let number = self.0.get(name).and_then(Value::as_u64).filter(|n| range.contains(n));
        number.ok_or_else(|| ApiError::invalid(format!("{name} is out of range")))
    }
}

impl Termii {
    fn store_token(&self, token: Token) {
        let tokens = &mut locked(&self.0.tokens).0;
        tokens.push_front(token);
        tokens.truncate(MAX_TOKENS);
    }
}

/// Sends a code in a text message.
pub(super) async fn send(State(termii): State<Termii>, params: Params) -> ApiResult {
    let (from, to) = (params.sender()?, params.required("to")?);
    params.one_of("channel", &super::CHANNELS)?;
    let (placeholder, text) =
        (params.required("pin_placeholder")?, params.required("message_text")?);
    if !text.contains(placeholder) {
        return Err(ApiError::invalid("message_text does not contain pin_placeholder"));
    }
    let token = Token::generate(&termii, &params, to)?;
    let text = text.replace(placeholder, &token.pin);
    termii.deliver(from, &[format!("+{to}")], &text)?;
    let response = json!({ "pinId": token.id, "to": to, "smsStatus": "Message Sent" });
    termii.store_token(token);
    Ok(Json(response))
}

/// Returns a code that the client sends itself.
pub(super) async fn generate(State(termii): State<Termii>, params: Params) -> ApiResult {
    let number = params.required("phone_number")?;
    let token = Token::generate(&termii, &params, number)?;
    let data = json!({ "pin_id": token.id, "otp": token.pin, "phone_number": number });
    termii.store_token(token);
    Ok(Json(json!({ "status": "success", "data": data })))
}

pub(super) async fn verify(State(termii): State<Termii>, params: Params) -> ApiResult {
    let (id, pin) = (params.required("pin_id")?, params.required("pin")?);
    let now = termii.0.env.clock.now();
    let tokens = &mut locked(&termii.0.tokens).0;
    let Some(at) = tokens.iter().position(|token| token.id == id) else {
        return Err(ApiError::invalid("Pin not found"));
    };
    let token = &mut tokens[at];
    let mut response = json!({ "pinId": id, "msisdn": token.number });
    if token.expires_at <= now || token.attempts_left == 0 {
        response["verified"] = json!("Expired");
    } else if token.pin == pin {
        response["verified"] = json!(true);
        tokens.remove(at);
    } else {
        token.attempts_left -= 1;
        response["verified"] = json!(false);
        response["attemptsRemaining"] = json!(token.attempts_left);
    }
    Ok(Json(response))
}
