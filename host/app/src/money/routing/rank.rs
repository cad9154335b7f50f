//! The order in which the providers of a route are tried. Pure: the caller draws random numbers.

use crate::{
    money::charges::choice::Reason,
    tenants::{companies::routing::ChooseBy, providers::statistics::Estimate},
};

/// The share of the expected value that is lost per second that opening a session takes.
const LOSS_PER_SECOND: f64 = 0.01;

/// A provider that can take the checkout.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub weight: u32,
    pub estimate: Estimate,
}

/// How a company weighs success against fees, and how often it explores.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub choose_by: ChooseBy,
    pub success_value_percent: u32,
    pub explore_percent: u32,
}

/// Candidates by their positions, in the order in which they are tried.
#[derive(Debug, PartialEq)]
pub struct Ranking {
    pub order: Vec<usize>,
    pub reason: Reason,
    /// The score of each candidate, by its position.
    pub scores: Vec<f64>,
}

/// Ranks candidates. `draw(n)` returns a uniform integer from 0 to `n`, both included.
pub fn rank(terms: Terms, candidates: &[Candidate], mut draw: impl FnMut(i64) -> i64) -> Ranking {
    let scores = score(terms, candidates);
    let is_down = |at: &usize| candidates[*at].estimate.is_down;
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    let mut reason = match terms.choose_by {
        ChooseBy::Order => Reason::Order,
        ChooseBy::Score => {
            order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
            Reason::Score
        }
        ChooseBy::Weight => {
            order.sort_by_key(|at| std::cmp::Reverse(candidates[*at].weight));
            bring_drawn_to_front(&mut order, candidates, &mut draw);
            Reason::Weight
        }
    };
    // The sort is stable: it only moves providers that are down to the end.
    order.sort_by_key(is_down);
    let others = order.iter().skip(1).filter(|at| !is_down(at)).count();
    if candidates.len() == 1 {
        reason = Reason::Only;
    } else if reason == Reason::Score && others > 0 && draw(99) < i64::from(terms.explore_percent) {
        let last = i64::try_from(others - 1).unwrap_or(i64::MAX);
        let drawn = usize::try_from(draw(last)).unwrap_or_default();
        let explored = order.remove(1 + drawn);
        order.insert(0, explored);
        reason = Reason::Explored;
    }
    Ranking { order, reason, scores }
}

/// The expected value of a payment at each candidate, in percent of its amount: the probability of
/// success, times what a success is worth after fees. Unknown fees count as the mean of the known.
fn score(terms: Terms, candidates: &[Candidate]) -> Vec<f64> {
    let known = || candidates.iter().filter_map(|candidate| candidate.estimate.fees_percent);
    let number = u32::try_from(known().count()).unwrap_or(u32::MAX);
    let mean = if number == 0 { 0.0 } else { known().sum::<f64>() / f64::from(number) };
    let value = f64::from(terms.success_value_percent);
    let score = |Candidate { estimate, .. }: &Candidate| {
        let waits = 1.0 - LOSS_PER_SECOND * estimate.latency_s.unwrap_or_default();
        let success = estimate.availability * estimate.success_rate * waits.max(0.0);
        success * (value - estimate.fees_percent.unwrap_or(mean))
    };
    candidates.iter().map(score).collect()
}

