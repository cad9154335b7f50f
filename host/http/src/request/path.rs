//! Reads path parameters.

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::openapi::{Describe, Operation};
use tollhouse_platform::error::{Error, Result};

/// The parameters of a path. Control characters and invalid UTF-8 are 404: no record has them.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>> {
        let nothing = || Error::not_found("path not found");
        let raw = RawPathParams::from_request_parts(parts, state).await.map_err(|_| nothing())?;
        if raw.iter().any(|(_, value)| value.chars().any(char::is_control)) {
            return Err(nothing());
        }
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Path(path.0)).map_err(|_| nothing())
    }
}

/// The descriptions of all parameters.
const PARAMETERS: [(&str, &str); 24] = [
    ("account", "The account at the provider, as the notification URL names it."),
    ("card", "The card's id."),
    ("company", "The company's id."),
    ("country", "The country, such as `nigeria`."),
    ("digest", "The SHA-256 of the component."),
    ("direct_debit", "The direct debit's id, as the one who made it has it."),
    ("email_or_id", "An e-mail address, a `user_id` or an id."),
    ("event", "The event's id."),
    ("file", "The file's name."),
    ("id", "The id."),
    ("identity", "The name of a type of identity, such as `bvn`."),
    ("key", "The key's id."),
    ("loan", "The loan's id, as the one who made it has it."),
    ("path", "The type of identity, and how it is looked up."),
    ("payment", "The payment's id."),
    ("plugin", "The plugin's name, such as `provider_a`."),
    ("provider", "The provider's name, such as `provider_a`."),
    ("publisher", "The publisher's name."),
    ("recollection", "The repayment's id."),
    ("recording", "The id of a call that was written down."),
    ("reference", "The reference of the payment or the repayment."),
    ("refund", "The refund's id."),
    ("uid_id", "The id of a looked-up identity."),
    ("user_id", "The user's `user_id`, id or e-mail address."),
];

impl<T> Describe for Path<T> {
    fn describe(operation: &mut Operation<'_>) {
        let names = operation.path.split('/').filter_map(|segment| segment.strip_prefix('{'));
        for name in names.map(|name| name.trim_matches(['*', '}'])) {
            let known = PARAMETERS.iter().find(|(known, _)| *known == name);
            let (_, description) =
                known.expect("PARAMETERS has a line for each parameter of a path");
            operation.takes_parameter(json!({
                "name": name,
                "in": "path",
                "required": true,
                "description": description,
                "schema": { "type": "string", "minLength": 1 },
            }));
        }
        operation.fails(&[404]);
    }
}
