//! Adoption of records that hosts of the previous version wrote: derives their charges.
//!
//! A record is adopted when the engine first locks it, when a job of a former kind names it, and by
//! a sweep. On PostgreSQL, triggers then reject changes by hosts of the previous version.

use super::{
    Charge, FundsAccount, Method, OwnerKind, RECONCILE_JOB, REFUND_JOB, ReferenceSource, State,
    next_check,
    refund::{self, Cause, Refund, RefundState},
    store,
};
use crate::money::prelude::*;
use tollhouse_platform::store::{FromRow, params};

/// A record of the previous version: what it says of its provider.
#[derive(FromRow)]
struct Former {
    method: Method,
    provider: String,
    account_id: AccountId,
    in_books: bool,
    lane: Option<String>,
    amount_minor: Minor,
    fees_minor: Minor,
    currency: Currency,
    service_ref: String,
    transaction_id: String,
    status: String,
    session_url: Option<String>,
    lease_until: Option<Timestamp>,
    begun_at: Timestamp,
    settled_at: Option<Timestamp>,
    created_at: Timestamp,
}

const PAYMENT: &str = "SELECT 'checkout' AS method, payment_service AS provider, account_id,
         credits_wallet AS in_books, NULL AS lane, amount_minor, fees_minor, currency, service_ref,
         transaction_id, status, checkout_url AS session_url, starting_until AS lease_until,
         created_at AS begun_at, paid_at AS settled_at, created_at
     FROM payments WHERE company_id = $1 AND id = $2 AND charge_id IS NULL";
const CARD: &str = "SELECT 'checkout' AS method, payment_service AS provider, account_id,
         FALSE AS in_books, NULL AS lane, amount_minor, CAST(0 AS BIGINT) AS fees_minor, currency,
         service_ref, transaction_id, status, checkout_url AS session_url,
         CAST(NULL AS BIGINT) AS lease_until, created_at AS begun_at,
         CAST(NULL AS BIGINT) AS settled_at, created_at
     FROM cards WHERE company_id = $1 AND id = $2 AND charge_id IS NULL";
const RECOLLECTION: &str = "SELECT CASE payment_channel WHEN 'card' THEN 'card'
             WHEN 'direct_debit' THEN 'mandate' ELSE 'checkout' END AS method,
         payment_service AS provider, account_id, credits_wallet AS in_books,
         CASE WHEN payment_channel = 'checkout' THEN NULL ELSE loan_id END AS lane, amount_minor,
         fees_minor, currency, service_ref, transaction_id, status, checkout_url AS session_url,
         starting_until AS lease_until, COALESCE(begun_at, created_at) AS begun_at,
         repaid_at AS settled_at, created_at
     FROM recollections
     WHERE company_id = $1 AND id = $2 AND charge_id IS NULL AND with_provider";

/// Derives the charges and refunds of a record. No effect if it has charges.
pub async fn adopt(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    kind: OwnerKind,
    owner_id: &str,
) -> Result<()> {
    let sql = match kind {
        OwnerKind::Payment => PAYMENT,
        OwnerKind::Card => CARD,
        OwnerKind::Recollection => RECOLLECTION,
    };
    let former: Option<Former> =
        tx.sql(sql).params(params![company_id, owner_id]).optional().await?;
    let Some(former) = former else { return Ok(()) };
    let owner = (&**company_id, kind.name(), owner_id);
    let mut references = notifications::list_references(tx, owner).await?;
    references.retain(|reference| *reference != former.service_ref);
    references.push(former.service_ref.clone());
    let count = references.len();
    let mut current = None;
    for (number, reference) in (1..).zip(references) {
        let is_current = usize::try_from(number) == Ok(count);
        let mut charge = derive(app, company_id, (kind, owner_id), &former, number);
        charge.service_ref.clone_from(&reference);
        if !is_current {
            (charge.state, charge.counts, charge.superseded) = (State::Requested, false, true);
            (charge.session_url, charge.settled_at, charge.unsure) = (None, None, true);
            (charge.taken, charge.taken_currency) = (None, None);
            (charge.credited, charge.lease_until) = (Minor(0), None);
        }
        let is_lane_free = match &charge.lane {
            Some(lane) => store::lane_holder(tx, company_id, lane).await?.is_none(),
            None => false,
        };
        charge.holds_lane = is_lane_free && charge.is_undecided();
        adopt_charge(tx, app, charge.clone()).await?;
        notifications::assign_charge(tx, &charge.account_id, &reference, &charge.id).await?;
        current = Some(charge.id);
    }
    let Some(current) = current else { return Ok(()) };
    set_charge(tx, company_id, kind, owner_id, &current).await
}

