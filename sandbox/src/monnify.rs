//! Monnify's API under `/monnify/api`, its webhooks and its hosted page.
//!
//! Accounts are isolated from each other, identified by their API key and created on first use. The
//! secret key and contract code first used with an account are fixed from then on. Amounts are in
//! the major unit on the wire and in minor units internally.

mod accounts;
mod banks;
mod cards;
mod challenges;
mod charges;
mod debits;
mod hosted;
mod http;
mod login;
mod mandates;
mod merchant;
mod notify;
mod refunds;
mod render;
mod reserved;
mod settlements;
mod times;
mod transactions;
mod transfers;

use std::sync::Arc;

use axum::{
    Router,
    middleware::from_fn,
    routing::{delete, get, patch, post, put},
};

use crate::{
    ListedLine, ListingChange, Outcome,
    env::Env,
    faults::Faults,
    listing,
    provider::{PaymentSimulator, Provider, tamper},
    server::with_faults,
};
use accounts::Account;

pub use notify::sign;
pub use transfers::UnderpaymentPolicy;

/// The Monnify simulator. Cheap to clone.
#[derive(Clone)]
pub struct Monnify(Arc<Provider<Account>>);

impl Monnify {
    pub(crate) fn new(env: Arc<Env>) -> Monnify {
        Monnify(Arc::new(Provider::new(env)))
    }

    /// Sets the webhook URL of an account, and the secret key that signs its webhooks.
    pub fn set_webhook(&self, api_key: &str, secret_key: &str, url: &str) {
        self.with_account(api_key, |account, _| {
            account.secret_key = Some(secret_key.to_owned());
            account.webhook = Some(url.to_owned());
        });
    }

    /// Sets whether paid cards return a token. On by default.
    pub fn set_tokenization(&self, api_key: &str, on: bool) {
        self.with_account(api_key, |account, _| account.tokenization = on);
    }

    /// Reports another amount or currency. Returns false if no transaction has this payment
    /// reference.
    pub fn tamper(&self, payment_reference: &str, amount_minor: u64, currency: &str) -> bool {
        self.0.tamper(payment_reference, amount_minor, currency)
    }

    /// Reports a charged amount other than the requested one. Returns false if there is no such
    /// transaction.
    pub fn tamper_charged_amount(&self, payment_reference: &str, taken_minor: u64) -> bool {
        self.0.tamper_charged_amount(payment_reference, taken_minor)
    }

    /// Reports the transaction as `REVERSED`, without a webhook.
    pub fn reverse(&self, payment_reference: &str) -> bool {
        self.0.reverse(payment_reference)
    }

    /// Settles a charge that a `pending` fault, a challenge or a debit left pending, and sends the
    /// webhook that Monnify would send. A checkout without a payment attempt can be abandoned too:
    /// it expires.
    ///
    /// Returns false if no transaction with this payment reference is pending.
    pub fn resolve(&self, payment_reference: &str, outcome: Outcome) -> bool {
        self.0.resolve(payment_reference, outcome)
    }

    /// Simulates a bank transfer for a checkout, which may be below or above the requested amount.
    ///
    /// Returns false if there is no such checkout, or it is already paid.
    pub fn transfer(
        &self,
        payment_reference: &str,
        amount_minor: u64,
        underpaid: UnderpaymentPolicy,
    ) -> bool {
        self.0.apply_to_all(|account, env| {
            account.transfer(env, payment_reference, amount_minor, underpaid)
        })
    }

    /// Simulates a bank transfer to a reserved account. Returns its payment reference; `None` if no
    /// account has this number.
    #[must_use]
    pub fn transfer_to_account(&self, account_number: &str, amount_minor: u64) -> Option<String> {
        self.0.with_accounts(|accounts, env| {
            let mut all = accounts.values_mut();
            all.find_map(|account| account.transfer_to_reserved(env, account_number, amount_minor))
        })
    }

