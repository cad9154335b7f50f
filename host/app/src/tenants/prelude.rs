//! Common imports from this area: `use crate::tenants::prelude::*`.

pub use super::{
    companies::{self, AuthenticatedCompany, Company, FetchingCompany, check_event_url},
    providers::{self, Account, AccountId, NoAccount},
    wallet,
};
pub use crate::{
    operations::{
        audit::{self, Actor},
        operators::approvals::{self, ApprovalSubject},
    },
    state::prelude::*,
};
