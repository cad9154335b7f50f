//! JengaAPI v3 of Equity Bank and Finserve Africa under `/jenga`: STK and USSD pushes, the query of
//! a transaction, and callbacks.
//!
//! An account is a merchant with a bank account and the public key of its signatures.
//! [`Credentials::default`], whose private key is [`PRIVATE_KEY`], exists from the start;
//! [`Jenga::open_account`] and `PUT /jenga/account` open others. Amounts are in Kenyan shillings.
//! Callbacks are unsigned, and each is sent once.
//!
//! A push is answered on the page `/checkout/{ref}`, by `POST /checkout/{ref}/complete`, or by
//! [`Jenga::answer`]. Without an answer it is cancelled after two minutes. These payers answer
//! automatically after 3 seconds:
//!
//! | Number | Answer | Code of the callback |
//! |---|---|---|
//! | 254763000000 | pays | 3 |
//! | 254763000001 | has an insufficient balance | 1 |
//! | 254763000002 | cancels | 5 |

mod accounts;
mod http;
mod login;
mod merchant;
mod pushes;
mod signatures;

use std::sync::Arc;

use axum::{
    Router,
    routing::{get, post, put},
};

use crate::{
    env::Env,
    faults::Faults,
    provider::{PaymentSimulator, Provider, tamper},
    server::with_faults,
};
use accounts::Account;

pub use accounts::{Credentials, PRIVATE_KEY};
pub use pushes::{Answer, Push, Status};
pub use signatures::sign;

/// The Jenga simulator. Cheap to clone.
#[derive(Clone)]
pub struct Jenga(Arc<Provider<Account>>);

impl Jenga {
    pub(crate) fn new(env: Arc<Env>) -> Jenga {
        let jenga = Jenga(Arc::new(Provider::new(env)));
        jenga.open_account(Credentials::default());
        jenga
    }

    /// Opens an account, or replaces the credentials of the one with this merchant code.
    pub fn open_account(&self, credentials: Credentials) {
        let key = credentials.merchant_code.clone();
        self.0.with_account(&key, |account, _| account.credentials = credentials);
    }

    /// Returns all pushes, oldest first.
    #[must_use]
    pub fn pushes(&self) -> Vec<Push> {
        self.0.list(|account| account.pushes.values().cloned().collect(), |push| push.number)
    }

    /// Answers an open push, by its reference or by the payer's phone number. Returns the push, or
    /// `None` if none is open.
    pub fn answer(&self, push: &str, answer: Answer) -> Option<Push> {
        self.0.with_accounts(|accounts, env| {
            accounts.values_mut().find_map(|account| account.answer(env, push, answer))
        })
    }

    /// Returns what payers have paid to all accounts, in cents.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.pushes().iter().filter(|push| push.is_paid()).map(|push| push.amount).sum()
    }

    /// Reports another amount in callbacks and queries, in cents. Returns false if no push has this
    /// reference or receipt.
    pub fn tamper(&self, reference: &str, amount_minor: u64) -> bool {
        self.0.tamper_charged_amount(reference, amount_minor)
    }

    /// Returns method and path (relative to Jenga's own base URL) of the most recent requests,
    /// oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<(String, String)> {
        self.0.requests()
    }

    pub(crate) fn as_simulator(&self) -> &dyn PaymentSimulator {
        &*self.0
    }
}

/// All routes, each with its operation name for faults.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(
    jenga: &Jenga,
    faults: &Faults,
) -> Router<S> {
    let on = |operation, route| with_faults(faults, operation, route);
    let api = Router::new()
        .route(
            "/authentication/api/v3/authenticate/merchant",
            on("login", post(login::authenticate)),
        )
        .route(
            "/v3-apis/payment-api/v3.0/stkussdpush/initiate",
            on("initialize", post(pushes::initiate)),
        )
        .route(
            "/v3-apis/transaction-api/v3.0/transactions/details/{reference}",
            on("verify", get(pushes::details)),
        )
        .fallback(http::unknown_path);
    jenga
        .0
        .with_request_log("/jenga", api)
        .route("/account", put(accounts::set_account))
        .with_state(jenga.clone())
        .route("/tamper", put(tamper).with_state(jenga.0.clone()))
}
