//! Prembly's API under `/prembly`: lookups by number, by number and face, and by the picture of a
//! document. Any key is an account.
//!
//! The result is in `response_code`, not in the HTTP status and often not in `status`.

mod documents;
mod ghana;
mod lookups;
mod records;
mod request;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    routing::post,
};
use serde_json::{Value, json};

use super::{
    LookupError, MAX_BODY_BYTES, Upstream,
    people::Person,
    pictures::{Comparison, Picture},
};
use crate::{env::Env, server::with_faults};
use lookups::{LOOKUPS, Lookup, LookupInput, Scale};
use request::{ApiError, Params};

/// Operation name for scripted faults.
const OPERATION: &str = "prembly";
/// The prefix of lookups, and those that older clients still use.
const PREFIX: &str = "/verification";
const LEGACY_PREFIXES: [&str; 2] =
    ["/api/v2/biometrics/merchant/data/verification", "/identitypass/verification"];
const FACES: &str = "/api/v2/biometrics/merchant/face";

type ApiResult = Result<Json<Value>, ApiError>;

pub(crate) fn router<S>(env: &Arc<Env>) -> Router<S> {
    let old = LEGACY_PREFIXES.iter().map(|prefix| (*prefix, true));
    let lookups = old.chain([(PREFIX, false)]).fold(Router::new(), |router, (prefix, old)| {
        router.nest(prefix, lookups_router(env, old)).nest(&format!("{prefix}/face"), faces(env))
    });
    lookups
        .nest(FACES, faces(env))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(env.clone())
}

fn lookups_router(env: &Arc<Env>, old: bool) -> Router<Arc<Env>> {
    LOOKUPS.iter().fold(Router::new(), |router, lookup| {
        let handler = post(move |State(env): State<Arc<Env>>, params: Params| async move {
            look_up(&env, lookup, old, &params).await
        });
        router.route(&format!("/{}", lookup.path), with_faults(&env.faults, OPERATION, handler))
    })
}

fn faces(env: &Arc<Env>) -> Router<Arc<Env>> {
    Router::new()
        .route("/comparison", with_faults(&env.faults, OPERATION, post(compare)))
        .route("/liveliness_check", with_faults(&env.faults, OPERATION, post(check_liveliness)))
}

async fn look_up(env: &Env, lookup: &Lookup, old: bool, params: &Params) -> ApiResult {
    let (number, face) = match lookup.input {
        LookupInput::Number => (params.number(lookup.numbers)?, None),
        LookupInput::Face(scale) => {
            (params.number(lookup.numbers)?, Some((params.picture("image")?, scale)))
        }
        LookupInput::Document => match params.picture("image")? {
            Picture::Document { number } => (number, None),
            _ => return Ok(Json(unreadable_response(env))),
        },
    };
    let malformed =
        || ApiError::invalid(format!("{} is not valid: {number}", lookup.numbers.join(" or ")));
    let kind = lookup.kind_of(&number).ok_or_else(malformed)?;
    Ok(Json(match super::find(Upstream::Prembly, kind, &number).await {
        Ok(person) => found_response(env, lookup, old, &person, face),
        Err(LookupError::Malformed) => return Err(malformed()),
        Err(LookupError::NotFound) => not_verified_response(
            env,
            true,
            "01",
            "Record not found. Check the number and try again",
        ),
        Err(LookupError::SourceUnavailable) => not_verified_response(
            env,
            false,
            "02",
            "The source is not available now. Try again later",
        ),
    }))
}

fn found_response(
    env: &Env,
    lookup: &Lookup,
    old: bool,
    person: &Person,
    face: Option<(Picture, Scale)>,
) -> Value {
    let watched = person.watch_listed && lookup.reports_watch_list();
    let (code, detail) = match watched {
        true => ("07", "Verification successful: this identity is watch-listed"),
        false => ("00", "Verification successful"),
    };
    let mut body = json!({
        "status": true,
        "detail": detail,
        "response_code": code,
        "verification": verification(env, "VERIFIED"),
    });
    body[lookup.data_key(old)] = (lookup.write)(person);
    if let Some((picture, scale)) = face {
        body["face_data"] = face_data(picture.compare_to_key(&person.key), scale);
    }
    body
}

fn not_verified_response(env: &Env, status: bool, code: &str, detail: &str) -> Value {
    json!({
        "status": status,
        "detail": detail,
        "message": detail,
        "response_code": code,
        "verification": verification(env, "NOT-VERIFIED"),
    })
}

/// The response for a picture without a readable document.
fn unreadable_response(env: &Env) -> Value {
    not_verified_response(env, false, "01", "The document in the image could not be read")
}

fn verification(env: &Env, status: &str) -> Value {
    let reference = super::uuid([env.random.below(u64::MAX), env.random.below(u64::MAX)]);
    json!({ "status": status, "reference": reference })
}

fn face_data(comparison: Comparison, scale: Scale) -> Value {
    let (status, code, message, confidence) = match comparison {
        Comparison::Same => (true, "00", "Face Match", 99.9),
        Comparison::Different => (false, "01", "Face does not match", 4.04),
        Comparison::NoFace => (false, "01", "No face detected in the image", 0.0),
    };
    json!({
        "status": status, "response_code": code, "message": message,
        "confidence": scale.scale_percent(confidence),
    })
}

async fn compare(params: Params) -> ApiResult {
    let comparison = params.picture("image_one")?.compare(&params.picture("image_two")?);
    Ok(Json(face_data(comparison, Scale::Percent)))
}

async fn check_liveliness(params: Params) -> ApiResult {
    let (status, message, percent) = match params.picture("image")? {
        Picture::NoFace => (false, "No face detected in the image", 0.0),
        _ => (true, "Liveliness check successful", 98.2),
    };
    Ok(Json(json!({
        "status": status,
        "detail": message,
        "response_code": if status { "00" } else { "01" },
        "confidence": Scale::Fraction.scale_percent(percent),
        "confidence_in_percentage": percent,
    })))
}
