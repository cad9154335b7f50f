//! The row of a charge, and the trait of its owner.

use super::{
    FundsAccount,
    choice::{Choice, Routed},
};
use crate::money::prelude::*;
use tollhouse_platform::{
    store::{EnumString, FromRow, IntoStaticStr, text_columns},
    values::id::text_types,
};

text_types! {
    /// The id of a charge.
    ChargeId;
}

/// A charge: one attempt to take one amount under one reference at one provider account.
#[derive(Clone, Debug, FromRow)]
pub struct Charge {
    pub company_id: CompanyId,
    pub id: ChargeId,
    pub owner_kind: OwnerKind,
    pub owner_id: String,
    /// Position among the charges of the owner, from 1.
    pub number: i64,
    pub method: Method,
    pub provider: String,
    pub account_id: AccountId,
    /// `true` at the service account: the money taken is posted to the company's ledger.
    pub in_books: bool,
    /// The queue of card and mandate charges, which are requested one at a time: their loan's id.
    pub lane: Option<String>,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    pub currency: Currency,
    /// The least amount that the provider may take instead, if it supports partial debits.
    #[sqlx(rename = "at_least_minor")]
    pub at_least: Option<Minor>,
    /// The amount that the provider took, excluding fees that the payer paid on top of it.
    #[sqlx(rename = "taken_minor")]
    pub taken: Option<Minor>,
    pub taken_currency: Option<Currency>,
    /// The provider's fees, excluding those that the payer paid on top; `None` if unknown.
    #[sqlx(rename = "fees_minor")]
    pub fees: Option<Minor>,
    /// The net amount that the ledger holds from this charge, and in which account.
    #[sqlx(rename = "credited_minor")]
    pub credited: Minor,
    pub credited_to: FundsAccount,
    /// The amount of refunds that were requested and did not fail.
    #[sqlx(rename = "refunded_minor")]
    pub refunded: Minor,
    /// The amount of disputes that are open or lost, at most what was not refunded.
    #[sqlx(rename = "disputed_minor")]
    pub disputed: Minor,
    pub service_ref: String,
    pub reference_source: ReferenceSource,
    pub transaction_id: String,
    pub state: State,
    /// `true` for the charge that settled the owner.
    pub counts: bool,
    /// A later charge replaced this one, whose page no payer has.
    pub superseded: bool,
    pub holds_lane: bool,
    /// A request ended with an unknown outcome.
    pub unsure: bool,
    /// The fencing token: the number of requests. Each write of a request compares it.
    pub fence: i64,
    pub lease_until: Option<Timestamp>,
    /// The first request.
    pub begun_at: Option<Timestamp>,
    /// The last request.
    pub requested_at: Option<Timestamp>,
    pub settled_at: Option<Timestamp>,
    /// The page on which the payer pays or confirms.
    pub session_url: Option<String>,
    /// The difference from the requested amount, for example `amount mismatch`.
    pub mismatch: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Why the router chose the provider. `None`: it did not, or an earlier request recorded the
    /// charge.
    #[sqlx(skip)]
    pub choice: Option<Choice>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ChargeOwner")]
pub enum OwnerKind {
    Payment,
    Card,
    Recollection,
}

text_columns!(OwnerKind);

impl OwnerKind {
    /// The name in the reference directory and in ledger keys.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The prefix of references that the host generates.
    fn prefix(self) -> &'static str {
        match self {
            OwnerKind::Payment => "pay",
            OwnerKind::Card => "card",
            OwnerKind::Recollection => "rec",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Method {
    /// The payer pays on a page of the provider.
    Checkout,
    /// The host charges a saved card.
    Card,
    /// The host debits a bank account.
    Mandate,
}

text_columns!(Method);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum State {
    Queued,
    Requested,
    /// The provider knows the charge, and the payer or a bank must act.
    Open,
    /// The provider took another amount than the requested one.
    Mismatched,
    Succeeded,
    Failed,
    Canceled,
    Reversed,
}

text_columns!(State);

/// Where the reference of a charge comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ReferenceSource {
    Caller,
    Host,
    Provider,
}

text_columns!(ReferenceSource);

impl Charge {
    pub fn money(&self) -> Money {
        Money { minor: self.amount, currency: self.currency.clone() }
    }

    /// Returns the least amount that a request may take, if that is less than the amount.
    pub fn least(&self) -> Option<Money> {
        let least = self.at_least.filter(|least| *least < self.amount)?;
        Some(Money { minor: least, currency: self.currency.clone() })
    }

    pub fn as_owner(&self) -> ReferenceOwner<'_> {
        (&self.company_id, self.owner_kind.name(), &self.owner_id)
    }

    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.lease_until.is_some_and(|until| until > now)
    }

    pub fn is_undecided(&self) -> bool {
        matches!(self.state, State::Queued | State::Requested | State::Open)
    }

    /// Returns the amount that can be refunded.
    pub fn refundable(&self) -> Minor {
        let taken = self.taken.unwrap_or_default();
        Minor((taken.0 - self.refunded.0 - self.disputed.0).max(0))
    }

    /// Returns whether the owner ends with this charge: no charge settled it, and none follows.
    /// `is_settled`: another charge settled the owner.
    pub fn ends_owner(&self, is_settled: bool) -> bool {
        !self.counts && !self.superseded && !is_settled
    }

    /// Returns whether the ledger may still receive money that a lost dispute can take.
    pub fn has_more_to_lose(&self) -> bool {
        self.in_books && self.state != State::Reversed
    }

