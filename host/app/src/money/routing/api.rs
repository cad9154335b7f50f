//! The operator API for routing policies and choices.

use std::collections::BTreeSet;

use super::{Choice, Payer, Routable, choice, choose};
use crate::{
    money::{
        charges::{CHANNELS, OwnerKind, choice::StoredChoice},
        prelude::*,
    },
    tenants::companies::routing::{
        ChooseBy, Conditions, Route, RoutedProvider, RoutingPolicy, Rule,
    },
};
use tollhouse_plugins::PluginKind;

const MAX_RULES: usize = 20;
const MAX_PROVIDERS: usize = 10;
const SUCCESS_VALUE_PERCENT: i64 = 20;
const EXPLORE_PERCENT: i64 = 2;

choices! {
    ChooseByName = &ChooseBy::NAMES;
    RoutedChannel = &CHANNELS;
}

fields! {
    /// A routing policy.
    Body NewRoutingPolicy(body) {
        /// The route for checkouts to which no rule applies.
        route: Body<NewRoute> as Route => Ok(route.into()),
        /// The first rule whose conditions hold applies.
        rules: Option<Rows<NewRule, MAX_RULES>> as Vec<Rule>
            => read_rules(body, &rules.unwrap_or_default()),
        /// The value of a success, in percent of the amount: a provider with higher fees is chosen
        /// if its success rate makes up for them. Default: 20.
        success_value_percent: Option<Whole<1, 100>>,
        /// The share of checkouts, in percent, for which `score` chooses a provider other than the
        /// best one, in order to measure its success rate and fees. Default: 2.
        explore_percent: Option<Whole<0, 50>>,
    }
}

fields! {
    /// Providers, and how one of them is chosen.
    Body NewRoute(body) {
        providers: Rows<NewRoutedProvider, MAX_PROVIDERS> as Vec<RoutedProvider>
            => read_providers(body, &providers),
        /// `score`: by availability, success rate, latency and fees. `weight`: at random, in
        /// proportion to the weights. `order`: the first one. A provider that is down comes last.
        /// Default: `score`.
        choose_by: Option<OneOf<ChooseByName>>,
    }
}

fields! {
    /// A provider of a route.
    Body NewRoutedProvider {
        /// An installed provider.
        #[schemars(extend("examples" = ["provider_a"]))]
        provider: Text<100>,
        /// Its share of checkouts, if `choose_by` is `weight`. With 0 it is used only if the others
        /// cannot be used. Default: 1.
        weight: Option<Whole<0, 1_000>>,
    }
}

fields! {
    /// A route for checkouts that meet all conditions.
    Body NewRule {
        /// A name, shown in the explanation of a choice.
        name: Text<60>,
        when: Body<NewConditions>,
        route: Body<NewRoute>,
    }
}

fields! {
    /// Conditions of a rule, at least one.
    Body NewConditions(body) {
        currencies: Option<Texts>,
        /// Holds if the request names channels, and all of them are in this list.
        channels: Option<SomeOf<RoutedChannel>>,
        /// Lowest amount. Requires one currency.
        min_amount: Option<Amount> => check_amount(body, "min_amount", min_amount, &currencies),
        /// Highest amount. Requires one currency.
        max_amount: Option<Amount>
            => check_range(body, min_amount, max_amount, &currencies),
        /// ISO 3166 codes. Holds if the user's default card was issued in one of these countries.
        card_countries: Option<Texts>
            => check_texts(body, "card_countries", card_countries, COUNTRIES, is_country),
        /// First digits of card numbers. Holds if the number of the user's default card begins with
        /// one of them.
        card_bins: Option<Texts>
            => check_texts(body, "card_bins", card_bins, BINS, is_bin),
    }
}

const COUNTRIES: &str = "ISO 3166 codes, such as NG";
const BINS: &str = "the first 1 to 6 digits of card numbers";

