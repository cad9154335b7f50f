//! The operators' endpoints for refunds.

use super::{AnyRefund, CardRefund, RefundStatus};
use crate::money::{
    cards::Card,
    charges::{OwnerKind, RefundState, RefundTerms, RefundsFilter, State as ChargeState},
    prelude::*,
};

choices! {
    CardRefundStanding = &["requested", "pending", "done", "failed"];
    Standing = &["requested", "pending", "stalled", "done", "refused", "failed"];
}

fields! {
    /// Filter and cursor of refunds.
    Query RefundFilter {
        state: OneOf<Standing>,
        /// Only refunds that were requested at least this number of hours ago.
        min_age_hours: AtMost,
        /// The `next` value of the previous response. Default: the oldest refund.
        after: Cursor,
        /// Maximum number of refunds per response; more than 1,000 counts as 1,000.
        limit: Limit<100, 1_000>,
    }
}

/// A page of refunds.
#[derive(Serialize, JsonSchema)]
pub struct Refunds {
    /// Oldest first.
    refunds: Vec<AnyRefund>,
    /// Cursor of the next page; `null` at the end.
    next: Option<String>,
}

pub async fn list(
    State(app): State<App>,
    query: Query<RefundFilter>,
) -> Result<DataResponse<Refunds>> {
    let RefundFilter { state, min_age_hours, after, limit } = query.read()?;
    let now = app.clock.now();
    let filter = RefundsFilter {
        states: state.into_iter().collect(),
        owner: None,
        latest: false,
        before: min_age_hours.map(|hours| now.plus_seconds(1 - 3_600 * hours)),
        after: &after,
        limit,
    };
    let found = app.store.select(async |tx| charges::list_refunds(tx, &filter).await).await?;
    let next = next_cursor(&found, limit, |listed| &listed.refund.id);
    let refunds = found.into_iter().map(|listed| AnyRefund::new(listed, now)).collect();
    DataResponse::data(Refunds { refunds, next }, "Refunds fetched successfully")
}

fields! {
    /// Filter and cursor of card refunds.
    Query CardRefundFilter {
        status: OneOf<CardRefundStanding>,
        /// The `next` value of the previous response. Default: the oldest refund.
        after: Cursor,
        /// Maximum number of refunds per response; more than 1,000 counts as 1,000.
        limit: Limit<100, 1_000>,
    }
}

/// A page of card refunds.
#[derive(Serialize, JsonSchema)]
pub struct CardRefunds {
    /// Oldest first.
    refunds: Vec<CardRefund>,
    /// Cursor of the next page; `null` at the end.
    next: Option<String>,
}

pub async fn list_of_cards(
    State(app): State<App>,
    query: Query<CardRefundFilter>,
) -> Result<DataResponse<CardRefunds>> {
    let CardRefundFilter { status, after, limit } = query.read()?;
    let filter = RefundsFilter {
        states: status.as_deref().map(RefundStatus::states).unwrap_or_default(),
        owner: Some(OwnerKind::Card),
        latest: true,
        before: None,
        after: &after,
        limit,
    };
    let found = app.store.select(async |tx| charges::list_refunds(tx, &filter).await).await?;
    let next = next_cursor(&found, limit, |listed| &listed.refund.id);
    let refunds = found.into_iter().map(CardRefund::from).collect();
    DataResponse::data(CardRefunds { refunds, next }, "Refunds fetched successfully")
}

/// Requests a stalled refund, or starts another one after a failure. 409 for a minute after a
/// request with an unknown outcome.
pub async fn retry_of_card(
    State(app): State<App>,
    actor: Actor,
    Path((company, refund)): Path<(CompanyId, String)>,
) -> Result<DataResponse<CardRefund>> {
    let db = app.store.clone();
    db.write(async move |tx| {
        let detail = json!({ "refund": refund });
        audit::record(tx, &app, &actor, &company, "card_refund.retry", detail).await?;
        let not_found = || Error::not_found("refund not found");
        let found = charges::find_listed_refund(tx, &company, &refund).await?;
        let found = found.filter(|found| found.owner_kind == OwnerKind::Card);
        let found = found.ok_or_else(not_found)?;
        charges::lock::<Card>(tx, &app, &company, &found.owner_id).await?;
        let charge = charges::lock_charge(tx, &company, &found.refund.charge_id).await?;
        let mut charge = charge.ok_or_else(not_found)?;
        let last =
            charges::find_last_refund(tx, &company, &charge.id).await?.ok_or_else(not_found)?;
        let id = match last.state {
            RefundState::Stalled => {
                let now = app.clock.now();
                jobs::enqueue(tx, &company, charges::REFUND_JOB, &last.id, now).await?;
                last.id
            }
            state if state.has_failed() && charge.state == ChargeState::Reversed => {
                return Err(Error::invalid("the provider has returned the money"));
            }
            RefundState::Refused | RefundState::Failed => {
                charges::begin_refund(tx, &app, &mut charge, RefundTerms::VERIFICATION).await?.id
            }
            RefundState::Requested | RefundState::Pending | RefundState::Done => {
                return Err(Error::invalid("only a failed refund can be retried"));
            }
        };
        let refund = charges::find_listed_refund(tx, &company, &id).await?.ok_or_else(not_found)?;
        DataResponse::data(CardRefund::from(refund), "Refund requested successfully")
    })
    .await
}
