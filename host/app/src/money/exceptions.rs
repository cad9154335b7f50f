//! Operator endpoints for exceptions, see `charges::exceptions`.

use super::{
    charges::{self, Cause, Exception, Note, RefundTerms, State as ChargeState},
    prelude::*,
};
use crate::{operations::operators::approvals, state::config::ApprovalSubject};

/// Maximum number of notes of an exception.
const MAX_NOTES: usize = 100;

choices! {
    StateFilter = &["open", "resolved"];
    Resolution = &["credit", "refund", "none"];
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

async fn find(app: &App, company: &CompanyId, id: &str) -> Result<Exception> {
    let read = async |tx: &mut Tx| charges::find_exception(tx, company, id).await;
    app.store.select(read).await?.ok_or_else(not_found)
}

/// Returns an exception, and the largest of the amounts that were requested, seen or taken.
async fn find_with_amount(app: &App, company: &CompanyId, id: &str) -> Result<(Exception, Minor)> {
    let read = async |tx: &mut Tx| {
        let Some(found) = charges::find_exception(tx, company, id).await? else { return Ok(None) };
        let charge = charges::find(tx, company, &found.charge_id).await?;
        Ok::<_, tollhouse_platform::store::Error>(Some((found, charge)))
    };
    let (found, charge) = app.store.read(read).await?.ok_or_else(not_found)?;
    let taken = charge.and_then(|charge| charge.taken).unwrap_or_default();
    let amount = found.expected.max(found.seen.unwrap_or_default()).max(taken);
    Ok((found, amount))
}

pub async fn fetch(
    State(app): State<App>,
    Path((company, exception)): Path<(CompanyId, String)>,
) -> Result<DataResponse<Exception>> {
    let found = find(&app, &company, &exception).await?;
    DataResponse::data(found, "Exception fetched successfully")
}

fields! {
    /// A change of an exception.
    Body EditException {
        /// `true`: the caller works on the exception. `false`: nobody does.
        mine: Option<Flag>,
        /// A note, added to the earlier ones.
        note: Option<Prose<1_000>>,
    }
}

pub async fn edit(
    State(app): State<App>,
    actor: Actor,
    Path((company, exception)): Path<(CompanyId, String)>,
    body: Body<EditException>,
) -> Result<DataResponse<Exception>> {
    let EditException { mine, note } = body.read()?;
    if mine.is_none() && note.is_none() {
        return Err(Error::invalid("the mine or the note field is required"));
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        let found = charges::find_exception(tx, &company, &exception).await?;
        let found = found.ok_or_else(not_found)?;
        // Serializes changes of the exception.
        charges::lock_charge(tx, &company, &found.charge_id).await?;
        let found = charges::find_exception(tx, &company, &exception).await?;
        let mut edited = found.ok_or_else(not_found)?;
        if let Some(mine) = mine {
            edited.owner = mine.then(|| actor.name.clone());
        }
        let note = note.map(|text| Note { at: app.clock.now(), by: actor.name.clone(), text });
        edited.notes.0.extend(note);
        if edited.notes.0.len() > MAX_NOTES {
            return Err(Error::Invalid(format!("an exception has at most {MAX_NOTES} notes")));
        }
        charges::update_exception(tx, &edited).await?;
        let detail = json!({ "exception": edited.id, "owner": edited.owner });
        audit::record(tx, &app, &actor, &company, "exception.edit", detail).await?;
        DataResponse::data(edited, "Exception edited successfully")
    })
    .await
}

fields! {
    /// The resolution of an exception.
    Body ResolveException {
        /// `credit`: the money in suspense is credited to the company's wallet. `refund`: the payer
        /// gets back what was taken. `none`: no money moves.
        action: OneOf<Resolution>,
        /// The reason, stored with the exception.
        reason: Text<500>,
    }
}

/// Resolves an exception. A refund is requested by the job queue.
pub async fn resolve(
    State(app): State<App>,
    actor: Actor,
    Path((company, exception)): Path<(CompanyId, String)>,
    body: Body<ResolveException>,
) -> Result<DataResponse<Exception>> {
    let ResolveException { action, reason } = body.read()?;
    let (found, amount) = find_with_amount(&app, &company, &exception).await?;
    if amount > app.settings.approvals.approval_amount {
        let detail =
            json!({ "exception": found.id, "action": action, "reason": reason, "amount": amount });
        let (subject, kind) = (ApprovalSubject::Exceptions, "exception.resolve");
        approvals::require(&app, &actor, subject, &company, kind, &detail).await?;
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        let found =
            charges::find_exception(tx, &company, &exception).await?.ok_or_else(not_found)?;
        let charge = charges::lock_charge(tx, &company, &found.charge_id).await?;
        let mut charge = charge.ok_or_else(not_found)?;
        if !charges::resolve_exception(tx, &app, &found, &reason).await? {
            return Err(Error::invalid("the exception is already resolved"));
        }
        match &*action {
            "credit" => credit(tx, &app, &mut charge).await?,
            "refund" => refund(tx, &app, &mut charge).await?,
            _ => {}
        }
        let mut detail = json!({ "exception": found.id, "action": action, "reason": reason });
        if found.owner_kind == charges::OwnerKind::Payment {
            detail["payment"] = json!(found.owner_id);
        }
        audit::record(tx, &app, &actor, &company, "exception.resolve", detail).await?;
        let resolved = charges::find_exception(tx, &company, &found.id).await?;
        DataResponse::data(resolved.ok_or_else(not_found)?, "Exception resolved successfully")
    })
    .await
}

async fn credit(tx: &mut Tx, app: &App, charge: &mut Charge) -> Result<()> {
    match charges::credit(tx, app, charge).await? {
        true => Ok(()),
        false => Err(Error::invalid("this charge has no money in suspense")),
    }
}

/// Begins the refund of a charge that settled nothing.
async fn refund(tx: &mut Tx, app: &App, charge: &mut Charge) -> Result<()> {
    let is_taken = matches!(charge.state, ChargeState::Succeeded | ChargeState::Mismatched);
    if charges::is_disputed(tx, &charge.company_id, &charge.id).await? {
        return Err(Error::invalid("the charge is disputed: answer the dispute instead"));
    }
    if !is_taken || charge.counts || charge.refundable() == Minor(0) {
        return Err(Error::invalid("this charge has no refundable amount"));
    }
    if !app.plugins.provider(&charge.provider, &charge.company_id)?.supports_refunds() {
        return Err(Error::Invalid(format!("{} does not support refunds", charge.provider)));
    }
    let terms = RefundTerms { cause: Cause::Operator, amount: None, force: true };
    charges::begin_refund(tx, app, charge, terms).await.map(drop)
}
