//! Simulates a policy with the installments and the outcomes of the last days. Changes nothing.

use std::collections::BTreeMap;

use super::{
    collect::price,
    decide::{AttemptOutcome, Due, Instrument, InstrumentId},
    policy::{InstrumentKind, Policy},
    replay::{Made, ONE, Rates, Replayed, replay},
    store::{self, OutcomeRow, PastInstallment, UserInstrument},
};
use crate::{
    lending::recollections::{CARD, DIRECT_DEBIT, InstallmentKey},
    money::prelude::*,
};

/// Maximum number of installments in a simulation: the latest ones.
const MAX_INSTALLMENTS: i64 = 10_000;

/// The simulated result of a policy for past installments.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "CollectionSimulation")]
pub struct Simulation {
    /// Start of the period in which the installments were due.
    from: Timestamp,
    /// End of the period.
    until: Timestamp,
    /// `true` if more installments were due: only the latest 10,000 are simulated.
    truncated: bool,
    /// By currency of the installments.
    results: Vec<CurrencyResult>,
    /// Counts of the actual attempts, from which the estimates are derived.
    rates: Vec<RateView>,
}

/// Installments in one currency.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "CollectionSimulationResult")]
pub struct CurrencyResult {
    currency: Currency,
    installments: i64,
    amount: Minor,
    /// The actual result.
    actual: Totals,
    /// The simulated result.
    simulated: Totals,
    /// Number of simulated attempts whose outcome is an estimate, rounded.
    estimated_attempts: i64,
}

/// Totals; those of a simulation are expected values, rounded.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "CollectionTotals")]
pub struct Totals {
    /// Installments that were collected automatically, at least in part.
    collected: i64,
    attempts: i64,
    /// The amount that was collected automatically.
    recovered: Minor,
    /// Fees in NGN at current prices, without those of failed attempts.
    fees: Minor,
}

/// Attempts of one kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "CollectionRate")]
pub struct RateView {
    payment_channel: &'static str,
    /// `false`: first attempts with an instrument for an installment; `true`: later ones.
    retry: bool,
    attempts: i64,
    succeeded: i64,
    /// The number of `succeeded` that took only a part of the amount.
    partial: i64,
}

/// Sums in one currency, in millionths where they are simulated.
#[derive(Default)]
struct Sums {
    installments: i64,
    amount: i64,
    actual: Totals,
    attempts: i64,
    estimated: i64,
    collected: i64,
    recovered: i128,
    fees: i64,
}

/// Simulates a policy of a company over the last days.
pub async fn simulate(
    tx: &mut Tx,
    company: &Company,
    policy: &Policy,
    days: i64,
    now: Timestamp,
) -> Result<Simulation> {
    let from = now.plus_seconds(-days * 24 * 3600);
    let mut installments =
        store::list_past(tx, &company.id, from, now, MAX_INSTALLMENTS + 1).await?;
    let most = usize::try_from(MAX_INSTALLMENTS).unwrap_or(usize::MAX);
    let truncated = installments.len() > most;
    installments.truncate(most);
    let mut attempts = BTreeMap::<_, Vec<Made>>::new();
    for row in store::list_outcomes(tx, &company.id, from, now).await? {
        let OutcomeRow { loan_id, taken, requested, history } = row;
        let key = (loan_id, history.key());
        let made = Made { attempt: history.attempt(), taken, requested };
        attempts.entry(key).or_default().push(made);
    }
    let fees = (price(tx, company, CARD).await?, price(tx, company, DIRECT_DEBIT).await?);
    let mut owned = BTreeMap::<_, Vec<UserInstrument>>::new();
    for one in store::list_instruments(tx, &company.id, from, now).await? {
        owned.entry(one.user_key.clone()).or_default().push(one);
    }
    let mut rates = rates(attempts.values());
    let keys = keys(&installments);
    let mut sums = BTreeMap::<Currency, Sums>::new();
    for (installment, key) in installments.iter().zip(keys) {
        let made = attempts.get(&(installment.loan_id.clone(), key));
        let made = made.map_or(&[][..], Vec::as_slice);
        let usable = owned.get(&installment.user_key).map_or(&[][..], Vec::as_slice);
        let usable = usable.iter().filter(|one| one.currency == installment.currency);
        let usable: Vec<Instrument> = usable.map(|one| one.instrument(fees)).collect();
        let offset_minutes = policy.offset_minutes(installment.country_code.as_deref());
        let due = Due { due_at: installment.due_at, offset_minutes };
        let replayed = replay(policy, due, made, &usable, rates, now);
        let sums = sums.entry(installment.currency.clone()).or_default();
        sums.add(installment.amount, made, &replayed, fees);
    }
    let results = sums.into_iter().map(|(currency, sums)| sums.result(currency)).collect();
    let views =
        [(CARD, InstrumentId::Card("".into())), (DIRECT_DEBIT, InstrumentId::Mandate("".into()))];
    let views = views.iter().flat_map(|(channel, id)| {
        [false, true].map(|retry| {
            let rate = *rates.of(id, retry);
            let (attempts, partial) = (rate.attempts, rate.partial);
            let succeeded = rate.whole + partial;
            RateView { payment_channel: channel, retry, attempts, succeeded, partial }
        })
    });
    let rates = views.collect();
    Ok(Simulation { from, until: now, truncated, results, rates })
}

