//! Paystack's API under `/paystack`, its webhooks and its hosted page.
//!
//! Accounts are isolated from each other, identified by their secret key and created on first use.

mod accounts;
mod cards;
mod charges;
mod disputes;
mod hosted;
mod http;
mod mandates;
mod merchant;
mod notify;
mod refunds;
mod render;
mod settlements;
mod transactions;

use std::sync::Arc;

use axum::{
    Router,
    routing::{get, post, put},
};

use crate::{
    ListedLine, ListingChange, Outcome,
    env::Env,
    faults::Faults,
    listing,
    provider::{PaymentSimulator, Provider, tamper},
    server::with_faults,
    settlements as settling,
};
use accounts::Account;

pub use notify::sign;

/// The Paystack simulator. Cheap to clone.
#[derive(Clone)]
pub struct Paystack(Arc<Provider<Account>>);

impl Paystack {
    pub(crate) fn new(env: Arc<Env>) -> Paystack {
        Paystack(Arc::new(Provider::new(env)))
    }

    /// Sets the webhook URL of an account.
    pub fn set_webhook(&self, secret_key: &str, url: &str) {
        self.with_account(secret_key, |account, _| account.webhook = Some(url.to_owned()));
    }

    /// Reports another amount or currency. Returns false if no transaction has this reference.
    pub fn tamper(&self, reference: &str, amount_minor: u64, currency: &str) -> bool {
        self.0.tamper(reference, amount_minor, currency)
    }

    /// Reports a charged amount other than the requested one. Returns false if there is no such
    /// transaction.
    pub fn tamper_charged_amount(&self, reference: &str, taken_minor: u64) -> bool {
        self.0.tamper_charged_amount(reference, taken_minor)
    }

    /// Reports the transaction as reversed, as after a dispute, without a webhook.
    pub fn reverse(&self, reference: &str) -> bool {
        self.0.reverse(reference)
    }

    /// Opens a dispute of this amount (`None`: of the whole) and sends the webhook. Paystack sends
    /// another one 24 hours before the dispute is due, and accepts it after 48 hours without an
    /// answer.
    ///
    /// Returns the dispute's id; `None` if no transaction with this reference is successful, the
    /// amount exceeds it, or it has an unresolved dispute.
    pub fn open_dispute(&self, reference: &str, amount_minor: Option<u64>) -> Option<u64> {
        self.0.with_accounts(|accounts, env| {
            let mut accounts = accounts.values_mut();
            accounts.find_map(|account| account.open_dispute(env, reference, amount_minor))
        })
    }

    /// Decides a dispute, whether it was answered or not, and sends the webhook. If it is not
    /// `won`, the payer gets the money; once that is the whole amount, the transaction is reversed.
    ///
    /// Returns false if no unresolved dispute has this id.
    pub fn decide_dispute(&self, id: u64, won: bool) -> bool {
        self.0.apply_to_all(|account, env| account.decide_dispute(env, id, won))
    }

    /// Returns the id of the unresolved dispute of a transaction.
    #[must_use]
    pub fn unresolved_dispute(&self, reference: &str) -> Option<u64> {
        self.0.find_map(|account, _| account.unresolved_dispute(reference))
    }

    /// Settles a charge that a `pending` fault or a direct debit left pending, and sends the
    /// webhook that Paystack would send.
    ///
    /// Returns false if no transaction with this reference is pending.
    pub fn resolve(&self, reference: &str, outcome: Outcome) -> bool {
        self.0.resolve(reference, outcome)
    }

    /// Changes what the lists and the contents of settlements show of a payment; verification does
    /// not change. Replaces an earlier change; the default removes it. Returns false if no payment
    /// has this reference.
    pub fn change_listing(&self, reference: &str, change: ListingChange) -> bool {
        self.0.change_listing(reference, change)
    }

    /// Like [`Paystack::change_listing`], for a refund. Lists of the refunds of one transaction do
    /// not change. Returns false if no refund has this id.
    pub fn change_listed_refund(&self, id: &str, change: ListingChange) -> bool {
        self.0.change_listed_refund(id, change)
    }

    /// Adds a payment or refund that only the lists have. A payment is added to the account with
    /// the newest one.
    ///
    /// Returns its id; `None` if a new payment has a reference in use, if no account was used yet,
    /// or if the payment of a refund does not exist.
    pub fn add_listed(&self, line: &ListedLine) -> Option<String> {
        self.0.add_listed(line)
    }

    /// Settles all listed successful payments that no settlement has, less refunds that did not
    /// fail and lost disputes. `paid_minor` replaces the amount paid out.
    ///
    /// A settlement has one account and one currency: those of the oldest unsettled payment.
    /// Returns its id; `None` if there is no such payment.
    pub fn settle(&self, paid_minor: Option<u64>) -> Option<String> {
        self.0.settle(paid_minor)
    }

    /// Returns method and path (relative to Paystack's own base URL) of the most recent requests,
    /// oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<(String, String)> {
        self.0.requests()
    }

    pub(crate) fn as_simulator(&self) -> &dyn PaymentSimulator {
        &*self.0
    }

    fn with_account<T>(&self, key: &str, change: impl FnOnce(&mut Account, &Env) -> T) -> T {
        self.0.with_account(key, change)
    }
}

/// All routes, each with its operation name for faults.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(
    paystack: &Paystack,
    faults: &Faults,
) -> Router<S> {
    let on = |operation, route| with_faults(faults, operation, route);
    let api = Router::new()
        .route("/transaction/initialize", on("initialize", post(transactions::initialize)))
        .route("/transaction/verify/{reference}", on("verify", get(transactions::verify)))
        .route("/transaction/charge_authorization", on("charge", post(charges::charge)))
        .route("/transaction/partial_debit", on("charge", post(charges::partial_debit)))
        .route("/transaction/{id}", on("fetch", get(transactions::fetch)))
        .route("/transaction", on("list", get(transactions::list)))
        .route(
            "/refund",
            on("refund", post(refunds::create)).merge(on("refund_list", get(refunds::list))),
        )
        .route("/refund/{id}", on("refund_status", get(refunds::fetch)))
        .route("/refund/retry_with_customer_details/{id}", on("refund_retry", post(refunds::retry)))
        .route("/dispute", on("dispute_list", get(disputes::list)))
        .route("/dispute/transaction/{id}", on("dispute_list", get(disputes::of_transaction)))
        .route("/dispute/{id}", on("dispute", get(disputes::fetch)))
        .route("/dispute/{id}/evidence", on("dispute_evidence", post(disputes::add_evidence)))
        .route("/dispute/{id}/resolve", on("dispute_answer", put(disputes::resolve)))
        .route("/settlement", on("settlement_list", get(settlements::list)))
        .route("/settlement/{id}/transactions", on("settlement", get(settlements::transactions)))
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
        .fallback(http::unknown_path);
    paystack
        .0
        .with_request_log("/paystack", api)
        .route("/webhook", put(http::set_webhook))
        .route("/chargeback", post(disputes::control))
        .with_state(paystack.clone())
        .route("/tamper", put(tamper).with_state(paystack.0.clone()))
        .merge(listing::controls::<_, S>(&paystack.0))
        .merge(settling::control::<_, S>(&paystack.0))
}
