//! PostgreSQL with two roles: one that owns the tables, and one for hosts, which owns none.

use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};
use sqlx_postgres::PgConnection;
use tollhouse_platform::{
    random::Random,
    store::{self, Store, StoreLimits},
};
use url::Url;

use crate::{
    app::{Database, MASTER_KEY, OPERATOR_TOKEN, TestApp, postgres, reply, run_sql},
    command_line::{ProgramOutput, program, program_output},
    lending::{self, SUCCESS_CARD},
    process::Process,
};

const DAY: i64 = 86_400;

/// A database of its own and its two roles. Roles belong to the whole server, so their names are
/// random.
struct Lab {
    server: String,
    database: String,
    owner: String,
    host: String,
    password: String,
}

impl Lab {
    async fn start() -> Option<Lab> {
        let (server, random) = (postgres()?, Random::system());
        let name = |prefix: &str| random.token(prefix).to_lowercase();
        let (database, owner, host) = (name("td"), name("to"), name("th"));
        let lab = Lab { server, database, owner, host, password: random.token("") };
        let Lab { owner, host, database, password, .. } = &lab;
        for sql in [
            format!("CREATE ROLE {owner} LOGIN PASSWORD '{password}'"),
            format!("CREATE ROLE {host} LOGIN PASSWORD '{password}'"),
            format!("CREATE DATABASE {database} OWNER {owner}"),
        ] {
            run_sql(&lab.server, sql).await;
        }
        Some(lab)
    }

    fn url(&self, role: &str) -> String {
        let mut url = Url::parse(&self.server).expect("a URL");
        url.set_path(&self.database);
        url.set_username(role).expect("a URL with a host");
        url.set_password(Some(&self.password)).expect("a URL with a host");
        url.to_string()
    }

    async fn connect(&self, role: &str) -> PgConnection {
        PgConnection::connect(&self.url(role)).await.expect("a role that may connect")
    }

    /// Runs statements as a role. An error is the text of the database.
    async fn run(&self, role: &str, sql: &str) -> Result<u64, String> {
        let mut connection = self.connect(role).await;
        let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await;
        done.map(|done| done.rows_affected()).map_err(|error| error.to_string())
    }

    /// Runs the program with the database URL of a role.
    fn program(&self, role: &str, arguments: &[&str]) -> ProgramOutput {
        let mut command = program(arguments);
        command.env("TOLLHOUSE_DATABASE", self.url(role)).env("RUST_LOG", "off");
        command.env("TOLLHOUSE_OPERATOR_TOKEN", OPERATOR_TOKEN);
        command.env("TOLLHOUSE_MASTER_KEY", MASTER_KEY);
        program_output(command.output().expect("the program starts"))
    }

    fn serve(&self, role: &str) -> ProgramOutput {
        self.program(role, &["serve", "--listen=127.0.0.1:0", "--internal-listen=127.0.0.1:0"])
    }

    async fn end(self) {
        let Lab { database, owner, host, .. } = &self;
        for sql in [
            format!("DROP DATABASE {database} WITH (FORCE)"),
            format!("DROP ROLE {host}"),
            format!("DROP ROLE {owner}"),
        ] {
            run_sql(&self.server, sql).await;
        }
    }
}