/// The current charge of a record.
fn derive(
    app: &App,
    company_id: &CompanyId,
    (owner_kind, owner_id): (OwnerKind, &str),
    former: &Former,
    number: i64,
) -> Charge {
    let now = app.clock.now();
    let (state, counts) = match &*former.status {
        "pending" if former.session_url.is_some() => (State::Open, false),
        "pending" => (State::Requested, false),
        "failed" => (State::Failed, false),
        _ => (State::Succeeded, true),
    };
    let taken = counts.then_some(former.amount_minor);
    let net = Minor((former.amount_minor.0 - former.fees_minor.0).max(0));
    let begun_at = Some(former.begun_at);
    Charge {
        company_id: company_id.clone(),
        id: app.random.id(now).into(),
        owner_kind,
        owner_id: owner_id.to_owned(),
        number,
        method: former.method,
        provider: former.provider.clone(),
        account_id: former.account_id.clone(),
        in_books: former.in_books,
        lane: former.lane.clone(),
        amount: former.amount_minor,
        currency: former.currency.clone(),
        taken,
        taken_currency: taken.map(|_| former.currency.clone()),
        credited: if former.in_books && counts { net } else { Minor(0) },
        credited_to: FundsAccount::Wallet,
        refunded: Minor(0),
        service_ref: former.service_ref.clone(),
        reference_source: match owner_kind {
            OwnerKind::Payment => ReferenceSource::Caller,
            OwnerKind::Card | OwnerKind::Recollection => ReferenceSource::Host,
        },
        transaction_id: former.transaction_id.clone(),
        state,
        counts,
        superseded: false,
        holds_lane: false,
        unsure: state == State::Requested,
        fence: 1,
        lease_until: former.lease_until.filter(|_| state == State::Requested),
        begun_at,
        requested_at: begun_at,
        settled_at: if counts { former.settled_at.or(begun_at) } else { None },
        session_url: former.session_url.clone(),
        mismatch: None,
        created_at: former.created_at,
        updated_at: now,
    }
}

/// Inserts a charge with its refunds, and enqueues their jobs.
async fn adopt_charge(tx: &mut Tx, app: &App, mut charge: Charge) -> Result<()> {
    let now = app.clock.now();
    let refunds = former_refunds(tx, &charge).await?;
    if refunds.is_empty() && charge.owner_kind == OwnerKind::Payment && charge.counts {
        let sql = "SELECT COUNT(*) FROM payments
             WHERE company_id = $1 AND id = $2 AND status = 'refunded'";
        let reversed: i64 =
            tx.sql(sql).params(params![&charge.company_id, &charge.owner_id]).value().await?;
        if reversed > 0 {
            (charge.state, charge.credited) = (State::Reversed, Minor(0));
        }
    }
    for former in &refunds {
        // A verification charge is refunded only if it was taken.
        charge.state = State::Succeeded;
        charge.taken = charge.taken.max(Some(former.amount_minor));
        charge.taken_currency = charge.taken_currency.or(Some(former.currency.clone()));
        charge.settled_at = charge.settled_at.or(Some(former.created_at));
        let mut refund = former.to_refund(&charge);
        if refund.state == RefundState::Refused {
            refund.held = Minor(0);
        } else {
            charge.credited = Minor(0);
        }
        if refund.is_open() || refund.state == RefundState::Done {
            charge.refunded = refund.amount;
        }
        refund::insert(tx, &refund).await?;
        if refund.is_open() {
            jobs::enqueue(tx, &charge.company_id, REFUND_JOB, &refund.id, now).await?;
        }
    }
    store::insert(tx, &charge).await?;
    // The previous version did not record what a second session took.
    let former = charge.superseded.then_some(now);
    if let Some(at) = next_check(&charge, now).or(former) {
        jobs::enqueue(tx, &charge.company_id, RECONCILE_JOB, &charge.id, at).await?;
    }
    Ok(())
}