fn is_country(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn is_bin(text: &str) -> bool {
    (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn check_texts(
    body: &Fields,
    field: &str,
    texts: Option<Vec<String>>,
    what: &str,
    is_valid: fn(&str) -> bool,
) -> Result<Option<Vec<String>>> {
    match texts.iter().flatten().all(|text| is_valid(text)) {
        true => Ok(texts),
        false => Err(body.must_be(field, &format!("a list of {what}"))),
    }
}

/// Amounts of different currencies cannot be compared.
fn check_amount(
    body: &Fields,
    field: &str,
    amount: Option<Minor>,
    currencies: &Option<Vec<String>>,
) -> Result<Option<Minor>> {
    let is_comparable = currencies.as_ref().is_some_and(|all| all.len() == 1);
    match amount.is_none() || is_comparable {
        true => Ok(amount),
        false => Err(body.must_be(field, "omitted, unless currencies has one currency")),
    }
}

fn check_range(
    body: &Fields,
    min: Option<Minor>,
    max: Option<Minor>,
    currencies: &Option<Vec<String>>,
) -> Result<Option<Minor>> {
    match min.zip(max) {
        Some((min, max)) if min > max => Err(body.must_be("max_amount", "at least min_amount")),
        _ => check_amount(body, "max_amount", max, currencies),
    }
}

fn read_providers(body: &Fields, rows: &[Fields]) -> Result<Vec<RoutedProvider>> {
    let mut names = BTreeSet::new();
    let read = |row: &Fields| {
        let NewRoutedProvider { provider, weight } = NewRoutedProvider::read(row)?;
        let weight = weight.and_then(|weight| u32::try_from(weight).ok()).unwrap_or(1);
        match names.insert(provider.clone()) {
            true => Ok(RoutedProvider { provider, weight }),
            false => Err(body.must_be("providers", "a list without duplicates")),
        }
    };
    rows.iter().map(read).collect()
}

fn read_rules(body: &Fields, rows: &[Fields]) -> Result<Vec<Rule>> {
    let mut names = BTreeSet::new();
    let read = |row: &Fields| {
        let NewRule { name, when, route } = NewRule::read(row)?;
        let when = Conditions::from(when);
        if when == Conditions::default() {
            return Err(row.must_be("when", "an object with a condition"));
        }
        match names.insert(name.clone()) {
            true => Ok(Rule { name, when, route: route.into() }),
            false => Err(body.must_be("rules", "a list of rules with different names")),
        }
    };
    rows.iter().map(read).collect()
}

impl From<NewRoute> for Route {
    fn from(NewRoute { providers, choose_by }: NewRoute) -> Route {
        Route { providers, choose_by: ChooseBy::named(choose_by.as_deref().unwrap_or_default()) }
    }
}

impl From<NewConditions> for Conditions {
    fn from(new: NewConditions) -> Conditions {
        Conditions {
            currencies: new.currencies.unwrap_or_default(),
            channels: new.channels.unwrap_or_default(),
            min_amount: new.min_amount,
            max_amount: new.max_amount,
            card_countries: new.card_countries.unwrap_or_default(),
            card_bins: new.card_bins.unwrap_or_default(),
        }
    }
}

/// Returns 400 unless all providers of a policy are installed.
fn check_installed(app: &App, policy: &RoutingPolicy) -> Result<()> {
    let installed = app.plugins.names(PluginKind::Provider);
    match policy.providers().iter().find(|name| !installed.contains(name)) {
        None => Ok(()),
        Some(name) => Err(Error::Invalid(format!(
            "the provider field must be one of {}, not {name}",
            installed.join(", ")
        ))),
    }
}

/// Sets a company's routing policy. It applies to checkouts from the next request on.
pub async fn set(
    State(app): State<App>,
    actor: Actor,
    Path(company): Path<CompanyId>,
    body: Body<NewRoutingPolicy>,
) -> Result<DataResponse<Company>> {
    let NewRoutingPolicy { route, rules, success_value_percent, explore_percent } = body.read()?;
    let percent =
        |value: Option<i64>, default| u32::try_from(value.unwrap_or(default)).unwrap_or_default();
    let policy = RoutingPolicy {
        route,
        rules,
        success_value_percent: percent(success_value_percent, SUCCESS_VALUE_PERCENT),
        explore_percent: percent(explore_percent, EXPLORE_PERCENT),
    };
    check_installed(&app, &policy)?;
    write(app, actor, company, Some(policy)).await
}

/// Removes a company's routing policy. Checkouts use its default provider again.
pub async fn remove(
    State(app): State<App>,
    actor: Actor,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Company>> {
    write(app, actor, company, None).await
}

async fn write(
    app: App,
    actor: Actor,
    company: CompanyId,
    policy: Option<RoutingPolicy>,
) -> Result<DataResponse<Company>> {
    let edit = async move |_: &mut Tx, _: &App, company: &mut Company| {
        company.routing = policy.map(Json);
        Ok(())
    };
    let edited = companies::api::change(app, actor, company, "company.routing", edit).await?;
    DataResponse::data(edited, "Routing policy saved successfully")
}

fields! {
    /// A hypothetical payment, which is not initialized.
    Query PreviewedPayment {
        /// The amount in the major unit.
        amount: StrictLimit<1_000, 10_000_000>,
        /// Default: `NGN`.
        currency: Exactly,
        /// The only channel that the checkout offers. Default: any.
        channel: OneOf<RoutedChannel>,
    }
}

/// Returns the provider that the router would choose now for a payment of an unknown user, based on
/// the statistics of this host, which members do not see. `null` if the company has no policy.
pub async fn preview(
    State(app): State<App>,
    actor: Actor,
    Path(company): Path<CompanyId>,
    query: Query<PreviewedPayment>,
) -> Result<DataResponse<Option<Choice>>> {
    let company = companies::find(&app, &company).await?;
    let PreviewedPayment { amount, currency, channel } = query.read()?;
    let payment = Routable {
        amount: Money {
            minor: Minor(amount * 100),
            currency: currency.unwrap_or_else(|| "NGN".to_owned()).into(),
        },
        channels: Vec::from_iter(channel),
        payer: Payer { user: None, has_phone: true },
        saves_card: false,
    };
    let choice = match &company.routing {
        Some(_) => Some(choose(&app, &company, &payment).await?.choice.visible_to(&actor)),
        None => None,
    };
    DataResponse::data(choice, "Routing previewed successfully")
}

/// Returns why each provider of a checkout was chosen, oldest first. Members see no estimates.
pub async fn list_choices(
    app: &App,
    actor: &Actor,
    company: &CompanyId,
    kind: OwnerKind,
    owner_id: &str,
) -> Result<DataResponse<Vec<StoredChoice>>> {
    let list = async |tx: &mut Tx| choice::list(tx, company, kind, owner_id).await;
    let choices = app.store.select(list).await?.into_iter();
    let choices = choices.map(|stored| stored.visible_to(actor)).collect();
    DataResponse::data(choices, "Routing fetched successfully")
}
