//! The state of a Monnify account.

use std::collections::{BTreeMap, HashMap};

use tollhouse_platform::clock::Timestamp;

use super::{
    cards::Card,
    http::{ApiError, Params},
    mandates::Mandate,
    merchant::TimerEvent,
    refunds::Refund,
    reserved::ReservedAccount,
    transactions::Transaction,
};
use crate::{env::Env, listing::Lines, timer_queue::TimerQueue};

pub(super) struct Account {
    pub number: u64,
    pub api_key: String,
    pub secret_key: Option<String>,
    contract_code: Option<String>,
    pub webhook: Option<String>,
    pub tokenization: bool,
    /// Expiry time of each token.
    pub access_tokens: BTreeMap<String, Timestamp>,
    /// Keyed by payment reference.
    pub transactions: BTreeMap<String, Transaction>,
    /// Payment references by transaction reference.
    pub references: HashMap<String, String>,
    pub saved_cards: BTreeMap<String, SavedCard>,
    /// Keyed by the merchant's reference.
    pub refunds: BTreeMap<String, Refund>,
    pub payment_lines: Lines<Transaction>,
    pub refund_lines: Lines<Refund>,
    /// Keyed by the merchant's reference.
    pub reserved: BTreeMap<String, ReservedAccount>,
    /// Keyed by code.
    pub mandates: BTreeMap<String, Mandate>,
    pub pages: HashMap<String, Page>,
    pub timers: TimerQueue<TimerEvent>,
}

/// The purpose of a hosted page.
#[derive(Clone)]
pub(super) enum Page {
    /// The payment reference.
    Transaction(String),
    /// The code of the mandate.
    Mandate(String),
}

#[derive(Clone)]
pub(super) struct SavedCard {
    pub card: &'static Card,
    /// Charges must name the e-mail of the first charge.
    pub email: String,
}

impl Account {
    pub(super) fn new(api_key: &str, env: &Env) -> Account {
        Account {
            number: 10_000_000 + env.random.below(90_000_000),
            api_key: api_key.to_owned(),
            secret_key: None,
            contract_code: None,
            webhook: None,
            tokenization: true,
            access_tokens: BTreeMap::new(),
            transactions: BTreeMap::new(),
            references: HashMap::new(),
            saved_cards: BTreeMap::new(),
            refunds: BTreeMap::new(),
            payment_lines: Lines::default(),
            refund_lines: Lines::default(),
            reserved: BTreeMap::new(),
            mandates: BTreeMap::new(),
            pages: HashMap::new(),
            timers: TimerQueue::default(),
        }
    }

    pub(super) fn merchant(&self) -> String {
        format!("Merchant {}", self.number)
    }

    /// Returns a transaction by either of its references.
    pub(super) fn by_reference(&self, reference: &str) -> Option<&Transaction> {
        let own = self.references.get(reference).map_or(reference, String::as_str);
        self.transactions.get(own)
    }

    pub(super) fn by_reference_mut(&mut self, reference: &str) -> Option<&mut Transaction> {
        let own = self.references.get(reference).map_or(reference, String::as_str);
        self.transactions.get_mut(own)
    }

    /// Checks the contract code; the first one used becomes the account's.
    pub(super) fn check_contract(&mut self, params: &Params) -> Result<String, ApiError> {
        let code = params.required("contractCode")?;
        let well_formed = code.len() >= 6 && code.bytes().all(|b| b.is_ascii_digit());
        let own = |own: &String| *own == code;
        if !well_formed || !self.contract_code.as_ref().is_none_or(own) {
            return Err(ApiError::invalid("Contract code is not valid for this merchant"));
        }
        self.contract_code = Some(code.clone());
        Ok(code)
    }

    /// Returns the requested payment reference, if it is unused.
    pub(super) fn new_reference(&self, params: &Params) -> Result<String, ApiError> {
        let reference = params.required("paymentReference")?;
        if self.transactions.contains_key(&reference) {
            return Err(ApiError::invalid("Duplicate payment reference"));
        }
        Ok(reference)
    }
}
