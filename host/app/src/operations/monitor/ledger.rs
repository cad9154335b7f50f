//! Ledger scan: checks, a part per poll, that each balance is the sum of its entries.
//!
//! A ledger is read in the order of ids, which have a resolution of one second and may be committed
//! out of order. So pages end [`MARGIN_SECONDS`] ago, where no transactions are added any more.
//! Younger ones are summed with the last page, in the snapshot that has the balances.

use std::collections::{BTreeMap, BTreeSet};

use super::store::{self, AccountSum, ScannedTransaction};
use crate::state::{metrics::seconds, prelude::*};
use tollhouse_platform::{
    random::id_lower_bound,
    store::{Error as StoreError, UnavailableReason},
};

/// Limits of one poll.
const MAX_TRANSACTIONS_PER_POLL: usize = 5_000;
const MAX_LEDGERS_PER_POLL: usize = 200;
/// Longer than a transaction plus the difference between the clocks of hosts.
const MARGIN_SECONDS: i64 = 120;

/// Sums by account and currency.
type Sums = BTreeMap<(String, Currency), i64>;

/// Progress and findings of a ledger scan.
#[derive(Default)]
pub struct LedgerScan {
    /// Company of the last ledger that was completed.
    last_completed: CompanyId,
    /// Ledger that takes more than one poll.
    open: Option<LedgerProgress>,
    wrong_balances: i64,
    /// Companies whose ledger last seemed wrong, and is too large to be summed in one snapshot.
    suspects: BTreeSet<CompanyId>,
}

/// A ledger that is being read.
#[derive(Clone, Default)]
struct LedgerProgress {
    company_id: CompanyId,
    /// Last ledger transaction that was read page by page.
    last_transaction: String,
    sums: Sums,
    /// `true` if the ledger is read in several snapshots.
    in_several_snapshots: bool,
}

impl LedgerScan {
    /// Checks a bounded part of the ledgers. The end of the scan publishes its results.
    pub async fn advance(&mut self, app: &App) -> Result<()> {
        let mut left = MAX_TRANSACTIONS_PER_POLL;
        let before = id_lower_bound(app.clock.now().plus_seconds(-MARGIN_SECONDS));
        for _ in 0..MAX_LEDGERS_PER_POLL {
            let read = async |tx: &mut Tx| self.read_next(tx, &before, left).await;
            let Some(read) = app.store.read(read).await? else {
                self.finish(app);
                return Ok(());
            };
            app.metrics.ledger_scan_transactions.inc_by(read.transactions.len() as u64);
            left = left.saturating_sub(read.transactions.len());
            self.check(app, read).await?;
            if left == 0 {
                break;
            }
        }
        self.publish(app, false);
        Ok(())
    }

    /// Reads the next part of the open ledger, from its last transaction, or of the next ledger.
    async fn read_next(
        &self,
        tx: &mut Tx,
        before: &str,
        most: usize,
    ) -> Result<Option<LedgerPart>> {
        let (company_id, read) = match &self.open {
            Some(open) => (open.company_id.clone(), &*open.last_transaction),
            None => match store::next_ledger(tx, &self.last_completed).await? {
                Some(company_id) => (company_id, ""),
                None => return Ok(None),
            },
        };
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let transactions = store::page(tx, &company_id, read, before, limit).await?;
        let is_last = transactions.len() < most;
        let end = match is_last {
            true => Some(LedgerEnd {
                balances: store::balances(tx, &company_id).await?,
                younger: store::sums(tx, &company_id, before).await?,
            }),
            false => None,
        };
        Ok(Some(LedgerPart { company_id, transactions, end }))
    }

    /// Checks a part of a ledger. A failure changes nothing, so the next poll reads the same part.
    async fn check(&mut self, app: &App, read: LedgerPart) -> Result<()> {
        let new = LedgerProgress { company_id: read.company_id, ..LedgerProgress::default() };
        let mut book = self.open.clone().unwrap_or(new);
        book.add(&read.transactions);
        match read.end {
            Some(end) => {
                let wrong = book.compare(app, end).await?;
                self.record(book.company_id, wrong);
                self.open = None;
            }
            None => self.open = Some(LedgerProgress { in_several_snapshots: true, ..book }),
        }
        Ok(())
    }

    /// Records the result of a ledger and continues with the next one.
    fn record(&mut self, company_id: CompanyId, wrong: Option<i64>) {
        self.wrong_balances += wrong.unwrap_or_default();
        self.last_completed.clone_from(&company_id);
        if wrong.is_some() {
            self.suspects.remove(&company_id);
        } else if self.suspects.insert(company_id) {
            let company = self.last_completed.as_str();
            tracing::error!(
                alarm = "ledger",
                company,
                "a ledger balance seems to differ from the sum of its entries, which are too many to recompute at once"
            );
        }
    }

