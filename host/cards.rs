//! Saved cards: what one is, and which changes of state are legal.
//!
//! A card is saved by a small charge on the provider's page, which is refunded. Cards of a user change one at a time, under the lock of
//! the user's row, so that one of the valid ones is the default and none is there twice.

pub mod api;
mod clean_up;
mod confirm;
mod create;
mod refund;
mod store;
mod view;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::{
    clean_up::{revoke_job, sweep},
    confirm::confirm_job,
    refund::refund_job,
    store::{Card, SEALED},
    view::EventData,
};
use crate::{
    app::App,
    charges,
    error::{Error, Result},
    money::Minor,
    store::{self as db, Tx, Type},
};

/// What verifying a card charges, by currency.
#[derive(Clone, Copy, Debug)]
pub struct Charges {
    pub ngn: Minor,
    pub usd: Minor,
}

impl Charges {
    fn of(self, currency: &str) -> Minor {
        if currency == "USD" { self.usd } else { self.ngn }
    }
}

/// What a plan must include for cards.
pub const FEATURE: &str = "cards";
/// The job that brings a card up to what the provider knows of its verification charge.
pub const CONFIRM_JOB: &str = "card.confirm";
/// The job that gives a verification charge back.
pub const REFUND_JOB: &str = "card.refund";
/// The job that tells the provider that a card was deleted.
pub const REVOKE_JOB: &str = "card.revoke";
/// What a card is called in the directory of references.
pub const SUBJECT: &str = "card";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The customer has not paid the verification charge yet.
    Pending,
    Valid,
    Failed,
    /// The customer has this card already.
    Duplicate,
    /// It was charged, and cannot be charged again.
    Unusable,
}

impl Status {
    /// As the charge is judged: what ended without a valid card may still turn out to be paid.
    fn of_charge(self) -> charges::Status {
        match self {
            Status::Pending => charges::Status::Pending,
            Status::Valid | Status::Duplicate | Status::Unusable => charges::Status::Success,
            Status::Failed => charges::Status::Failed,
        }
    }
}

/// Of another company as of nobody.
fn missing() -> Error {
    Error::not_found("card not found")
}

/// A user's card by its id, or the default one.
pub async fn find_for(
    tx: &mut Tx,
    company_id: &str,
    user_key: &str,
    id: Option<&str>,
) -> db::Result<Option<Card>> {
    let found = match id {
        Some(id) => store::find(tx, company_id, id).await?,
        None => store::default_of(tx, company_id, user_key).await?,
    };
    Ok(found.filter(|card| card.user_key == user_key))
}

impl Card {
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.status == Status::Valid
    }

    /// What charges the card. Never shown, never logged.
    pub fn token(&self, app: &App) -> Result<String> {
        let sealed = self.token.as_deref().ok_or_else(missing)?;
        Ok(app.sealer.open(&seal_context(&self.company_id, &self.id), sealed)?)
    }
}

/// The context under which a token is sealed.
fn seal_context(company_id: &str, id: &str) -> String {
    format!("cards/{company_id}/{id}/token")
}
