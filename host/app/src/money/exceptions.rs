//! Operator endpoints for exceptions, see `charges::exceptions`.

use super::{
    charges::{self, Cause, Exception, Note, RefundTerms, State as ChargeState},
    prelude::*,
    reconciliation::{Remedy, check_remedy, resolve_difference},
};
use crate::{operations::operators::approvals, state::config::ApprovalSubject};

/// Maximum number of notes of an exception.
const MAX_NOTES: usize = 100;

choices! {
    StateFilter = &["open", "resolved"];
    Resolution = &["credit", "refund", "absorb", "none"];
}

fields! {
    /// Filter and cursor of exceptions.
    Query ExceptionFilter {
        /// Default: all.
        state: OneOf<StateFilter>,
        /// The `next` value of the previous response. Default: the oldest exception.
        after: Cursor,
        /// Maximum number of exceptions per response; more than 1,000 counts as 1,000.
        limit: Limit<100, 1_000>,
    }
}

/// A page of exceptions.
#[derive(Serialize, JsonSchema)]
pub struct Exceptions {
    /// Oldest first.
    exceptions: Vec<Exception>,
    /// Cursor of the next page; `null` at the end.
    next: Option<String>,
}

pub async fn list(
    State(app): State<App>,
    query: Query<ExceptionFilter>,
) -> Result<DataResponse<Exceptions>> {
    let ExceptionFilter { state, after, limit } = query.read()?;
    let read = async |tx: &mut Tx| charges::list_exceptions(tx, state, &after, limit).await;
    let exceptions = app.store.select(read).await?;
    let next = next_cursor(&exceptions, limit, |exception| &exception.id);
    DataResponse::data(Exceptions { exceptions, next }, "Exceptions fetched successfully")
}

fn not_found() -> Error {
    Error::not_found("exception not found")
}

async fn find(app: &App, OwnedId { owner, id }: &OwnedId) -> Result<Exception> {
    let read = async |tx: &mut Tx| charges::find_exception(tx, owner, id).await;
    app.store.select(read).await?.ok_or_else(not_found)
}

/// Returns the charge of an exception, if it is known.
async fn charge_of(app: &App, exception: &Exception) -> Result<Option<Charge>> {
    match (&exception.owner, &exception.charge) {
        (Owner::Company(company), Some(id)) => {
            Ok(app.store.select(async |tx: &mut Tx| charges::find(tx, company, id).await).await?)
        }
        _ => Ok(None),
    }
}

/// Returns the largest of the requested, seen and taken amounts and the amount in suspense.
fn amount(exception: &Exception, charge: Option<&Charge>) -> Minor {
    let taken = charge.and_then(|charge| charge.taken).unwrap_or_default();
    let suspense = Minor(exception.suspense.0.abs());
    let seen = exception.seen.unwrap_or_default();
    exception.expected.max(seen).max(taken).max(suspense)
}

pub async fn fetch(State(app): State<App>, id: OwnedId) -> Result<DataResponse<Exception>> {
    DataResponse::data(find(&app, &id).await?, "Exception fetched successfully")
}

fields! {
    /// A change of an exception.
    Body EditException {
        /// `true`: assigns the exception to the caller. `false`: removes the assignment.
        mine: Option<Flag>,
        /// A note, added to the earlier ones.
        note: Option<Prose<1_000>>,
    }
}

pub async fn edit(
    State(app): State<App>,
    actor: Actor,
    OwnedId { owner, id }: OwnedId,
    body: Body<EditException>,
) -> Result<DataResponse<Exception>> {
    let EditException { mine, note } = body.read()?;
    if mine.is_none() && note.is_none() {
        return Err(Error::invalid("the mine or the note field is required"));
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        let found = charges::lock_exception(tx, &owner, &id).await?;
        let mut edited = found.ok_or_else(not_found)?;
        if let Some(mine) = mine {
            edited.handler = mine.then(|| actor.name.clone());
        }
        let note = note.map(|text| Note { at: app.clock.now(), by: actor.name.clone(), text });
        edited.notes.0.extend(note);
        if edited.notes.0.len() > MAX_NOTES {
            return Err(Error::Invalid(format!("an exception has at most {MAX_NOTES} notes")));
        }
        charges::update_exception(tx, &edited).await?;
        let detail = json!({ "exception": edited.id, "owner": edited.handler });
        audit::record(tx, &app, &actor, owner, "exception.edit", detail).await?;
        DataResponse::data(edited, "Exception edited successfully")
    })
    .await
}

fields! {
    /// The resolution of an exception.
    Body ResolveException {
        /// `credit`: the money in suspense is credited to the company's wallet or, if the provider
        /// has less than the ledger, debited from it. `refund`: the charge is refunded. `absorb`
        /// (reconciliation only): the service keeps or bears the difference. `none`: no money
        /// moves; for reconciliation, the entry in suspense is reversed.
        action: OneOf<Resolution>,
        /// The reason, stored with the exception.
        reason: Text<500>,
    }
}

