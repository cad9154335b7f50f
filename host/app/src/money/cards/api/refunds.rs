//! Refunds of card verification charges, for operators.

use crate::{
    money::cards::{
        refund,
        store::{self, Refund},
    },
    operations::audit,
    state::prelude::*,
};
use tollhouse_platform::values::id::CompanyId;

choices! {
    Standing = &["requested", "pending", "done", "failed"];
}

fields! {
    /// Filter and cursor of card refunds.
    Query RefundFilter {
        status: OneOf<Standing>,
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
    refunds: Vec<Refund>,
    /// Cursor of the next page; `null` at the end.
    next: Option<String>,
}

pub async fn refunds(
    State(app): State<App>,
    query: Query<RefundFilter>,
) -> Result<DataResponse<CardRefunds>> {
    let RefundFilter { status, after, limit } = query.read()?;
    let read = async |tx: &mut Tx| store::list_refunds(tx, status.as_ref(), &after, limit).await;
    let refunds = app.store.select(read).await?;
    let is_full = i64::try_from(refunds.len()).is_ok_and(|read| read == limit);
    let next = refunds.last().filter(|_| is_full).map(|last| last.id.clone());
    DataResponse::data(CardRefunds { refunds, next }, "Refunds fetched successfully")
}

pub async fn retry_refund(
    State(app): State<App>,
    Path((company, refund)): Path<(CompanyId, String)>,
) -> Result<DataResponse<Refund>> {
    let db = app.store.clone();
    db.write(async move |tx| {
        let detail = json!({ "refund": refund });
        audit::record(tx, &app, &company, "card_refund.retry", detail).await?;
        let refund = refund::retry(tx, &app, &company, &refund).await?;
        DataResponse::data(refund, "Refund requested successfully")
    })
    .await
}
