//! Routing: the choice of a provider for each checkout of a company with a routing policy, unless
//! the request names one.
//!
//! A rule of the policy, or its default route, lists providers. Those that cannot take the checkout
//! are excluded; the others are ranked (`rank`) by the statistics of this host. If a provider
//! certainly did not open a session, the next one is tried. After an unknown outcome a checkout
//! stays at its provider. Each choice is stored with its explanation.

pub mod api;
mod learn;
pub mod rank;
#[cfg(test)]
mod simulation;

use std::collections::HashMap;

pub use self::learn::{learn, learn_repeatedly};
use self::rank::{Candidate, Ranking, Terms, rank};
use super::{
    charges::{
        OwnerKind,
        choice::{self, Choice, Considered, Exclusion, Reason, Routed},
    },
    prelude::*,
};
use crate::{
    state::storage::params,
    tenants::{
        companies::routing::{CardOrigin, Route, RoutedOrder, RoutedProvider, RoutingPolicy},
        providers::statistics::{Statistics, Subject},
    },
};

/// A checkout to route.
pub struct Routable {
    pub amount: Money,
    /// The requested channels; empty for any.
    pub channels: Vec<String>,
    pub payer: Payer,
    /// The provider must save the card.
    pub saves_card: bool,
}

/// What is known of the payer.
pub struct Payer {
    pub user: Option<UserKey>,
    pub has_phone: bool,
}

/// How the provider of a request is determined.
#[derive(Clone)]
pub enum Selection {
    /// By the request or the defaults.
    Provider(String),
    /// By the company's routing policy.
    Routed,
}

impl Selection {
    /// Returns `Routed` if the company has a routing policy and the request names no provider, else
    /// the provider that `by_name` returns.
    pub fn new(
        company: &Company,
        sent: Option<&str>,
        by_name: impl FnOnce() -> Result<String>,
    ) -> Result<Selection> {
        match sent.is_none() && company.routing.is_some() {
            true => Ok(Selection::Routed),
            false => by_name().map(Selection::Provider),
        }
    }

    /// Returns the account to use, and why the router chose it. 400 if there is none.
    pub async fn account(
        &self,
        app: &App,
        company: &Company,
        checkout: &Routable,
    ) -> Result<(Account, Option<Choice>)> {
        match self {
            Selection::Provider(provider) => {
                let resolve = async |tx: &mut Tx| providers::resolve(tx, company, provider).await;
                Ok((app.store.select(resolve).await?, None))
            }
            Selection::Routed => {
                let Routed { account, choice } = choose(app, company, checkout).await?;
                Ok((account, Some(choice)))
            }
        }
    }
}

/// Chooses a provider. 400 if none can take the checkout, 503 if one is not ready on this host.
pub async fn choose(app: &App, company: &Company, checkout: &Routable) -> Result<Routed> {
    // `None`: the policy was removed meanwhile.
    let ranked = rank_all(app, company, checkout, &[]).await?;
    let ranked = ranked.ok_or_else(providers::not_configured)?;
    if let Some((at, reason)) = ranked.first {
        return ranked.choose(at, reason, checkout);
    }
    for one in ranked.providers.iter().filter(|one| one.excluded == Some(Exclusion::NotReady)) {
        app.plugins.ensure_ready(&one.provider)?;
    }
    Err(no_provider(&ranked.providers))
}

/// Chooses another provider for a charge whose page certainly was not opened. The providers in
/// `tried` are excluded. `None`: the router did not choose the charge's provider, that provider can
/// still take the checkout, or no other can.
pub async fn choose_other(
    app: &App,
    charge: &Charge,
    amount: Minor,
    payer: Payer,
    tried: &[String],
) -> Result<Option<Routed>> {
    let Charge { company_id, owner_kind, owner_id, provider, .. } = charge;
    let list = async |tx: &mut Tx| choice::list(tx, company_id, *owner_kind, owner_id).await;
    let Some(first) = app.store.select(list).await?.into_iter().next() else { return Ok(None) };
    let checkout = Routable {
        amount: Money { minor: amount, currency: charge.currency.clone() },
        channels: first.choice.0.channels,
        payer,
        saves_card: *owner_kind == OwnerKind::Card,
    };
    let company = companies::find(app, company_id).await?;
    let Some(ranked) = rank_all(app, &company, &checkout, tried).await? else { return Ok(None) };
    let providers = &ranked.providers;
    let mut usable = providers.iter().filter(|one| one.estimate.is_some_and(|it| !it.is_down));
    let stays = usable.any(|one| one.provider == *provider);
    match ranked.first.filter(|(at, _)| !stays && providers[*at].provider != *provider) {
        Some((at, _)) => ranked.choose(at, Reason::Failover, &checkout).map(Some),
        None => Ok(None),
    }
}

