//! Why the router chose the provider of a charge: the explanation, and its row.

use serde::Deserialize;

use crate::{
    money::{
        charges::{ChargeId, OwnerKind},
        prelude::*,
    },
    state::storage::{FromRow, params},
    tenants::providers::statistics::Estimate,
};

/// A chosen account.
#[derive(Clone)]
pub struct Routed {
    pub account: Account,
    pub choice: Choice,
}

/// The router's choice of a provider, with the estimates at that time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RoutingChoice")]
pub struct Choice {
    /// The chosen provider.
    pub provider: String,
    pub reason: Reason,
    /// The rule of the policy that listed the providers; `null` if no rule applied.
    pub rule: Option<String>,
    /// The requested channels; empty for any.
    pub channels: Vec<String>,
    /// The listed providers.
    pub providers: Vec<Considered>,
}

/// Why a provider was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RoutingReason")]
pub enum Reason {
    /// It was the only one that could take the checkout.
    Only,
    /// It had the highest score.
    Score,
    /// Another provider had a higher score; this one was chosen to measure its performance.
    Explored,
    /// It was drawn at random, in proportion to the weights.
    Weight,
    /// It was the first one of the list that was not down.
    Order,
    /// The previous provider certainly did not open a checkout session.
    Failover,
}

/// A provider that the router considered.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ConsideredProvider")]
pub struct Considered {
    pub provider: String,
    pub weight: u32,
    /// Why it could not take the checkout; `null` if it could.
    pub excluded: Option<Exclusion>,
    /// Its expected performance; `null` if it was excluded.
    pub estimate: Option<Estimate>,
    /// The expected value of the checkout, in percent of its amount; `null` if it was excluded.
    pub score: Option<f64>,
}

/// Why a provider could not take a checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exclusion {
    /// No account has credentials.
    NoAccount,
    Deactivated,
    /// Its plugin is not installed, or not ready on this host.
    NotReady,
    Currency,
    Amount,
    Channels,
    /// It does not save cards.
    SavedCards,
    /// It needs the payer's phone number.
    Phone,
    /// An earlier attempt certainly did not open a session.
    Tried,
}

impl Choice {
    /// Returns what an actor may see: members do not see the estimates of accounts that other
    /// companies also use.
    pub fn visible_to(mut self, actor: &Actor) -> Choice {
        if actor.member_of.is_some() {
            for considered in &mut self.providers {
                (considered.estimate, considered.score) = (None, None);
            }
        }
        self
    }
}

impl Exclusion {
    pub fn describe(self) -> &'static str {
        match self {
            Exclusion::NoAccount => "payment service key not found",
            Exclusion::Deactivated => "deactivated",
            Exclusion::NotReady => "not ready",
            Exclusion::Currency => "does not support the currency",
            Exclusion::Amount => "does not accept the amount",
            Exclusion::Channels => "has none of the channels",
            Exclusion::SavedCards => "does not save cards",
            Exclusion::Phone => "requires a phone number",
            Exclusion::Tried => "did not open a session",
        }
    }
}

impl Considered {
    pub fn new(provider: &str, weight: u32) -> Considered {
        let provider = provider.to_owned();
        Considered { provider, weight, excluded: None, estimate: None, score: None }
    }

    pub fn excluded(self, why: Exclusion) -> Considered {
        Considered { excluded: Some(why), ..self }
    }

    pub fn estimated(self, estimate: Estimate) -> Considered {
        Considered { estimate: Some(estimate), ..self }
    }

    pub fn set_score(&mut self, score: f64) {
        self.score = Some(score);
    }
}

/// A stored choice.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
pub struct StoredChoice {
    /// The charge that was routed.
    pub charge_id: ChargeId,
    #[serde(flatten)]
    #[schemars(with = "Choice", flatten)]
    pub choice: Json<Choice>,
    pub created_at: Timestamp,
}

impl StoredChoice {
    /// Like [`Choice::visible_to`].
    pub fn visible_to(self, actor: &Actor) -> StoredChoice {
        StoredChoice { choice: Json(self.choice.0.visible_to(actor)), ..self }
    }
}

/// Stores why the router chose the provider of a charge, if it did.
pub async fn insert(tx: &mut Tx, charge: &Charge) -> Result<()> {
    let Some(choice) = &charge.choice else { return Ok(()) };
    let insert = tx.defer(
        "INSERT INTO routing_choices (company_id, charge_id, choice, created_at)
         VALUES ($1, $2, $3, $4)",
    );
    let values = params![&charge.company_id, &charge.id, Json(choice.clone()), charge.created_at];
    Ok(insert.params(values).execute().await?)
}

/// Deletes the choice of a charge.
pub async fn delete(tx: &mut Tx, charge: &Charge) -> Result<()> {
    let delete = tx.sql("DELETE FROM routing_choices WHERE company_id = $1 AND charge_id = $2");
    Ok(delete.params(params![&charge.company_id, &charge.id]).execute().await?)
}

/// Returns the routing choices of an owner's charges, oldest first.
pub async fn list(
    tx: &mut Tx,
    company_id: &CompanyId,
    kind: OwnerKind,
    owner_id: &str,
) -> Result<Vec<StoredChoice>> {
    let list = tx.sql(
        "SELECT r.charge_id, r.choice, r.created_at FROM charges c
         JOIN routing_choices r ON r.company_id = c.company_id AND r.charge_id = c.id
         WHERE c.company_id = $1 AND c.owner_kind = $2 AND c.owner_id = $3 ORDER BY c.number",
    );
    Ok(list.params(params![company_id, kind, owner_id]).all().await?)
}
