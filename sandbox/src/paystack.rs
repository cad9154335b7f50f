//! Paystack's API under `/paystack`, its notifications and its hosted page.
//!
//! Accounts are separate worlds, keyed by their secret key and made on first sight.

mod accounts;
mod cards;
mod charges;
mod due;
mod hosted;
mod http;
mod mandates;
mod notify;
mod refunds;
mod render;
mod transactions;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::{OriginalUri, Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
    routing::{get, post, put},
};

use crate::{Outcome, env::Env, faults::Faults, locked, server::faulty};
use accounts::{Account, Book};
use transactions::Status;

pub use notify::sign;

/// Requests remembered, newest.
const REMEMBERED: usize = 10_000;

/// The Paystack stand-in. Cheap to clone.
#[derive(Clone)]
pub struct Paystack(Arc<Inner>);

struct Inner {
    env: Arc<Env>,
    book: Mutex<Book>,
    requests: Mutex<VecDeque<(String, String)>>,
}

impl Paystack {
    pub(crate) fn new(env: Arc<Env>) -> Paystack {
        Paystack(Arc::new(Inner { env, book: Mutex::default(), requests: Mutex::default() }))
    }

    /// The address that the notifications of this secret key's account go to.
    pub fn set_webhook(&self, secret_key: &str, url: &str) {
        self.account(secret_key, |account, _| account.webhook = Some(url.to_owned()));
    }

    /// Makes Paystack report another amount or currency; false when no transaction has this reference.
    pub fn tamper(&self, reference: &str, amount_minor: u64, currency: &str) -> bool {
        self.each_with(reference, |transaction| {
            transaction.reported_amount = Some((amount_minor, currency.to_owned()));
        })
    }

    /// Makes Paystack report the transaction as reversed (charged back, say), without a notification.
    pub fn reverse(&self, reference: &str) -> bool {
        self.each_with(reference, |transaction| transaction.status = Status::Reversed)
    }

    /// Ends a charge that a `pending` fault, or a direct debit, left open; notifies as Paystack does.
    ///
    /// False when no transaction with this reference is under way.
    pub fn resolve(&self, reference: &str, outcome: Outcome) -> bool {
        let mut book = locked(&self.0.book);
        let accounts = book.accounts.values_mut();
        accounts
            .filter_map(|a| a.finish_charge(&self.0.env, reference, outcome).then_some(()))
            .count()
            > 0
    }

    /// Method and path (as under Paystack's own base address) of the newest requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<(String, String)> {
        locked(&self.0.requests).iter().cloned().collect()
    }

    /// One change of the account of this key, which is made on first sight.
    fn account<T>(&self, key: &str, change: impl FnOnce(&mut Account, &Env) -> T) -> T {
        let env = &self.0.env;
        let mut book = locked(&self.0.book);
        change(book.account(key, env), env)
    }

    fn each_with(&self, reference: &str, change: impl Fn(&mut transactions::Transaction)) -> bool {
        let mut book = locked(&self.0.book);
        let transactions =
            book.accounts.values_mut().filter_map(|account| account.by_reference_mut(reference));
        transactions.map(change).count() > 0
    }
}

/// All routes, each with the name that faults know it by.
pub(crate) fn router<S>(paystack: &Paystack, faults: &Faults) -> Router<S> {
    let on = |operation, route| faulty(faults, operation, route);
    Router::new()
        .route("/transaction/initialize", on("initialize", post(transactions::initialize)))
        .route("/transaction/verify/{reference}", on("verify", get(transactions::verify)))
        .route("/transaction/charge_authorization", on("charge", post(charges::charge)))
        .route("/transaction/{id}", on("fetch", get(transactions::fetch)))
        .route("/transaction", on("list", get(transactions::list)))
        .route(
            "/refund",
            on("refund", post(refunds::create)).merge(on("refund_list", get(refunds::list))),
        )
        .route("/refund/{id}", on("refund_status", get(refunds::fetch)))
        .route("/refund/retry_with_customer_details/{id}", on("refund_retry", post(refunds::retry)))
        .route("/customer/authorization/initialize", on("mandate", post(mandates::initialize)))
        .route(
            "/customer/authorization/verify/{reference}",
            on("mandate_verify", get(mandates::verify)),
        )
        .route("/customer/authorization/deactivate", on("deactivate", post(mandates::deactivate)))
        .route(
            "/customer/{customer}/initialize-direct-debit",
            on("mandate", post(mandates::initialize_for_customer)),
        )
        .route(
            "/customer/{customer}/directdebit-activation-charge",
            on("mandate_activate", put(mandates::activate)),
        )
        .route("/directdebit/mandate-authorizations", on("mandate_list", get(mandates::list)))
        .route("/decision/bin/{bin}", on("bin", get(cards::resolve_bin)))
        .fallback(http::unknown_path)
        .layer(from_fn_with_state(paystack.clone(), remember))
        // Controls of the stand-in, which are no requests to Paystack.
        .route("/webhook", put(http::set_webhook))
        .route("/tamper", put(http::tamper))
        .with_state(paystack.clone())
}

async fn remember(State(paystack): State<Paystack>, request: Request, next: Next) -> Response {
    let uri =
        request.extensions().get::<OriginalUri>().map_or(request.uri(), |original| &original.0);
    let path = uri.path();
    let path = path.strip_prefix("/paystack").unwrap_or(path).to_owned();
    {
        let mut requests = locked(&paystack.0.requests);
        if requests.len() == REMEMBERED {
            requests.pop_front();
        }
        requests.push_back((request.method().to_string(), path));
    }
    next.run(request).await
}
