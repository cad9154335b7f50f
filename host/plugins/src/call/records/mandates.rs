//! Mandates: authorizations of payers to debit a bank account, obtained through the provider.

use serde::Serialize;

use crate::{PluginData, Provider};
use tollhouse_platform::{clock::Timestamp, values::money::Money};

/// The interfaces of mandates, and of their debits.
const MANDATES: &str = "mandates";
const DIRECT_DEBIT: &str = "direct-debit";

/// A bank account to debit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebitedAccount {
    pub bank_code: String,
    pub account_number: String,
}

/// A mandate to obtain from a payer.
#[derive(Clone)]
pub struct MandateOrder {
    pub mandate_ref: String,
    pub currency: String,
    pub email: String,
    pub name: String,
    pub phone: Option<String>,
    pub address: Option<String>,
    pub account: Option<DebitedAccount>,
    /// Maximum amount of one debit.
    pub max_amount: Option<Money>,
    pub starts_at: Timestamp,
    pub ends_at: Option<Timestamp>,
    pub narration: String,
    pub return_url: String,
    pub notification_url: String,
}

/// How the payer authorizes a mandate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// The URL of a page.
    Page(String),
    /// An instruction to the payer.
    Instruction(String),
}

/// A mandate for which the provider has begun authorization.
#[derive(Clone, Debug)]
pub struct MandateSession {
    pub consent: Consent,
    pub service_ref: String,
    pub state: PluginData,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MandateStatus {
    /// The payer has not authorized it.
    Created,
    /// The bank has not activated it yet.
    Approved,
    /// It can be debited.
    Ready,
    Cancelled,
}

/// A mandate as the host knows it.
#[derive(Clone)]
pub struct KnownMandate {
    pub service_ref: String,
    pub status: MandateStatus,
    /// `None` if the response to the order was lost.
    pub state: Option<PluginData>,
}

/// A mandate as the provider reports it.
#[derive(Clone)]
pub struct ProviderMandate {
    pub status: MandateStatus,
    /// The token with which the account is debited; empty until the mandate is ready.
    pub token: String,
    /// If empty, the address in the order applies.
    pub email: String,
    pub bank: String,
    pub last4: String,
    pub consent: Option<Consent>,
    pub message: String,
}

impl Provider {
    /// Returns whether the plugin begins mandates and debits them.
    #[must_use]
    pub fn has_mandates(&self) -> bool {
        self.exports(MANDATES) && self.exports(DIRECT_DEBIT)
    }
}