#[tokio::test]
async fn migrate_creates_the_tables_for_a_host_role_that_owns_none() {
    let Some(lab) = Lab::start().await else { return };
    for role in [&lab.host, &lab.owner] {
        let early = lab.serve(role);
        assert_eq!(early.failure().0, 2, "{}", early.err);
        assert!(early.err.contains("run `tollhouse migrate`"), "{}", early.err);
    }
    for (role, reason) in [
        ("nobody_of_this_name", "does not exist: create it with CREATE ROLE"),
        (&*lab.owner, "owns the tables"),
    ] {
        let refused = lab.program(&lab.owner, &["migrate", "--host-role", role]);
        assert!(refused.failure().0 == 2 && refused.err.contains(reason), "{}", refused.err);
    }
    let migrate = ["migrate", "--json", "--host-role", &*lab.host];
    let migrated = lab.program(&lab.owner, &migrate).json();
    assert_eq!(migrated["host_roles"], json!([lab.host]));
    let again = lab.program(&lab.owner, &["migrate", "--json"]).json();
    assert_eq!(again, json!({ "applied": 0, "host_roles": [lab.host] }));

    // The owner could change what protects the ledger, so a host does not serve as the owner by
    // mistake.
    let owner = lab.serve(&lab.owner);
    assert!(owner.failure().0 == 2 && owner.err.contains("database_as_owner"), "{}", owner.err);
    let check = |role: &str| lab.program(role, &["config", "check"]);
    let checked = check(&lab.owner);
    assert!(checked.code == 1 && checked.err.contains("database_as_owner"), "{}", checked.err);
    assert!(check(&lab.host).success_output().ends_with("No problems found.\n"));

    for (role, flags) in [(&lab.host, &[][..]), (&lab.owner, &["--database-as-owner"][..])] {
        let program = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
        let process = Process::serve(program, &Database::existing(lab.url(role)), flags).await;
        let post = async |path: &str, body: Value| {
            let url = format!("{}/internal/v1{path}", process.internal);
            let request = process.client.post(url).bearer_auth(OPERATOR_TOKEN);
            reply(request.json(&body)).await.data().clone()
        };
        let company = json!({ "name": "Acme", "server": "test" });
        let company = post("/companies", company).await;
        let path = format!("/companies/{}/wallet", company["id"].as_str().expect("an id"));
        let credit = json!({ "amount": 5, "key": "k" });
        let credited = post(&format!("{path}/credit"), credit).await;
        assert_eq!(credited["balance"], 5);
    }
    lab.end().await;
}

#[tokio::test]
async fn a_host_role_can_serve_everything_and_alter_no_table() {
    let Some(lab) = Lab::start().await else { return };
    lab.program(&lab.owner, &["migrate", "--host-role", &*lab.host]).success_output();
    let app = TestApp::start_on(Database::existing(lab.url(&lab.host)), &[]).await;
    let payment = app.paid_payment("order-1").await;
    let refund = format!(
        "/companies/{}/payments/{}/refund",
        app.company.id,
        payment["id"].as_str().unwrap()
    );
    app.operator(Method::POST, &refund, Value::Null).await.data();
    let user = json!({ "first_name": "Ola", "last_name": "Obi", "email": "ola@example.com" });
    app.post("/user/create", user).await.data();
    assert_eq!(app.get("/user/list?search=ola").await.data()["total"], 1);
    lending::create_user(&app, "ada").await;
    lending::saved_card(&app, "ada", SUCCESS_CARD).await;
    lending::create_loan(&app, "loan-1", "ada", &[(2, 100.0)]).await;
    app.advance(4 * DAY).await;
    let collected = app.get("/recollection/list").await;
    assert_eq!(collected.data()["docs"][0]["status"], "success");

    for (sql, reason) in [
        ("UPDATE audit_log SET actor = 'nobody'", "permission denied"),
        ("DELETE FROM ledger_transactions", "permission denied"),
        ("DELETE FROM ledger_deltas", "permission denied"),
        ("SELECT post_ledger_transaction()", "permission denied"),
        ("UPDATE list_counts SET number = 0", "permission denied"),
        ("DELETE FROM list_deltas", "permission denied"),
        (
            "INSERT INTO ledger_deltas SELECT company_id, account, currency, 'a', 1 FROM ledger_balances",
            "permission denied",
        ),
        ("UPDATE ledger_transactions SET kind = 'none'", "permission denied"),
        ("DELETE FROM ledger_balances", "permission denied"),
        ("TRUNCATE payments", "permission denied"),
        ("UPDATE _sqlx_migrations SET success = FALSE", "permission denied"),
        ("ALTER TABLE ledger_transactions DISABLE TRIGGER ALL", "must be owner"),
        ("DROP TRIGGER ledger_transactions_keep ON ledger_transactions", "must be owner"),
        ("CREATE TABLE ledger_transactions_2 (id TEXT)", "permission denied"),
        (
            "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
            "permission denied",
        ),
    ] {
        let refused = lab.run(&lab.host, sql).await.expect_err(sql);
        assert!(refused.contains(reason), "{sql}: {refused}");
    }
    app.finish().await;
    lab.end().await;
}

