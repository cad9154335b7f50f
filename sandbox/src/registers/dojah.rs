//! Dojah's API under `/dojah`: lookups by number, comparisons of faces, and documents. Any key and
//! app id are an account.

mod document;
mod faces;
mod ghana;
mod records;
mod request;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    routing::{get, post},
};
use serde_json::{Value, json};

use super::{MAX_BODY_BYTES, Upstream, kinds::Kind, people::Person};
use crate::{env::Env, server::with_faults};
use request::{ApiError, Query};

/// Operation name for scripted faults.
const OPERATION: &str = "dojah";
/// The documentation and the client libraries use both.
const PREFIXES: [&str; 2] = ["/api/v1", "/v1"];

type ApiResult = Result<Json<Value>, ApiError>;

struct Lookup {
    path: &'static str,
    kind: Kind,
    parameter: &'static str,
    write: fn(&Person, &Query) -> Value,
}

const fn lookup(
    path: &'static str,
    kind: Kind,
    parameter: &'static str,
    write: fn(&Person, &Query) -> Value,
) -> Lookup {
    Lookup { path, kind, parameter, write }
}

static LOOKUPS: [Lookup; 16] = [
    lookup("/kyc/bvn", Kind::Bvn, "bvn", records::bvn_validation),
    lookup("/kyc/bvn/basic", Kind::Bvn, "bvn", records::bvn_basic),
    lookup("/kyc/bvn/full", Kind::Bvn, "bvn", records::bvn),
    lookup("/kyc/bvn/advance", Kind::Bvn, "bvn", records::bvn_advance),
    lookup("/kyc/nin", Kind::Nin, "nin", records::nin),
    lookup("/kyc/vnin", Kind::Vnin, "vnin", records::vnin),
    lookup("/kyc/dl", Kind::License, "license_number", records::license),
    lookup("/kyc/passport", Kind::Passport, "passport_number", records::passport),
    lookup("/kyc/vin", Kind::Voter, "vin", records::voter),
    lookup("/kyc/phone_number", Kind::Phone, "phone_number", records::phone),
    lookup("/kyc/phone_number/basic", Kind::Phone, "phone_number", records::phone_basic),
    lookup("/kyc/cac", Kind::Company, "rc_number", records::company),
    lookup("/gh/kyc/dl", Kind::GhLicense, "id", ghana::license),
    lookup("/gh/kyc/passport", Kind::GhPassport, "id", ghana::passport),
    lookup("/gh/kyc/ssnit", Kind::GhSsnit, "id", ghana::ssnit),
    lookup("/gh/kyc/voter", Kind::GhVoter, "id", ghana::voter),
];

pub(crate) fn router<S>(env: &Arc<Env>) -> Router<S> {
    let api = LOOKUPS.iter().fold(faces::router(env), |router, lookup| {
        let handler = get(move |query: Query| look_up(lookup, query));
        router.route(lookup.path, with_faults(&env.faults, OPERATION, handler))
    });
    let analyze = post(|State(env): State<Arc<Env>>, params| document::analyze(env, params));
    let api = api.route("/document/analysis", with_faults(&env.faults, OPERATION, analyze));
    PREFIXES
        .iter()
        .fold(Router::new(), |router, prefix| router.nest(prefix, api.clone()))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(env.clone())
}

async fn look_up(lookup: &Lookup, query: Query) -> ApiResult {
    let number = query.required(lookup.parameter)?;
    let person = find(lookup.kind, lookup.parameter, number).await?;
    Ok(entity((lookup.write)(&person, &query)))
}

async fn find(kind: Kind, parameter: &str, number: &str) -> Result<Person, ApiError> {
    let found = super::find(Upstream::Dojah, kind, number).await;
    found.map_err(|absent| ApiError::from_lookup_error(absent, parameter))
}

fn entity(entity: Value) -> Json<Value> {
    Json(json!({ "entity": entity }))
}
