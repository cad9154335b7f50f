//! Reads the picture of a document.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    ApiResult, entity, find,
    request::{ApiError, Params},
};
use crate::{
    env::Env,
    registers::{
        days,
        kinds::{Kind, guess_kind},
        people::Person,
        pictures::Picture,
    },
};

/// Analyses a document. The picture must be given in the format that `input_type` names.
pub(super) async fn analyze(env: Arc<Env>, params: Params) -> ApiResult {
    let front = params.required("imagefrontside")?;
    let picture = match params.get("input_type") {
        Some("url") if front.starts_with("http") => Picture::from_url_or_base64(front),
        Some("base64") => Some(params.picture("imagefrontside")?),
        _ => None,
    };
    match picture {
        Some(Picture::Document { number }) => {
            let kind = guess_kind(&number);
            let person = find(kind, "imagefrontside", &number).await?;
            Ok(entity(analysis(&env, kind, &person)))
        }
        Some(_) => Ok(entity(unreadable())),
        None => {
            Err(ApiError::invalid("input_type must be url or base64, and match imagefrontside"))
        }
    }
}

fn analysis(env: &Env, kind: Kind, person: &Person) -> Value {
    let name = match kind {
        Kind::Nin => "Nigeria - National ID Card",
        Kind::Passport => "Nigeria - ePassport",
        Kind::License => "Nigeria - Driver's License",
        _ => "Nigeria - Voter's Card",
    };
    let picture = |kind: &str| format!("{}/images/{kind}-{}.jpg", env.url, person.key);
    json!({
        "document_type": {
            "document_name": name,
            "document_country_name": "Nigeria",
            "document_country_code": "NGA",
            "document_year": person.issued.format("%Y").to_string(),
            "document_type_id": 1,
        },
        "document_images": {
            "Document front side": picture("document"),
            "Portrait": picture("match"),
        },
        "text_data": text_data(person),
        "status": {
            "overall_status": 1, "document_images": "Yes", "document_type": "Yes", "expiry": "Yes",
            "text": "Yes",
        },
    })
}

fn text_data(person: &Person) -> Vec<Value> {
    [
        ("Document Number", person.number.clone()),
        ("Surname", person.last_name.to_uppercase()),
        ("Given Names", format!("{} {}", person.first_name, person.middle_name).to_uppercase()),
        ("Date of Birth", days::iso(person.born)),
        ("Sex", person.sex().to_owned()),
        ("Date of Issue", days::iso(person.issued)),
        ("Date of Expiry", days::iso(person.expiry_date(5))),
        ("Place of Issue", person.home.0.to_uppercase()),
        ("Nationality", "Nigeria".to_owned()),
    ]
    .into_iter()
    .enumerate()
    .map(|(at, (name, value))| {
        let key = name.to_lowercase().replace(' ', "_");
        json!({
            "field_name": name, "field_key": key, "field_type": at, "value": value, "status": 1,
        })
    })
    .collect()
}

fn unreadable() -> Value {
    json!({
        "document_type": {},
        "document_images": {},
        "text_data": [],
        "status": {
            "overall_status": 0, "document_images": "No", "document_type": "No", "expiry": "No",
            "text": "No",
        },
    })
}
