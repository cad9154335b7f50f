//! Comparisons of a selfie with the photo on record, or with that on a document.

use std::sync::Arc;

use axum::{Json, Router, routing::post};
use serde_json::{Value, json};

use super::{
    Answer, OPERATION, entity, find, records,
    request::{Params, Refusal},
};
use crate::{
    env::Env,
    registers::{kinds::Kind, people::Person, pictures::Comparison},
    server::faulty,
};

type Write = fn(&Person) -> Value;

/// Path, kind, parameter.
static VERIFICATIONS: [(&str, Kind, &str, Write); 3] = [
    ("/kyc/bvn/verify", Kind::Bvn, "bvn", records::bvn_record),
    ("/kyc/nin/verify", Kind::Nin, "nin", records::nin_record),
    ("/kyc/vnin/verify", Kind::Vnin, "vnin", records::vnin_record),
];

pub(super) fn router(env: &Arc<Env>) -> Router<Arc<Env>> {
    let router = VERIFICATIONS.iter().fold(Router::new(), |router, (path, kind, name, write)| {
        let handler = post(move |params: Params| verify(*kind, name, *write, params));
        router.route(path, faulty(&env.faults, OPERATION, handler))
    });
    router.route("/kyc/photoid/verify", faulty(&env.faults, OPERATION, post(verify_photo_id)))
}

async fn verify(kind: Kind, name: &str, write: Write, params: Params) -> Answer {
    let (number, selfie) = (params.required(name)?, params.picture("selfie_image")?);
    let person = find(kind, name, number).await?;
    let mut record = write(&person);
    record["selfie_verification"] = outcome(selfie.shows(&person.key))?;
    Ok(entity(record))
}

/// Names that were sent along match always: a picture does not say whose it is.
async fn verify_photo_id(params: Params) -> Answer {
    let (selfie, document) = (params.picture("selfie_image")?, params.picture("photoid_image")?);
    let mut selfie = outcome(selfie.compare(&document))?;
    for name in ["first_name", "last_name"] {
        if params.get(name).is_some() {
            selfie[name] = json!({ "match": true, "confidence_value": 100 });
        }
    }
    Ok(Json(json!({ "entity": { "selfie": selfie } })))
}

fn outcome(comparison: Comparison) -> Result<Value, Refusal> {
    match comparison {
        Comparison::Same => Ok(json!({ "confidence_value": 99.90354919433594, "match": true })),
        Comparison::Different => {
            Ok(json!({ "confidence_value": 12.407_303_810_119_63, "match": false }))
        }
        Comparison::NoFace => Err(Refusal::invalid("No face was detected in selfie_image")),
    }
}