#[tokio::test]
async fn each_migrate_grants_access_to_new_tables_and_revokes_excess_grants() {
    let Some(lab) = Lab::start().await else { return };
    lab.program(&lab.owner, &["migrate", "--host-role", &*lab.host]).success_output();
    lab.run(&lab.owner, "CREATE TABLE later (id TEXT)").await.expect("a later table");
    lab.run(&lab.host, "INSERT INTO later VALUES ('a'); DELETE FROM later").await.expect("a grant");
    let too_much = format!("GRANT TRUNCATE, DELETE ON audit_log TO {}", lab.host);
    lab.run(&lab.owner, &too_much).await.expect("a grant");
    let delete = "DELETE FROM audit_log";
    lab.run(&lab.host, delete).await.expect("a permitted statement");
    lab.program(&lab.owner, &["migrate"]).success_output();
    let refused = lab.run(&lab.host, delete).await.expect_err("a revoked grant");
    assert!(refused.contains("permission denied"), "{refused}");
    lab.run(&lab.host, "DELETE FROM later").await.expect("a kept grant");

    // A member of the owner role is rejected like the owner.
    let member = format!("GRANT {} TO {}", lab.owner, lab.host);
    run_sql(&lab.server, member).await;
    let refused = lab.serve(&lab.host);
    assert!(refused.failure().0 == 2 && refused.err.contains("owns the tables"), "{}", refused.err);
    let refused = lab.program(&lab.owner, &["migrate", "--host-role", &*lab.host]);
    assert!(refused.failure().0 == 2 && refused.err.contains("owns the tables"), "{}", refused.err);
    lab.end().await;
}

#[test]
fn a_host_role_is_rejected_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let mut migrate = program(&["migrate", "--host-role=tollhouse", "--database=sqlite://x.db"]);
    let refused = program_output(migrate.current_dir(dir.path()).output().unwrap());
    assert_eq!(
        refused.failure(),
        (2, "tollhouse: --host-role is for PostgreSQL: SQLite has no roles")
    );
}

#[tokio::test]
async fn isolation_and_durability_do_not_depend_on_the_defaults_of_role_or_server() {
    let Some(lab) = Lab::start().await else { return };
    for default in ["default_transaction_isolation = 'serializable'", "synchronous_commit = off"] {
        run_sql(&lab.server, format!("ALTER ROLE {} SET {default}", lab.owner)).await;
    }
    let shown = async |connection: &mut PgConnection, name: &str| {
        let show = AssertSqlSafe(format!("SHOW {name}"));
        let (shown,): (String,) =
            sqlx::query_as(show).fetch_one(connection).await.expect("a setting");
        shown
    };
    let mut plain = lab.connect(&lab.owner).await;
    assert_eq!(shown(&mut plain, "synchronous_commit").await, "off");
    assert_eq!(shown(&mut plain, "transaction_isolation").await, "serializable");

    let store = Store::open(&lab.url(&lab.owner), StoreLimits::default(), Random::seeded(1)).await;
    let store = store.expect("a database that opens");
    let settings = async |tx: &mut store::Tx| -> store::Result<_> {
        let (isolation,): (String,) = tx.sql("SHOW transaction_isolation").one().await?;
        let (durability,): (String,) = tx.sql("SHOW synchronous_commit").one().await?;
        Ok([isolation, durability])
    };
    assert_eq!(store.write(settings).await.expect("a write"), ["read committed", "on"]);
    assert_eq!(store.read(settings).await.expect("a read"), ["repeatable read", "on"]);
    drop(store);
    drop(plain);
    lab.end().await;
}
