//! The texts of the OpenAPI documents: introductions and groups of routes.

use tollhouse_http::openapi::Tag;

/// The sections of the OpenAPI document in reading order: handlers' module, name, description.
pub const TAGS: &[Tag] = &[
    ("payments", "payments", "One-time payments through hosted checkout, and their refunds."),
    (
        "sessions",
        "sessions",
        "Notifications of one charge or refund, and the status page for its payer.",
    ),
    ("routing", "routing", "The choice of a provider for each payment of a company."),
    ("cards", "cards", "Cards saved by a verification charge, which is refunded."),
    (
        "virtual_accounts",
        "virtual accounts",
        "Bank accounts of users, whose transfers become payments or repay a loan.",
    ),
    ("enquiry", "account enquiry", "Banks, and the names of the holders of their accounts."),
    ("refunds", "refunds", "Refunds of payments and of verification charges."),
    ("disputes", "disputes", "Claims of payers, through their banks, against charges."),
    (
        "reconciliation",
        "reconciliation",
        "Transactions and settlements that providers report, compared with the records.",
    ),
    ("exceptions", "exceptions", "Differences between records and their providers."),
    (
        "recollections",
        "recollections",
        "Repayments of loans: manual, checkout, card or direct debit.",
    ),
    ("loans", "loans", "Loans of another system, and feeds of their repayments."),
    (
        "collections",
        "collection policies",
        "How a company collects due installments: instruments, days, hours and limits.",
    ),
    (
        "mandates",
        "direct debits",
        "Mandates to debit bank accounts, obtained here or by another system.",
    ),
    (
        "otp",
        "one-time passwords",
        "Codes sent by e-mail, by text message or by both, each valid once.",
    ),
    ("users", "users", "Customers of the company."),
    (
        "identity",
        "identity lookups",
        "Queries of identity registers, and verification that a customer is the person on record. \
         Installed plugins determine the countries and identity types.",
    ),
    ("events", "events", "Webhooks to companies, signed according to Standard Webhooks."),
    ("messages", "messages", "E-mails and text messages, with their delivery status."),
    ("notifications", "notifications", "Webhooks from providers. Companies do not call this."),
    ("requests", "API log", "Requests of companies to the API, without their content."),
    ("companies", "companies", "Companies, their API keys, subscriptions and event secrets."),
    ("members", "members", "People of a company, who use its portal."),
    ("providers", "providers", "Provider accounts of the service and of companies."),
    ("wallet", "wallet", "A company's balances, ledger entries and statements."),
    ("totals", "totals", "Charged amounts, outcomes of payments, and what needs attention."),
    ("plans", "prices", "Prices of billing items, in a company's own plan or the default plan."),
    (
        "operator_events",
        "operator events",
        "Events for operators and internal consumers: a feed, read by cursor.",
    ),
    ("plugins", "plugins", "Provider components, which can be replaced without a restart."),
    ("calls", "plugin calls", "Plugin call counts by hour."),
    ("recordings", "recorded calls", "Recorded plugin calls, with personal data masked."),
    (
        "operators",
        "operators",
        "People and services that use this interface, their roles and approvals.",
    ),
    (
        "search",
        "search",
        "Search across all companies by exact e-mail address, phone number, reference, id or amount.",
    ),
    ("audit", "audit", "Actions of operators, hash-chained."),
    ("jobs", "jobs", "Jobs that fail repeatedly, and their retry by operators."),
    ("hosts", "hosts", "Hosts on this database, with the plugin versions that they serve."),
    ("master_key", "master key", "The key that seals secrets in the database, and its rotation."),
    ("metrics", "metrics", "Metrics in the Prometheus format."),
    ("health", "health", "Liveness and readiness of this host."),
    ("docs", "docs", "This document and its viewer."),
];

pub const PUBLIC_INTRODUCTION: &str = "\
For companies, and for webhooks of their providers.

## API key

Every request of a company carries its API key, which belongs on a server and never in a browser or an app:

    Authorization: Bearer sk_live_0123456789abcdef0123456789abcdef01234567
";

pub const INTERNAL_INTRODUCTION: &str = "\
For operators and internal consumers.

## Operator token

Every request to `/internal/v1` carries the token of an operator, except the requests to sign in.
Each operation names the permission that it requires; the operator's roles grant permissions:

    Authorization: Bearer op_0123456789abcdef0123456789abcdef
";
