//! Approvals: actions above configured limits need a second operator.
//!
//! The first request of such an action is recorded and rejected with 409. After another operator
//! with the same permission has approved it, the first operator may repeat exactly this request
//! once. The actions of `IDEMPOTENT` may be repeated until the approval expires.

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

/// Actions that may be repeated until the approval expires: reads, and actions that are idempotent
/// by the key of a transfer or because a payment is refunded once.
const IDEMPOTENT: [&str; 4] =
    ["operator.credit", "operator.debit", "payment.refund", "identity.bulk_read"];

/// Time for a decision, and for the action after an approval.
const VALID_SECONDS: i64 = 24 * 3600;

/// Returns the permission that an action requires, also of the operator that approves it.
fn permission(subject: ApprovalSubject) -> Permission {
    match subject {
        ApprovalSubject::Wallet => permissions::WALLET_WRITE,
        ApprovalSubject::ForcedRefunds => permissions::REFUNDS_WRITE,
        ApprovalSubject::Exceptions => permissions::EXCEPTIONS_RESOLVE,
        ApprovalSubject::PluginGrants => permissions::PLUGINS_WRITE,
        ApprovalSubject::Publishers => permissions::PUBLISHERS_WRITE,
        ApprovalSubject::Operators => permissions::OPERATORS_WRITE,
        ApprovalSubject::Identities => permissions::IDENTITIES_READ,
    }
}

/// Returns whether actions of this kind need an approval.
pub fn are_required(app: &App, subject: ApprovalSubject) -> bool {
    app.settings.approvals.approvals.contains(&subject)
}

/// Returns `Ok` if the action needs no approval, or has one; 409 while the approval is pending, 403
/// after a rejection. `action` and `detail` are those of the audit log entry.
pub async fn require(
    app: &App,
    actor: &Actor,
    subject: ApprovalSubject,
    owner: impl Into<Owner>,
    action: &str,
    detail: &Value,
) -> Result<()> {
    if !are_required(app, subject) {
        return Ok(());
    }
    let owner = owner.into();
    let content = audit::chain::canonical(detail).to_string();
    let digest = fingerprint(&[&actor.id, owner.column(), action, &content]);
    let (now, once) = (app.clock.now(), !IDEMPOTENT.contains(&action));
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
            let uses = once && found.state == ApprovalState::Approved;
            // Of two concurrent requests, the second one needs another approval.
            if !uses || store::mark_used(tx, &found.id).await? {
                return Ok(found);
            }
        }
        store::insert(tx, &new, &digest, &actor.id).await?;
        let detail = json!({ "approval": new.id, "action": new.action, "detail": new.detail });
        audit::record(tx, &app, &actor, owner, "approval.request", detail).await?;
        Ok(new)
    });
    let approval = approval.await?;
    match approval.state {
        ApprovalState::Approved | ApprovalState::Used => Ok(()),
        ApprovalState::Rejected => {
            let by = approval.decided_by.unwrap_or_default();
            Err(Error::Forbidden(format!("{by} rejected this action: approval {}", approval.id)))
        }
        ApprovalState::Pending => Err(Error::Conflict(format!(
            "a second operator must approve this action before you repeat the request: approval {}",
            approval.id
        ))),
    }
}