/// The ranked providers of the route that applies.
struct Ranked {
    accounts: HashMap<String, Result<Account, NoAccount>>,
    providers: Vec<Considered>,
    /// The rule that listed them.
    rule: Option<String>,
    /// The position of the provider to choose, and the reason. `None`: all are excluded.
    first: Option<(usize, Reason)>,
}

impl Ranked {
    fn choose(mut self, at: usize, reason: Reason, checkout: &Routable) -> Result<Routed> {
        let provider = self.providers[at].provider.clone();
        let account = self.accounts.remove(&provider).and_then(Result::ok);
        let account = account.ok_or_else(|| Error::internal("ranked provider has no account"))?;
        let Ranked { providers, rule, .. } = self;
        let channels = checkout.channels.clone();
        Ok(Routed { account, choice: Choice { provider, reason, rule, channels, providers } })
    }
}

/// Ranks the providers of the route that applies. `None`: the company has no policy.
async fn rank_all(
    app: &App,
    company: &Company,
    checkout: &Routable,
    tried: &[String],
) -> Result<Option<Ranked>> {
    let Some(Json(policy)) = &company.routing else { return Ok(None) };
    let card = find_card(app, company, policy, checkout).await?;
    let Routable { amount, channels, .. } = checkout;
    let (route, rule) = policy.route_of(RoutedOrder { amount, channels, card: card.as_ref() });
    let names: Vec<String> = route.providers.iter().map(|one| one.provider.clone()).collect();
    let find = async |tx: &mut Tx| providers::find_all_usable(tx, company, &names).await;
    let accounts = app.store.select(find).await?;
    let mut providers: Vec<Considered> = route
        .providers
        .iter()
        .map(|routed| consider(app, company, checkout, &accounts, routed, tried))
        .collect();
    let first = rank_eligible(app, policy, route, &mut providers);
    let rule = rule.map(|rule| rule.name.clone());
    Ok(Some(Ranked { accounts, providers, rule, first }))
}

/// Returns the origin of the user's default card, if a rule depends on it.
async fn find_card(
    app: &App,
    company: &Company,
    policy: &RoutingPolicy,
    checkout: &Routable,
) -> Result<Option<CardOrigin>> {
    let user = checkout.payer.user.as_ref().filter(|_| policy.depends_on_card());
    let Some(user) = user else { return Ok(None) };
    let find = async |tx: &mut Tx| -> Result<Option<CardOrigin>> {
        let card = tx.sql(
            "SELECT bin, country FROM cards
             WHERE company_id = $1 AND user_key = $2 AND is_default AND status = 'valid'",
        );
        Ok(card.params(params![&company.id, user]).optional().await?)
    };
    app.store.read(find).await
}

/// Estimates a provider, or finds why it cannot take the checkout.
fn consider(
    app: &App,
    company: &Company,
    checkout: &Routable,
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
        Ok(plugin) => check(&plugin, checkout),
        Err(_) => Err(Exclusion::NotReady),
    };
    if let Err(exclusion) = fits {
        return new.excluded(exclusion);
    }
    let channel = match &*checkout.channels {
        [channel] => Some(&**channel),
        _ => None,
    };
    let subject = Subject { amount: &checkout.amount, channel };
    let statistics = app.slot::<Statistics>();
    new.estimated(statistics.estimate(&account.id, subject, app.clock.now()))
}

/// Returns why a provider cannot take a checkout.
fn check(plugin: &Provider, checkout: &Routable) -> Result<(), Exclusion> {
    let Routable { amount, channels, payer, saves_card } = checkout;
    let manifest = plugin.manifest();
    let has = |channel: &String| manifest.channels.contains(channel);
    if !manifest.currencies.iter().any(|one| **one == *amount.currency) {
        Err(Exclusion::Currency)
    } else if manifest.check_amount(amount).is_err() {
        Err(Exclusion::Amount)
    } else if *saves_card && !providers::saves_cards(plugin) {
        Err(Exclusion::SavedCards)
    } else if !channels.is_empty() && !channels.iter().any(has) {
        Err(Exclusion::Channels)
    } else if manifest.sessions.push && !payer.has_phone {
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
    Error::Invalid(format!("no provider of the company's routing policy can be used ({reasons})"))
}
