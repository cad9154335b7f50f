//! API for approvals.

use super::store::{self, Approval, ApprovalState};
use crate::{
    operations::audit::{self, Actor},
    state::prelude::*,
};

choices! {
    States = &["pending", "approved", "rejected", "used"];
}

fields! {
    /// Filter of approvals.
    Query ApprovalFilter {
        state: OneOf<States>,
    }
}

pub async fn list(
    State(app): State<App>,
    pages: Query<Pages>,
    query: Query<ApprovalFilter>,
) -> Result<DataResponse<ListPage<Approval>>> {
    let (page, filter) = (PageRequest::from(pages.read()?), query.read()?);
    let list = async |tx: &mut Tx| store::list(tx, filter.state.as_ref(), page).await;
    DataResponse::data(app.store.read(list).await?, "Approvals fetched successfully")
}

/// Allows the operator that requested the action to carry it out.
pub async fn approve(
    State(app): State<App>,
    actor: Actor,
    Path(approval): Path<String>,
) -> Result<DataResponse<Approval>> {
    let approved = decide(app, actor, approval, ApprovalState::Approved).await?;
    DataResponse::data(approved, "Action approved successfully")
}

pub async fn reject(
    State(app): State<App>,
    actor: Actor,
    Path(approval): Path<String>,
) -> Result<DataResponse<Approval>> {
    let rejected = decide(app, actor, approval, ApprovalState::Rejected).await?;
    DataResponse::data(rejected, "Action rejected successfully")
}

async fn decide(app: App, actor: Actor, id: String, state: ApprovalState) -> Result<Approval> {
    let db = app.store.clone();
    db.write(async move |tx| {
        let now = app.clock.now();
        let found = store::lock(tx, &id).await?;
        let (mut approval, requester_id) =
            found.ok_or_else(|| Error::not_found("approval not found"))?;
        check_approver(&actor, &requester_id, &approval)?;
        if approval.state != ApprovalState::Pending || approval.expires_at <= now {
            return Err(Error::Conflict(
                "this approval has been decided or has expired".to_owned(),
            ));
        }
        approval.state = state;
        approval.decided_by = Some(actor.name.clone());
        approval.decided_at = Some(now);
        store::decide(tx, &approval).await?;
        let action = match state {
            ApprovalState::Approved => "approval.approve",
            _ => "approval.reject",
        };
        let detail = json!({
            "approval": approval.id, "action": approval.action,
            "requested_by": approval.requested_by, "detail": approval.detail,
        });
        audit::record(tx, &app, &actor, Owner::from(approval.company_id.clone()), action, detail)
            .await?;
        Ok(approval)
    })
    .await
}

/// Returns 403 unless the actor is another named operator with the permission of the action.
fn check_approver(actor: &Actor, requester_id: &str, approval: &Approval) -> Result<()> {
    if actor.id.is_empty() {
        let message = "the configured operator token cannot approve: use an operator's token";
        return Err(Error::Forbidden(message.to_owned()));
    }
    if actor.id == requester_id {
        return Err(Error::Forbidden(
            "another operator must decide: you requested this action".to_owned(),
        ));
    }
    if !actor.permissions.contains(&*approval.permission) {
        return Err(Error::Forbidden(format!("you lack the permission {}", approval.permission)));
    }
    Ok(())
}
