//! Adds the outcomes of the checkouts of all hosts to the statistics of this host.

use crate::{
    money::prelude::*,
    state::storage::{FromRow, params},
    tenants::providers::statistics::{EndedCheckout, Statistics},
};

/// Interval between reads.
const INTERVAL: Duration = Duration::from_secs(10);
/// Age at which an outcome is read, so that its transaction has been committed. An outcome that is
/// committed later is missed: the statistics are estimates.
const LAG_MS: i64 = 2_000;
/// How far back a host reads when it starts.
const FIRST_PERIOD_MS: i64 = 24 * 3_600 * 1_000;
/// Maximum number of successes and of failures per read. If there are more, the latest are read.
const MAX_CHECKOUTS: i64 = 20_000;

/// Reads until the host stops.
pub async fn learn_repeatedly(app: App) {
    loop {
        if let Err(error) = learn(&app).await {
            tracing::warn!(error = %error.chain(), "outcomes of checkouts could not be read");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Adds the checkouts that ended since the last call.
pub async fn learn(app: &App) -> Result<()> {
    let statistics = app.slot::<Statistics>();
    let until = app.clock.now().plus_ms(-LAG_MS);
    let from = statistics.read_until().unwrap_or_else(|| until.plus_ms(-FIRST_PERIOD_MS));
    let read = async |tx: &mut Tx| -> Result<_> {
        Ok((succeeded(tx, from, until).await?, failed(tx, from, until).await?))
    };
    let (succeeded, failed) = app.store.read(read).await?;
    let ended = succeeded.into_iter().chain(failed).map(EndedCheckout::from);
    statistics.record_ends(ended, until.max(from));
    Ok(())
}

/// Selects checkouts, except transfers that arrived without a request. Only payments have a channel
/// reported by the provider.
macro_rules! select_ended {
    ($ended_at:literal) => {
        concat!(
            "SELECT c.account_id, c.taken_minor, c.taken_currency, c.fees_minor,
                 COALESCE(p.payment_channel, CASE c.owner_kind WHEN 'card' THEN 'card' ELSE '' END)
                     AS channel, ",
            $ended_at,
            " AS ended_at
             FROM charges c LEFT JOIN payments p
                 ON c.owner_kind = 'payment' AND p.company_id = c.company_id AND p.id = c.owner_id
             WHERE c.method = 'checkout'
                 AND (c.reference_source <> 'provider' OR c.session_url IS NOT NULL)"
        )
    };
}

#[derive(FromRow)]
struct Row {
    account_id: AccountId,
    channel: String,
    taken_minor: Option<Minor>,
    taken_currency: Option<Currency>,
    fees_minor: Option<Minor>,
    ended_at: Timestamp,
}

impl From<Row> for EndedCheckout {
    fn from(row: Row) -> EndedCheckout {
        let Row { account_id, channel, taken_minor, taken_currency, fees_minor, ended_at } = row;
        let taken = taken_minor.zip(taken_currency);
        let taken = taken.map(|(minor, currency)| (Money { minor, currency }, fees_minor));
        EndedCheckout { account_id, channel, taken, ended_at }
    }
}

/// Returns the charges of checkouts that settled their owners after `from`, until `until`.
async fn succeeded(tx: &mut Tx, from: Timestamp, until: Timestamp) -> Result<Vec<Row>> {
    let rows = tx
        .sql(concat!(
            select_ended!("c.settled_at"),
            " AND c.settled_at IS NOT NULL AND c.settled_at > $1 AND c.settled_at <= $2
                 AND c.counts
             ORDER BY c.settled_at DESC LIMIT $3"
        ))
        .params(params![from, until, MAX_CHECKOUTS])
        .all();
    Ok(rows.await?)
}

/// Returns the charges of checkouts that failed after `from`, until `until`.
async fn failed(tx: &mut Tx, from: Timestamp, until: Timestamp) -> Result<Vec<Row>> {
    let rows = tx
        .sql(concat!(
            select_ended!("c.updated_at"),
            " AND c.state = 'failed' AND c.updated_at > $1 AND c.updated_at <= $2
             ORDER BY c.updated_at DESC LIMIT $3"
        ))
        .params(params![from, until, MAX_CHECKOUTS])
        .all();
    Ok(rows.await?)
}
