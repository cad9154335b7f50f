//! Simulates a day of payments with scripted providers, and compares the router with an oracle that
//! knows them. `cargo test -p tollhouse-app routing:: -- --nocapture` prints the figures.

use super::{
    rank::{Candidate, Terms, rank},
    *,
};
use crate::tenants::{companies::routing::ChooseBy, providers::statistics::EndedCheckout};
use tollhouse_platform::random::Random;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=2;
const DAY_S: i64 = 24 * 3_600;
/// Time from opening a session to the outcome, and until hosts have read it.
const FEEDBACK_S: i64 = 90;
const TERMS: Terms =
    Terms { choose_by: ChooseBy::Score, success_value_percent: 20, explore_percent: 2 };

/// A provider as it is at a second of the day.
struct Scripted {
    success_rate: fn(i64) -> f64,
    /// Fees in percent.
    fees: fn(i64) -> f64,
    is_up: fn(i64) -> bool,
}

/// What happened to the payments of a day.
#[derive(Default)]
struct Outcome {
    /// Sums of expected values, in percent of one payment.
    achieved: f64,
    best: f64,
    of_provider: Vec<f64>,
    /// The chosen providers, by second.
    chosen: Vec<usize>,
    /// Payments for which at least one provider was tried without success.
    failed_over: u32,
    /// Payments that no provider took although one was up.
    lost: u32,
}

fn value(provider: &Scripted, at: i64) -> f64 {
    let success = if (provider.is_up)(at) { (provider.success_rate)(at) } else { 0.0 };
    success * (f64::from(TERMS.success_value_percent) - (provider.fees)(at))
}

/// Routes a payment per second.
fn simulate(providers: &[Scripted], seed: u64) -> Outcome {
    let random = Random::seeded(seed);
    let (statistics, start) = (Statistics::default(), Timestamp(1_700_000_000_000));
    let accounts: Vec<AccountId> = (0..providers.len()).map(|n| format!("{n}").into()).collect();
    let mut outcome = Outcome { of_provider: vec![0.0; providers.len()], ..Outcome::default() };
    let mut ends: std::collections::VecDeque<EndedCheckout> = std::collections::VecDeque::new();
    for at in 0..DAY_S {
        let now = start.plus_seconds(at);
        while ends.front().is_some_and(|end| end.ended_at.plus_seconds(FEEDBACK_S) <= now) {
            if let Some(end) = ends.pop_front() {
                statistics.record_end(&end);
            }
        }
        let magnitude = [10_000, 100_000, 1_000_000][index(random.up_to(2))];
        let minor = Minor(magnitude * (1 + random.up_to(8)));
        let amount = Money { minor, currency: "NGN".into() };
        let subject = Subject { amount: &amount, channel: None };
        let candidates: Vec<Candidate> = accounts
            .iter()
            .map(|account| statistics.estimate(account, subject, now))
            .map(|estimate| Candidate { weight: 1, estimate })
            .collect();
        let ranking = rank(TERMS, &candidates, |most| random.up_to(most));
        // The router tries the next provider after one that certainly opened no session.
        let mut taken = None;
        for (n, at_provider) in ranking.order.iter().enumerate() {
            let is_up = (providers[*at_provider].is_up)(at);
            let took = Duration::from_millis(300);
            statistics.record_session(&accounts[*at_provider], is_up, took, now);
            if is_up {
                outcome.failed_over += u32::from(n > 0);
                taken = Some(*at_provider);
                break;
            }
        }
        let is_any_up = providers.iter().any(|provider| (provider.is_up)(at));
        outcome.lost += u32::from(taken.is_none() && is_any_up);
        outcome.best += providers.iter().map(|one| value(one, at)).fold(0.0, f64::max);
        for (sum, provider) in outcome.of_provider.iter_mut().zip(providers) {
            *sum += value(provider, at);
        }
        outcome.chosen.push(taken.unwrap_or(usize::MAX));
        let Some(taken) = taken else { continue };
        let provider = &providers[taken];
        outcome.achieved += value(provider, at);
        let drawn = f64::from(i32::try_from(random.up_to(999_999)).unwrap_or(0));
        let succeeds = drawn < 1_000_000.0 * (provider.success_rate)(at);
        #[expect(clippy::cast_possible_truncation, reason = "fees are below the amount")]
        #[expect(clippy::cast_precision_loss, reason = "amounts are below 2^53")]
        let fees = Minor((minor.0 as f64 * (provider.fees)(at) / 100.0) as i64);
        ends.push_back(EndedCheckout {
            account_id: accounts[taken].clone(),
            channel: "card".to_owned(),
            taken: succeeds.then(|| (amount.clone(), Some(fees))),
            ended_at: now,
        });
    }
    outcome
}