/// Draws one of the candidates that are not down, in proportion to their weights.
fn bring_drawn_to_front(
    order: &mut Vec<usize>,
    candidates: &[Candidate],
    draw: &mut impl FnMut(i64) -> i64,
) {
    let weight = |at: usize| {
        let Candidate { weight, estimate } = candidates[at];
        if estimate.is_down { 0 } else { i64::from(weight) }
    };
    let total: i64 = order.iter().map(|at| weight(*at)).sum();
    if total == 0 {
        return;
    }
    let mut left = draw(total - 1);
    let drawn = order.iter().position(|at| {
        left -= weight(*at);
        left < 0
    });
    if let Some(position) = drawn {
        let at = order.remove(position);
        order.insert(0, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Estimate = Estimate {
        availability: 1.0,
        latency_s: None,
        success_rate: 0.9,
        fees_percent: Some(1.5),
        is_down: false,
    };

    fn terms(choose_by: ChooseBy) -> Terms {
        Terms { choose_by, success_value_percent: 20, explore_percent: 2 }
    }

    fn ranked(terms: Terms, estimates: &[(u32, Estimate)], draws: &[i64]) -> Ranking {
        let candidates: Vec<Candidate> =
            estimates.iter().map(|&(weight, estimate)| Candidate { weight, estimate }).collect();
        let mut draws = draws.iter().copied();
        let ranking = rank(terms, &candidates, |most| {
            let drawn = draws.next().expect("another draw");
            assert!(drawn <= most);
            drawn
        });
        assert_eq!(draws.next(), None, "all draws are used");
        ranking
    }

    #[test]
    fn the_score_weighs_success_against_fees_and_latency() {
        let down = Estimate { is_down: true, ..UP };
        for (what, others, expected) in [
            ("fewer successes", Estimate { success_rate: 0.8, ..UP }, [0, 1]),
            ("more successes", Estimate { success_rate: 0.95, ..UP }, [1, 0]),
            ("cheaper", Estimate { fees_percent: Some(1.0), ..UP }, [1, 0]),
            (
                "slightly cheaper and worse",
                Estimate { fees_percent: Some(1.0), success_rate: 0.85, ..UP },
                [0, 1],
            ),
            (
                "free and worse",
                Estimate { fees_percent: Some(0.0), success_rate: 0.86, ..UP },
                [1, 0],
            ),
            ("slower", Estimate { latency_s: Some(2.0), ..UP }, [0, 1]),
            ("unavailable", Estimate { availability: 0.7, ..UP }, [0, 1]),
            ("unknown fees", Estimate { fees_percent: None, ..UP }, [0, 1]),
            ("down, but better", Estimate { success_rate: 1.0, ..down }, [0, 1]),
        ] {
            let ranking = if others.is_down {
                ranked(terms(ChooseBy::Score), &[(1, UP), (1, others)], &[])
            } else {
                ranked(terms(ChooseBy::Score), &[(1, UP), (1, others)], &[2])
            };
            assert_eq!(ranking.order, expected, "{what}");
            assert_eq!(ranking.reason, Reason::Score);
        }
    }

    #[test]
    fn exploration_takes_another_provider_that_is_not_down() {
        let down = Estimate { is_down: true, ..UP };
        let worse = Estimate { success_rate: 0.5, ..UP };
        let all = [(1, worse), (1, UP), (1, down), (1, worse)];
        for (draws, order, reason) in [
            (&[2][..], [1, 0, 3, 2], Reason::Score),
            (&[1, 0], [0, 1, 3, 2], Reason::Explored),
            (&[0, 1], [3, 1, 0, 2], Reason::Explored),
        ] {
            let ranking = ranked(terms(ChooseBy::Score), &all, draws);
            assert_eq!((&*ranking.order, ranking.reason), (&order[..], reason));
        }
        let only = ranked(terms(ChooseBy::Score), &[(1, down)], &[]);
        assert_eq!((&*only.order, only.reason), (&[0][..], Reason::Only));
    }

    #[test]
    fn weights_are_shares_and_a_provider_that_is_down_has_none() {
        let down = Estimate { is_down: true, ..UP };
        let all = [(1, UP), (3, UP), (0, UP), (5, down)];
        for (drawn, order) in [(0, [1, 0, 2, 3]), (2, [1, 0, 2, 3]), (3, [0, 1, 2, 3])] {
            let ranking = ranked(terms(ChooseBy::Weight), &all, &[drawn]);
            assert_eq!((&*ranking.order, ranking.reason), (&order[..], Reason::Weight));
        }
        let all_down = ranked(terms(ChooseBy::Weight), &[(1, down), (2, down)], &[]);
        assert_eq!(all_down.order, [1, 0]);
    }

    #[test]
    fn the_order_of_the_list_is_kept_except_for_providers_that_are_down() {
        let down = Estimate { is_down: true, ..UP };
        let better = Estimate { success_rate: 1.0, ..UP };
        for (estimates, order) in [([UP, better, UP], [0, 1, 2]), ([down, UP, better], [1, 2, 0])] {
            let all = estimates.map(|estimate| (1, estimate));
            let ranking = ranked(terms(ChooseBy::Order), &all, &[]);
            assert_eq!((&*ranking.order, ranking.reason), (&order[..], Reason::Order));
        }
    }
}
