//! Termii's own one-time codes, which its client libraries offer.

use std::{collections::VecDeque, ops::RangeInclusive};

use axum::{Json, extract::State};
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{Answer, Params, Refusal, Termii};
use crate::locked;

const KEPT: usize = 1_000;

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
    fn draw(termii: &Termii, params: &Params, number: &str) -> Result<Token, Refusal> {
        let env = &termii.0.env;
        let minutes = params.within("pin_time_to_live", 0..=60)?;
        let length = params.within("pin_length", 4..=8)?;
        params.one_of("pin_type", &["NUMERIC", "ALPHANUMERIC"])?;
        let pin = match params.required("pin_type")? {
            "NUMERIC" => (0..length).map(|_| env.random.below(10).to_string()).collect(),
            _ => env.random.code(usize::try_from(length).unwrap_or_default()).to_uppercase(),
        };
        Ok(Token {
            id: env.random.code(32),
            pin,
            number: number.to_owned(),
            attempts_left: params.within("pin_attempts", 1..=u64::MAX)?,
            expires_at: env.clock.now().plus_seconds(60 * i64::try_from(minutes).unwrap_or(0)),
        })
    }
}

impl Params {
    fn within(&self, name: &str, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
        let number = self.0.get(name).and_then(Value::as_u64).filter(|n| range.contains(n));
        number.ok_or_else(|| Refusal::invalid(format!("{name} is out of range")))
    }
}

impl Termii {
    fn keep(&self, token: Token) {
        let tokens = &mut locked(&self.0.tokens).0;
        tokens.push_front(token);
        tokens.truncate(KEPT);
    }
}

/// In a text.
pub(super) async fn send(State(termii): State<Termii>, params: Params) -> Answer {
    let (from, to) = (params.sender()?, params.required("to")?);
    params.one_of("channel", &super::CHANNELS)?;
    let (placeholder, text) =
        (params.required("pin_placeholder")?, params.required("message_text")?);
    if !text.contains(placeholder) {
        return Err(Refusal::invalid("message_text does not contain pin_placeholder"));
    }
    let token = Token::draw(&termii, &params, to)?;
    let text = text.replace(placeholder, &token.pin);
    termii.deliver(from, &[format!("+{to}")], &text)?;
    let answer = json!({ "pinId": token.id, "to": to, "smsStatus": "Message Sent" });
    termii.keep(token);
    Ok(Json(answer))
}

/// For whoever asks, to send it themselves.
pub(super) async fn generate(State(termii): State<Termii>, params: Params) -> Answer {
    let number = params.required("phone_number")?;
    let token = Token::draw(&termii, &params, number)?;
    let data = json!({ "pin_id": token.id, "otp": token.pin, "phone_number": number });
    termii.keep(token);
    Ok(Json(json!({ "status": "success", "data": data })))
}

pub(super) async fn verify(State(termii): State<Termii>, params: Params) -> Answer {
    let (id, pin) = (params.required("pin_id")?, params.required("pin")?);
    let now = termii.0.env.clock.now();
    let tokens = &mut locked(&termii.0.tokens).0;
    let Some(at) = tokens.iter().position(|token| token.id == id) else {
        return Err(Refusal::invalid("Pin not found"));
    };
    let token = &mut tokens[at];
    let mut answer = json!({ "pinId": id, "msisdn": token.number });
    if token.expires_at <= now || token.attempts_left == 0 {
        answer["verified"] = json!("Expired");
    } else if token.pin == pin {
        answer["verified"] = json!(true);
        tokens.remove(at);
    } else {
        token.attempts_left -= 1;
        answer["verified"] = json!(false);
        answer["attemptsRemaining"] = json!(token.attempts_left);
    }
    Ok(Json(answer))
}
