//! The common part of all simulators of payment providers: isolated merchant accounts, their pages,
//! and controls that make a provider misreport.

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
    checkout::{Checkout, Completion, CompletionError},
    env::Env,
    locked,
    request_log::{RequestLog, record_request},
    server::error_response,
    timer_queue::TimerQueue,
};

/// Seconds until a refund, a mandate or a direct debit advances.
pub(crate) const PROCESSING_SECONDS: i64 = 10;

/// The state of one merchant at a provider.
pub(crate) trait MerchantAccount: Sized + Send + 'static {
    /// A change that happens as time passes.
    type TimerEvent: Ord + Send;

    /// Creates an account under this key.
    fn open(key: &str, env: &Env) -> Self;
    fn timers(&mut self) -> &mut TimerQueue<Self::TimerEvent>;
    fn handle_timer(&mut self, env: &Env, due: Self::TimerEvent);

    /// Returns open checkouts with numbers from [`Env::next_id`], which order them by age.
    fn open_checkouts(&self, env: &Env) -> Vec<(u64, Checkout)>;
    fn checkout(&self, env: &Env, id: &str) -> Option<Checkout>;
    /// Applies the customer's choice on the page. `None`: the checkout is not one of this account.
    fn complete(
        &mut self,
        env: &Env,
        id: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Option<Result<Completion, CompletionError>>;

    /// Reports another amount or currency. Returns false if there is no such transaction.
    fn tamper(&mut self, reference: &str, amount_minor: u64, currency: &str) -> bool;
    /// Reports another amount as charged, and the original one as requested. Returns false if there
    /// is no such transaction.
    fn tamper_charged_amount(&mut self, reference: &str, taken_minor: u64) -> bool;
    /// Reports the transaction as reversed. Returns false if there is none.
    fn reverse(&mut self, env: &Env, reference: &str) -> bool;
    /// Settles a pending transaction. Returns false if there is none.
    fn resolve(&mut self, env: &Env, reference: &str, outcome: Outcome) -> bool;

    fn schedule(&mut self, env: &Env, due: Self::TimerEvent) {
        self.timers().schedule(env.clock.now().plus_seconds(PROCESSING_SECONDS), due);
    }
}

/// A payment provider: accounts by key, created on first use.
pub(crate) struct Provider<M> {
    env: Arc<Env>,
    accounts: Mutex<BTreeMap<String, M>>,
    requests: RequestLog,
}

impl<M: MerchantAccount> Provider<M> {
    pub(crate) fn new(env: Arc<Env>) -> Provider<M> {
        Provider { env, accounts: Mutex::default(), requests: RequestLog::default() }
    }

    /// Applies a change to the account of this key.
    pub(crate) fn with_account<T>(&self, key: &str, change: impl FnOnce(&mut M, &Env) -> T) -> T {
        let env = &*self.env;
        let mut accounts = locked(&self.accounts);
        change(accounts.entry(key.to_owned()).or_insert_with(|| M::open(key, env)), env)
    }

