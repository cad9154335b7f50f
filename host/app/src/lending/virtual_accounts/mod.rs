//! Virtual accounts: bank accounts that a provider opens for one payer each, and whose transfers
//! arrive without an order.
//!
//! A webhook of a payment that the host does not know enqueues a job, which queries the provider
//! for the transfer and its account. The transfer is then recorded as a payment of the account's
//! user, or as a recollection of its loan, with a charge under the provider's reference. Like every
//! other charge, it is settled by a verification.

pub mod api;
mod open;
mod store;
mod transfers;

pub use self::{
    open::close_job,
    store::{VirtualAccount, VirtualAccountId, is_any_at},
    transfers::transfer_job,
};
use crate::{lending::loans::LoanId, money::prelude::*};

/// The interface of plugins that open virtual accounts.
pub const INTERFACE: &str = "virtual-accounts";
/// The job that records a transfer. Its subject names provider account and reference.
pub const TRANSFER_JOB: &str = "virtual_account.transfer";

/// The job that closes an account at the provider.
pub const CLOSE_JOB: &str = "virtual_account.close";

/// A virtual account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "VirtualAccount")]
pub struct View {
    id: VirtualAccountId,
    /// The internal id of the user.
    user: UserKey,
    user_id: String,
    /// The loan that transfers repay; `null` if they are payments.
    loan: Option<LoanId>,
    payment_service: String,
    currency: Currency,
    account_number: String,
    /// The name of the bank.
    bank: String,
    /// The account's name, as payers see it.
    account_name: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl VirtualAccount {
    fn view(self) -> View {
        View {
            id: self.id,
            user: self.user_key,
            user_id: self.user_id,
            loan: self.loan_id,
            payment_service: self.payment_service,
            currency: self.currency,
            account_number: self.account_number,
            bank: self.bank,
            account_name: self.holder,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// The same error for a missing account, a closed one, and one of another company.
fn not_found() -> Error {
    Error::not_found("virtual account not found")
}
