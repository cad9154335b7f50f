//! The state of a Paystack account.

use std::collections::{BTreeMap, HashMap};

use axum::http::StatusCode;

use super::{
    cards::Card, disputes::Dispute, http::ApiError, mandates::Mandate, merchant::TimerEvent,
    refunds::Refund, transactions::Transaction,
};
use crate::{
    env::Env, keyed_hash, listing::Lines, settlements::Settlements, timer_queue::TimerQueue,
};

pub(super) struct Account {
    pub key: String,
    pub integration: u64,
    pub webhook: Option<String>,
    pub transactions: BTreeMap<u64, Transaction>,
    pub references: HashMap<String, u64>,
    pub customers: BTreeMap<String, Customer>,
    pub authorizations: BTreeMap<String, Authorization>,
    pub refunds: BTreeMap<u64, Refund>,
    pub disputes: BTreeMap<u64, Dispute>,
    pub payment_lines: Lines<Transaction>,
    pub refund_lines: Lines<Refund>,
    pub settlements: Settlements,
    /// Keyed by reference.
    pub mandates: BTreeMap<String, Mandate>,
    /// Keyed by access code.
    pub pages: HashMap<String, Page>,
    pub timers: TimerQueue<TimerEvent>,
}

/// The purpose of a hosted page.
#[derive(Clone)]
pub(super) enum Page {
    /// The id of the transaction.
    Transaction(u64),
    /// The reference of the mandate.
    Mandate(String),
}

#[derive(Clone)]
pub(super) struct Customer {
    pub id: u64,
    pub code: String,
    pub email: String,
}

#[derive(Clone)]
pub(super) struct Authorization {
    pub code: String,
    /// Charges must name the e-mail of the first charge.
    pub email: String,
    pub instrument: Instrument,
    pub active: bool,
    pub signature: String,
    pub exp_year: i32,
}

#[derive(Clone, Copy)]
pub(super) enum Instrument {
    Card(&'static Card),
    Mandate,
}

impl Account {
    pub(super) fn new(key: &str, env: &Env) -> Account {
        Account {
            key: key.to_owned(),
            integration: 100_000 + env.random.below(900_000),
            webhook: None,
            transactions: BTreeMap::new(),
            references: HashMap::new(),
            customers: BTreeMap::new(),
            authorizations: BTreeMap::new(),
            refunds: BTreeMap::new(),
            disputes: BTreeMap::new(),
            payment_lines: Lines::default(),
            refund_lines: Lines::default(),
            settlements: Settlements::default(),
            mandates: BTreeMap::new(),
            pages: HashMap::new(),
            timers: TimerQueue::default(),
        }
    }

    pub(super) fn domain(&self) -> &'static str {
        if self.is_live() { "live" } else { "test" }
    }

    pub(super) fn is_live(&self) -> bool {
        self.key.starts_with("sk_live_")
    }

    pub(super) fn by_reference(&self, reference: &str) -> Option<&Transaction> {
        self.transactions.get(self.references.get(reference)?)
    }

    pub(super) fn by_reference_mut(&mut self, reference: &str) -> Option<&mut Transaction> {
        self.transactions.get_mut(self.references.get(reference)?)
    }

    /// Returns the customer of an e-mail address, created on first use.
    pub(super) fn customer(&mut self, email: &str, env: &Env) -> Customer {
        let customer = self.customers.entry(email.to_owned()).or_insert_with(|| Customer {
            id: env.next_id(),
            code: format!("CUS_{}", env.random.code(15)),
            email: email.to_owned(),
        });
        customer.clone()
    }

    /// Creates an authorization, which is not active yet.
    pub(super) fn authorize(
        &mut self,
        instrument: Instrument,
        email: &str,
        env: &Env,
    ) -> Authorization {
        let number = match instrument {
            Instrument::Card(card) => card.number.to_owned(),
            Instrument::Mandate => format!("mandate of {email}"),
        };
        let authorization = Authorization {
            code: format!("AUTH_{}", env.random.code(10)),
            email: email.to_owned(),
            instrument,
            active: false,
            signature: self.signature(&number),
            exp_year: chrono::Datelike::year(&env.clock.now().to_datetime()) + 4,
        };
        self.authorizations.insert(authorization.code.clone(), authorization.clone());
        authorization
    }

    /// Identifies a card within one account.
    fn signature(&self, number: &str) -> String {
        let hash = keyed_hash::sha256(self.key.as_bytes(), number.as_bytes());
        format!("SIG_{}", &hex::encode(hash)[..20])
    }

    /// Returns the requested reference, if it is well formed and unused, or a new one.
    pub(super) fn new_reference(
        &self,
        requested: Option<String>,
        env: &Env,
    ) -> Result<String, ApiError> {
        let Some(reference) = requested else { return Ok(env.random.code(10)) };
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-.=".contains(c);
        if !reference.chars().all(allowed) {
            return Err(ApiError::invalid(
                "invalid_reference",
                "Invalid transaction reference. Only -,., = and alphanumeric characters are allowed",
                "Ensure that the reference has allowed characters only",
            ));
        }
        if self.references.contains_key(&reference) {
            return Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                "duplicate_reference",
                "Duplicate Transaction Reference",
                "Use a new reference",
            ));
        }
        Ok(reference)
    }
}
