//! Every statement on a company's table names the company, and the tables can be distributed by it.

use proc_macro2::{TokenStream, TokenTree};
use tollhouse_app::wiring::SEALED;

use super::{Text, assert_none, texts};

/// Tables that belong to no single company.
const SHARED: [(&str, &str); 21] = [
    ("companies", "its id is the company"),
    ("hosts", "hosts serve everyone"),
    ("operators", "operators belong to the service, and members are found by their session"),
    ("operator_identities", "operators belong to the service"),
    ("operator_passwords", "operators belong to the service"),
    ("identity_reads", "what operators read"),
    ("operator_roles", "operators belong to the service"),
    ("operator_tokens", "operators belong to the service"),
    ("operator_views", "operators belong to the service"),
    ("approvals", "operators decide them"),
    ("account_listings", "a service account serves many companies"),
    ("provider_transactions", "a service account serves many companies"),
    ("provider_settlements", "a service account serves many companies"),
    ("closed_days", "a service account serves many companies"),
    ("plugin_call_hours", "plugins serve everyone"),
    ("plugin_components", "plugins serve everyone"),
    ("plugin_names", "plugins serve everyone"),
    ("plugin_publishers", "plugins serve everyone"),
    ("plugin_publishers_gone", "plugins serve everyone"),
    ("plugin_versions", "plugins serve everyone"),
    ("plugin_versions_gone", "plugins serve everyone"),
];

/// Keys that are unique across companies: they find the company, or the engine assigns them.
const FINDS_THE_COMPANY: [(&str, &str); 5] = [
    ("api_keys", "digest"),
    ("provider_accounts", "id"),
    ("service_refs", "account_id, service_ref"),
    ("notifications", "account_id, digest"),
    ("user_words", "number"),
];

/// Statements that find the owner of a record, or work for all companies.
const UNSCOPED: [(&str, &str, &str); 25] = [
    ("host/app/src/money/totals/store.rs", "payments", "counts payments of all companies"),
    (
        "host/app/src/operations/monitor/store.rs",
        "charge_refunds",
        "counts open refunds, and what needs a plugin, of all companies",
    ),
    (
        "host/app/src/operations/monitor/store.rs",
        "exceptions",
        "counts open exceptions of all companies",
    ),
    (
        "host/app/src/operations/monitor/store.rs",
        "cards",
        "counts what needs a plugin, of all companies",
    ),
    (
        "host/app/src/operations/monitor/store.rs",
        "direct_debits",
        "counts what needs a plugin, of all companies",
    ),
    (
        "host/app/src/operations/monitor/store.rs",
        "provider_accounts",
        "counts what needs a plugin, of all companies",
    ),
    (
        "host/app/src/operations/monitor/store.rs",
        "messages",
        "counts queued messages of all companies",
    ),
    (
        "host/app/src/operations/monitor/store.rs",
        "recollections",
        "counts pending ones of all companies",
    ),
    ("host/app/src/tenants/companies/store.rs", "api_keys", "a key finds its company"),
    (
        "host/app/src/tenants/providers/store.rs",
        "provider_accounts",
        "the URL of a webhook has the account's id",
    ),
    (
        "host/app/src/webhooks/incoming/store.rs",
        "service_refs",
        "a reference finds its record within an account",
    ),
    (
        "host/app/src/lending/virtual_accounts/store.rs",
        "virtual_accounts",
        "a transfer finds its virtual account within a provider account",
    ),
    (
        "host/app/src/money/reconciliation/store/unlisted.rs",
        "charges",
        "lists what a provider's list lacks, of all companies",
    ),
    (
        "host/app/src/money/reconciliation/store/transactions.rs",
        "charge_refunds",
        "a listed refund finds its charge within an account",
    ),
    (
        "host/app/src/money/reconciliation/store/transactions.rs",
        "disputes",
        "a listed dispute finds its charge within an account",
    ),
    (
        "host/app/src/money/reconciliation/store/unlisted.rs",
        "charge_refunds",
        "lists what a provider's list lacks, of all companies",
    ),
    (
        "host/app/src/money/reconciliation/store/unlisted.rs",
        "disputes",
        "lists what a provider's list lacks, of all companies",
    ),
    (
        "host/app/src/money/reconciliation/store/days.rs",
        "exceptions",
        "counts those of a provider account",
    ),
    ("host/platform/src/background/jobs/store.rs", "jobs", "workers serve all companies"),
    ("host/app/src/operations/jobs/store.rs", "jobs", "operators see all companies"),
    (
        "host/app/src/operations/recordings/store.rs",
        "plugin_recordings",
        "plugins serve all companies",
    ),
    ("host/app/src/operations/audit/store.rs", "audit_log", "the operator's own log"),
    ("host/app/src/operations/monitor/store.rs", "jobs", "gauges are of all companies"),
    ("host/app/src/operations/monitor/store.rs", "event_deliveries", "gauges are of all companies"),
    ("host/app/src/operations/monitor/store.rs", "payments", "gauges are of all companies"),
];

