//! Reads path parameters.

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::openapi::{Describe, Operation, parameter};
use tollhouse_platform::{
    error::{Error, Result},
    values::id::{CompanyId, Owner},
};

/// The parameters of a path. Control characters and invalid UTF-8 are 404: no record has them.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>> {
        let nothing = || Error::not_found("path not found");
        let raw = RawPathParams::from_request_parts(parts, state).await.map_err(|_| nothing())?;
        if raw.iter().any(|(_, value)| value.contains(char::is_control)) {
            return Err(nothing());
        }
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Path(path.0)).map_err(|_| nothing())
    }
}

/// The record that a path names by its last parameter, whether or not the path names the company
/// too. Control characters and invalid UTF-8 are 404.
pub struct RecordId<T>(pub T);

impl<S: Send + Sync, T: for<'t> From<&'t str>> FromRequestParts<S> for RecordId<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<RecordId<T>> {
        let Path(parameters) =
            Path::<Vec<(String, String)>>::from_request_parts(parts, state).await?;
        let (_, last) = parameters.last().ok_or_else(|| Error::not_found("path not found"))?;
        Ok(RecordId(T::from(last)))
    }
}

/// The record that a path names by its last parameter or the one before an action, and its owner:
/// the company that the path names, else the service.
pub struct OwnedId {
    pub owner: Owner,
    pub id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for OwnedId {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<OwnedId> {
        let Path(parameters) =
            Path::<Vec<(String, String)>>::from_request_parts(parts, state).await?;
        let company = parameters.iter().find(|(name, _)| name == "company");
        let owner = match company {
            Some((_, company)) => Owner::Company(CompanyId::from(&**company)),
            None => Owner::Service,
        };
        let (_, id) =
            parameters.into_iter().next_back().ok_or_else(|| Error::not_found("path not found"))?;
        Ok(OwnedId { owner, id })
    }
}

impl Describe for OwnedId {
    fn describe(operation: &mut Operation<'_>) {
        Path::<String>::describe(operation);
    }
}

impl<T> Describe for RecordId<T> {
    fn describe(operation: &mut Operation<'_>) {
        Path::<T>::describe(operation);
    }
}

/// The descriptions of all parameters.
const PARAMETERS: [(&str, &str); 41] = [
    ("account", "Account id from the notification URL."),
    ("approval", "Approval id."),
    ("card", "Card id."),
    ("charge", "Charge id."),
    ("charge_or_refund", "Charge id or refund id."),
    ("company", "Company id."),
    ("country", "Country, such as `nigeria`."),
    ("currency", "Currency code, such as `NGN`."),
    ("digest", "SHA-256 digest of the component."),
    ("direct_debit", "Direct debit id, assigned by the system that created it."),
    ("day", "Day in UTC, like `2026-11-27`."),
    ("dispute", "Dispute id."),
    ("email_or_id", "The user's e-mail address, `user_id` or id."),
    ("endpoint", "Event endpoint id."),
    ("event", "Event id."),
    ("exception", "Exception id."),
    ("file", "File name."),
    ("id", "Payment id."),
    ("identity", "Name of an identity type, such as `bvn`."),
    ("key", "API key id."),
    ("list", "Name of a list, such as `payments`."),
    ("loan", "Loan id, assigned by the system that created it."),
    ("member", "Member id."),
    ("operator", "Operator id."),
    ("path", "Identity type and lookup method."),
    ("payment", "Payment id."),
    ("plugin", "Plugin name, such as `provider_a`."),
    ("provider", "Provider name, such as `provider_a`."),
    ("publisher", "Publisher name."),
    ("recollection", "Recollection id."),
    ("recording", "Id of a recorded call."),
    ("reference", "Reference of the payment or recollection."),
    ("refund", "Refund id."),
    ("role", "Name of a role."),
    ("service_exception", "Id of an exception of the service."),
    ("signature", "The host's signature of the URL."),
    ("token", "Token id."),
    ("uid_id", "Id of an identity record."),
    ("user_id", "The user's `user_id`, id or e-mail address."),
    ("view", "Name of a saved view."),
    ("virtual_account", "Virtual account id."),
];

impl<T> Describe for Path<T> {
    fn describe(operation: &mut Operation<'_>) {
        let names = operation.path.split('/').filter_map(|segment| segment.strip_prefix('{'));
        for name in names.map(|name| name.trim_matches(['*', '}'])) {
            let known = PARAMETERS.iter().find(|(known, _)| *known == name);
            let (_, description) = known.expect("PARAMETERS lists each path parameter");
            let schema = json!({ "type": "string", "minLength": 1 });
            // Two extractors of a handler may read the same parameter.
            if operation.parameters.iter().all(|parameter| parameter["name"] != name) {
                operation.parameters.push(parameter("path", name, true, *description, &schema));
            }
        }
        operation.failures.insert(404);
    }
}
