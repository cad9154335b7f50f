//! Charges: the state transitions and provider queries of payments, cards and recollections.
//!
//! `decide_transition`, `is_ours` and `next_check` are pure and tested as tables.

mod lease;
mod store;

pub use self::lease::{Lease, Leased, LeasedTable};
use super::prelude::*;
use tollhouse_platform::store::Type;
use tollhouse_plugins::Credentials;

/// The conflict message while another request with the same reference calls the provider.
pub const IN_PROGRESS: &str = "another request with this reference is in progress";

/// The key under which provider metadata names the owning record.
pub const METADATA_KEY: &str = "tollhouse_payment";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PaymentStatus")]
pub enum Status {
    #[default]
    Pending,
    Success,
    Failed,
    Refunded,
}

/// The history of a request to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// No earlier request: an error without an effect proves that nothing was done.
    First,
    /// An earlier request may have had an effect.
    Retry,
}

/// The effect of a provider's status on a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// No effect, and no later status is expected.
    Unchanged,
    StillPending,
    Succeeded,
    Failed,
    /// The provider returned the money of a successful charge.
    Reversed,
    /// The charge differs from the requested one and is not a success.
    Mismatch(&'static str),
}

/// Decides the transition. A success can only be reversed; a failure may still become a success.
pub fn decide_transition(status: Status, expected: &Money, seen: &ProviderPayment) -> Transition {
    match (status, seen.status) {
        (Status::Pending | Status::Failed, PaymentStatus::Success) => compare(expected, seen),
        (Status::Pending, PaymentStatus::Pending) => Transition::StillPending,
        (Status::Pending, PaymentStatus::Failed | PaymentStatus::Reversed) => Transition::Failed,
        (Status::Success, PaymentStatus::Reversed) => Transition::Reversed,
        _ => Transition::Unchanged,
    }
}

/// Compares the charge with the amounts that the provider reports as requested and as taken. The
/// amount taken may be higher, because the customer may bear the fees, but never lower.
fn compare(expected: &Money, seen: &ProviderPayment) -> Transition {
    let requested = seen.requested.as_ref().unwrap_or(&seen.amount);
    if requested.currency != expected.currency || seen.amount.currency != expected.currency {
        Transition::Mismatch("currency mismatch")
    } else if requested.minor != expected.minor || seen.amount.minor < expected.minor {
        Transition::Mismatch("amount mismatch")
    } else {
        Transition::Succeeded
    }
}

/// Returns whether a provider's charge belongs to `payment_id`, as its reference may be another
/// system's: metadata decides, else `kept`, whether the provider opened a session under it.
pub fn is_ours(payment_id: &str, kept: bool, seen: &ProviderPayment) -> bool {
    let metadata = seen.metadata.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let named = metadata.as_ref().and_then(|metadata: &Value| metadata[METADATA_KEY].as_str());
    named.map_or(kept, |named| named == payment_id)
}

/// The part of the provider fee that the customer did not pay on top, so that the company bears it.
pub fn fees(seen: &ProviderPayment) -> Minor {
    let requested = seen.requested.as_ref().unwrap_or(&seen.amount);
    let on_top = (seen.amount.minor.0 - requested.minor.0).max(0);
    Minor((seen.fees.unwrap_or_default().0 - on_top).max(0))
}

/// Returns the next scheduled check: 1, 5, 15 and 60 minutes after creation, then hourly up to 72
/// hours; for a failed charge, whose session may still be paid, after 1, 24 and 72 hours.
pub fn next_check(status: Status, created_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 3_600;
    let hourly = (1..=72).map(|n| n * HOUR);
    let schedule: Vec<i64> = match status {
        Status::Pending => [MINUTE, 5 * MINUTE, 15 * MINUTE].into_iter().chain(hourly).collect(),
        Status::Failed => vec![HOUR, 24 * HOUR, 72 * HOUR],
        Status::Success | Status::Refunded => vec![],
    };
    schedule.into_iter().map(|after| created_at.plus_seconds(after)).find(|at| *at > now)
}

/// A provider, with the credentials under which a charge was created.
pub struct ChargeVerifier {
    pub provider: Provider,
    pub credentials: Credentials,
}

impl ChargeVerifier {
    /// 400 if the provider or the account is no longer configured.
    pub async fn open(
        app: &App,
        company_id: &CompanyId,
        provider: &str,
        account_id: &AccountId,
    ) -> Result<ChargeVerifier> {
        let no_key = || Error::invalid("payment service key not found");
        let provider = app.plugins.provider(provider, company_id)?;
        let account =
            app.store.select(async |tx| providers::find_by_id(tx, account_id).await).await?;
        let credentials = account.ok_or_else(no_key)?.open_credentials(app)?;
        Ok(ChargeVerifier { provider, credentials })
    }