    /// Changes what the lists show of a payment; its status does not change. Replaces an earlier
    /// change; the default removes it. Returns false if no payment has this payment reference.
    pub fn change_listing(&self, payment_reference: &str, change: ListingChange) -> bool {
        self.0.change_listing(payment_reference, change)
    }

    /// Like [`Monnify::change_listing`], for a refund. Lists of the refunds of one transaction do
    /// not change. Returns false if no refund has this reference.
    pub fn change_listed_refund(&self, reference: &str, change: ListingChange) -> bool {
        self.0.change_listed_refund(reference, change)
    }

    /// Adds a payment or refund that only the lists have. A payment is added to the account with
    /// the newest one.
    ///
    /// Returns Monnify's reference of the payment, or the reference of the refund; `None` if a new
    /// payment has a reference in use, if no account was used yet, or if the payment of a refund
    /// does not exist.
    pub fn add_listed(&self, line: &ListedLine) -> Option<String> {
        self.0.add_listed(line)
    }

    /// Returns method and path (relative to Monnify's own base URL) of the most recent requests,
    /// oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<(String, String)> {
        self.0.requests()
    }

    pub(crate) fn as_simulator(&self) -> &dyn PaymentSimulator {
        &*self.0
    }

    fn with_account<T>(&self, api_key: &str, change: impl FnOnce(&mut Account, &Env) -> T) -> T {
        self.0.with_account(api_key, change)
    }
}

/// All routes, each with its operation name for faults.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(
    monnify: &Monnify,
    faults: &Faults,
) -> Router<S> {
    let on = |operation, route| with_faults(faults, operation, route);
    let api = Router::new()
        .route("/v1/auth/login", on("login", post(login::login)))
        .route(
            "/v1/merchant/transactions/init-transaction",
            on("initialize", post(transactions::initialize)),
        )
        .route("/v1/transactions/search", on("list", get(settlements::search)))
        .route("/v2/transactions/{reference}", on("verify", get(transactions::status)))
        .route("/v2/merchant/transactions/query", on("verify", get(transactions::query)))
        .route("/v1/merchant/cards/charge-card-token", on("charge", post(charges::charge)))
        .route("/v1/merchant/cards/otp/authorize", on("authorize", post(challenges::authorize)))
        .route("/v1/refunds/initiate-refund", on("refund", post(refunds::create)))
        .route("/v1/refunds", on("refund_list", get(refunds::list)))
        .route("/v1/refunds/{reference}", on("refund_status", get(refunds::fetch)))
        .route("/v2/bank-transfer/reserved-accounts", on("reserve", post(reserved::create)))
        .route(
            "/v2/bank-transfer/reserved-accounts/{reference}",
            on("reserve_status", get(reserved::fetch)),
        )
        .route(
            "/v1/bank-transfer/reserved-accounts/reference/{reference}",
            on("deallocate", delete(reserved::close)),
        )
        .route("/v1/banks", on("banks", get(banks::list)))
        .route("/v1/disbursements/account/validate", on("resolve", get(banks::resolve)))
        .route("/v1/direct-debit/mandate/create", on("mandate", post(mandates::create)))
        .route("/v1/direct-debit/mandate", on("mandate_verify", get(mandates::list)))
        .route("/v1/direct-debit/mandate/debit", on("charge", post(debits::debit)))
        .route("/v1/direct-debit/mandate/debit-status", on("verify", get(debits::status)))
        .route(
            "/v1/direct-debit/mandate/cancel-mandate/{code}",
            on("deactivate", patch(mandates::cancel)),
        )
        .layer(from_fn(http::reject_unencoded_bars));
    let api = monnify.0.with_request_log("/monnify", api);
    Router::new()
        .nest("/api", api)
        .fallback(http::unknown_path)
        .route("/webhook", put(notify::set_webhook))
        .route("/transfer", post(transfers::create_transfer))
        .with_state(monnify.clone())
        .route("/tamper", put(tamper).with_state(monnify.0.clone()))
        .merge(listing::controls::<_, S>(&monnify.0))
}
