//! What the stand-ins of all payment providers have in common: merchants' accounts, each a world of its own, their pages, and
//! what tests make the provider do behind the merchant's back.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
};
use serde::Deserialize;

use crate::{
    Outcome,
    agenda::Agenda,
    checkout::{Checkout, Completed, Refusal},
    env::Env,
    locked,
    requests::{Requests, remember},
    server::refusal,
};

/// Seconds until a refund, a mandate or a direct debit gets on.
pub(crate) const STEP_SECONDS: i64 = 10;

/// What a provider keeps of one merchant.
pub(crate) trait Merchant: Sized + Send + 'static {
    /// What happens by itself as time passes.
    type Due: Ord + Send;

    /// A new account under this key.
    fn open(key: &str, env: &Env) -> Self;
    fn agenda(&mut self) -> &mut Agenda<Self::Due>;
    fn get_on(&mut self, env: &Env, due: Self::Due);

    /// With the numbers of [`Env::next_id`], which tell which is newer.
    fn open_checkouts(&self, env: &Env) -> Vec<(u64, Checkout)>;
    fn checkout(&self, env: &Env, id: &str) -> Option<Checkout>;
    /// What the customer does on the page; `None`: it is not one of this account.
    fn complete(
        &mut self,
        env: &Env,
        id: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Option<Result<Completed, Refusal>>;

    /// Reports another amount or currency; false when there is no such transaction.
    fn tamper(&mut self, reference: &str, amount_minor: u64, currency: &str) -> bool;
    /// Reports another amount as taken, and the right one as asked for; false when there is no such transaction.
    fn tamper_taken(&mut self, reference: &str, taken_minor: u64) -> bool;
    /// Reports the transaction as taken back; false when there is none.
    fn reverse(&mut self, reference: &str) -> bool;
    /// Ends what is under way; false when nothing is.
    fn resolve(&mut self, env: &Env, reference: &str, outcome: Outcome) -> bool;

    fn schedule(&mut self, env: &Env, due: Self::Due) {
        self.agenda().add(env.clock.now().plus_seconds(STEP_SECONDS), due);
    }
}

/// A payment provider: accounts by their keys, made on first sight.
pub(crate) struct Provider<M> {
    env: Arc<Env>,
    accounts: Mutex<BTreeMap<String, M>>,
    requests: Requests,
}

impl<M: Merchant> Provider<M> {
    pub(crate) fn new(env: Arc<Env>) -> Provider<M> {
        Provider { env, accounts: Mutex::default(), requests: Requests::default() }
    }

    /// One change of the account of this key.
    pub(crate) fn account<T>(&self, key: &str, change: impl FnOnce(&mut M, &Env) -> T) -> T {
        let env = &*self.env;
        let mut accounts = locked(&self.accounts);
        change(accounts.entry(key.to_owned()).or_insert_with(|| M::open(key, env)), env)
    }

    /// One change of every account; says whether it meant anything to one of them.
    pub(crate) fn any(&self, change: impl Fn(&mut M, &Env) -> bool) -> bool {
        let mut accounts = locked(&self.accounts);
        let meant = accounts.values_mut().filter_map(|a| change(a, &self.env).then_some(()));
        meant.count() > 0
    }

    /// The first account that has what is looked for.
    pub(crate) fn find<T>(&self, look: impl Fn(&M, &Env) -> Option<T>) -> Option<T> {
        locked(&self.accounts).values().find_map(|account| look(account, &self.env))
    }

    pub(crate) fn tamper(&self, reference: &str, amount_minor: u64, currency: &str) -> bool {
        self.any(|account, _| account.tamper(reference, amount_minor, currency))
    }

    pub(crate) fn tamper_taken(&self, reference: &str, taken_minor: u64) -> bool {
        self.any(|account, _| account.tamper_taken(reference, taken_minor))
    }

    pub(crate) fn reverse(&self, reference: &str) -> bool {
        self.any(|account, _| account.reverse(reference))
    }

    pub(crate) fn resolve(&self, reference: &str, outcome: Outcome) -> bool {
        self.any(|account, env| account.resolve(env, reference, outcome))
    }

    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        self.requests.list()
    }

    /// An API whose requests are remembered; `base` is where it stands here.
    pub(crate) fn remembering<S: Clone + Send + Sync + 'static>(
        &self,
        base: &'static str,
        api: Router<S>,
    ) -> Router<S> {
        api.layer(from_fn_with_state((self.requests.clone(), base), remember))
    }
}

/// What the sandbox asks of every payment provider.
pub(crate) trait Upstream {
    /// As [`Merchant::open_checkouts`], of all accounts.
    fn open_checkouts(&self) -> Vec<(u64, Checkout)>;
    fn checkout(&self, id: &str) -> Option<Checkout>;
    /// `None`: the id is not one of its checkouts.
    fn complete(
        &self,
        id: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Option<Result<Completed, Refusal>>;
    /// Does all that is due by now.
    fn advance(&self);
    fn has_due(&self) -> bool;
}

impl<M: Merchant> Upstream for Provider<M> {
    fn open_checkouts(&self) -> Vec<(u64, Checkout)> {
        let accounts = locked(&self.accounts);
        accounts.values().flat_map(|account| account.open_checkouts(&self.env)).collect()
    }

    fn checkout(&self, id: &str) -> Option<Checkout> {
        locked(&self.accounts).values().find_map(|account| account.checkout(&self.env, id))
    }

    fn complete(
        &self,
        id: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Option<Result<Completed, Refusal>> {
        let mut accounts = locked(&self.accounts);
        accounts.values_mut().find_map(|account| account.complete(&self.env, id, outcome, card))
    }

    fn advance(&self) {
        for account in locked(&self.accounts).values_mut() {
            while let Some(due) = account.agenda().take(self.env.clock.now()) {
                account.get_on(&self.env, due);
                self.env.outbox.count();
            }
        }
    }

    fn has_due(&self) -> bool {
        let now = self.env.clock.now();
        locked(&self.accounts).values_mut().any(|account| account.agenda().is_due(now))
    }
}

#[derive(Deserialize)]
struct Tampering {
    reference: String,
    amount_minor: Option<u64>,
    currency: Option<String>,
    taken_minor: Option<u64>,
    #[serde(default)]
    reversed: bool,
}

/// A control of the stand-ins, which is no request to the provider: makes a transaction report what it is not.
pub(crate) async fn tamper<M: Merchant>(
    State(provider): State<Arc<Provider<M>>>,
    body: String,
) -> Response {
    let Ok(tampering) = serde_json::from_str::<Tampering>(&body) else {
        return refusal(
            StatusCode::BAD_REQUEST,
            "reference, and amount_minor with currency, taken_minor, or reversed",
        );
    };
    let reference = &tampering.reference;
    let mut found = true;
    match (tampering.amount_minor, &tampering.currency) {
        (Some(amount), Some(currency)) => found = provider.tamper(reference, amount, currency),
        (None, None) => {}
        _ => return refusal(StatusCode::BAD_REQUEST, "amount_minor and currency go together"),
    }
    if let Some(taken) = tampering.taken_minor {
        found = provider.tamper_taken(reference, taken);
    }
    if tampering.reversed {
        found = provider.reverse(reference);
    }
    let status = if found { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND };
    status.into_response()
}
