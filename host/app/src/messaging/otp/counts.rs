//! Counts of sent and verified codes, to detect SMS toll fraud: its codes are never verified.

use super::{WATCH_JOB, store};
use crate::{operations::operator_events, state::prelude::*};

/// Operator event: `{sent, verified, from, before}`.
const FEW_VERIFIED: &str = "otp.few_verified";
/// Length of a slot: codes are counted by the slot in which they were sent.
const SLOT_MS: i64 = 600_000;
/// Delay of the check after a slot, in which most of its codes can be verified.
const CHECK_DELAY_MS: i64 = 600_000;
const SLOTS_PER_CHECK: i64 = 6;

fn slot_of(at: Timestamp) -> Timestamp {
    Timestamp(at.0 - at.0.rem_euclid(SLOT_MS))
}

/// Counts a sent code, and schedules the check of its slot.
pub async fn count_sent(tx: &mut Tx, company_id: &CompanyId, now: Timestamp) -> Result<()> {
    let slot = slot_of(now);
    store::add_counts(tx, company_id, slot, [1, 0]).await?;
    let look_at = slot.plus_ms(SLOT_MS + CHECK_DELAY_MS);
    jobs::enqueue_once(tx, company_id, WATCH_JOB, &slot.0.to_string(), look_at).await?;
    Ok(())
}

/// Counts a verified code in the slot in which it was sent.
pub async fn count_verified(tx: &mut Tx, company_id: &CompanyId, sent_at: Timestamp) -> Result<()> {
    store::add_counts(tx, company_id, slot_of(sent_at), [0, 1]).await?;
    Ok(())
}

/// Checks the hour that ends with a slot. Emits one event an hour if few codes were verified.
pub async fn watch_job(app: App, job: Job) -> Result<JobResult> {
    let last = Timestamp(job.subject.parse().map_err(Error::internal)?);
    let db = app.store.clone();
    db.write(async move |tx| check_slots(tx, &app, &job.company_id, last).await).await?;
    Ok(JobResult::Done)
}

async fn check_slots(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    last: Timestamp,
) -> Result<()> {
    let alarm_sends = i64::from(app.settings.otp.otp_alarm_sends);
    let first = last.plus_ms(-SLOT_MS * (SLOTS_PER_CHECK - 1));
    let store::SlotCounts { sent, verified, alarms } =
        store::sum_counts(tx, company_id, first, last).await?;
    let few = verified * 100 < sent * i64::from(app.settings.otp.otp_alarm_percent);
    if alarm_sends == 0 || sent < alarm_sends || !few || alarms > 0 {
        return Ok(());
    }
    if store::insert_alarm(tx, company_id, last).await? {
        let data = json!({
            "sent": sent,
            "verified": verified,
            "from": first,
            "before": last.plus_ms(SLOT_MS),
        });
        operator_events::emit(tx, app, company_id, FEW_VERIFIED, data).await?;
    }
    Ok(())
}