struct Table {
    name: String,
    body: String,
}

fn tables() -> Vec<Table> {
    let sql: String = texts(&["migrations"], "sql").into_iter().map(|file| file.text).collect();
    let created = sql.split("CREATE TABLE ").skip(1);
    let table = |text: &str| {
        let (name, rest) = text.split_once(" (").expect("a table's name");
        let body = rest.split("\n)").next().unwrap_or_default();
        Table { name: name.to_owned(), body: body.to_owned() }
    };
    let is_there = |table: &Table| !sql.contains(&format!("DROP TABLE {};", table.name));
    created.map(table).filter(is_there).collect()
}

fn is_shared(table: &str) -> bool {
    SHARED.iter().any(|(name, _)| *name == table)
}

/// The columns of each key of a table.
fn keys(table: &Table) -> Vec<String> {
    let lines = table.body.lines().map(|line| line.split("--").next().unwrap_or_default().trim());
    let key = |line: &str| {
        let named = ["PRIMARY KEY (", "UNIQUE ("].into_iter().find_map(|k| line.strip_prefix(k));
        match named {
            Some(columns) => columns.split(')').next().map(str::to_owned),
            None if line.contains("PRIMARY KEY") || line.contains(" UNIQUE") => {
                line.split_whitespace().next().map(str::to_owned)
            }
            None => None,
        }
    };
    lines.filter_map(key).collect()
}

#[test]
fn keys_begin_with_the_company() {
    let tables = tables();
    assert!(tables.len() > 15, "only {} tables were found", tables.len());
    let mut wrong = Vec::new();
    for table in tables.iter().filter(|table| !is_shared(&table.name)) {
        let excepted = |key: &str| FINDS_THE_COMPANY.contains(&(table.name.as_str(), key));
        let keys = keys(table);
        let bad = keys.iter().filter(|key| !key.starts_with("company_id") && !excepted(key));
        wrong.extend(bad.map(|key| format!("{}: ({key})", table.name)));
        if keys.is_empty() {
            wrong.push(format!("{}: no key", table.name));
        }
    }
    assert_none(&wrong, "keys of companies' tables that do not begin with company_id:");
}

fn literals(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => literals(group.stream(), found),
            TokenTree::Literal(literal) => found.push(literal.to_string()),
            _ => {}
        }
    }
}

/// The statements of a file: literals that name a table.
fn statements(file: &Text) -> Vec<String> {
    let tokens: TokenStream = file.text.parse().expect("Rust");
    let mut found = Vec::new();
    literals(tokens, &mut found);
    let verbs = ["INSERT INTO", "UPDATE ", "DELETE FROM", " FROM "];
    found.retain(|text| text.starts_with('"') && verbs.iter().any(|verb| text.contains(verb)));
    found
}

fn names(statement: &str, table: &str) -> bool {
    statement.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == table)
}

#[test]
fn statements_name_the_company() {
    let tables: Vec<Table> = tables().into_iter().filter(|t| !is_shared(&t.name)).collect();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in texts(&["host"], "rs") {
        for statement in statements(&file) {
            for table in tables.iter().filter(|table| names(&statement, &table.name)) {
                seen += 1;
                let excepted = UNSCOPED
                    .iter()
                    .any(|(path, name, _)| *path == file.path && *name == table.name);
                if !statement.contains("company_id") && !excepted {
                    wrong.push(format!("{}: {}: {statement}", file.path, table.name));
                }
            }
        }
    }
    assert!(seen > 40, "only {seen} statements were found");
    assert_none(&wrong, "statements on companies' tables that name no company:");
}

/// Statements that `sealed_column!` generates are in no file. The count of rows by key covers all
/// companies, so it is not checked.
#[test]
fn statements_of_sealed_columns_name_the_company() {
    let columns: Vec<_> = SEALED.iter().flat_map(|columns| columns.iter()).collect();
    assert!(columns.len() > 4, "only {} columns were found", columns.len());
    let mut wrong = Vec::new();
    for column in columns {
        let (table, _) = column.name.split_once('.').expect("table and column");
        for statement in [column.page, column.replace] {
            assert!(names(statement, table), "{statement} is not on {table}");
            if !is_shared(table) && !statement.contains("company_id") {
                wrong.push(format!("{}: {statement}", column.name));
            }
        }
    }
    assert_none(&wrong, "statements on sealed columns that name no company:");
}
