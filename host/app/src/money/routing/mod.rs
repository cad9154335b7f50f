//! Routing: the choice of a provider for each payment of a company with a routing policy, unless
//! the request names one.
//!
//! A rule of the policy, or its route for all others, lists providers. Those that cannot take the
//! payment are excluded, the others ranked (`rank`) by the statistics of this host. If a provider
//! certainly did not open a session, the next one is tried. After an unknown outcome a payment
//! stays at its provider. Each choice is stored with its explanation.

pub mod api;
pub mod choice;
mod learn;
pub mod rank;
#[cfg(test)]
mod simulation;

use std::collections::HashMap;

pub use self::{
    choice::Choice,
    learn::{learn, learn_repeatedly},
};
use self::{
    choice::{Considered, Exclusion},
    rank::{Candidate, Ranking, Reason, Terms, rank},
};
use super::{cards, prelude::*};
use crate::tenants::{
    companies::routing::{CardOrigin, Route, RoutedOrder, RoutedProvider, RoutingPolicy},
    providers::statistics::{Estimate, Statistics, Subject},
};

/// A payment to route.
pub struct Routable<'r> {
    pub amount: Money,
    /// The requested channels. Empty: any.
    pub channels: &'r [String],
    pub user: Option<&'r UserKey>,
    pub has_phone: bool,
}

/// A chosen account.
pub struct Routed {
    pub account: Account,
    pub choice: Choice,
}

/// Chooses a provider, without those in `tried`. 400 if none can take the payment. `None`: those
/// that can were tried.
pub async fn choose(
    app: &App,
    company: &Company,
    payment: &Routable<'_>,
    tried: &[String],
) -> Result<Option<Routed>> {
    let Some(Json(policy)) = &company.routing else { return Ok(None) };
    let card = find_card(app, company, policy, payment).await?;
    let order =
        RoutedOrder { amount: &payment.amount, channels: payment.channels, card: card.as_ref() };
    let (route, rule) = policy.route_of(order);
    let names: Vec<String> = route.providers.iter().map(|one| one.provider.clone()).collect();
    let find = async |tx: &mut Tx| providers::find_all_usable(tx, company, &names).await;
    let mut accounts = app.store.select(find).await?;
    let mut providers: Vec<Considered> = route
        .providers
        .iter()
        .map(|routed| consider(app, company, payment, &accounts, routed, tried))
        .collect();
    let Some((chosen, reason)) = rank_eligible(app, policy, route, &mut providers) else {
        return if tried.is_empty() { Err(no_provider(&providers)) } else { Ok(None) };
    };
    let provider = providers[chosen].provider.clone();
    let Some(Ok(account)) = accounts.remove(&provider) else { return Ok(None) };
    let reason = if tried.is_empty() { reason } else { Reason::Failover };
    let rule = rule.map(|rule| rule.name.clone());
    let channels = payment.channels.to_vec();
    Ok(Some(Routed { account, choice: Choice { provider, reason, rule, channels, providers } }))
}

/// Returns where the user's default card comes from, if a rule depends on it.
async fn find_card(
    app: &App,
    company: &Company,
    policy: &RoutingPolicy,
    payment: &Routable<'_>,
) -> Result<Option<CardOrigin>> {
    let Some(user) = payment.user.filter(|_| policy.depends_on_card()) else { return Ok(None) };
    let find = async |tx: &mut Tx| cards::find_for_user(tx, &company.id, user, None).await;
    let card = app.store.select(find).await?.filter(cards::Card::is_valid);
    Ok(card.map(|card| CardOrigin { bin: card.details.bin, country: card.details.country }))
}

/// Estimates a provider, or finds why it cannot take the payment.
fn consider(
    app: &App,
    company: &Company,
    payment: &Routable<'_>,
    accounts: &HashMap<String, Result<Account, NoAccount>>,
    routed: &RoutedProvider,
    tried: &[String],
) -> Considered {
    let RoutedProvider { provider, weight } = routed;
    let new = Considered::new(provider, *weight);
    if tried.contains(provider) {
        return new.excluded(Exclusion::Tried);
    }
    let account = match accounts.get(provider) {
        Some(Ok(account)) => account,
        Some(Err(NoAccount::Deactivated)) => return new.excluded(Exclusion::Deactivated),
        Some(Err(NoAccount::Missing)) | None => return new.excluded(Exclusion::NoAccount),
    };
    let fits = match app.plugins.provider(provider, &company.id) {
        Ok(plugin) => check(&plugin, payment),
        Err(_) => Err(Exclusion::NotReady),
    };
    if let Err(exclusion) = fits {
        return new.excluded(exclusion);
    }
    let channel = match payment.channels {
        [channel] => Some(&**channel),
        _ => None,
    };
    let subject = Subject { amount: &payment.amount, channel };
    let statistics = app.slot::<Statistics>();
    new.estimated(statistics.estimate(&account.id, subject, app.clock.now()))
}

/// Returns why a provider cannot take a payment.
fn check(plugin: &Provider, payment: &Routable<'_>) -> Result<(), Exclusion> {
    let manifest = plugin.manifest();
    let has = |channel: &String| manifest.channels.contains(channel);
    if !manifest.currencies.iter().any(|one| **one == *payment.amount.currency) {
        Err(Exclusion::Currency)
    } else if manifest.check_amount(&payment.amount).is_err() {
        Err(Exclusion::Amount)
    } else if !payment.channels.is_empty() && !payment.channels.iter().any(has) {
        Err(Exclusion::Channels)
    } else if manifest.sessions.push && !payment.has_phone {
        Err(Exclusion::Phone)
    } else {
        Ok(())
    }
}

/// Ranks the providers that are not excluded, and returns the position of the first one. `None`:
/// all are excluded.
fn rank_eligible(
    app: &App,
    policy: &RoutingPolicy,
    route: &Route,
    providers: &mut [Considered],
) -> Option<(usize, Reason)> {
    let candidate = |(at, considered): (usize, &Considered)| {
        let estimate = considered.estimate?;
        Some((at, Candidate { weight: considered.weight, estimate }))
    };
    let (positions, candidates): (Vec<usize>, Vec<Candidate>) =
        providers.iter().enumerate().filter_map(candidate).unzip();
    let terms = Terms {
        choose_by: route.choose_by,
        success_value_percent: policy.success_value_percent,
        explore_percent: policy.explore_percent,
    };
    let Ranking { order, reason, scores } = rank(terms, &candidates, |most| app.random.up_to(most));
    for (at, score) in positions.iter().zip(scores) {
        providers[*at].set_score(score);
    }
    order.first().map(|first| (positions[*first], reason))
}

fn no_provider(providers: &[Considered]) -> Error {
    let reasons: Vec<String> = providers
        .iter()
        .filter_map(|one| Some(format!("{}: {}", one.provider, one.excluded?.describe())))
        .collect();
    let reasons = reasons.join("; ");
    Error::Invalid(format!(
        "the payment_service field must name a provider: none of the company's routing policy can \
         take this payment ({reasons})"
    ))
}
