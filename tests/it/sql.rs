//! Both engines accept every SQL text of the program: fixed statements are prepared, assembled
//! ones run with each of their filters.

use proc_macro2::{TokenStream, TokenTree};
use reqwest::Method;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, Executor, SqlSafeStr};
use sqlx_postgres::PgConnection;
use sqlx_sqlite::SqliteConnection;
use tollhouse_app::wiring::SEALED;
use tollhouse_platform::store::only_reads;

use crate::{
    app::{Engine, OPERATOR_TOKEN, TestApp, postgres, reply},
    lending::create_user,
    tidy::{assert_none, texts},
};

/// Returns the SQL texts of the program with their files.
fn statements() -> Vec<(String, String)> {
    let mut statements = Vec::new();
    for file in texts(&["host"], "rs") {
        let tokens = file.text.parse().expect("Rust");
        let texts = literals(tokens).into_iter().filter(|text| is_statement(text));
        statements.extend(texts.map(|text| (file.path.clone(), text)));
    }
    for column in SEALED.iter().flat_map(|columns| columns.iter()) {
        let texts = [column.count, column.page, column.replace];
        statements.extend(texts.map(|text| (column.name.to_owned(), text.to_owned())));
    }
    statements
}

/// Returns the values of all string literals outside of unit tests.
fn literals(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(_) if at > 1 && is_test_module(&tokens[at - 2..at]) => {}
            TokenTree::Group(group) => found.extend(literals(group.stream())),
            TokenTree::Literal(literal) => {
                let text = syn::parse_str::<syn::LitStr>(&literal.to_string());
                found.extend(text.map(|text| text.value()));
            }
            _ => {}
        }
    }
    found
}

fn is_test_module(before: &[TokenTree]) -> bool {
    before.iter().map(ToString::to_string).eq(["mod", "tests"])
}

/// Returns whether a text is a whole statement. One that ends in a space, selects from nothing or
/// leaves a parenthesis open begins an assembled statement.
fn is_statement(text: &str) -> bool {
    let begins = ["SELECT ", "INSERT INTO ", "UPDATE ", "DELETE FROM ", "WITH "];
    let mut depth = 0;
    let mut outer = String::new(); // without what is in parentheses
    for character in text.trim_start().chars() {
        depth += i32::from(character == '(') - i32::from(character == ')');
        outer.extend((depth == 0).then_some(character));
    }
    begins.iter().any(|verb| outer.starts_with(verb))
        && depth == 0
        && !text.ends_with(' ')
        && (!outer.starts_with("SELECT ") || outer.contains("FROM "))
}

/// Prepares statements, except those for the other engine only, and returns errors.
async fn prepare<C>(
    mut connection: C,
    statements: Vec<(String, String)>,
    other: &[&str],
) -> Vec<String>
where
    for<'c> &'c mut C: Executor<'c>,
{
    let mut errors = Vec::new();
    let is_shared = |text: &str| !other.iter().any(|name| text.contains(name));
    for (path, text) in statements.into_iter().filter(|(_, text)| is_shared(text)) {
        let sql = AssertSqlSafe(text.clone()).into_sql_str();
        if let Err(error) = connection.prepare(sql).await {
            errors.push(format!("{path}: {error}: {text}"));
        }
    }
    errors
}

/// PostgreSQL runs such a statement without `BEGIN`.
#[tokio::test]
async fn a_statement_that_only_reads_calls_no_volatile_function() {
    let Some(server) = postgres() else { return };
    let app = TestApp::start(Engine::Postgres(server)).await;
    let mut connection = PgConnection::connect(&app.database.url).await.expect("the database");
    let volatile = "SELECT proname::text FROM pg_proc WHERE provolatile = 'v'";
    let volatile: Vec<String> =
        sqlx::query_scalar(volatile).fetch_all(&mut connection).await.expect("the functions");
    let calls_one = |text: &str| {
        let calls = text.split('(').filter_map(|before| {
            before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
        });
        calls.into_iter().any(|name| volatile.iter().any(|function| function == name))
    };
    let mut selects = Vec::new();
    for file in texts(&["host/app", "host/http", "host/platform"], "rs") {
        let texts = literals(file.text.parse().expect("Rust")).into_iter();
        selects.extend(texts.filter(|text| text.trim_start().starts_with("SELECT")));
    }
    assert!(selects.iter().any(|text| calls_one(text)), "none of {} does", selects.len());
    selects.retain(|text| calls_one(text) && only_reads(text));
    assert_none(&selects, "statements with an effect:");
    app.finish().await;
}

