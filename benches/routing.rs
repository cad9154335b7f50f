//! The choice of one of ten providers, with its estimates.

use std::{hint::black_box, time::Duration};

use tollhouse_app::{
    money::routing::rank::{Candidate, Terms, rank},
    tenants::{
        companies::routing::ChooseBy,
        providers::{
            AccountId,
            statistics::{EndedCheckout, Statistics, Subject},
        },
    },
};
use tollhouse_platform::{
    clock::Timestamp,
    values::money::{Minor, Money},
};

use crate::{Bench, repeat};

const PROVIDERS: i64 = 10;
const TERMS: Terms =
    Terms { choose_by: ChooseBy::Score, success_value_percent: 20, explore_percent: 2 };

pub fn measure(bench: &mut Bench) {
    let (statistics, now) = (Statistics::default(), Timestamp(1_700_000_000_000));
    let accounts: Vec<AccountId> = (0..PROVIDERS).map(|n| format!("account-{n}").into()).collect();
    let amount = |minor| Money { minor: Minor(minor), currency: "NGN".into() };
    for (n, account) in (0..PROVIDERS).zip(&accounts) {
        for power in 0..12 {
            let taken = amount(10_000 << power);
            let fees = Minor(taken.minor.0 / (50 + n));
            statistics.record_session(account, true, Duration::from_millis(300), now);
            statistics.record_end(&EndedCheckout {
                account_id: account.clone(),
                channel: "card".to_owned(),
                taken: Some((taken, Some(fees))),
                ended_at: now,
            });
        }
    }
    bench.measure("routing/choose", async |iterations| {
        repeat(iterations, async || {
            let amount = amount(250_000);
            let subject = Subject { amount: &amount, channel: Some("card") };
            let candidates: Vec<Candidate> = accounts
                .iter()
                .map(|account| statistics.estimate(account, subject, now))
                .map(|estimate| Candidate { weight: 1, estimate })
                .collect();
            black_box(rank(TERMS, &candidates, |most| most));
        })
        .await
    });
}