/// A refund of the previous version.
#[derive(FromRow)]
struct FormerRefund {
    id: String,
    status: String,
    amount_minor: Minor,
    currency: Currency,
    provider_id: String,
    refund_ref: String,
    /// The provider was asked.
    asked: bool,
    /// The payment is refunded, so the provider had accepted the refund.
    accepted: bool,
    message: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

const REFUNDS_OF_PAYMENT: &str = "SELECT r.id, r.status, r.amount_minor, p.currency, r.provider_id,
         COALESCE(r.refund_ref, r.id) AS refund_ref, TRUE AS asked,
         p.status = 'refunded' AS accepted, r.message, r.created_at, r.updated_at
     FROM refunds r JOIN payments p ON p.company_id = r.company_id AND p.id = r.payment_id
     WHERE r.company_id = $1 AND r.payment_id = $2 AND p.service_ref = $3";
const REFUNDS_OF_CARD: &str = "SELECT id, status, amount_minor, currency, provider_id,
         COALESCE(refund_ref, CASE tries WHEN 1 THEN id ELSE id || '-' || tries END) AS refund_ref,
         refund_ref IS NOT NULL AS asked, TRUE AS accepted, message, created_at, updated_at
     FROM card_refunds WHERE company_id = $1 AND card_id = $2 AND service_ref = $3";

async fn former_refunds(tx: &mut Tx, charge: &Charge) -> Result<Vec<FormerRefund>> {
    let sql = match charge.owner_kind {
        OwnerKind::Payment => REFUNDS_OF_PAYMENT,
        OwnerKind::Card => REFUNDS_OF_CARD,
        OwnerKind::Recollection => return Ok(Vec::new()),
    };
    let of = params![&charge.company_id, &charge.owner_id, &charge.service_ref];
    Ok(tx.sql(sql).params(of).all().await?)
}

impl FormerRefund {
    fn to_refund(&self, charge: &Charge) -> Refund {
        let state = match &*self.status {
            "requested" => RefundState::Requested,
            "pending" => RefundState::Pending,
            "done" => RefundState::Done,
            _ if self.accepted => RefundState::Failed,
            _ => RefundState::Refused,
        };
        Refund {
            company_id: charge.company_id.clone(),
            id: self.id.clone(),
            charge_id: charge.id.clone(),
            number: 1,
            amount: self.amount_minor,
            held: charge.credited,
            currency: self.currency.clone(),
            cause: match charge.owner_kind {
                OwnerKind::Card => Cause::Verification,
                OwnerKind::Payment | OwnerKind::Recollection => Cause::Operator,
            },
            refund_ref: self.refund_ref.clone(),
            provider_id: self.provider_id.clone(),
            state,
            fence: i64::from(self.asked),
            lease_until: None,
            unsure: self.asked,
            message: self.message.clone(),
            last_error: None,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

async fn set_charge(
    tx: &mut Tx,
    company_id: &CompanyId,
    kind: OwnerKind,
    owner_id: &str,
    charge_id: &str,
) -> Result<()> {
    let sql = match kind {
        OwnerKind::Payment => {
            "UPDATE payments SET charge_id = $3, revision = revision + 1
             WHERE company_id = $1 AND id = $2"
        }
        OwnerKind::Card => {
            "UPDATE cards SET charge_id = $3, revision = revision + 1
             WHERE company_id = $1 AND id = $2"
        }
        OwnerKind::Recollection => {
            "UPDATE recollections SET charge_id = $3, revision = revision + 1
             WHERE company_id = $1 AND id = $2"
        }
    };
    Ok(tx.sql(sql).params(params![company_id, owner_id, charge_id]).execute().await?)
}

/// Adopts up to `limit` records that no host of the previous version has leased. Returns their
/// number.
async fn adopt_some(tx: &mut Tx, app: &App, kind: OwnerKind, limit: i64) -> Result<u64> {
    let sql = match kind {
        OwnerKind::Payment => {
            "SELECT company_id, id FROM payments WHERE charge_id IS NULL
                 AND COALESCE(starting_until, 0) <= $1 AND created_at <= $1
             ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED"
        }
        OwnerKind::Card => {
            "SELECT company_id, id FROM cards WHERE charge_id IS NULL AND created_at <= $1
             ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED"
        }
        OwnerKind::Recollection => {
            "SELECT company_id, id FROM recollections WHERE charge_id IS NULL AND with_provider
                 AND COALESCE(starting_until, 0) <= $1 AND created_at <= $1
             ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED"
        }
    };
    let now = app.clock.now();
    let found: Vec<(CompanyId, String)> = tx.sql(sql).params(params![now, limit]).all().await?;
    for (company_id, id) in &found {
        adopt(tx, app, company_id, kind, id).await?;
    }
    Ok(found.len() as u64)
}

/// Adopts all records of the previous version.
pub async fn sweep(app: App) -> Result<u64> {
    let mut adopted = 0;
    for kind in [OwnerKind::Payment, OwnerKind::Card, OwnerKind::Recollection] {
        loop {
            let host = app.clone();
            let adopt = async move |tx: &mut Tx| adopt_some(tx, &host, kind, BATCH_RECORDS).await;
            match app.store.write(adopt).await? {
                0 => break,
                some => adopted += some,
            }
        }
    }
    Ok(adopted)
}

/// Number of records that one transaction adopts: each takes several statements.
const BATCH_RECORDS: i64 = 100;
