//! Flutterwave's API (v3) under `/flutterwave/v3`, its webhooks and its hosted page.
//!
//! Accounts are isolated from each other, identified by their secret key and created on first use.
//! Amounts are in the major unit on the wire and in minor units internally.

mod accounts;
mod cards;
mod chargebacks;
mod charges;
mod hosted;
mod http;
mod mandates;
mod merchant;
mod notify;
mod refunds;
mod render;
mod settlements;
mod tokens;
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

pub use chargebacks::ChargebackStatus;
pub use notify::{Webhook, sign};

/// The Flutterwave simulator. Cheap to clone.
#[derive(Clone)]
pub struct Flutterwave(Arc<Provider<Account>>);

impl Flutterwave {
    pub(crate) fn new(env: Arc<Env>) -> Flutterwave {
        Flutterwave(Arc::new(Provider::new(env)))
    }

    /// Sets the webhook URL of an account, and the hash that its webhooks carry verbatim.
    pub fn set_webhook(&self, secret_key: &str, hash: &str, url: &str) {
        self.configure_webhook(secret_key, Webhook::new(hash, url));
    }

    /// Like [`Flutterwave::set_webhook`], with all options of a merchant's dashboard.
    pub fn configure_webhook(&self, secret_key: &str, webhook: Webhook) {
        self.with_account(secret_key, |account, _| account.webhook = Some(webhook));
    }

    /// Reports another amount or currency. Returns false if no transaction has this `tx_ref`.
    pub fn tamper(&self, tx_ref: &str, amount_minor: u64, currency: &str) -> bool {
        self.0.tamper(tx_ref, amount_minor, currency)
    }

    /// Reports a charged amount other than the requested one. Returns false if there is no such
    /// transaction.
    pub fn tamper_charged_amount(&self, tx_ref: &str, taken_minor: u64) -> bool {
        self.0.tamper_charged_amount(tx_ref, taken_minor)
    }

    /// Reports a lost chargeback of the whole amount, without a webhook. Returns false if no
    /// transaction with this `tx_ref` is successful.
    pub fn reverse(&self, tx_ref: &str) -> bool {
        self.0.reverse(tx_ref)
    }

    /// Reports a chargeback of this amount (`None`: of the whole), without a webhook: Flutterwave
    /// sends it only to merchants who ask for it. An open chargeback of the transaction gets the
    /// amount and the status.
    ///
    /// Returns false if no transaction with this `tx_ref` is successful.
    pub fn charge_back(
        &self,
        tx_ref: &str,
        amount_minor: Option<u64>,
        status: ChargebackStatus,
    ) -> bool {
        self.0.apply_to_all(|account, env| account.charge_back(env, tx_ref, amount_minor, status))
    }

    /// Returns the id of the newest chargeback of the transaction with this `tx_ref`.
    #[must_use]
    pub fn chargeback(&self, tx_ref: &str) -> Option<u64> {
        self.0.find_map(|account, _| account.newest_chargeback(tx_ref))
    }

    /// Decides a chargeback that the merchant contested or did not answer, without a webhook. If it
    /// is not `won`, the payer gets the money.
    ///
    /// Returns false if no such chargeback has this id.
    pub fn decide_chargeback(&self, id: u64, won: bool) -> bool {
        self.0.apply_to_all(|account, _| account.decide_chargeback(id, won))
    }

    /// Refunds this amount (`None`: what is left), as the merchant can on the dashboard.
    ///
    /// Returns false if no transaction with this `tx_ref` is successful, or less is left of it.
    pub fn refund(&self, tx_ref: &str, amount_minor: Option<u64>) -> bool {
        self.0.apply_to_all(|account, env| account.refund_on_dashboard(env, tx_ref, amount_minor))
    }

    /// Settles a charge that a `pending` fault or a challenge left pending, and sends the webhook
    /// that Flutterwave would send.
    ///
    /// Returns false if no transaction with this `tx_ref` is pending.
    pub fn resolve(&self, tx_ref: &str, outcome: Outcome) -> bool {
        self.0.resolve(tx_ref, outcome)
    }

    /// Changes what the lists and the contents of settlements show of a payment; verification does
    /// not change, and neither do lists by `tx_ref`. Replaces an earlier change; the default
    /// removes it. Returns false if no payment has this `tx_ref`.
    pub fn change_listing(&self, tx_ref: &str, change: ListingChange) -> bool {
        self.0.change_listing(tx_ref, change)
    }

    /// Like [`Flutterwave::change_listing`], for a refund. Lists of the refunds of one transaction
    /// do not change. Returns false if no refund has this id.
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
    /// fail and lost chargebacks. `paid_minor` replaces the amount paid out.
    ///
    /// A settlement has one account and one currency: those of the oldest unsettled payment.
    /// Returns its id; `None` if there is no such payment.
    pub fn settle(&self, paid_minor: Option<u64>) -> Option<String> {
        self.0.settle(paid_minor)
    }

    /// Returns method and path (relative to Flutterwave's own base URL) of the most recent
    /// requests, oldest first.
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
    flutterwave: &Flutterwave,
    faults: &Faults,
) -> Router<S> {
    let on = |operation, route| with_faults(faults, operation, route);
    let api = Router::new()
        .route("/payments", on("initialize", post(transactions::initialize)))
        .route("/transactions", on("list", get(transactions::list)))
        .route(
            "/transactions/verify_by_reference",
            on("verify", get(transactions::verify_by_reference)),
        )
        .route("/transactions/{id}/verify", on("verify", get(transactions::verify)))
        .route("/transactions/{id}/resend-hook", on("resend", post(transactions::resend_hook)))
        .route("/transactions/{id}/refund", on("refund", post(refunds::create)))
        .route("/refunds", on("refund_list", get(refunds::list)))
        .route("/refunds/{id}", on("refund_status", get(refunds::fetch)))
        .route("/chargebacks", on("chargeback_list", get(chargebacks::list)))
        .route("/chargebacks/{id}", on("dispute_answer", put(chargebacks::answer)))
        .route("/settlements", on("settlement_list", get(settlements::list)))
        .route("/settlements/{id}", on("settlement", get(settlements::fetch)))
        .route("/tokenized-charges", on("charge", post(charges::charge)))
        .route("/tokens/{token}", on("token", put(tokens::update)))
        .route("/accounts/tokenize", on("mandate", post(mandates::tokenize)))
        .route(
            "/accounts/token/{reference}",
            on("mandate_verify", get(mandates::fetch))
                .merge(on("deactivate", put(mandates::update))),
        )
        .route("/card-bins/{bin}", on("bin", get(cards::resolve_bin)));
    let api = flutterwave.0.with_request_log("/flutterwave/v3", api);
    Router::new()
        .nest("/v3", api)
        .fallback(http::unknown_path)
        .route("/webhook", put(notify::set_webhook))
        .route("/chargeback", post(chargebacks::control))
        .with_state(flutterwave.clone())
        .route("/tamper", put(tamper).with_state(flutterwave.0.clone()))
        .merge(listing::controls::<_, S>(&flutterwave.0))
        .merge(settling::control::<_, S>(&flutterwave.0))
}