both! {
    async fn every_statement_can_be_prepared(app: TestApp) {
        let mut statements = statements();
        assert!(statements.len() > 200, "only {} statements were found", statements.len());
        let url = &app.database.url;
        let errors = if url.starts_with("sqlite") {
            for (_, text) in &mut statements {
                *text = text.replace(" FOR UPDATE SKIP LOCKED", "").replace(" FOR UPDATE", "");
            }
            let connection = SqliteConnection::connect(url).await.expect("the database");
            prepare(connection, statements, &["pg_", "ledger_deltas"]).await
        } else {
            let connection = PgConnection::connect(url).await.expect("the database");
            prepare(connection, statements, &["sqlite_"]).await
        };
        assert_none(&errors, "statements that cannot be prepared:");
    }

    async fn every_list_runs_with_each_of_its_filters(app: TestApp) {
        create_user(app, "ada").await;
        let mut filters = 0;
        for (base, key) in [(&*app.api, &*app.company.key), (&app.internal, OPERATOR_TOKEN)] {
            let document = reply(app.client.get(format!("{base}/openapi.json"))).await.body;
            for (path, operations) in document["paths"].as_object().expect("paths") {
                let Some(queries) = queries(&operations["get"], app) else { continue };
                let path = path
                    .replace("{company}", app.company.id.as_str())
                    .replace("{plugin}", "provider_a")
                    .replace("{user_id}", "ada");
                if path.contains('{') {
                    continue;
                }
                for query in queries {
                    if path.ends_with("/export") {
                        app.advance(3_600).await; // exports have a quota
                    }
                    let request = app.client.request(Method::GET, format!("{base}{path}?{query}"));
                    let reply = reply(request.bearer_auth(key)).await;
                    assert_eq!(reply.status, 200, "{path}?{query}: {}", reply.body);
                    filters += 1;
                }
            }
        }
        assert!(filters > 100, "only {filters} queries were sent");
    }
}

/// Returns a query for each value of each parameter, and one with all parameters.
fn queries(operation: &Value, app: &TestApp) -> Option<Vec<String>> {
    let parameters = operation["parameters"].as_array()?.iter();
    let values: Vec<Vec<String>> = parameters
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| {
            let name = parameter["name"].as_str().expect("a name");
            values(name, &parameter["schema"], app)
        })
        .collect();
    let all: Vec<&str> =
        values.iter().filter_map(|values| Some(values.first()?.as_str())).collect();
    (!values.is_empty()).then(|| [values.concat(), vec![all.join("&")]].concat())
}

/// Returns valid values of a parameter, with its name.
fn values(name: &str, schema: &Value, app: &TestApp) -> Vec<String> {
    let listed = schema["enum"].as_array().or_else(|| schema["examples"].as_array());
    let values = match (listed, name) {
        (Some(values), _) => values.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        (None, "metadata") => return vec!["metadata.tier=gold".to_owned()],
        (None, "company") => vec![app.company.id.to_string()],
        // The other lists need the id of a record: `list_after.rs`.
        (None, "after") => match schema["pattern"].as_str() {
            Some(cursor) if cursor.contains("[0-9a-f]") => vec!["00000000".to_owned()],
            _ => return Vec::new(),
        },
        (None, "account") => vec!["wallet".to_owned()],
        (None, _) if schema["type"] == "boolean" => vec!["true".to_owned(), "false".to_owned()],
        (None, _) if schema["type"] == "integer" => vec!["1".to_owned()],
        (None, _) => vec!["NG".to_owned()],
    };
    values.into_iter().map(|value| format!("{name}={value}")).collect()
}
