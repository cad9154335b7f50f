//! Routing policies: the choice of a provider for a company's checkouts whose requests name none.

use serde::Deserialize;

use crate::state::{prelude::*, storage::FromRow};

/// A company's routing policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoutingPolicy {
    /// The route of checkouts to which no rule applies.
    pub route: Route,
    /// The first rule whose conditions hold applies.
    pub rules: Vec<Rule>,
    /// The value of a success, in percent of the amount. A provider with higher fees is chosen if
    /// its success rate makes up for them.
    pub success_value_percent: u32,
    /// The percentage of checkouts for which `score` chooses a provider other than the best one, to
    /// measure its success rate and fees.
    pub explore_percent: u32,
}

/// Providers, and how one of them is chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    pub providers: Vec<RoutedProvider>,
    pub choose_by: ChooseBy,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoutedProvider {
    pub provider: String,
    /// Its share of checkouts, if `choose_by` is `weight`. A provider with weight 0 is used only if
    /// the others cannot be used.
    pub weight: u32,
}

/// How a provider is chosen. A provider that is down comes last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChooseBy {
    /// By availability, success rate, latency and fees.
    #[default]
    Score,
    /// At random, in proportion to the weights.
    Weight,
    /// The first one.
    Order,
}

impl ChooseBy {
    pub const NAMES: [&str; 3] = ["score", "weight", "order"];

    /// Returns the value with this name; the default for any other text.
    pub fn named(name: &str) -> ChooseBy {
        match name {
            "weight" => ChooseBy::Weight,
            "order" => ChooseBy::Order,
            _ => ChooseBy::Score,
        }
    }
}

/// A route for checkouts that meet all conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    pub name: String,
    pub when: Conditions,
    pub route: Route,
}

/// Conditions of a rule. An empty list, or `null`, is no condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    pub currencies: Vec<String>,
    /// Holds if the request names channels, and all of them are in this list.
    pub channels: Vec<String>,
    pub min_amount: Option<Minor>,
    pub max_amount: Option<Minor>,
    /// ISO 3166 codes. Holds if the user's default card was issued in one of these countries.
    pub card_countries: Vec<String>,
    /// First digits of card numbers. Holds if the number of the user's default card begins with one
    /// of them.
    pub card_bins: Vec<String>,
}

/// The properties of a checkout that the conditions of rules test.
#[derive(Clone, Copy, Debug)]
pub struct RoutedOrder<'o> {
    pub amount: &'o Money,
    /// The requested channels. Empty: any.
    pub channels: &'o [String],
    pub card: Option<&'o CardOrigin>,
}

/// The origin of the user's default card.
#[derive(Clone, Debug, Default, PartialEq, Eq, FromRow)]
pub struct CardOrigin {
    /// The first digits of its number.
    pub bin: String,
    /// ISO 3166 code.
    pub country: String,
}

impl RoutingPolicy {
    /// Returns the route of a checkout, with the rule that determines it.
    pub fn route_of(&self, order: RoutedOrder<'_>) -> (&Route, Option<&Rule>) {
        match self.rules.iter().find(|rule| rule.when.hold(order)) {
            Some(rule) => (&rule.route, Some(rule)),
            None => (&self.route, None),
        }
    }

    /// Returns whether a rule has a condition about cards.
    pub fn depends_on_card(&self) -> bool {
        let depends =
            |rule: &Rule| !rule.when.card_countries.is_empty() || !rule.when.card_bins.is_empty();
        self.rules.iter().any(depends)
    }

    /// Returns the providers of all routes.
    pub fn providers(&self) -> Vec<String> {
        let routes = self.rules.iter().map(|rule| &rule.route).chain([&self.route]);
        let names = routes.flat_map(|route| &route.providers).map(|one| one.provider.clone());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.dedup();
        names
    }
}

impl Conditions {
    fn hold(&self, order: RoutedOrder<'_>) -> bool {
        let RoutedOrder { amount, channels, card } = order;
        let is_among = |list: &[String], text: &str| list.iter().any(|one| one == text);
        let meets = |list: &[String], holds: &dyn Fn(&CardOrigin) -> bool| {
            list.is_empty() || card.is_some_and(holds)
        };
        (self.currencies.is_empty() || is_among(&self.currencies, &amount.currency))
            && (self.channels.is_empty()
                || !channels.is_empty() && channels.iter().all(|one| is_among(&self.channels, one)))
            && self.min_amount.is_none_or(|min| amount.minor >= min)
            && self.max_amount.is_none_or(|max| amount.minor <= max)
            && meets(&self.card_countries, &|card| is_among(&self.card_countries, &card.country))
            && meets(&self.card_bins, &|card| {
                self.card_bins.iter().any(|bin| card.bin.starts_with(&**bin))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    fn route(provider: &str) -> Route {
        let providers = vec![RoutedProvider { provider: provider.to_owned(), weight: 1 }];
        Route { providers, choose_by: ChooseBy::Score }
    }

    #[test]
    fn the_first_rule_whose_conditions_hold_applies() {
        let rule = |name: &str, when| Rule { name: name.to_owned(), when, route: route(name) };
        let policy = RoutingPolicy {
            route: route("all"),
            rules: vec![
                rule("usd", Conditions { currencies: texts(&["USD"]), ..Conditions::default() }),
                rule(
                    "abroad",
                    Conditions { card_countries: texts(&["GB", "US"]), ..Conditions::default() },
                ),
                rule(
                    "bin",
                    Conditions { card_bins: texts(&["5061", "6500"]), ..Conditions::default() },
                ),
                rule(
                    "small",
                    Conditions {
                        channels: texts(&["ussd", "bank"]),
                        min_amount: Some(Minor(100)),
                        max_amount: Some(Minor(5_000)),
                        ..Conditions::default()
                    },
                ),
            ],
            success_value_percent: 20,
            explore_percent: 0,
        };
        let card = |bin: &str, country: &str| {
            Some(CardOrigin { bin: bin.to_owned(), country: country.to_owned() })
        };
        for (currency, minor, channels, card, expected) in [
            ("USD", 1, &[][..], None, "usd"),
            ("NGN", 1, &[], card("411111", "GB"), "abroad"),
            ("NGN", 1, &[], card("506100", "NG"), "bin"),
            ("NGN", 1, &[], card("506200", "NG"), "all"),
            ("NGN", 100, &["ussd"], None, "small"),
            ("NGN", 5_000, &["ussd", "bank"], card("506200", "NG"), "small"),
            ("NGN", 5_001, &["ussd"], None, "all"),
            ("NGN", 99, &["ussd"], None, "all"),
            ("NGN", 500, &["ussd", "card"], None, "all"),
            ("NGN", 500, &[], None, "all"),
        ] {
            let amount = Money { minor: Minor(minor), currency: currency.into() };
            let channels = texts(channels);
            let order = RoutedOrder { amount: &amount, channels: &channels, card: card.as_ref() };
            let (route, rule) = policy.route_of(order);
            assert_eq!(route.providers[0].provider, expected);
            assert_eq!(rule.map_or("all", |rule| &rule.name), expected);
        }
    }
}
