//! The operator API for collection policies.

use std::collections::BTreeMap;

use super::{
    APPLY_JOB,
    policy::{Hours, INSTRUMENT_KINDS, InstrumentKind, Policy, Reminders, parse_offset},
    simulate::{self, Simulation},
    store::{self, AttemptView, PolicyVersion},
};
use crate::{
    lending::loans::{self, LoanId},
    money::prelude::*,
};

/// Maximum number of versions or attempts in a response.
const MAX_LISTED: i64 = 100;
const MAX_COUNTRIES: usize = 100;
/// Default period of a simulation in days.
const DEFAULT_DAYS: i64 = 30;

choices! {
    InstrumentChoice = INSTRUMENT_KINDS;
}

fields! {
    /// A collection policy.
    Body PolicyChange(body) {
        /// `false`: each installment is collected once, on its due date, as without a policy.
        /// Default: `true`.
        active: Option<Flag>,
        /// The instruments in the order in which they are charged. Each is charged at most once a
        /// day. After a permanent decline, an instrument is not charged again for the installment.
        instruments: SomeOf<InstrumentChoice> as Vec<InstrumentKind>
            => read_instruments(body, &instruments),
        /// The days on which charges are made, as numbers of days after the due date, ascending.
        #[schemars(extend("examples" = [[0, 1, 3, 7]]))]
        days: Wholes<0, 90> as Vec<i64> => match days.is_sorted_by(|a, b| a < b) {
            true => Ok(days),
            false => Err(body.must_be("days", "in ascending order without duplicates")),
        },
        /// The hours of the day in which charges are made, in the local time of the user's country.
        hours: Body<HoursChange>,
        /// The offset from UTC for users whose country is not in `utc_offsets`.
        #[schemars(extend("examples" = ["+01:00"]))]
        utc_offset: Text<6> => match parse_offset(&utc_offset) {
            Some(_) => Ok(utc_offset),
            None => Err(body.must_be("utc_offset", OFFSET)),
        },
        /// Offsets from UTC by the user's country, an ISO 3166 code of two capital letters.
        #[schemars(extend("examples" = [{ "NG": "+01:00", "KE": "+03:00" }]))]
        utc_offsets: Option<TextsByName> as BTreeMap<String, String>
            => read_offsets(body, utc_offsets.unwrap_or_default()),
        /// Maximum number of attempts per installment.
        max_attempts: Whole<1, 50>,
        /// Maximum fees per installment. Fees of failed attempts are refunded and do not count.
        /// Default: no maximum.
        max_fees: Option<NonNegative>,
        /// Lets providers that support partial debits debit a part of the installment: at least
        /// this amount, in the currency of the loan. Default: only the whole amount is debited.
        min_partial_debit: Option<Amount>,
        /// The events about installments that the company receives. Default: none.
        events: Option<Body<EventsChange>>,
    }
}

fields! {
    /// Events about an unpaid installment, each sent once.
    #[schemars(rename = "InstallmentEventsChange")]
    Body EventsChange {
        /// Sends `installment.upcoming` this number of days before the due date. Default: not sent.
        upcoming_days: Option<Whole<1, 30>>,
        /// Sends `installment.due` on the due date. Default: `false`.
        due: Option<Flag>,
        /// Sends `installment.overdue` this number of days after the due date. Default: not sent.
        overdue_days: Option<Whole<1, 90>>,
    }
}

fields! {
    /// Hours of a day.
    #[schemars(rename = "CollectionHoursChange")]
    Body HoursChange(body) {
        /// The first hour.
        from: Whole<0, 23>,
        /// The hour at which charging ends.
        to: Whole<1, 24> => match to > from {
            true => Ok(to),
            false => Err(body.must_be("to", "later than from")),
        },
    }
}

fields! {
    /// A policy to simulate.
    Body SimulationRequest {
        policy: Body<PolicyChange>,
        /// Number of past days whose due installments are simulated. Default: 30.
        days: Option<Whole<1, 90>>,
    }
}

const OFFSET: &str = "an offset from UTC like +01:00, of at most 14 hours";

fn read_instruments(body: &Fields, names: &[String]) -> Result<Vec<InstrumentKind>> {
    let kinds = names.iter().map(|name| name.parse::<InstrumentKind>());
    kinds.collect::<std::result::Result<_, _>>().map_err(|_| {
        let what = format!("any of {}", INSTRUMENT_KINDS.join(", "));
        body.must_be("instruments", &what)
    })
}