/// Counts the attempts that have an outcome.
fn rates<'a>(attempts: impl Iterator<Item = &'a Vec<Made>>) -> Rates {
    let mut rates = Rates::default();
    for of_installment in attempts {
        for (n, made) in of_installment.iter().enumerate() {
            let Some(id) = &made.attempt.instrument else { continue };
            let is_same = |other: &Made| other.attempt.instrument.as_ref() == Some(id);
            let is_retry = of_installment[..n].iter().any(is_same);
            if made.attempt.outcome != AttemptOutcome::Pending {
                rates.of(id, is_retry).count(made);
            }
        }
    }
    rates
}

/// Returns the keys of installments: their ordinal among those of their loan and due date.
fn keys(installments: &[PastInstallment]) -> Vec<InstallmentKey> {
    let mut ordinals = BTreeMap::new();
    let key = |one: &PastInstallment| {
        let ordinal = ordinals.entry((one.loan_id.clone(), one.due_at)).or_insert(0);
        *ordinal += 1;
        (*ordinal, one.due_at)
    };
    installments.iter().map(key).collect()
}

impl UserInstrument {
    fn instrument(&self, (card_fee, debit_fee): (Minor, Minor)) -> Instrument {
        let id = self.id.as_str();
        let (kind, id, fee) = match (self.is_card, self.is_default) {
            (true, true) => (InstrumentKind::DefaultCard, InstrumentId::Card(id.into()), card_fee),
            (true, false) => (InstrumentKind::OtherCards, InstrumentId::Card(id.into()), card_fee),
            (false, _) => (InstrumentKind::Mandates, InstrumentId::Mandate(id.into()), debit_fee),
        };
        Instrument { kind, id, fee }
    }
}

impl Sums {
    fn add(
        &mut self,
        amount: Minor,
        made: &[Made],
        replayed: &Replayed,
        (card_fee, debit_fee): (Minor, Minor),
    ) {
        self.installments += 1;
        self.amount += amount.0;
        let repaid = made.iter().filter(|made| made.attempt.outcome == AttemptOutcome::Repaid);
        self.actual.attempts += i64::try_from(made.len()).unwrap_or(i64::MAX);
        self.actual.collected += i64::from(repaid.clone().next().is_some());
        for Made { attempt, taken, .. } in repaid {
            self.actual.recovered.0 += taken.0;
            self.actual.fees.0 += match &attempt.instrument {
                Some(InstrumentId::Mandate(_)) => debit_fee.0,
                _ => card_fee.0,
            };
        }
        self.attempts += replayed.attempts;
        self.estimated += replayed.estimated;
        self.collected += replayed.collected;
        self.recovered += i128::from(replayed.recovered) * i128::from(amount.0);
        self.fees += replayed.fees;
    }

    fn result(self, currency: Currency) -> CurrencyResult {
        let rounded = |millionths: i64| (millionths + ONE / 2) / ONE;
        let recovered = (self.recovered + i128::from(ONE / 2)) / i128::from(ONE);
        CurrencyResult {
            currency,
            installments: self.installments,
            amount: Minor(self.amount),
            actual: self.actual,
            simulated: Totals {
                collected: rounded(self.collected),
                attempts: rounded(self.attempts),
                recovered: Minor(i64::try_from(recovered).unwrap_or(i64::MAX)),
                fees: Minor(rounded(self.fees)),
            },
            estimated_attempts: rounded(self.estimated),
        }
    }
}