    /// Returns the provider's charge with this reference, if it exists. The result has that
    /// reference, even if the plugin returned another one.
    pub async fn fetch(&self, service_ref: &str) -> Result<Option<ProviderPayment>> {
        match self.provider.verify(&self.credentials, service_ref).await {
            Ok(seen) => Ok(Some(ProviderPayment { service_ref: service_ref.to_owned(), ..seen })),
            Err(error) if error.fault.category == FaultCategory::NotFound => Ok(None),
            Err(error) => Err(error.into_error(&self.provider.manifest().name)),
        }
    }
}

/// Returns whether the provider rejected the request as invalid, without an effect.
pub fn is_invalid(error: &CallError) -> bool {
    error.fault.category == FaultCategory::Invalid && error.certainty == Certainty::NotDone
}

/// The client's error for a charge that could not be started. Repeats only names in `fields`.
pub fn client_error(error: CallError, provider: &str, fields: &[&str]) -> Error {
    if !is_invalid(&error) {
        return error.into_error(provider);
    }
    match error.fault.details.iter().find(|(name, _)| name == "field") {
        Some((_, field)) if fields.contains(&&**field) => {
            Error::Invalid(format!("the {field} field must be one that {provider} accepts"))
        }
        _ => Error::Invalid(format!("{provider} does not accept this payment")),
    }
}

/// Maximum number of consecutive failures of a job without a later schedule, about two days.
pub const MAX_FAILURES: i64 = 100;

/// Retries a failed job that has no scheduled check left, up to `MAX_FAILURES` times.
pub fn retry_or_give_up(job: &Job, error: Error) -> Result<JobResult> {
    if job.failures < MAX_FAILURES {
        return Err(error);
    }
    let (kind, subject, error) = (&job.kind, &job.subject, error.chain());
    tracing::error!(
        kind,
        subject,
        error,
        "charge could not be verified with the provider; giving up"
    );
    Ok(JobResult::Done)
}

/// Returns the provider's response without the instrument's token.
pub fn without_token(seen: &ProviderPayment) -> String {
    match &seen.instrument {
        Some(instrument) if !instrument.token.is_empty() => {
            seen.raw.replace(&instrument.token, "[token]")
        }
        _ => seen.raw.clone(),
    }
}