fn read_offsets(body: &Fields, sent: Vec<(String, String)>) -> Result<BTreeMap<String, String>> {
    let is_code = |code: &str| code.len() == 2 && code.bytes().all(|b| b.is_ascii_uppercase());
    if sent.len() > MAX_COUNTRIES || !sent.iter().all(|(code, _)| is_code(code)) {
        let what = "an object of at most 100 offsets by country, as a code of two capital letters";
        return Err(body.must_be("utc_offsets", what));
    }
    match sent.iter().find(|(_, offset)| parse_offset(offset).is_none()) {
        Some((code, _)) => Err(body.must_be(&format!("utc_offsets.{code}"), OFFSET)),
        None => Ok(sent.into_iter().collect()),
    }
}

impl PolicyChange {
    fn policy(self) -> Policy {
        Policy {
            active: self.active.unwrap_or(true),
            instruments: self.instruments,
            days: self.days,
            hours: Hours { from: self.hours.from, to: self.hours.to },
            utc_offset: self.utc_offset,
            utc_offsets: self.utc_offsets,
            max_attempts: self.max_attempts,
            max_fees: self.max_fees,
            min_partial_debit: self.min_partial_debit,
            events: self.events.map_or_else(Reminders::default, |events| Reminders {
                upcoming_days: events.upcoming_days,
                due: events.due.unwrap_or_default(),
                overdue_days: events.overdue_days,
            }),
        }
    }
}

/// Sets the policy of a company. This creates a new version, which applies to all its loans from
/// now on.
pub async fn put(
    State(app): State<App>,
    actor: Actor,
    Path(company): Path<CompanyId>,
    body: Body<PolicyChange>,
) -> Result<DataResponse<PolicyVersion>> {
    companies::find(&app, &company).await?;
    let policy = body.read()?.policy();
    let db = app.store.clone();
    db.write(async move |tx| {
        // Serializes the creation of versions.
        companies::lock(tx, &company).await?;
        let latest = store::find_latest(tx, &company).await?;
        let (now, version) = (app.clock.now(), latest.map_or(1, |latest| latest.version + 1));
        let changed_by = actor.name.clone();
        let new = PolicyVersion { version, policy: Json(policy), changed_by, created_at: now };
        store::insert_version(tx, &company, &new).await?;
        let detail = json!({ "version": version, "active": new.policy.active });
        audit::record(tx, &app, &actor, &company, "collection_policy.put", detail).await?;
        jobs::enqueue(tx, &company, APPLY_JOB, "", now).await?;
        DataResponse::data(new, "Collection policy saved successfully")
    })
    .await
}

/// Fetches the latest version of a company's policy; `null` if it never had one.
pub async fn fetch(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Option<PolicyVersion>>> {
    companies::find(&app, &company).await?;
    let read = async |tx: &mut Tx| store::find_latest(tx, &company).await;
    let found = app.store.select(read).await?;
    DataResponse::data(found, "Collection policy fetched successfully")
}

/// Simulates a policy with the installments and outcomes of the last days. Changes nothing.
pub async fn simulate(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    body: Body<SimulationRequest>,
) -> Result<DataResponse<Simulation>> {
    let company = companies::find(&app, &company).await?;
    let SimulationRequest { policy, days } = body.read()?;
    let (policy, now) = (policy.policy(), app.clock.now());
    let days = days.unwrap_or(DEFAULT_DAYS);
    let read = async |tx: &mut Tx| simulate::simulate(tx, &company, &policy, days, now).await;
    DataResponse::data(app.store.read(read).await?, "Collection policy simulated successfully")
}

/// Lists the latest 100 versions of a company's policy, newest first.
pub async fn versions(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Vec<PolicyVersion>>> {
    companies::find(&app, &company).await?;
    let read = async |tx: &mut Tx| store::list_versions(tx, &company, MAX_LISTED).await;
    DataResponse::data(app.store.select(read).await?, "Collection policies fetched successfully")
}

/// Lists the latest 100 attempts to collect the installments of a loan by a policy, newest first.
pub async fn attempts(
    State(app): State<App>,
    Path((company, loan)): Path<(CompanyId, LoanId)>,
) -> Result<DataResponse<Vec<AttemptView>>> {
    let read = async |tx: &mut Tx| -> Result<_> {
        let found = loans::find(tx, &company, &loan).await?;
        found.ok_or_else(|| Error::not_found("loan not found"))?;
        Ok(store::list_attempts(tx, &company, &loan, MAX_LISTED).await?)
    };
    DataResponse::data(app.store.read(read).await?, "Collection attempts fetched successfully")
}
