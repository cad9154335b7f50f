//! Safaricom's M-Pesa API (Daraja) under `/mpesa`: prompts on payers' phones (STK push), their
//! query, reversals, the status of a transaction, callbacks and results.
//!
//! An account is an app (consumer key and secret) with one organization (shortcode, passkey,
//! initiator). [`Credentials::default`] exists from the start; [`Mpesa::open_account`] and
//! `PUT /mpesa/account` open others. Amounts are whole Kenyan shillings. Callbacks and results are
//! unsigned, and each is sent once: Daraja does not retry them.
//!
//! A prompt is answered on the page `/phone/{number}`, by `POST /phone/{number}/answer`, by
//! `POST /checkout/{CheckoutRequestID}/complete`, or by [`Mpesa::answer`]. Without an answer it
//! fails after 60 seconds with the result 1037. These payers answer automatically after 3 seconds:
//!
//! | Number | Answer | Result |
//! |---|---|---|
//! | 254708374149, Safaricom's test number | pays | 0 |
//! | 254700000001 | has an insufficient balance | 1 |
//! | 254700000002 | cancels | 1032 |

mod accounts;
mod commands;
mod http;
mod login;
mod merchant;
mod push;
mod security;
mod times;

use std::sync::Arc;

use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{get, post, put},
};

use crate::{
    env::Env,
    faults::Faults,
    provider::{PaymentSimulator, Provider, tamper},
    server::with_faults,
};
use accounts::Account;

pub use accounts::Credentials;
pub use push::{Answer, Push};
pub use security::{CERTIFICATE, security_credential};

pub(crate) use push::{AUTOMATIC_ANSWERS, is_subscriber, result_description};

/// The M-Pesa simulator. Cheap to clone.
#[derive(Clone)]
pub struct Mpesa(Arc<Provider<Account>>);

/// Money of all accounts, in whole shillings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Paid by payers, including what was returned later.
    pub taken: u64,
    /// Returned by reversals.
    pub returned: u64,
}

impl Mpesa {
    pub(crate) fn new(env: Arc<Env>) -> Mpesa {
        let mpesa = Mpesa(Arc::new(Provider::new(env)));
        mpesa.open_account(Credentials::default());
        mpesa
    }

    /// Opens an account, or replaces the credentials of the one with this consumer key.
    pub fn open_account(&self, credentials: Credentials) {
        let key = credentials.consumer_key.clone();
        self.0.with_account(&key, |account, _| account.credentials = credentials);
    }

    /// Returns all prompts, oldest first.
    #[must_use]
    pub fn pushes(&self) -> Vec<Push> {
        self.0.list(|account| account.pushes.values().cloned().collect(), |push| push.number)
    }

    /// Answers a prompt, by its `CheckoutRequestID` or by the payer's phone number. Returns the
    /// prompt, or `None` if none is open.
    pub fn answer(&self, prompt: &str, answer: Answer) -> Option<Push> {
        self.0.with_accounts(|accounts, env| {
            accounts.values_mut().find_map(|account| account.answer(env, prompt, answer))
        })
    }

    /// Returns the money taken and returned by all accounts.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for push in self.pushes().iter().filter(|push| push.is_paid()) {
            totals.taken += push.amount;
            totals.returned += if push.reversed { push.amount } else { 0 };
        }
        totals
    }

    /// Sets the balance of an organization in whole shillings. A reversal that exceeds the balance
    /// fails with the result 1. Returns false if no account has this shortcode.
    pub fn set_balance(&self, shortcode: &str, balance: u64) -> bool {
        self.0.apply_to_all(|account, _| {
            let own = account.credentials.shortcode == shortcode;
            if own {
                account.balance = balance;
            }
            own
        })
    }

    /// Reports another amount in callbacks and results, in whole shillings. Returns false if no
    /// prompt has this `CheckoutRequestID`, account reference or receipt.
    pub fn tamper(&self, reference: &str, amount: u64) -> bool {
        self.0.tamper_charged_amount(reference, amount.saturating_mul(MINOR_UNITS))
    }

    /// Returns a payment to its payer without a request and without a callback. Returns false if
    /// no payment has this `CheckoutRequestID`, account reference or receipt.
    pub fn reverse(&self, reference: &str) -> bool {
        self.0.reverse(reference)
    }

    /// Returns method and path (relative to Daraja's own base URL) of the most recent requests,
    /// oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<(String, String)> {
        self.0.requests()
    }

    pub(crate) fn as_simulator(&self) -> &dyn PaymentSimulator {
        &*self.0
    }
}

/// Cents of a shilling, the minor unit of the sandbox's pages and controls.
const MINOR_UNITS: u64 = 100;

/// All routes, each with its operation name for faults.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(
    mpesa: &Mpesa,
    faults: &Faults,
) -> Router<S> {
    let on = |operation, route| with_faults(faults, operation, route);
    let api = Router::new()
        .route("/oauth/v1/generate", on("login", get(login::generate)))
        .route("/mpesa/stkpush/v1/processrequest", on("initialize", post(push::process)))
        .route("/mpesa/stkpushquery/v1/query", on("verify", post(push::query)))
        .route("/mpesa/reversal/v1/request", on("refund", post(commands::reverse)))
        .route("/mpesa/transactionstatus/v1/query", on("fetch", post(commands::status)));
    let api = mpesa.0.with_request_log("/mpesa", api);
    api.fallback(http::unknown_path)
        .layer(from_fn_with_state(mpesa.clone(), http::add_error_body))
        .route("/account", put(accounts::set_account))
        .with_state(mpesa.clone())
        .route("/tamper", put(tamper).with_state(mpesa.0.clone()))
}
