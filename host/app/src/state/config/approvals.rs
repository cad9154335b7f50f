//! Settings of approvals.

use clap::ValueEnum;

use super::service::threshold;
use tollhouse_platform::{config::settings, values::money::Minor};

/// Actions that may need the approval of a second operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ApprovalSubject {
    /// Credits and debits of wallets above `approval_amount`.
    Wallet,
    /// Refunds that may make a wallet's balance negative.
    ForcedRefunds,
    /// Resolutions of exceptions of more than `approval_amount`.
    Exceptions,
    /// Grants of capabilities to plugins.
    PluginGrants,
    /// Trusting and distrusting publishers.
    Publishers,
    /// Creating and editing operators, creating tokens and invitations, and saving roles, once two
    /// administrators can authenticate.
    Operators,
    /// Reading the identity records of more than `approval_identities` users within 24 hours.
    Identities,
}

settings! {
    "Approvals" ApprovalSettings;
    /// Actions that a second operator must approve. Comma-separated, or repeated
    approvals: Vec<ApprovalSubject>, "TOLLHOUSE_APPROVALS", "actions", value_delimiter = ',',
        value_enum;
    /// Largest credit, debit or exception that needs no approval, in the major unit of its currency
    approval_amount: Minor, "TOLLHOUSE_APPROVAL_AMOUNT", "amount", default_value = "0",
        value_parser = threshold;
    /// Number of users whose identity records an operator may read within 24 hours without an
    /// approval
    approval_identities: u32 = 20, "TOLLHOUSE_APPROVAL_IDENTITIES", "users";
}
