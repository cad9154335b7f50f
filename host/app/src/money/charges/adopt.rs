//! Adoption of records that hosts of the previous version wrote: derives their charges.
//!
//! A record is adopted when the engine first locks it, when a job of a former kind names it, and by
//! a sweep. On PostgreSQL, triggers then reject changes by hosts of the previous version.

use super::{
    Charge, FundsAccount, Method, OwnerKind, RECONCILE_JOB, REFUND_JOB, REQUEST_JOB,
    ReferenceSource, State, next_check,
    refund::{self, Cause, Refund, RefundState},
    store,
};
use crate::{money::prelude::*, state::config::FeeBearer};
use tollhouse_platform::store::{DynamicStatement, FromRow, params};

/// Number of records that one transaction adopts: each takes several statements.
const BATCH_RECORDS: i64 = 100;
/// Longest plugin call. A host of the previous version may still be in one.
const LONGEST_CALL_SECONDS: i64 = 30;

/// The fields of a record of the previous version from which its charges are derived.
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
     WHERE company_id = $1 AND id = $2 AND charge_id IS NULL AND with_provider FOR UPDATE";

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
    let place = references.iter().position(|(_, reference)| *reference == former.service_ref);
    let last = match place {
        Some(place) => references.remove(place),
        None => (former.account_id.clone(), former.service_ref.clone()),
    };
    references.push(last);
    let count = references.len();
    let mut current = None;
    for (number, (account_id, reference)) in (1..).zip(references) {
        let is_current = usize::try_from(number) == Ok(count);
        let mut charge = derive(app, company_id, (kind, owner_id), &former, number);
        charge.service_ref.clone_from(&reference);
        // The record's account may have changed since: a card has the account of its newest token.
        charge.account_id = account_id;
        if !is_current {
            (charge.state, charge.counts, charge.superseded) = (State::Requested, false, true);
            (charge.session_url, charge.settled_at, charge.unsure) = (None, None, true);
            (charge.taken, charge.taken_currency) = (None, None);
            (charge.credited, charge.lease_until) = (Minor(0), None);
        }
        if let Some(lane) = charge.lane.as_ref().filter(|_| charge.is_undecided()) {
            match store::lane_holder(tx, company_id, lane).await? {
                None => charge.holds_lane = true,
                // The previous version requested several charges at a time. This one is requested
                // again, under its reference, when it is next in the lane.
                Some(_) => {
                    (charge.state, charge.unsure, charge.lease_until) = (State::Queued, true, None);
                    let now = app.clock.now();
                    jobs::enqueue(tx, company_id, REQUEST_JOB, lane, now).await?;
                }
            }
        }
        adopt_charge(tx, app, charge.clone(), former.status == "refunded").await?;
        notifications::assign_charge(tx, &charge.account_id, &reference, &charge.id).await?;
        current = Some(charge.id);
    }
    let Some(current) = current else { return Ok(()) };
    let sql = DynamicStatement::from("UPDATE ")
        .append(table(kind))
        .append(" SET revision = revision + 1")
        // So that hosts of the previous version cannot charge it: see `former_refunds`.
        .append(if kind == OwnerKind::Recollection { ", account_id = ''" } else { "" })
        .append(", charge_id = ")
        .bind(&current)
        .append(" WHERE company_id = ")
        .bind(company_id)
        .append(" AND id = ")
        .bind(owner_id);
    Ok(tx.dynamic(&sql).execute().await?)
}

fn table(kind: OwnerKind) -> &'static str {
    match kind {
        OwnerKind::Payment => "payments",
        OwnerKind::Card => "cards",
        OwnerKind::Recollection => "recollections",
    }
}

/// Adopts the lane's charges that hosts of the previous version began, so that others wait for
/// them. Requires the loan's lock.
pub async fn adopt_lane(tx: &mut Tx, app: &App, company_id: &CompanyId, lane: &str) -> Result<()> {
    let sql = "SELECT id FROM recollections
         WHERE company_id = $1 AND loan_id = $2 AND charge_id IS NULL AND with_provider
             AND status = 'pending' AND payment_channel <> 'checkout'
         ORDER BY created_at, id FOR UPDATE";
    let pending: Vec<String> = tx.sql(sql).params(params![company_id, lane]).values().await?;
    for id in pending {
        adopt(tx, app, company_id, OwnerKind::Recollection, &id).await?;
    }
    Ok(())
}

/// Derives a charge from a record, as if it were the current one.
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
        at_least: None,
        taken,
        taken_currency: taken.map(|_| former.currency.clone()),
        // Zero may mean that they are not known.
        fees: (counts && former.fees_minor > Minor(0)).then_some(former.fees_minor),
        credited: if former.in_books && counts { net } else { Minor(0) },
        credited_to: FundsAccount::Wallet,
        refunded: Minor(0),
        disputed: Minor(0),
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
        choice: None,
    }
}