/// Returns the loss against the oracle, in percent of what the oracle achieves.
fn regret(outcome: &Outcome) -> f64 {
    100.0 * (1.0 - outcome.achieved / outcome.best)
}

fn index(number: i64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

fn hour(at: i64) -> i64 {
    at / 3_600
}

#[test]
fn the_router_follows_success_rates_and_fees_that_change() {
    let providers = [
        // Good in the morning, worse from hour to hour.
        Scripted {
            success_rate: |at| 0.95 - 0.015 * f64::from(i32::try_from(hour(at)).unwrap_or(0)),
            fees: |_| 1.5,
            is_up: |_| true,
        },
        // Becomes expensive at noon.
        Scripted {
            success_rate: |_| 0.88,
            fees: |at| if hour(at) < 12 { 1.4 } else { 3.9 },
            is_up: |_| true,
        },
        Scripted { success_rate: |_| 0.80, fees: |_| 1.0, is_up: |_| true },
    ];
    for seed in SEEDS {
        let outcome = simulate(&providers, seed);
        let best_alone = outcome.of_provider.iter().copied().fold(0.0, f64::max);
        let alone = 100.0 * (1.0 - best_alone / outcome.best);
        println!(
            "drift, seed {seed}: regret {:.2} %, best provider alone {alone:.2} %",
            regret(&outcome)
        );
        assert!(regret(&outcome) < alone, "worse than one provider alone");
        assert!(regret(&outcome) < 3.0);
    }
}

#[test]
fn the_router_leaves_a_provider_that_is_down_and_comes_back() {
    const OUTAGE: std::ops::Range<i64> = 8 * 3_600..9 * 3_600;
    let providers = [
        Scripted { success_rate: |_| 0.95, fees: |_| 1.5, is_up: |at| !OUTAGE.contains(&at) },
        Scripted { success_rate: |_| 0.88, fees: |_| 1.5, is_up: |_| true },
    ];
    for seed in SEEDS {
        let outcome = simulate(&providers, seed);
        let share_of_first = |from: i64, until: i64| {
            let chosen = &outcome.chosen[index(from)..index(until)];
            let first = chosen.iter().filter(|chosen| **chosen == 0).count();
            100 * first / chosen.len()
        };
        let back = (OUTAGE.end..DAY_S).find(|at| share_of_first(*at, at + 60) > 90);
        let back_s = back.map_or(DAY_S, |at| at - OUTAGE.end);
        println!(
            "outage, seed {seed}: regret {:.2} %, {} payments failed over, back after {back_s} s",
            regret(&outcome),
            outcome.failed_over
        );
        assert_eq!(outcome.lost, 0, "every payment was taken");
        // It is abandoned after three failures, and tried again whenever these have expired.
        assert!(outcome.failed_over < 150, "{} of 3,600", outcome.failed_over);
        assert!(back_s < 900);
        assert!(regret(&outcome) < 3.0);
    }
}

#[test]
fn the_router_leaves_a_provider_whose_payments_fail() {
    const BAD: std::ops::Range<i64> = 8 * 3_600..12 * 3_600;
    let providers = [
        Scripted {
            success_rate: |at| if BAD.contains(&at) { 0.2 } else { 0.95 },
            fees: |_| 1.5,
            is_up: |_| true,
        },
        Scripted { success_rate: |_| 0.85, fees: |_| 1.5, is_up: |_| true },
    ];
    for seed in SEEDS {
        let outcome = simulate(&providers, seed);
        let left = outcome.chosen[index(BAD.start)..]
            .windows(60)
            .position(|minute| minute.iter().filter(|chosen| **chosen == 0).count() < 6);
        let left_s = left.unwrap_or(usize::MAX);
        println!("failures, seed {seed}: regret {:.2} %, left after {left_s} s", regret(&outcome));
        assert!(left_s < 900);
        assert!(regret(&outcome) < 5.0);
    }
}

#[test]
fn a_first_payment_is_routed_without_statistics() {
    let unknown = Statistics::default();
    let amount = Money { minor: Minor(100_000), currency: "NGN".into() };
    let subject = Subject { amount: &amount, channel: Some("card") };
    let estimate = unknown.estimate(&"a".into(), subject, Timestamp(0));
    let candidates = [Candidate { weight: 1, estimate }; 3];
    let ranking = rank(TERMS, &candidates, |most| most);
    assert_eq!((&*ranking.order, ranking.reason), (&[0, 1, 2][..], Reason::Score));
}
