//! The state of a Flutterwave account.

use std::collections::{BTreeMap, HashMap};

use tollhouse_platform::clock::Timestamp;

use super::{
    chargebacks::Chargeback, http::ApiError, mandates::Mandate, merchant::TimerEvent,
    notify::Webhook, refunds::Refund, tokens::Token, transactions::Transaction,
};
use crate::{env::Env, listing::Lines, settlements::Settlements, timer_queue::TimerQueue};

/// Maximum length of a `tx_ref`.
const MAX_REFERENCE_CHARS: usize = 100;

pub(super) struct Account {
    key: String,
    pub id: u64,
    pub webhook: Option<Webhook>,
    pub transactions: BTreeMap<u64, Transaction>,
    pub references: HashMap<String, u64>,
    pub customers: BTreeMap<String, Customer>,
    /// Saved cards and bank accounts.
    pub tokens: BTreeMap<String, Token>,
    /// Keyed by reference.
    pub mandates: BTreeMap<String, Mandate>,
    pub refunds: BTreeMap<u64, Refund>,
    pub chargebacks: BTreeMap<u64, Chargeback>,
    pub payment_lines: Lines<Transaction>,
    pub refund_lines: Lines<Refund>,
    pub settlements: Settlements,
    /// Transaction ids by the ids of their pages.
    pub pages: HashMap<String, u64>,
    pub timers: TimerQueue<TimerEvent>,
}

#[derive(Clone)]
pub(super) struct Customer {
    pub id: u64,
    pub email: String,
    pub name: String,
    pub phone_number: Option<String>,
    pub created_at: Timestamp,
}

impl Account {
    pub(super) fn new(key: &str, env: &Env) -> Account {
        Account {
            key: key.to_owned(),
            id: 100_000 + env.random.below(900_000),
            webhook: None,
            transactions: BTreeMap::new(),
            references: HashMap::new(),
            customers: BTreeMap::new(),
            tokens: BTreeMap::new(),
            mandates: BTreeMap::new(),
            refunds: BTreeMap::new(),
            chargebacks: BTreeMap::new(),
            payment_lines: Lines::default(),
            refund_lines: Lines::default(),
            settlements: Settlements::default(),
            pages: HashMap::new(),
            timers: TimerQueue::default(),
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.key.starts_with("FLWSECK-")
    }

    pub(super) fn by_reference(&self, tx_ref: &str) -> Option<&Transaction> {
        self.transactions.get(self.references.get(tx_ref)?)
    }

    pub(super) fn by_reference_mut(&mut self, tx_ref: &str) -> Option<&mut Transaction> {
        self.transactions.get_mut(self.references.get(tx_ref)?)
    }

    /// Returns the customer of an e-mail address, created on first use. Details given later are
    /// added.
    pub(super) fn upsert_customer(
        &mut self,
        email: &str,
        name: Option<String>,
        phone_number: Option<String>,
        env: &Env,
    ) -> &Customer {
        let customer = self.customers.entry(email.to_owned()).or_insert_with(|| Customer {
            id: env.next_id(),
            email: email.to_owned(),
            name: "Anonymous customer".to_owned(),
            phone_number: None,
            created_at: env.clock.now(),
        });
        if let Some(name) = name {
            customer.name = name;
        }
        customer.phone_number = phone_number.or(customer.phone_number.take());
        customer
    }

    /// Returns the reference, if it is well formed and unused.
    pub(super) fn new_reference(&self, tx_ref: String) -> Result<String, ApiError> {
        if tx_ref.chars().count() > MAX_REFERENCE_CHARS {
            return Err(ApiError::invalid("tx_ref must not be longer than 100 characters"));
        }
        if self.references.contains_key(&tx_ref) {
            return Err(ApiError::invalid(
                "Duplicate transaction reference: tx_ref must be unique",
            ));
        }
        Ok(tx_ref)
    }

    /// The network, which ends the random part of tokens and references.
    pub(super) fn network(&self) -> &'static str {
        if self.is_live() { "k3n" } else { "m03k" }
    }
}
