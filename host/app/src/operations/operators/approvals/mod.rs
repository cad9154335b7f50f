//! Approvals: actions above configured limits need a second operator.
//!
//! The first request of such an action is recorded and rejected with 409. After another operator
//! with the same permission has approved it, the first operator may repeat exactly this request
//! until the approval expires. Each of these actions has the same effect if it is repeated.

pub mod api;
mod store;

use self::store::{Approval, ApprovalState};
use super::permissions;
pub use crate::state::config::ApprovalSubject;
use crate::{
    operations::audit::{self, Actor},
    state::prelude::*,
};
use tollhouse_http::Permission;
use tollhouse_platform::crypto::seal::fingerprint;

/// Time for a decision, and for the action after an approval.
const VALID_SECONDS: i64 = 24 * 3600;

/// Returns the permission that an action requires, also of the operator that approves it.
fn permission(subject: ApprovalSubject) -> Permission {
    match subject {
        ApprovalSubject::Wallet => permissions::WALLET_WRITE,
        ApprovalSubject::ForcedRefunds => permissions::REFUNDS_WRITE,
        ApprovalSubject::PluginGrants => permissions::PLUGINS_WRITE,
        ApprovalSubject::Publishers => permissions::PUBLISHERS_WRITE,
        ApprovalSubject::Operators => permissions::OPERATORS_WRITE,
    }
}

/// Returns whether the action may be carried out: if it needs no approval, or has one. 409 if it
/// waits for an approval, 403 if it was rejected. `action` and `detail` are those of its audit log
/// entry.
pub async fn require(
    app: &App,
    actor: &Actor,
    subject: ApprovalSubject,
    owner: impl Into<Owner>,
    action: &str,
    detail: &Value,
) -> Result<()> {
    if !app.settings.approvals.approvals.contains(&subject) {
        return Ok(());
    }
    let owner = owner.into();
    let content = audit::chain::canonical(detail).to_string();
    let digest = fingerprint(&[&actor.id, owner.column(), action, &content]);
    let now = app.clock.now();
    let new = Approval {
        id: app.new_id(),
        company_id: owner.column().to_owned(),
        permission: permission(subject).to_owned(),
        action: action.to_owned(),
        detail: Json(detail.clone()),
        state: ApprovalState::Pending,
        requested_by: actor.name.clone(),
        requested_at: now,
        expires_at: now.plus_seconds(VALID_SECONDS),
        decided_by: None,
        decided_at: None,
    };
    let (app, db, actor) = (app.clone(), app.store.clone(), actor.clone());
    let approval = db.write(async move |tx| -> Result<Approval> {
        if let Some(found) = store::find_current(tx, &digest, now).await? {
            return Ok(found);
        }
        store::insert(tx, &new, &digest, &actor.id).await?;
        let detail = json!({ "approval": new.id, "action": new.action, "detail": new.detail });
        audit::record(tx, &app, &actor, owner, "approval.request", detail).await?;
        Ok(new)
    });
    let approval = approval.await?;
    match approval.state {
        ApprovalState::Approved => Ok(()),
        ApprovalState::Rejected => {
            let by = approval.decided_by.unwrap_or_default();
            Err(Error::Forbidden(format!("{by} rejected this action: approval {}", approval.id)))
        }
        ApprovalState::Pending => Err(Error::Conflict(format!(
            "this action needs the approval of a second operator: repeat the request after approval {}",
            approval.id
        ))),
    }
}
