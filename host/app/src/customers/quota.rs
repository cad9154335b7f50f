//! Quotas of export files and their bytes: per company and in total, across all hosts.

use super::{
    export::{FILE_LIFETIME_SECONDS, REMOVE_JOB},
    store::exports::{self, ExportUsage},
};
use crate::state::{
    prelude::*,
    settings::{ExportLimits, Quota},
};

/// Maximum time for writing a file.
const MAX_WRITE_SECONDS: i64 = 3_600;
/// Bytes reserved beyond the need, so that reservations are rare.
const STEP_BYTES: i64 = 8 << 20;

/// `Retry-After` while the file to be removed first is still being written.
const WRITING_RETRY_SECONDS: u64 = 60;

#[derive(Clone)]
pub struct Reservation {
    company_id: CompanyId,
    name: String,
    removed_at: Timestamp,
    reserved: i64,
    written: i64,
}

impl Reservation {
    /// Reserves space for a new file and schedules its removal, in case this host crashes. 429 or
    /// 503 if there are too many files.
    pub async fn begin(app: &App, company_id: &CompanyId, name: &str) -> Result<Reservation> {
        let removed_at = app.clock.now().plus_seconds(FILE_LIFETIME_SECONDS + MAX_WRITE_SECONDS);
        let (company_id, name) = (company_id.to_owned(), name.to_owned());
        let new = Reservation { company_id, name, removed_at, reserved: 0, written: 0 };
        let host = app.clone();
        app.store
            .write(async move |tx| {
                let reserved = new.reserve(tx, &host, 0).await?;
                jobs::enqueue(tx, &new.company_id, REMOVE_JOB, &new.name, removed_at).await?;
                Ok(Reservation { reserved, ..new })
            })
            .await
    }

    /// Extends the reservation, if needed, before `bytes` more are written.
    pub async fn reserve_more(&mut self, app: &App, bytes: usize) -> Result<()> {
        let needed = self.written + i64::try_from(bytes).unwrap_or(i64::MAX);
        if needed > self.reserved {
            let (host, own) = (app.clone(), self.clone());
            let reserved =
                app.store.write(async move |tx| own.reserve(tx, &host, needed).await).await;
            self.reserved = reserved?;
        }
        self.written = needed;
        Ok(())
    }

    /// Reduces the reservation to the file's size and schedules the removal after the link expires.
    pub async fn finish(self, app: &App) -> Result<()> {
        let Reservation { company_id, name, written, .. } = self;
        let removed_at = app.clock.now().plus_seconds(FILE_LIFETIME_SECONDS);
        app.store
            .write(async move |tx| {
                exports::upsert(tx, &company_id, &name, written, removed_at).await?;
                Ok(jobs::enqueue(tx, &company_id, REMOVE_JOB, &name, removed_at).await?)
            })
            .await
    }

    /// Reserves space for `needed` bytes, and returns the number of bytes reserved.
    async fn reserve(&self, tx: &mut Tx, app: &App, needed: i64) -> Result<i64> {
        let limits = app.settings.service.exports();
        exports::lock(tx).await?;
        let company = exports::usage(tx, Some(&self.company_id), &self.name).await?;
        let all = exports::usage(tx, None, &self.name).await?;
        let reserved = limits.bytes_to_reserve(needed, company, all, app.clock.now())?;
        exports::upsert(tx, &self.company_id, &self.name, reserved, self.removed_at).await?;
        Ok(reserved)
    }
}