    /// Returns whether the money arrived without a request, as a transfer to a virtual account
    /// does. A charge that was requested has the provider's reference only together with its
    /// session.
    pub fn is_received(&self) -> bool {
        self.reference_source == ReferenceSource::Provider && self.session_url.is_none()
    }

    /// The start of the schedule of checks.
    pub fn checks_start_at(&self) -> Option<Timestamp> {
        match self.method {
            Method::Checkout => self.requested_at,
            Method::Card | Method::Mandate => self.begun_at,
        }
    }

    /// Returns the error for a request while another one holds the lease.
    pub fn conflict(&self, now: Timestamp) -> Error {
        conflict(self.lease_until, now, "another request with this reference is in progress")
    }

    /// Opens the provider with the credentials under which the charge was created.
    pub async fn verifier(&self, app: &App) -> Result<ChargeVerifier> {
        ChargeVerifier::open(app, &self.company_id, &self.provider, &self.account_id).await
    }

    /// Returns a reference that the provider accepts: the owner's id for its first charge, else a
    /// generated one.
    pub fn generate_reference(&self, app: &App) -> Result<String> {
        let rules = app.plugins.provider(&self.provider, &self.company_id)?;
        let id = if self.number == 1 { self.owner_id.clone() } else { app.new_id() };
        let reference = format!("{}-{id}", self.owner_kind.prefix());
        Ok(rules.manifest().reference.conform(&reference))
    }
}

/// The error of a request while another one holds a lease until `until`.
pub fn conflict(until: Option<Timestamp>, now: Timestamp, message: &str) -> Error {
    let left_ms = until.map_or(0, |until| until.0 - now.0);
    let retry_after_s = u32::try_from(((left_ms + 999) / 1_000).max(1)).unwrap_or(u32::MAX);
    Error::InProgress { message: message.to_owned(), retry_after_s }
}

/// The call that requests a charge from a provider.
pub enum Order {
    Checkout(CheckoutOrder),
    Card(CardOrder),
    Debit(DebitOrder),
}

/// The decision of an owner about the next request of its charge.
pub enum Turn {
    /// Request this amount.
    Go(Minor),
    /// Request this amount at another account, to which the instrument's token now belongs.
    GoAt(Minor, Account),
    /// The charge is no longer wanted: its owner fails with this message.
    Withdraw(&'static str),
    /// Something that the request needs is missing, and an earlier request may have had an effect.
    Wait,
}

/// The outcome of a charge, for its owner.
pub enum Outcome<'a> {
    /// The provider opened a checkout session.
    Session(&'a CheckoutSession),
    /// The charge replaces one at another account, which certainly did not open a session. It has a
    /// `choice`.
    Moved,
    /// The payer or a bank must act.
    Pending(&'a ProviderPayment),
    Succeeded(&'a ProviderPayment),
    Failed(Failure<'a>),
    /// The provider took another amount than the requested one.
    Mismatched(&'static str),
    /// A success after another charge settled the owner.
    Surplus,
    /// The provider returned the money of the charge that settled the owner.
    Reversed(&'a ProviderPayment),
    /// The provider accepted a refund after which nothing of the charge is left.
    Refunded,
    /// The provider accepted a refund of a part of the charge.
    PartlyRefunded,
    /// A refund failed after the provider accepted it.
    RefundFailed,
    /// The payer has not acted in time. The charge may still succeed.
    Abandoned,
    /// The first request was invalid, and no client knows the owner: it is deleted.
    Forgotten,
}

pub enum Failure<'a> {
    Seen(&'a ProviderPayment),
    /// A message written by the host.
    Message(&'a str),
    /// The same, of a charge that was declined for this reason.
    Declined(&'a str, Decline),
}

/// A record that owns charges.
pub trait ChargeOwner: Clone + Send + Sync + 'static {
    const KIND: OwnerKind;

    /// Locks the owner, and before it the record that serializes its changes.
    fn lock(
        tx: &mut Tx,
        company_id: &CompanyId,
        id: &str,
    ) -> impl Future<Output = Result<Option<Self>>> + Send;

    /// Returns whether the owner has no outcome.
    fn is_pending(&self) -> bool;

    /// Decides whether a queued charge is requested, or a page opened again, and with what amount.
    fn turn(
        &self,
        tx: &mut Tx,
        app: &App,
        charge: &Charge,
    ) -> impl Future<Output = Result<Turn>> + Send {
        let _ = (tx, app);
        std::future::ready(Ok(Turn::Go(charge.amount)))
    }

    /// Returns the call that requests the charge.
    fn order(&self, app: &App, charge: &Charge) -> impl Future<Output = Result<Order>> + Send;

    /// Returns an account at another provider for `amount`, if the router chose the provider of the
    /// charge. The providers in `tried` certainly did not open a session. `None`: the charge stays
    /// at its account.
    fn reroute(
        &self,
        app: &App,
        charge: &Charge,
        amount: Minor,
        tried: &[String],
    ) -> impl Future<Output = Result<Option<Routed>>> + Send;

    /// Returns the URLs to which the page returns the payer: after a success, and otherwise.
    fn return_urls(&self) -> (&str, Option<&str>);

    /// Records the effects of an outcome.
    fn apply(
        self,
        tx: &mut Tx,
        app: &App,
        charge: &Charge,
        outcome: Outcome<'_>,
    ) -> impl Future<Output = Result<Self>> + Send;
}