/// Resolves an exception. A refund is requested by the job queue.
pub async fn resolve(
    State(app): State<App>,
    actor: Actor,
    id: OwnedId,
    body: Body<ResolveException>,
) -> Result<DataResponse<Exception>> {
    let ResolveException { action, reason } = body.read()?;
    let found = find(&app, &id).await?;
    let charge = charge_of(&app, &found).await?;
    // Checked first: a rejected resolution would use up the approval.
    check(&found, charge.as_ref(), &action)?;
    let amount = amount(&found, charge.as_ref());
    if amount > app.settings.approvals.approval_amount {
        let detail =
            json!({ "exception": found.id, "action": action, "reason": reason, "amount": amount });
        let (subject, kind) = (ApprovalSubject::Exceptions, "exception.resolve");
        approvals::require(&app, &actor, subject, id.owner.clone(), kind, &detail).await?;
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        let OwnedId { owner, id } = id;
        // The charge is locked first, as everywhere.
        let charge = match (&owner, &found.charge) {
            (Owner::Company(company), Some(id)) => charges::lock_charge(tx, company, id).await?,
            _ => None,
        };
        let before = found;
        let mut found = charges::lock_exception(tx, &owner, &id).await?.ok_or_else(not_found)?;
        let amounts = |one: &Exception| (one.expected, one.seen, one.suspense);
        if amounts(&before) != amounts(&found) {
            return Err(Error::Conflict("the exception has changed: fetch it again".to_owned()));
        }
        check(&found, charge.as_ref(), &action)?;
        charges::resolve_exception(tx, &app, &mut found, &reason).await?;
        let mut detail = json!({ "exception": found.id, "action": action, "reason": reason });
        if found.owner_kind == Some(charges::OwnerKind::Payment) {
            detail["payment"] = json!(found.owner_id);
        }
        apply(tx, &app, found, charge, &action).await?;
        audit::record(tx, &app, &actor, owner.clone(), "exception.resolve", detail).await?;
        let resolved = charges::find_exception(tx, &owner, &id).await?;
        DataResponse::data(resolved.ok_or_else(not_found)?, "Exception resolved successfully")
    })
    .await
}

/// Returns 400 if the exception is already resolved, or if the action does not apply to it.
fn check(found: &Exception, charge: Option<&Charge>, action: &str) -> Result<()> {
    if found.state == charges::ExceptionState::Resolved {
        return Err(Error::invalid("the exception is already resolved"));
    }
    match (action, charge) {
        ("none", _) => Ok(()),
        ("refund", _) if found.is_of_reconciliation() => Err(Error::invalid(
            "a difference from the provider's list cannot be refunded: refund the payment instead",
        )),
        (_, _) if found.is_of_reconciliation() => check_remedy(found, remedy(action)),
        ("absorb", _) => {
            Err(Error::invalid("only a difference from the provider's list can be absorbed"))
        }
        ("credit", Some(charge)) if !charge.is_in_suspense() => {
            Err(Error::invalid("this charge has no money in suspense"))
        }
        ("refund", Some(charge)) if !is_refundable(charge) => {
            Err(Error::invalid("this charge has no refundable amount"))
        }
        _ => Ok(()),
    }
}

fn is_refundable(charge: &Charge) -> bool {
    let is_taken = matches!(charge.state, ChargeState::Succeeded | ChargeState::Mismatched);
    is_taken && !charge.counts && charge.refundable() > Minor(0)
}

fn remedy(action: &str) -> Remedy {
    match action {
        "credit" => Remedy::Company,
        "absorb" => Remedy::Service,
        _ => Remedy::Nothing,
    }
}

/// Moves the money of a resolved exception.
async fn apply(
    tx: &mut Tx,
    app: &App,
    mut found: Exception,
    charge: Option<Charge>,
    action: &str,
) -> Result<()> {
    if found.is_of_reconciliation() {
        return resolve_difference(tx, app, &mut found, remedy(action)).await;
    }
    let mut charge = charge.ok_or_else(not_found)?;
    match action {
        "credit" => charges::credit(tx, app, &mut charge).await,
        "refund" => refund(tx, app, &mut charge).await,
        _ => Ok(()),
    }
}

/// Begins the refund of a charge that settled nothing.
async fn refund(tx: &mut Tx, app: &App, charge: &mut Charge) -> Result<()> {
    if charges::is_disputed(tx, &charge.company_id, &charge.id).await? {
        return Err(Error::invalid("the charge is disputed: answer the dispute instead"));
    }
    if !app.plugins.provider(&charge.provider, &charge.company_id)?.supports_refunds() {
        return Err(Error::Invalid(format!("{} does not support refunds", charge.provider)));
    }
    let terms = RefundTerms { cause: Cause::Operator, amount: None, force: true };
    charges::begin_refund(tx, app, charge, terms).await.map(drop)
}

/// The same endpoints for exceptions of the service, whose charge is unknown.
pub mod service {
    use super::{
        Actor, App, Body, DataResponse, EditException, Exception, OwnedId, ResolveException,
        Result, State,
    };

    pub async fn fetch(app: State<App>, id: OwnedId) -> Result<DataResponse<Exception>> {
        super::fetch(app, id).await
    }

    pub async fn edit(
        app: State<App>,
        actor: Actor,
        id: OwnedId,
        body: Body<EditException>,
    ) -> Result<DataResponse<Exception>> {
        super::edit(app, actor, id, body).await
    }

    pub async fn resolve(
        app: State<App>,
        actor: Actor,
        id: OwnedId,
        body: Body<ResolveException>,
    ) -> Result<DataResponse<Exception>> {
        super::resolve(app, actor, id, body).await
    }
}