/// Inserts a charge with its refunds, and enqueues their jobs.
async fn adopt_charge(tx: &mut Tx, app: &App, mut charge: Charge, is_refunded: bool) -> Result<()> {
    let (now, mut was_accepted) = (app.clock.now(), false);
    let refunds = former_refunds(tx, &charge).await?;
    for former in &refunds {
        // A verification charge is refunded only if it was taken.
        charge.state = State::Succeeded;
        charge.taken = charge.taken.max(Some(former.amount_minor));
        charge.taken_currency = charge.taken_currency.or(Some(former.currency.clone()));
        charge.settled_at = charge.settled_at.or(Some(former.created_at));
        let mut refund = former.to_refund(&charge, now);
        if refund.state == RefundState::Refused {
            refund.held = Minor(0);
        } else {
            charge.credited = Minor(0);
            was_accepted = true;
        }
        if refund.is_open() || refund.state == RefundState::Done {
            charge.refunded = refund.amount;
        }
        refund::insert(tx, &refund).await?;
        if refund.is_open() {
            let at = refund.lease_until.unwrap_or(now);
            jobs::enqueue(tx, &charge.company_id, REFUND_JOB, &refund.id, at).await?;
        }
    }
    // The previous version wrote `refunded` for refunds and for reversals.
    if is_refunded && charge.counts && !was_accepted {
        (charge.state, charge.credited) = (State::Reversed, Minor(0));
    }
    store::insert(tx, &charge).await?;
    // The previous version did not record money taken by a second session. It verified for three
    // days only, but a charge of a lane may hold up others for longer.
    let is_due = charge.superseded || charge.lane.is_some() && charge.is_undecided();
    if let Some(at) = next_check(&charge, now).or(is_due.then_some(now)) {
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
    /// The refund was requested from the provider.
    asked: bool,
    /// The provider had accepted the refund: the payment is refunded, and was not reversed.
    accepted: bool,
    message: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

const REFUNDS_OF_PAYMENT: &str = "SELECT r.id, r.status, r.amount_minor, p.currency, r.provider_id,
         COALESCE(r.refund_ref, r.id) AS refund_ref, TRUE AS asked,
         p.status = 'refunded' AND CASE WHEN p.credits_wallet THEN NOT EXISTS (
             SELECT 1 FROM ledger_transactions t WHERE t.company_id = p.company_id
                 AND t.key = 'payment:' || p.id || ':reversed')
             ELSE r.provider_id <> '' END AS accepted, r.message, r.created_at, r.updated_at
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
    if charge.owner_kind == OwnerKind::Card {
        // Hosts of the previous version call the provider before they write, so no trigger stops
        // them. Without an account they cannot call.
        let of = params![&charge.company_id, &charge.owner_id, &charge.service_ref];
        let sql = "UPDATE card_refunds SET account_id = ''
             WHERE company_id = $1 AND card_id = $2 AND service_ref = $3";
        tx.sql(sql).params(of).run().await?;
    }
    let of = params![&charge.company_id, &charge.owner_id, &charge.service_ref];
    Ok(tx.sql(sql).params(of).all().await?)
}

impl FormerRefund {
    fn to_refund(&self, charge: &Charge, now: Timestamp) -> Refund {
        let state = match &*self.status {
            "requested" => RefundState::Requested,
            "pending" => RefundState::Pending,
            "done" => RefundState::Done,
            _ if self.accepted => RefundState::Failed,
            _ => RefundState::Refused,
        };
        let is_in_flight = self.asked && state == RefundState::Requested;
        Refund {
            company_id: charge.company_id.clone(),
            id: self.id.clone(),
            charge_id: charge.id.clone(),
            number: 1,
            amount: self.amount_minor,
            held: charge.credited,
            fee: Minor(0),
            fee_bearer: FeeBearer::Service,
            replaces: false,
            currency: self.currency.clone(),
            cause: match charge.owner_kind {
                OwnerKind::Card => Cause::Verification,
                OwnerKind::Payment | OwnerKind::Recollection => Cause::Operator,
            },
            refund_ref: self.refund_ref.clone(),
            provider_id: self.provider_id.clone(),
            state,
            fence: i64::from(self.asked),
            lease_until: is_in_flight.then(|| now.plus_seconds(LONGEST_CALL_SECONDS)),
            unsure: self.asked,
            message: self.message.clone(),
            last_error: None,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// Adopts up to `limit` records that no host of the previous version has leased. Returns their
/// number.
async fn adopt_some(tx: &mut Tx, app: &App, kind: OwnerKind, limit: i64) -> Result<u64> {
    let now = app.clock.now();
    let is_free = match kind {
        OwnerKind::Payment => " AND COALESCE(starting_until, 0) <= ",
        OwnerKind::Card => " AND created_at <= ",
        OwnerKind::Recollection => " AND with_provider AND COALESCE(starting_until, 0) <= ",
    };
    let sql = DynamicStatement::from("SELECT company_id, id FROM ")
        .append(table(kind))
        .append(" WHERE charge_id IS NULL AND created_at <= ")
        .bind(now)
        .append(is_free)
        .bind(now)
        .append(" ORDER BY created_at LIMIT ")
        .bind(limit)
        .append(" FOR UPDATE SKIP LOCKED");
    let found: Vec<(CompanyId, String)> = tx.dynamic(&sql).all().await?;
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
