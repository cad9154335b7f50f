//! MTN's MoMo API under `/momo`: requests to pay (Collection) that payers approve on their phones,
//! refunds (Disbursement), callbacks, and the provisioning of API users.
//!
//! An account is an API user with its wallet, in one currency and one target environment.
//! [`Credentials::default`] exists from the start; [`Momo::open_account`], `PUT /momo/account` and
//! `POST /momo/v1_0/apiuser` open others. Callbacks are unsigned, and each is sent once by PUT.
//!
//! A request is answered on the page `/checkout/{X-Reference-Id}`, by `POST
//! /checkout/{X-Reference-Id}/complete`, or by [`Momo::answer`]. Without an answer it fails after
//! five minutes with the reason `EXPIRED`. These payers answer automatically after 3 seconds; the
//! first three are test numbers of MTN's sandbox:
//!
//! | Number | Status | Reason |
//! |---|---|---|
//! | 46733123450 | `FAILED` | `INTERNAL_PROCESSING_ERROR` |
//! | 46733123451 | `FAILED` | `APPROVAL_REJECTED` |
//! | 46733123452 | `FAILED` | `EXPIRED` |
//! | 256770000000 | `SUCCESSFUL` | |
//! | 256770000001 | `FAILED` | `NOT_ENOUGH_FUNDS` |
//! | 256770000002 | `FAILED` | `PAYER_LIMIT_REACHED` |
//! | 256770000003 | `FAILED` | `PAYER_NOT_FOUND` |

mod accounts;
mod http;
mod login;
mod merchant;
mod refunds;
mod requests;
mod users;

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

pub use accounts::Credentials;
pub use requests::{Answer, PaymentRequest, Status};

/// The MoMo simulator. Cheap to clone.
#[derive(Clone)]
pub struct Momo(Arc<Provider<Account>>);

/// Money of all accounts, in hundredths of the major unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Paid by payers, including what was returned later.
    pub taken: u64,
    /// Returned by refunds.
    pub returned: u64,
}

impl Momo {
    pub(crate) fn new(env: Arc<Env>) -> Momo {
        let momo = Momo(Arc::new(Provider::new(env)));
        momo.open_account(Credentials::default());
        momo
    }

    /// Opens an account, or replaces the credentials of the one with this API user.
    pub fn open_account(&self, credentials: Credentials) {
        let key = credentials.api_user.clone();
        self.0.with_account(&key, |account, _| account.credentials = credentials);
    }

    /// Returns all requests to pay, oldest first.
    #[must_use]
    pub fn payments(&self) -> Vec<PaymentRequest> {
        self.0
            .list(|account| account.payments.values().cloned().collect(), |payment| payment.number)
    }

    /// Answers an open request, by its `X-Reference-Id` or by the payer's phone number. Returns the
    /// request, or `None` if none is open.
    pub fn answer(&self, request: &str, answer: Answer) -> Option<PaymentRequest> {
        self.0.with_accounts(|accounts, env| {
            accounts.values_mut().find_map(|account| account.answer(env, request, answer))
        })
    }

    /// Returns the money taken and returned by all accounts.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for payment in self.payments().iter().filter(|payment| payment.is_paid()) {
            totals.taken += payment.amount;
            totals.returned += payment.refunded;
        }
        totals
    }

    /// Sets the balance of an account in hundredths of the major unit. A refund that exceeds the
    /// balance fails with the reason `NOT_ENOUGH_FUNDS`. Returns false if there is no such API
    /// user.
    pub fn set_balance(&self, api_user: &str, balance: u64) -> bool {
        self.0.apply_to_all(|account, _| {
            let own = account.credentials.api_user == api_user;
            if own {
                account.balance = balance;
            }
            own
        })
    }

    /// Reports another amount, in hundredths of the major unit, or currency. Returns false if no
    /// request has this `X-Reference-Id` or external id.
    pub fn tamper(&self, reference: &str, amount_minor: u64, currency: &str) -> bool {
        self.0.tamper(reference, amount_minor, currency)
    }

    /// Returns method and path (relative to MoMo's own base URL) of the most recent requests,
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
pub(crate) fn router<S: Clone + Send + Sync + 'static>(momo: &Momo, faults: &Faults) -> Router<S> {
    let on = |operation, route| with_faults(faults, operation, route);
    let api = Router::new()
        .route("/v1_0/apiuser", post(users::create))
        .route("/v1_0/apiuser/{id}", get(users::fetch))
        .route("/v1_0/apiuser/{id}/apikey", post(users::create_key))
        .route("/collection/token", on("login", post(login::collection)))
        .route("/collection/v1_0/requesttopay", on("initialize", post(requests::create)))
        .route("/collection/v1_0/requesttopay/{id}", on("verify", get(requests::fetch)))
        .route("/collection/v1_0/account/balance", get(accounts::balance))
        .route("/collection/v1_0/accountholder/{kind}/{id}/active", get(requests::is_active))
        .route("/disbursement/token", on("login", post(login::disbursement)))
        .route("/disbursement/v1_0/refund", on("refund", post(refunds::create)))
        .route("/disbursement/v1_0/refund/{id}", on("refund_status", get(refunds::fetch)))
        .route("/disbursement/v1_0/account/balance", get(accounts::balance))
        .fallback(http::unknown_path);
    momo.0
        .with_request_log("/momo", api)
        .route("/account", put(accounts::set_account))
        .with_state(momo.clone())
        .route("/tamper", put(tamper).with_state(momo.0.clone()))
}