/// Raises an operator alarm about a charge that differs from the requested one.
pub fn alarm(
    app: &App,
    (company, subject, id): ReferenceOwner<'_>,
    expected: &Money,
    seen: &ProviderPayment,
    what: &'static str,
) {
    app.metrics.count_alarm(what);
    tracing::error!(
        alarm = what,
        company,
        subject,
        id,
        asked_minor = expected.minor.0,
        asked_currency = expected.currency.as_str(),
        seen_minor = seen.amount.minor.0,
        seen_currency = seen.amount.currency.as_str(),
        "charge at the provider differs from the requested one"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(minor: i64, currency: &str) -> Money {
        Money { minor: Minor(minor), currency: currency.into() }
    }

    fn seen(status: PaymentStatus, amount: Money, requested: Option<Money>) -> ProviderPayment {
        ProviderPayment {
            status,
            service_ref: "r".into(),
            transaction_id: String::new(),
            amount,
            requested,
            fees: None,
            channel: String::new(),
            paid_at: None,
            message: String::new(),
            instrument: None,
            challenge_url: None,
            metadata: None,
            raw: String::new(),
        }
    }

    #[test]
    fn every_transition() {
        use PaymentStatus as Seen;
        for (status, reported, verdict) in [
            (Status::Pending, Seen::Pending, Transition::StillPending),
            (Status::Pending, Seen::Success, Transition::Succeeded),
            (Status::Pending, Seen::Failed, Transition::Failed),
            (Status::Pending, Seen::Reversed, Transition::Failed),
            (Status::Success, Seen::Pending, Transition::Unchanged),
            (Status::Success, Seen::Success, Transition::Unchanged),
            (Status::Success, Seen::Failed, Transition::Unchanged),
            (Status::Success, Seen::Reversed, Transition::Reversed),
            (Status::Failed, Seen::Pending, Transition::Unchanged),
            (Status::Failed, Seen::Success, Transition::Succeeded),
            (Status::Failed, Seen::Failed, Transition::Unchanged),
            (Status::Failed, Seen::Reversed, Transition::Unchanged),
            (Status::Refunded, Seen::Pending, Transition::Unchanged),
            (Status::Refunded, Seen::Success, Transition::Unchanged),
            (Status::Refunded, Seen::Failed, Transition::Unchanged),
            (Status::Refunded, Seen::Reversed, Transition::Unchanged),
        ] {
            let expected = money(500, "NGN");
            let judged =
                decide_transition(status, &expected, &seen(reported, expected.clone(), None));
            assert_eq!(judged, verdict, "{status:?}, provider: {reported:?}");
        }
    }

    #[test]
    fn a_success_needs_the_requested_amount_and_currency() {
        const AMOUNT: Transition = Transition::Mismatch("amount mismatch");
        const CURRENCY: Transition = Transition::Mismatch("currency mismatch");
        for (amount, requested, verdict) in [
            (money(500, "NGN"), None, Transition::Succeeded),
            (money(499, "NGN"), None, AMOUNT),
            (money(501, "NGN"), None, AMOUNT),
            (money(500, "USD"), None, CURRENCY),
            (money(600, "NGN"), Some(money(500, "NGN")), Transition::Succeeded),
            (money(500, "NGN"), Some(money(400, "NGN")), AMOUNT),
            (money(500, "NGN"), Some(money(500, "NGN")), Transition::Succeeded),
            // The amount taken must match too, whatever amount was requested.
            (money(499, "NGN"), Some(money(500, "NGN")), AMOUNT),
            (money(0, "NGN"), Some(money(500, "NGN")), AMOUNT),
            (money(499, "NGN"), Some(money(499, "NGN")), AMOUNT),
            (money(600, "NGN"), Some(money(501, "NGN")), AMOUNT),
            (money(600, "USD"), Some(money(500, "NGN")), CURRENCY),
            (money(600, "NGN"), Some(money(500, "USD")), CURRENCY),
            (money(500, "USD"), Some(money(500, "USD")), CURRENCY),
        ] {
            let seen = seen(PaymentStatus::Success, amount, requested);
            assert_eq!(
                decide_transition(Status::Pending, &money(500, "NGN"), &seen),
                verdict,
                "{seen:?}"
            );
        }
    }

    #[test]
    fn fees_paid_by_the_customer_are_not_borne_by_the_company() {
        for (amount, requested, fees, borne) in [
            (500, None, None, 0),
            (500, None, Some(8), 8),
            (500, Some(500), Some(8), 8),
            (508, Some(500), Some(8), 0),
            (505, Some(500), Some(8), 3),
            (600, Some(500), Some(8), 0),
        ] {
            let requested = requested.map(|minor| money(minor, "NGN"));
            let mut seen = seen(PaymentStatus::Success, money(amount, "NGN"), requested);
            seen.fees = fees.map(Minor);
            assert_eq!(super::fees(&seen), Minor(borne), "{seen:?}");
        }
    }

    #[test]
    fn a_charge_is_matched_by_its_metadata_or_its_session() {
        let named = |id: &str| Some(format!(r#"{{"tollhouse_payment":"{id}","order":1}}"#));
        for (metadata, kept, ours) in [
            (named("p1"), false, true),
            (named("p1"), true, true),
            (named("p2"), true, false),
            (Some(r#"{"order":1}"#.to_owned()), true, true),
            (Some(r#"{"order":1}"#.to_owned()), false, false),
            (Some("no JSON".to_owned()), false, false),
            (None, true, true),
            (None, false, false),
        ] {
            let mut seen = seen(PaymentStatus::Success, money(500, "NGN"), None);
            seen.metadata = metadata;
            assert_eq!(is_ours("p1", kept, &seen), ours, "{:?}, kept: {kept}", seen.metadata);
        }
    }

    proptest::proptest! {
        /// In any order of statuses, a payment succeeds and is refunded at most once.
        #[test]
        fn nothing_moves_back(statuses in proptest::collection::vec(0..4_usize, 0..30)) {
            use PaymentStatus as Seen;
            let expected = money(500, "NGN");
            let (mut status, mut succeeded, mut reversed) = (Status::Pending, 0, 0);
            for index in statuses {
                let reported = [Seen::Pending, Seen::Success, Seen::Failed, Seen::Reversed][index];
                let before = status;
                let seen = seen(reported, expected.clone(), None);
                status = match decide_transition(status, &expected, &seen) {
                    Transition::Succeeded => { succeeded += 1; Status::Success }
                    Transition::Failed => Status::Failed,
                    Transition::Reversed => { reversed += 1; Status::Refunded }
                    _ => status,
                };
                let legal = before == status || matches!(
                    (before, status),
                    (Status::Pending, Status::Success | Status::Failed)
                        | (Status::Failed, Status::Success)
                        | (Status::Success, Status::Refunded)
                );
                proptest::prop_assert!(legal, "{:?} -> {:?}", before, status);
            }
            proptest::prop_assert!(succeeded <= 1 && reversed <= succeeded);
        }
    }

    #[test]
    fn checks_become_rarer_and_end_after_72_hours() {
        let made = Timestamp(0);
        let minutes = |status, now: i64| {
            let next = next_check(status, made, made.plus_seconds(now * 60));
            next.map(|at| at.unix_seconds() / 60)
        };
        for (status, now, next) in [
            (Status::Pending, 0, Some(1)),
            (Status::Pending, 1, Some(5)),
            (Status::Pending, 5, Some(15)),
            (Status::Pending, 15, Some(60)),
            (Status::Pending, 60, Some(120)),
            (Status::Pending, 61, Some(120)),
            (Status::Pending, 71 * 60, Some(72 * 60)),
            (Status::Pending, 72 * 60, None),
            (Status::Failed, 5, Some(60)),
            (Status::Failed, 60, Some(24 * 60)),
            (Status::Failed, 24 * 60, Some(72 * 60)),
            (Status::Failed, 72 * 60, None),
            (Status::Success, 0, None),
            (Status::Refunded, 0, None),
        ] {
            assert_eq!(minutes(status, now), next, "{status:?} after {now} minutes");
        }
    }
}
