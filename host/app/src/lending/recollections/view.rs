//! Recollections in API responses and events.

use super::{CHECKOUT, Recollection, RecollectionId, Status, store::Checkout};
use crate::{
    lending::{loans::LoanId, mandates::MandateId},
    money::{cards::CardId, prelude::*},
};

/// A recollection. `loan` is an id or, when fetched by reference, the loan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "RecollectionOf{Loan}")]
pub struct View<Loan> {
    id: RecollectionId,
    /// The borrower.
    user: Option<users::View>,
    user_id: String,
    loan: Loan,
    status: Status,
    amount: Minor,
    currency: Currency,
    /// The provider; empty for a manual recollection.
    payment_service: String,
    /// `checkout`, `card`, `direct_debit` or `virtual_account`; any label for a manual
    /// recollection.
    payment_channel: String,
    reference: String,
    /// The provider's status message, or one of the service.
    message: String,
    /// Why the charge was declined. Absent if it was not, or if the provider does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    decline: Option<Decline>,
    with_provider: bool,
    callback_url: Option<String>,
    repaid_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<CardId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direct_debit: Option<MandateId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkout: Option<Checkout>,
    metadata: Map<String, Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// A recollection in events.
pub type EventData = View<LoanId>;

impl Recollection {
    pub fn view(self, user: Option<users::View>) -> View<LoanId> {
        let loan = self.loan_id.clone();
        self.view_with_loan(user, loan)
    }

    pub fn view_with_loan<Loan>(self, user: Option<users::View>, loan: Loan) -> View<Loan> {
        let shown = self.payment_channel == CHECKOUT || self.checkout.url.is_some();
        View {
            id: self.id,
            user,
            user_id: self.user_id,
            loan,
            status: self.status,
            amount: self.amount,
            currency: self.currency,
            payment_service: self.payment_service,
            payment_channel: self.payment_channel,
            reference: self.reference,
            message: self.message,
            decline: self.decline,
            with_provider: self.with_provider,
            callback_url: self.callback_url,
            repaid_at: self.repaid_at,
            card: self.card_id,
            direct_debit: self.direct_debit_id,
            checkout: (shown && self.with_provider).then_some(self.checkout),
            metadata: self.metadata.0,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}