    /// Applies a change that concerns several accounts.
    pub(crate) fn with_accounts<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, M>, &Env) -> T,
    ) -> T {
        change(&mut locked(&self.accounts), &self.env)
    }

    /// Applies a change to every account. Returns whether it applied to any.
    pub(crate) fn apply_to_all(&self, change: impl Fn(&mut M, &Env) -> bool) -> bool {
        let mut accounts = locked(&self.accounts);
        let meant = accounts.values_mut().filter_map(|a| change(a, &self.env).then_some(()));
        meant.count() > 0
    }

    /// Returns the first account's result that is not `None`.
    pub(crate) fn find_map<T>(&self, look: impl Fn(&M, &Env) -> Option<T>) -> Option<T> {
        locked(&self.accounts).values().find_map(|account| look(account, &self.env))
    }

    /// Returns records of all accounts, sorted by their numbers from [`Env::next_id`].
    pub(crate) fn list<R>(
        &self,
        records: impl Fn(&M) -> Vec<R>,
        number: impl Fn(&R) -> u64,
    ) -> Vec<R> {
        let mut list: Vec<R> = locked(&self.accounts).values().flat_map(records).collect();
        list.sort_by_key(number);
        list
    }

    pub(crate) fn tamper(&self, reference: &str, amount_minor: u64, currency: &str) -> bool {
        self.apply_to_all(|account, _| account.tamper(reference, amount_minor, currency))
    }

    pub(crate) fn tamper_charged_amount(&self, reference: &str, taken_minor: u64) -> bool {
        self.apply_to_all(|account, _| account.tamper_charged_amount(reference, taken_minor))
    }

    pub(crate) fn reverse(&self, reference: &str) -> bool {
        self.apply_to_all(|account, env| account.reverse(env, reference))
    }

    pub(crate) fn resolve(&self, reference: &str, outcome: Outcome) -> bool {
        self.apply_to_all(|account, env| account.resolve(env, reference, outcome))
    }

    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        self.requests.list()
    }

    /// Returns the API with a log of its requests; `base` is its path in the sandbox.
    pub(crate) fn with_request_log<S: Clone + Send + Sync + 'static>(
        &self,
        base: &'static str,
        api: Router<S>,
    ) -> Router<S> {
        api.layer(from_fn_with_state((self.requests.clone(), base), record_request))
    }
}

/// The sandbox's interface to every payment provider.
pub(crate) trait PaymentSimulator {
    /// Like [`MerchantAccount::open_checkouts`], for all accounts.
    fn open_checkouts(&self) -> Vec<(u64, Checkout)>;
    fn checkout(&self, id: &str) -> Option<Checkout>;
    /// `None`: the checkout does not exist.
    fn complete(
        &self,
        id: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Option<Result<Completion, CompletionError>>;
    /// Processes everything that is due.
    fn run_due(&self);
    fn has_due(&self) -> bool;
}

impl<M: MerchantAccount> PaymentSimulator for Provider<M> {
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
    ) -> Option<Result<Completion, CompletionError>> {
        let mut accounts = locked(&self.accounts);
        accounts.values_mut().find_map(|account| account.complete(&self.env, id, outcome, card))
    }

    fn run_due(&self) {
        for account in locked(&self.accounts).values_mut() {
            while let Some(due) = account.timers().pop_due(self.env.clock.now()) {
                account.handle_timer(&self.env, due);
                self.env.outbox.record_done();
            }
        }
    }

    fn has_due(&self) -> bool {
        let now = self.env.clock.now();
        locked(&self.accounts).values_mut().any(|account| account.timers().has_due(now))
    }
}

#[derive(Deserialize)]
struct TamperRequest {
    reference: String,
    amount_minor: Option<u64>,
    currency: Option<String>,
    taken_minor: Option<u64>,
    #[serde(default)]
    reversed: bool,
}

/// Control endpoint of the simulators, not part of the provider's API: makes a transaction
/// misreport.
pub(crate) async fn tamper<M: MerchantAccount>(
    State(provider): State<Arc<Provider<M>>>,
    body: String,
) -> Response {
    let Ok(tampering) = serde_json::from_str::<TamperRequest>(&body) else {
        return error_response(
            StatusCode::BAD_REQUEST,
            "reference, and amount_minor with currency, taken_minor, or reversed",
        );
    };
    let reference = &tampering.reference;
    let mut found = true;
    match (tampering.amount_minor, &tampering.currency) {
        (Some(amount), Some(currency)) => found = provider.tamper(reference, amount, currency),
        (None, None) => {}
        _ => {
            return error_response(
                StatusCode::BAD_REQUEST,
                "amount_minor and currency must be given together",
            );
        }
    }
    if let Some(taken) = tampering.taken_minor {
        found = provider.tamper_charged_amount(reference, taken);
    }
    if tampering.reversed {
        found = provider.reverse(reference);
    }
    let status = if found { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND };
    status.into_response()
}
