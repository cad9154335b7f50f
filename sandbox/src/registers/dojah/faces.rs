//! Compares a selfie with the photo on record, or with the one on a document.

use std::sync::Arc;

use axum::{Json, Router, routing::post};
use serde_json::{Value, json};

use super::{
    ApiResult, OPERATION, entity, find, records,
    request::{ApiError, Params},
};
use crate::{
    env::Env,
    registers::{kinds::Kind, people::Person, pictures::Comparison},
    server::with_faults,
};

type RenderRecord = fn(&Person) -> Value;

/// Path, kind, parameter.
static VERIFICATIONS: [(&str, Kind, &str, RenderRecord); 3] = [
    ("/kyc/bvn/verify", Kind::Bvn, "bvn", records::bvn_record),
    ("/kyc/nin/verify", Kind::Nin, "nin", records::nin_record),
    ("/kyc/vnin/verify", Kind::Vnin, "vnin", records::vnin_record),
];

pub(super) fn router(env: &Arc<Env>) -> Router<Arc<Env>> {
    let router = VERIFICATIONS.iter().fold(Router::new(), |router, (path, kind, name, write)| {
        let handler = post(move |params: Params| verify(*kind, name, *write, params));
        router.route(path, with_faults(&env.faults, OPERATION, handler))
    });
    router.route("/kyc/photoid/verify", with_faults(&env.faults, OPERATION, post(verify_photo_id)))
}

async fn verify(kind: Kind, name: &str, write: RenderRecord, params: Params) -> ApiResult {
    let (number, selfie) = (params.required(name)?, params.picture("selfie_image")?);
    let person = find(kind, name, number).await?;
    let mut record = write(&person);
    record["selfie_verification"] = comparison_json(selfie.compare_to_key(&person.key))?;
    Ok(entity(record))
}

/// Names in the request always match, because a picture contains no name.
async fn verify_photo_id(params: Params) -> ApiResult {
    let (selfie, document) = (params.picture("selfie_image")?, params.picture("photoid_image")?);
    let mut selfie = comparison_json(selfie.compare(&document))?;
    for name in ["first_name", "last_name"] {
        if params.get(name).is_some() {
            selfie[name] = json!({ "match": true, "confidence_value": 100 });
        }
    }
    Ok(Json(json!({ "entity": { "selfie": selfie } })))
}

fn comparison_json(comparison: Comparison) -> Result<Value, ApiError> {
    match comparison {
        Comparison::Same => Ok(json!({ "confidence_value": 99.90354919433594, "match": true })),
        Comparison::Different => {
            Ok(json!({ "confidence_value": 12.407_303_810_119_63, "match": false }))
        }
        Comparison::NoFace => Err(ApiError::invalid("No face was detected in selfie_image")),
    }
}
