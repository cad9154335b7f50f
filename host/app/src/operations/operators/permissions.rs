//! Permissions of operators, and the built-in roles that combine them.

pub use tollhouse_http::ANY_OPERATOR;
use tollhouse_http::Permission;

/// A permission, what it allows, and whether it shows personal data.
pub struct PermissionInfo {
    pub name: Permission,
    pub allows: &'static str,
    /// Each use is recorded in the audit log.
    pub personal_data: bool,
}

macro_rules! permissions {
    (@personal_data personal) => { true };
    (@personal_data plain) => { false };
    ($($constant:ident $name:literal $kind:ident $allows:literal;)*) => {
        $(#[doc = $allows] pub const $constant: Permission = $name;)*

        /// All permissions.
        pub const PERMISSIONS: &[PermissionInfo] = &[$(PermissionInfo {
            name: $constant,
            allows: $allows,
            personal_data: permissions!(@personal_data $kind),
        }),*];
    };
}

// `personal` permissions show personal data.
permissions! {
    COMPANIES_READ "companies.read" plain "See companies, their API keys, prices, identity types, collection policies and provider accounts";
    COMPANIES_WRITE "companies.write" plain "Create, edit and suspend companies, and change their subscriptions";
    KEYS_WRITE "keys.write" plain "Create, rotate and revoke API keys and event secrets";
    PROVIDERS_WRITE "providers.write" plain "Configure and test provider accounts";
    PRICES_WRITE "prices.write" plain "Set prices";
    IDENTITIES_WRITE "identities.write" plain "Enable and disable identity types";
    WALLET_READ "wallet.read" plain "See balances, ledger entries, statements and totals";
    WALLET_WRITE "wallet.write" plain "Credit and debit wallets";
    PAYMENTS_READ "payments.read" personal "See payments";
    REFUNDS_READ "refunds.read" plain "See refunds, disputes and exceptions of charges";
    PAYMENTS_VERIFY "payments.verify" plain "Verify payments with the provider";
    REFUNDS_WRITE "refunds.write" plain "Refund payments, and retry refunds of cards";
    DISPUTES_ANSWER "disputes.answer" plain "Answer disputes of charges";
    EXCEPTIONS_RESOLVE "exceptions.resolve" plain "Resolve exceptions of charges";
    EVENTS_READ "events.read" personal "See events of companies and their deliveries";
    EVENTS_WRITE "events.write" plain "Manage event endpoints, and trigger events of test companies";
    EVENTS_REDELIVER "events.redeliver" plain "Redeliver events";
    MESSAGES_READ "messages.read" personal "See e-mails and text messages";
    REQUESTS_READ "requests.read" plain "See the API requests of companies";
    USERS_READ "users.read" personal "See users, their cards and their virtual accounts";
    IDENTITIES_READ "identities.read" personal "See identity records of users";
    LENDING_READ "lending.read" personal "See loans, recollections and direct debit mandates";
    LENDING_WRITE "lending.write" plain "Create and replace loans, direct debit mandates and collection policies";
    FEEDS_READ "feeds.read" plain "Read operator events, repayments and credit-score events";
    PLUGINS_READ "plugins.read" plain "See plugins, and examine components";
    PLUGINS_WRITE "plugins.write" plain "Install, activate and remove plugins";
    PUBLISHERS_WRITE "publishers.write" plain "Trust and distrust plugin publishers";
    RECORDINGS_READ "recordings.read" plain "See recorded plugin calls, with personal data masked";
    JOBS_READ "jobs.read" plain "See failing jobs";
    JOBS_RETRY "jobs.retry" plain "Retry failing jobs";
    HOSTS_READ "hosts.read" plain "See the hosts and what they serve";
    MASTER_KEY_READ "master_key.read" plain "Count sealed values by master key";
    MASTER_KEY_ROTATE "master_key.rotate" plain "Reseal values of former master keys";
    MEMBERS_READ "members.read" plain "See the members of companies";
    MEMBERS_WRITE "members.write" plain "Invite and change members of companies";
    AUDIT_READ "audit.read" plain "Read and export the audit log";
    OPERATORS_READ "operators.read" plain "See operators, their tokens and roles";
    OPERATORS_WRITE "operators.write" plain "Create and change operators, tokens and roles";
    APPROVALS_READ "approvals.read" plain "See actions that need an approval";
    APPROVALS_DECIDE "approvals.decide" plain "Approve and reject actions of other operators";
    CLOCK_ADVANCE "clock.advance" plain "Advance the clock in development mode";
}

/// A role that every host has.
pub struct BuiltInRole {
    pub name: &'static str,
    pub permissions: &'static [Permission],
}

/// The role with all permissions. While an operator with it can authenticate, the operator token of
/// the configuration is rejected.
pub const ADMINISTRATOR: &str = "administrator";

const ALL: [Permission; PERMISSIONS.len()] = {
    let mut all = [""; PERMISSIONS.len()];
    let mut n = 0;
    while n < all.len() {
        all[n] = PERMISSIONS[n].name;
        n += 1;
    }
    all
};

pub const ROLES: &[BuiltInRole] = &[
    BuiltInRole {
        name: "support-read",
        permissions: &[
            COMPANIES_READ, PAYMENTS_READ, REFUNDS_READ, EVENTS_READ, MESSAGES_READ, USERS_READ,
            LENDING_READ, REQUESTS_READ,
        ],
    },
    BuiltInRole {
        name: "support-act",
        permissions: &[
            COMPANIES_READ, PAYMENTS_READ, REFUNDS_READ, EVENTS_READ, MESSAGES_READ, USERS_READ,
            LENDING_READ, IDENTITIES_READ, PAYMENTS_VERIFY, REFUNDS_WRITE, DISPUTES_ANSWER,
            EVENTS_REDELIVER, APPROVALS_READ, REQUESTS_READ,
        ],
    },
    BuiltInRole {
        name: "finance-read",
        permissions: &[COMPANIES_READ, WALLET_READ, PAYMENTS_READ, REFUNDS_READ, LENDING_READ],
    },
    BuiltInRole {
        name: "finance-act",
        permissions: &[
            COMPANIES_READ, WALLET_READ, PAYMENTS_READ, REFUNDS_READ, LENDING_READ, WALLET_WRITE,
            PAYMENTS_VERIFY, REFUNDS_WRITE, DISPUTES_ANSWER, EXCEPTIONS_RESOLVE, APPROVALS_READ,
            APPROVALS_DECIDE,
        ],
    },
    BuiltInRole {
        name: "platform",
        permissions: &[
            COMPANIES_READ, PROVIDERS_WRITE, IDENTITIES_WRITE, PLUGINS_READ, PLUGINS_WRITE,
            PUBLISHERS_WRITE, RECORDINGS_READ, JOBS_READ, JOBS_RETRY, HOSTS_READ, MASTER_KEY_READ,
            MASTER_KEY_ROTATE, CLOCK_ADVANCE, APPROVALS_READ, APPROVALS_DECIDE, REQUESTS_READ,
        ],
    },
    BuiltInRole {
        name: "security",
        permissions: &[
            COMPANIES_READ, PLUGINS_READ, HOSTS_READ, MASTER_KEY_READ, AUDIT_READ, OPERATORS_READ,
            APPROVALS_READ,
        ],
    },
    BuiltInRole {
        name: "company-admin",
        permissions: &[
            COMPANIES_READ, COMPANIES_WRITE, KEYS_WRITE, PROVIDERS_WRITE, PRICES_WRITE,
            IDENTITIES_WRITE, WALLET_READ, EVENTS_READ, EVENTS_REDELIVER, EVENTS_WRITE,
            MEMBERS_READ, REQUESTS_READ,
        ],
    },
    BuiltInRole { name: "integration", permissions: &[FEEDS_READ, LENDING_READ, LENDING_WRITE] },
    BuiltInRole {
        name: COMPANY_OWNER,
        permissions: &[
            COMPANIES_READ, KEYS_WRITE, WALLET_READ, PAYMENTS_READ, PAYMENTS_VERIFY, REFUNDS_READ,
            EVENTS_READ, EVENTS_WRITE, EVENTS_REDELIVER, MESSAGES_READ, USERS_READ,
            IDENTITIES_READ, LENDING_READ, MEMBERS_READ, MEMBERS_WRITE, REQUESTS_READ,
            DISPUTES_ANSWER,
        ],
    },
    BuiltInRole {
        name: "company-finance",
        permissions: &[COMPANIES_READ, WALLET_READ, PAYMENTS_READ, REFUNDS_READ, LENDING_READ],
    },
    BuiltInRole {
        name: "company-support",
        permissions: &[
            COMPANIES_READ, PAYMENTS_READ, PAYMENTS_VERIFY, REFUNDS_READ, EVENTS_READ,
            MESSAGES_READ, USERS_READ, IDENTITIES_READ, LENDING_READ,
        ],
    },
    BuiltInRole {
        name: "company-developer",
        permissions: &[
            COMPANIES_READ, KEYS_WRITE, PAYMENTS_READ, EVENTS_READ, EVENTS_WRITE, EVENTS_REDELIVER,
            REQUESTS_READ,
        ],
    },
    BuiltInRole { name: ADMINISTRATOR, permissions: &ALL },
];

/// The role of members that can invite and change others.
pub const COMPANY_OWNER: &str = "company-owner";

/// The built-in roles of members. Operators cannot have them.
pub const MEMBER_ROLES: &[&str] =
    &[COMPANY_OWNER, "company-finance", "company-support", "company-developer"];

/// Returns a permission by its name.
pub fn find(name: &str) -> Option<&'static PermissionInfo> {
    PERMISSIONS.iter().find(|permission| permission.name == name)
}

/// Returns the permissions of a built-in role.
pub fn of_built_in(role: &str) -> Option<&'static [Permission]> {
    ROLES.iter().find(|built_in| built_in.name == role).map(|built_in| built_in.permissions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_each_permission_belongs_to_a_role() {
        for (n, permission) in PERMISSIONS.iter().enumerate() {
            assert!(PERMISSIONS[..n].iter().all(|other| other.name != permission.name));
            let others = &ROLES[..ROLES.len() - 1];
            let in_roles = others.iter().any(|role| role.permissions.contains(&permission.name));
            assert!(in_roles || permission.name == OPERATORS_WRITE, "{}", permission.name);
        }
        assert!(find(PAYMENTS_READ).is_some_and(|permission| permission.personal_data));
        assert!(find(WALLET_READ).is_some_and(|permission| !permission.personal_data));
        assert_eq!(of_built_in(ADMINISTRATOR).map(<[_]>::len), Some(PERMISSIONS.len()));
    }
}