impl ExportLimits {
    /// Returns the bytes to reserve for a file that needs `needed`, given the other files.
    fn bytes_to_reserve(
        &self,
        needed: i64,
        company: ExportUsage,
        all: ExportUsage,
        now: Timestamp,
    ) -> Result<i64> {
        let most = self.company.bytes.min(self.all.bytes);
        if needed > most {
            let mib = most >> 20;
            return Err(Error::invalid(format!(
                "the limit field must be lower, or the filters narrower: an export has at most {mib} MiB"
            )));
        }
        let left = |quota: Quota, used: ExportUsage| match used.files < quota.files {
            true => quota.bytes - used.bytes,
            false => -1,
        };
        let (of_company, of_all) = (left(self.company, company), left(self.all, all));
        if needed > of_company {
            let message = "the company's export quota is exhausted";
            let retry_after_s = retry_after_s(company, now);
            return Err(Error::QuotaExceeded { message, retry_after_s });
        }
        if needed > of_all {
            let message = "export storage is full";
            return Err(Error::StorageFull { message, retry_after_s: retry_after_s(all, now) });
        }
        Ok(needed.saturating_add(STEP_BYTES).min(of_company).min(of_all))
    }
}

/// Returns the seconds until the first file is removed. While that file is written, the time is
/// unknown: its reservation then exceeds the lifetime of finished files.
fn retry_after_s(used: ExportUsage, now: Timestamp) -> u64 {
    let left_ms = used.removed_at.map_or(0, |at| at.0 - now.0);
    if left_ms > FILE_LIFETIME_SECONDS * 1_000 {
        return WRITING_RETRY_SECONDS;
    }
    (left_ms.div_euclid(1_000) + 1).max(1).unsigned_abs()
}

pub async fn release(app: &App, company_id: &CompanyId, name: &str) -> Result<()> {
    let (company_id, name) = (company_id.to_owned(), name.to_owned());
    app.store.write(async move |tx| Ok(exports::delete(tx, &company_id, &name).await?)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;

    fn used(files: i64, mib: i64) -> ExportUsage {
        ExportUsage { files, bytes: mib * MIB, removed_at: Some(Timestamp(60_500)) }
    }

    #[test]
    fn grants_stay_within_both_quotas() {
        let quota = |files, mib| Quota { files, bytes: mib * MIB };
        let limits = ExportLimits { company: quota(2, 100), all: quota(3, 120) };
        for (needed, company, all, granted) in [
            (0, used(0, 0), used(0, 0), Ok(8)),
            (20, used(1, 10), used(1, 10), Ok(28)),
            (20, used(1, 75), used(1, 75), Ok(25)),
            (20, used(0, 0), used(1, 95), Ok(25)),
            (25, used(1, 75), used(1, 75), Ok(25)),
            (26, used(1, 75), used(1, 75), Err("the company's export quota is exhausted")),
            (26, used(0, 0), used(1, 95), Err("export storage is full")),
            (0, used(2, 0), used(2, 0), Err("the company's export quota is exhausted")),
            (0, used(0, 0), used(3, 0), Err("export storage is full")),
            (101, used(0, 0), used(0, 0), Err("the limit field must be lower")),
        ] {
            let given = limits.bytes_to_reserve(needed * MIB, company, all, Timestamp(0));
            match granted {
                Ok(mib) => assert_eq!(given.unwrap(), mib * MIB, "{needed} {company:?} {all:?}"),
                Err(part) => {
                    let refused = given.unwrap_err().to_string();
                    assert!(refused.starts_with(part), "{needed}: {refused}");
                }
            }
        }
    }

    #[test]
    fn retry_after_is_the_time_to_removal_or_a_minute_while_writing() {
        for (left_ms, seconds) in [
            (-40_000, 1),
            (0, 1),
            (60_500, 61),
            (FILE_LIFETIME_SECONDS * 1_000, FILE_LIFETIME_SECONDS.unsigned_abs() + 1),
            (FILE_LIFETIME_SECONDS * 1_000 + 1, WRITING_RETRY_SECONDS),
            (76 * 60_000, WRITING_RETRY_SECONDS),
        ] {
            let first = ExportUsage { files: 1, bytes: 0, removed_at: Some(Timestamp(left_ms)) };
            assert_eq!(retry_after_s(first, Timestamp(0)), seconds, "{left_ms}");
        }
    }
}
