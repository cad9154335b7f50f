//! Disputes: claims of payers, through their banks, against payments.

use serde::Serialize;

use crate::{CallError, Credentials, Provider};
use tollhouse_platform::{clock::Timestamp, values::money::Money};

/// The interface of disputes.
const DISPUTES: &str = "disputes";

/// Maximum number of pages of a list: a plugin may return cursors without end.
const MAX_PAGES: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DisputeStatus {
    /// The provider waits for an answer.
    Open,
    /// The company contested the dispute, and the bank decides.
    Answered,
    Won,
    /// The payer gets the money.
    Lost,
}

/// Identifies a dispute at a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisputeKey {
    pub id: String,
    /// The payment's service reference.
    pub service_ref: String,
    /// The payment's transaction id; may be empty.
    pub transaction_id: String,
}

/// A dispute as the provider reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderDispute {
    pub key: DisputeKey,
    pub status: DisputeStatus,
    /// The disputed amount; of a lost dispute, the amount that the payer gets.
    pub amount: Money,
    pub reason: String,
    /// The time until which it can be answered.
    pub due_at: Option<Timestamp>,
    pub opened_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub enum DisputeFilter {
    /// The disputes of a payment: its service reference and its transaction id.
    Payment(String, String),
    /// Disputes that were opened since this time.
    Since(Timestamp),
}

#[derive(Clone, Debug)]
pub struct DisputePage {
    pub disputes: Vec<ProviderDispute>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// Evidence that a disputed payment was legitimate.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub customer_name: String,
    pub customer_email: String,
    /// In E.164.
    pub customer_phone: Option<String>,
    pub service: String,
    pub document_url: Option<String>,
}

#[derive(Clone, Debug)]
pub struct DisputeAnswer {
    pub key: DisputeKey,
    pub amount: Money,
    /// `None`: the company accepts the dispute.
    pub evidence: Option<Evidence>,
    pub message: String,
}

impl Provider {
    #[must_use]
    pub fn has_disputes(&self) -> bool {
        self.exports(DISPUTES)
    }

    /// Returns all pages of a list of disputes.
    pub async fn find_disputes(
        &self,
        credentials: &Credentials,
        filter: &DisputeFilter,
    ) -> Result<Vec<ProviderDispute>, CallError> {
        let (mut found, mut cursor) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let page = self.list_disputes(credentials, filter, &cursor).await?;
            found.extend(page.disputes);
            if page.next.is_none() {
                return Ok(found);
            }
            cursor = page.next;
        }
        tracing::error!(plugin = self.label(), "a list of disputes has too many pages");
        Ok(found)
    }
}