    fn finish(&mut self, app: &App) {
        self.publish(app, true);
        app.metrics.ledger_scan_timestamp.set(seconds(app.clock.now()));
        *self = LedgerScan { suspects: std::mem::take(&mut self.suspects), ..Default::default() };
    }

    /// Publishes findings immediately. Only a complete scan lowers the counts of errors.
    fn publish(&self, app: &App, is_complete: bool) {
        let (gauge, found) = (&app.metrics.ledger_wrong_balances, self.wrong_balances);
        gauge.set(if is_complete { found } else { gauge.get().max(found) });
        app.metrics.ledger_suspect_companies.set(self.suspects.len() as i64);
    }
}

/// Part of a ledger in one snapshot.
struct LedgerPart {
    company_id: CompanyId,
    transactions: Vec<ScannedTransaction>,
    /// Set with the last page.
    end: Option<LedgerEnd>,
}

/// The end of a ledger.
struct LedgerEnd {
    balances: Vec<AccountSum>,
    /// Sums of entries that are too young for a page.
    younger: Vec<AccountSum>,
}

impl LedgerProgress {
    fn add(&mut self, transactions: &[ScannedTransaction]) {
        for transaction in transactions {
            let ScannedTransaction { id, debit, credit, currency, amount_minor } = transaction;
            for (account, amount) in [(debit, -amount_minor), (credit, *amount_minor)] {
                add(self.sums.entry((account.clone(), currency.clone())).or_default(), amount);
            }
            self.last_transaction.clone_from(id);
        }
    }

    /// Returns the number of balances that differ from their entries. After several snapshots, an
    /// entry by a host whose clock is far behind may be missing: a difference is then verified in
    /// one snapshot. `None` if that takes too long.
    async fn compare(&mut self, app: &App, end: LedgerEnd) -> Result<Option<i64>> {
        for (account, currency, minor) in end.younger {
            add(self.sums.entry((account, currency)).or_default(), minor);
        }
        let mut wrong = differences(&to_sums(end.balances), &self.sums);
        if !wrong.is_empty() && self.in_several_snapshots {
            let company_id = &self.company_id;
            let again = async |tx: &mut Tx| -> Result<_, StoreError> {
                let balances = store::balances(tx, company_id).await?;
                Ok((balances, store::sums(tx, company_id, "").await?))
            };
            let (balances, sums) = match app.store.read(again).await {
                Err(StoreError::Unavailable { reason: UnavailableReason::TimedOut, .. }) => {
                    return Ok(None);
                }
                again => again?,
            };
            wrong = differences(&to_sums(balances), &to_sums(sums));
        }
        for (account, currency) in &wrong {
            tracing::error!(
                alarm = "ledger",
                company = self.company_id.as_str(),
                account,
                currency = currency.as_str(),
                "a ledger balance differs from the sum of its entries"
            );
        }
        Ok(Some(wrong.len() as i64))
    }
}

/// Wraps: intermediate sums may overflow without an effect on the total.
fn add(sum: &mut i64, amount: i64) {
    *sum = sum.wrapping_add(amount);
}

fn to_sums(balances: Vec<AccountSum>) -> Sums {
    balances.into_iter().map(|(account, currency, minor)| ((account, currency), minor)).collect()
}

/// Returns the accounts that differ. A missing one counts as zero.
fn differences(a: &Sums, b: &Sums) -> Vec<(String, Currency)> {
    let of = |sums: &Sums, key: &(String, Currency)| sums.get(key).copied().unwrap_or_default();
    let mut keys: Vec<_> = a.keys().chain(b.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter().filter(|key| of(a, key) != of(b, key)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_balances_are_found() {
        let text = str::to_owned;
        let transaction = |id: &str, debit: &str, credit: &str, amount_minor| ScannedTransaction {
            id: text(id),
            debit: text(debit),
            credit: text(credit),
            currency: "NGN".into(),
            amount_minor,
        };
        let mut ledger = LedgerProgress::default();
        ledger.add(&[transaction("t1", "operator", "wallet", 5)]);
        ledger.add(&[transaction("t2", "wallet", "billing", 2)]);
        assert_eq!(ledger.last_transaction, "t2");
        let account = |name: &str| (text(name), Currency::from("NGN"));
        assert_eq!(ledger.sums[&account("wallet")], 3);
        let balances = [("billing", 2), ("operator", -5), ("wallet", 4), ("pending", 0)];
        let balances = balances.map(|(name, minor)| (text(name), "NGN".into(), minor));
        assert_eq!(differences(&to_sums(balances.into()), &ledger.sums), [account("wallet")]);
        assert_eq!(differences(&Sums::new(), &ledger.sums).len(), 3);
    }
}
