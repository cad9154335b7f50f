//! Commands, as operators run them.

mod accounts;
mod debts;
mod events;
mod help;
mod input;
mod messages;

use std::{
    ffi::OsStr,
    process::{Command, Output, Stdio},
};

use futures::FutureExt;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpListener, sync::watch};
use tollhouse_app::{operations::operator_events, routes, wiring};
use tollhouse_http::{Endpoint, Listener, TlsFiles};
use tollhouse_platform::{store, values::id::CompanyId};

use crate::{
    app::{Engine, MASTER_KEY, OPERATOR_TOKEN, TestApp},
    plugins::{sprout_1_1, sprout_with_manifest_field},
    ports,
};

/// The result of a finished command.
pub struct ProgramOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl ProgramOutput {
    /// Asserts success and returns standard output.
    #[track_caller]
    pub fn success_output(&self) -> &str {
        assert_eq!((self.code, &*self.err), (0, ""), "{}", self.out);
        &self.out
    }

    /// Asserts success and returns standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(self.success_output()).expect("JSON")
    }

    /// Asserts that standard output is empty; returns the exit code and standard error.
    #[track_caller]
    pub fn failure(&self) -> (i32, &str) {
        assert_eq!(self.out, "");
        (self.code, self.err.trim_end())
    }
}

/// Builds a command with an empty environment and no input.
pub fn program<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

pub fn program_output(output: Output) -> ProgramOutput {
    let text = |bytes| String::from_utf8(bytes).expect("text");
    ProgramOutput {
        code: output.status.code().expect("an exit code"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// Runs a command against the internal API at this URL.
pub async fn run_against(internal: &str, token: &str, arguments: &[&str]) -> ProgramOutput {
    let mut command = program(arguments);
    command.env("TOLLHOUSE_INTERNAL_URL", internal).env("TOLLHOUSE_OPERATOR_TOKEN", token);
    program_output(
        tokio::process::Command::from(command).output().await.expect("the program starts"),
    )
}

async fn run(app: &TestApp, arguments: &[&str]) -> ProgramOutput {
    run_against(&app.internal, OPERATOR_TOKEN, arguments).await
}

/// Runs a command with `--json` and returns its output.
async fn json_of(app: &TestApp, arguments: &[&str]) -> Value {
    run(app, &[arguments, &["--json"]].concat()).await.json()
}

fn file(app: &TestApp, name: &str, content: &[u8]) -> String {
    let file = app.database.dir.path().join(name);
    std::fs::write(&file, content).expect("a file in a temporary folder");
    file.display().to_string()
}

/// Returns the words of each line below the header of a table.
fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect()
}

/// Returns the value of a field in a printed record.
#[track_caller]
fn field<'s>(record: &'s str, name: &str) -> &'s str {
    let line = record.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("  "));
    line.unwrap_or_else(|| panic!("no {name} in {record}")).trim()
}

both! {
    async fn plugins_are_installed_upgraded_and_shown(app: TestApp) {
        let (old, new) = (file(app, "old.wasm", artifacts::SPROUT), file(app, "new.wasm", &sprout_1_1()));
        let garbage = file(app, "garbage.wasm", b"once upon a time");
        let output = run(app, &["plugin", "install", "--grant", &old]).await;
        assert!(output.success_output().starts_with("sprout 1.0.0 is active (") && output.out.lines().count() == 1, "{}", output.out);
        let output = run(app, &["plugin", "install", &new]).await;
        assert!(output.success_output().ends_with("\nit replaces 1.0.0\n"), "{}", output.out);
        let unbound = sprout_with_manifest_field("secrets", json!(["token"]));
        let unbound = file(app, "unbound.wasm", &unbound);
        let warning = "\nwarning: the secret token is not bound: ";
        let output = run(app, &["plugin", "examine", &unbound]).await;
        assert!(output.success_output().contains(warning), "{}", output.out);
        let output = run(app, &["plugin", "install", "--inactive", "--grant", &unbound]).await;
        assert!(output.success_output().contains(warning), "{}", output.out);
        let refused = run(app, &["plugin", "install", &garbage]).await;
        assert!(refused.failure().0 == 1 && refused.err.starts_with("tollhouse: the file is not WebAssembly"), "{}", refused.err);
        let missing = run(app, &["plugin", "install", "/no/such.wasm"]).await;
        assert!(missing.failure().0 == 2 && missing.err.starts_with("tollhouse: /no/such.wasm: "), "{}", missing.err);

        let list = run(app, &["plugin", "list"]).await;
        let mut listed: Vec<Vec<&str>> = rows(list.success_output()).into_iter().map(|row| row[..3].to_vec()).collect();
        listed.sort();
        let sprouts = [["sprout", "1.0.0", "ready"], ["sprout", "1.0.0", "ready"], ["sprout", "1.1.0", "active"]];
        assert_eq!(&listed[1..], &sprouts.map(|line| line.to_vec())[..]);
        let shown = run(app, &["plugin", "show", "sprout"]).await;
        assert_eq!((field(shown.success_output(), "version"), field(shown.success_output(), "channels")), ("1.1.0", "card, ussd"));
        assert_eq!(field(shown.success_output(), "secrets"), "token");
        let shown = run(app, &["plugin", "show", "provider_a"]).await;
        assert_eq!(field(shown.success_output(), "settings"), "base_url [https://api.paystack.co]");
        let none = run(app, &["plugin", "show", "weed"]).await;
        assert_eq!(none.failure(), (1, "tollhouse: plugin not found"));
    }

    async fn companies_are_managed_by_commands(app: TestApp) {
        let made = run(app, &["company", "create", "Beta Lending", "--server", "live"]).await;
        let id = field(made.success_output(), "company").to_owned();
        assert!(field(&made.out, "API key").starts_with("sk_live_") && field(&made.out, "event secret").starts_with("whsec_"));
        let logo = "https://beta.example/logo.png";
        let edited = run(app, &["company", "edit", &id, "--logo", logo, "--name", "Beta"]).await;
        assert_eq!((field(edited.success_output(), "logo"), field(&edited.out, "name")), (logo, "Beta"));
        let edited = json_of(app, &["company", "edit", &id, "--logo", ""]).await;
        assert_eq!((&edited["logo"], &edited["name"]), (&Value::Null, &json!("Beta")));
        assert_eq!(run(app, &["company", "edit", &id]).await.failure().0, 2);

        let unconfirmed = run(app, &["company", "suspend", &id]).await;
        assert!(unconfirmed.failure().0 == 2 && unconfirmed.err.contains("--yes"), "{}", unconfirmed.err);
        assert_eq!(json_of(app, &["company", "show", &id]).await["active"], true);
        run(app, &["company", "suspend", &id, "--yes"]).await.success_output();
        assert_eq!(field(run(app, &["company", "show", &id]).await.success_output(), "active"), "no");
        run(app, &["company", "resume", &id]).await.success_output();

        let until = "2027-06-30T00:00:00.000Z";
        let terms = ["company", "subscription", &id, "--expires-at", until, "--features", "payments, otp"];
        let changed = run(app, &terms).await;
        assert_eq!(field(changed.success_output(), "subscription"), format!("until {until}"));
        assert_eq!(field(&changed.out, "features"), "payments, otp");
        let unknown = run(app, &["company", "subscription", &id, "--features", "paymnts,otp"]).await;
        let known = "cards, identity, otp, payments, recollections, users";
        assert!(unknown.failure().1.contains(&format!("the features field must be any of {known}")), "{}", unknown.err);
        let terms = ["company", "subscription", &id, "--expires-at", "never", "--features", "all"];
        let changed = run(app, &terms).await;
        assert_eq!((field(changed.success_output(), "subscription"), field(&changed.out, "features")), ("active", "all"));
        let rotated = json_of(app, &["company", "rotate-event-secret", &id, "--yes"]).await;
        assert!(rotated["event_secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")));

        let list = run(app, &["company", "list", "--limit", "1"]).await;
        assert!(list.success_output().ends_with("\npage 1 of 2, 2 in total\n"), "{}", list.out);
        let rest = run(app, &["company", "list", "--limit", "1", "--page", "2"]).await;
        assert!(rest.success_output().ends_with("\npage 2 of 2, 2 in total\n"), "{}", rest.out);
        assert_ne!(rows(&rest.out)[0], rows(&list.out)[0]);
        let audit = run(app, &["audit", &id, "--limit", "1000"]).await;
        let mut actions: Vec<&str> = rows(audit.success_output()).into_iter().map(|row| row[3]).collect();
        actions.sort();
        let rotate = "company.event_secret.rotate";
        let edits = ["company.edit"; 4];
        assert_eq!(actions, [&["company.create"][..], &edits, &[rotate], &["company.subscription"; 2]].concat());
        assert!(run(app, &["audit"]).await.success_output().contains("plugin.install"));
    }

    async fn a_rotated_key_stays_valid_for_the_overlap(app: TestApp) {
        let id = &*app.company.id;
        let old = json_of(app, &["key", "create", id, "--label", "second server"]).await;
        let (old_id, old_key) = (old["id"].as_str().unwrap(), old["api_key"].as_str().unwrap());
        let new = run(app, &["key", "rotate", id, old_id, "--overlap-hours", "2"]).await;
        let until = app.app.clock.now().plus_seconds(2 * 3600);
        assert!(new.success_output().contains(&format!("The former key is valid until {until}.")), "{}", new.out);
        let new_key = field(&new.out, "API key").to_owned();
        assert_eq!(field(&new.out, "label"), "second server");
        let mut company = app.company.clone();
        let mut status = async |key: &str| {
            company.key = key.to_owned();
            app.request(&company, Method::GET, "/payment/list", None).await.status.as_u16()
        };
        assert_eq!((status(old_key).await, status(&new_key).await), (200, 200));
        app.advance(2 * 3600).await;
        assert_eq!((status(old_key).await, status(&new_key).await), (401, 200));

        let again = run(app, &["key", "rotate", id, old_id]).await;
        assert_eq!(again.failure(), (1, "tollhouse: the key was revoked or has expired: create another"));
        run(app, &["key", "revoke", id, field(&new.out, "key"), "--yes"]).await.success_output();
        assert_eq!(status(&new_key).await, 401);
        let expires_at = format!("{}", app.app.clock.now().plus_seconds(60));
        let short = json_of(app, &["key", "create", id, "--expires-at", &expires_at]).await;
        let longer = json_of(app, &["key", "rotate", id, short["id"].as_str().unwrap()]).await;
        assert_eq!(longer["replaces"]["expires_at"], json!(expires_at), "rotation must not extend the expiry of a key");
        let list = run(app, &["key", "list", id]).await;
        assert_eq!(rows(list.success_output()).len(), 5);
        assert!(!list.out.contains(new_key.as_str()));
    }

    async fn a_wallet_key_moves_money_once_and_amounts_show_their_currency(app: TestApp) {
        let id = &*app.company.id;
        let credit = ["wallet", "credit", id, "1000.5", "--key", "top-up"];
        for _ in 0..2 {
            assert_eq!(run(app, &credit).await.success_output(), "the balance is 1000.50 NGN\n");
        }
        let debit = ["wallet", "debit", id, "0.75", "--key", "fee", "--yes"];
        assert_eq!(run(app, &debit).await.success_output(), "the balance is 999.75 NGN\n");
        let unconfirmed = run(app, &debit[..6]).await;
        assert_eq!(unconfirmed.failure().0, 2);
        let too_much = ["wallet", "debit", id, "5000", "--key", "all", "-y", "--json"];
        let refused = run(app, &too_much).await;
        let error: Value = serde_json::from_str(refused.failure().1).expect("JSON");
        assert_eq!((refused.code, &error["error"], &error["status"]), (1, &json!("refused"), &json!(400)));
        let wallet = run(app, &["wallet", "show", id]).await;
        assert_eq!(rows(wallet.success_output()), [["NGN", "999.75", "NGN", "0.00", "NGN"]]);
        let entries = run(app, &["wallet", "entries", id]).await;
        assert!(entries.success_output().contains("  -0.75 NGN  "), "{}", entries.out);
        app.advance(1).await;
        app.paid_payment("order-1").await;
        let filter = ["wallet", "entries", id, "--account", "wallet", "--created", "21-11-2026"];
        let entries = run(app, &filter).await;
        assert_eq!(rows(entries.success_output())[0][1..6], ["payment.success", "wallet", "2362.99", "NGN", "order-1"]);
        assert_eq!(rows(&entries.out).len(), 3);
    }

    async fn identity_types_are_listed_enabled_and_disabled(app: TestApp) {
        app.install(artifacts::NIGERIA).await;
        let listed = run(app, &["identity", "list"]).await;
        let row = |table: &str, id: &str| rows(table).into_iter().find(|row| row[0] == id).map(|row| row.join(" "));
        assert_eq!(row(listed.success_output(), "nigeria.bvn").as_deref(), Some("nigeria.bvn BVN yes bvn /api/v1/kyc/nigeria/bvn/lookup"));
        for (action, active) in [("disable", "no"), ("enable", "yes")] {
            let switched = run(app, &["identity", action, "nigeria.nin"]).await;
            let expected = format!("nigeria.nin NIN {active} nin /api/v1/kyc/nigeria/nin/lookup");
            assert_eq!(row(switched.success_output(), "nigeria.nin"), Some(expected));
        }
        let id = &*app.company.id;
        let own = run(app, &["identity", "disable", "nigeria.cac", "--company", id]).await;
        let off = row(own.success_output(), "nigeria.cac").expect("a row");
        assert!(off.starts_with("nigeria.cac CAC no"), "{off}");
        let of_company = run(app, &["identity", "list", "--company", id]).await;
        assert_eq!(row(of_company.success_output(), "nigeria.cac"), Some(off.clone()));
        assert_ne!(row(run(app, &["identity", "list"]).await.success_output(), "nigeria.cac"), Some(off));
        let unknown = run(app, &["identity", "disable", "nigeria.none"]).await;
        assert!(unknown.failure().0 == 1 && unknown.err.contains("identity type not found"), "{}", unknown.err);
    }

    async fn prices_are_set_and_low_balance_events_are_listed(app: TestApp) {
        let id = &*app.company.id;
        app.install(artifacts::ATLANTIS).await;
        let set = run(app, &["price", "set", "otp.email=2.5", "otp.sms=800"]).await;
        let row = |table: &str, item: &str| rows(table).into_iter().find(|row| row[0] == item).map(|row| row.join(" "));
        assert_eq!(row(set.success_output(), "otp.email").as_deref(), Some("otp.email 2.50 NGN default"));
        assert_eq!(row(&set.out, "customer.create").as_deref(), Some("customer.create 0.00 NGN -"));
        let lookup = row(&set.out, "identity.atlantis.citizen");
        assert_eq!(lookup.as_deref(), Some("identity.atlantis.citizen 10.00 NGN plugin"));
        let own = run(app, &["price", "set", "otp.email=", "otp.sms=600.25", "--company", id]).await;
        assert_eq!(row(own.success_output(), "otp.sms").as_deref(), Some("otp.sms 600.25 NGN company"));
        assert_eq!(run(app, &["price", "list", "--company", id]).await.success_output(), own.out);
        assert_eq!(run(app, &["price", "list"]).await.success_output(), set.out);
        let typo = run(app, &["price", "set", "otp.emial=1"]).await;
        assert!(typo.failure().0 == 1 && typo.err.contains("the otp.emial field must be a billing item"), "{}", typo.err);
        for wrong in ["otp.email", "otp.email=much"] {
            assert_eq!(run(app, &["price", "set", wrong]).await.failure().0, 2, "{wrong}");
        }

        let edited = run(app, &["company", "edit", id, "--low-balance", "500.5"]).await;
        assert_eq!(field(edited.success_output(), "low balance"), "500.5");
        let edited = run(app, &["company", "edit", id, "--low-balance", ""]).await;
        assert_eq!(field(edited.success_output(), "low balance"), "-");
        let (host, company) = (app.app.clone(), CompanyId::from(id));
        let emitted: store::Result<()> = app.app.store.write(async move |tx| {
            operator_events::emit(tx, &host, &company, "wallet.low_balance", json!({ "balance": 1 })).await
        }).await;
        emitted.expect("an event");
        app.advance(120).await;
        let feed = run(app, &["event", "feed", "--kind", "wallet.low_balance", "--company", id]).await;
        assert_eq!(rows(feed.success_output())[0][1..], ["wallet.low_balance", id, r#"{"balance":1}"#]);
        let next = json_of(app, &["event", "feed", "--limit", "5"]).await["next"].clone();
        let next = next.as_str().expect("a cursor");
        assert!(feed.out.ends_with(&format!("\nContinue with --after {next}\n")), "{}", feed.out);
        // `stream` is the former name of `feed`.
        assert!(run(app, &["event", "stream", "--after", next]).await.success_output().starts_with("none\n"));
    }

    async fn payments_are_verified_and_refunded_and_events_are_redelivered(app: TestApp) {
        let id = &*app.company.id;
        let payment = app.initialize("order-1").await;
        let pending = json_of(app, &["payment", "verify", id, "--reference", "order-1"]).await;
        assert_eq!(pending["status"], "pending");
        app.complete(&payment, "success").await;
        let settled = json_of(app, &["payment", "verify", id, payment["id"].as_str().unwrap()]).await;
        assert_eq!(settled["status"], "success");
        app.run_until_idle().await;

        let list = run(app, &["payment", "list", id, "--status", "success"]).await;
        assert_eq!(rows(list.success_output())[0][1..5], ["order-1", "success", "2500.50", "NGN"]);
        assert_eq!(run(app, &["payment", "list", id, "--status", "failed"]).await.success_output(), "none\n");
        let wrong = run(app, &["payment", "list", id, "--created", "yesterday"]).await;
        assert!(wrong.failure().1.starts_with("tollhouse: the created_at field must be"), "{}", wrong.err);
        assert_eq!(run(app, &["payment", "list", id, "--provider", "unruly"]).await.success_output(), "none\n");
        let refund = ["payment", "refund", id, "--reference", "order-1", "--yes", "--force"];
        let unconfirmed = run(app, &refund[..5]).await;
        assert!(unconfirmed.failure().0 == 2 && unconfirmed.err.contains("Refund 2500.50 NGN"), "{}", unconfirmed.err);
        run(app, &["wallet", "debit", id, "1000", "--key", "spent", "--yes"]).await.success_output();
        assert_eq!(run(app, &refund[..6]).await.failure().0, 1);
        run(app, &refund).await.success_output();
        app.run_until_idle().await;
        let shown = run(app, &["payment", "show", id, "--reference", "order-1"]).await;
        assert_eq!((field(shown.success_output(), "status"), field(&shown.out, "amount")), ("refunded", "2500.50 NGN"));
        assert_ne!(field(&shown.out, "refund"), "-");

        let events = json_of(app, &["event", "list", id]).await;
        let mut events = events["docs"].as_array().unwrap().iter();
        let event = events.find(|event| event["event"] == "payment.refunded").expect("the event");
        let event = event["id"].as_str().unwrap();
        let output = run(app, &["event", "redeliver", id, event]).await;
        assert_eq!(output.success_output(), "queued deliveries: 1\n");
        app.run_until_idle().await;
        let attempts = run(app, &["event", "attempts", id, event]).await;
        let mut attempts: Vec<&str> = rows(attempts.success_output()).into_iter().map(|row| row[1]).collect();
        attempts.sort_unstable();
        assert_eq!(attempts, ["1", "2"]);
        assert!(run(app, &["event", "list", id]).await.success_output().contains("delivered (2)"));
    }

    async fn a_database_in_use_can_be_backed_up_but_not_restored(app: TestApp) {
        let dir = app.database.dir.path();
        let (copy, other) = (dir.join("copy.db"), format!("sqlite://{}", dir.join("other.db").display()));
        let at = async |url: &str, arguments: &[&str]| {
            let mut command = program(arguments);
            command.env("TOLLHOUSE_DATABASE", url);
            program_output(tokio::process::Command::from(command).output().await.expect("the program starts"))
        };
        let copy = copy.to_str().unwrap();
        let made = at(&app.database.url, &["backup", copy]).await;
        if !app.database.url.starts_with("sqlite") {
            assert_eq!(made.failure(), (1, "tollhouse: the database is PostgreSQL: back it up with pg_dump"));
            return;
        }
        assert_eq!(made.success_output(), format!("created {copy}\n"));
        assert_eq!(at(&app.database.url, &["backup", copy]).await.failure().0, 1);
        let in_use = at(&app.database.url, &["restore", copy, "--replace"]).await;
        assert!(in_use.failure().0 == 1 && in_use.err.contains("stop the host"), "{}", in_use.err);
        let restored = format!("restored {other}\n");
        assert_eq!(at(&other, &["restore", copy]).await.success_output(), restored);
        let there = at(&other, &["restore", copy]).await;
        assert!(there.failure().0 == 1 && there.err.contains("exists"), "{}", there.err);
        assert_eq!(at(&other, &["restore", copy, "--replace"]).await.success_output(), restored);
        assert_eq!(at(&other, &["migrate"]).await.success_output(), "no migrations to apply\n");
        assert_eq!(at("sqlite:///no/such/folder/x.db", &["migrate"]).await.failure().0, 3);
    }

    async fn failures_have_documented_exit_codes_and_messages(app: TestApp) {
        let unknown = "000000000000000000000000";
        let refused = run(app, &["company", "show", unknown]).await;
        assert_eq!(refused.failure(), (1, "tollhouse: company not found"));
        let stranger = run_against(&app.internal, "op_another", &["plugin", "list"]).await;
        assert_eq!(stranger.failure(), (1, "tollhouse: the operator token is not valid"));
        let tokenless = run_against(&app.internal, "", &["plugin", "list"]).await;
        assert!(tokenless.failure().0 == 2 && tokenless.err.contains("TOLLHOUSE_OPERATOR_TOKEN"), "{}", tokenless.err);
        let url = format!("http://{}", ports::reserve_address());
        let unreachable = run_against(&url, OPERATOR_TOKEN, &["plugin", "list", "--json"]).await;
        let error: Value = serde_json::from_str(unreachable.failure().1).expect("JSON");
        assert_eq!((unreachable.code, &error["error"]), (3, &json!("unreachable")));
        let other = run_against(&app.simulators.url(), OPERATOR_TOKEN, &["plugin", "list"]).await;
        assert!(other.failure().0 == 3 && other.err.contains("check internal_url"), "{}", other.err);
        let usage = run(app, &["company", "sell", "--json"]).await;
        let error: Value = serde_json::from_str(usage.failure().1).expect("JSON");
        assert_eq!((usage.code, &error["error"]), (2, &json!("usage")));
        for path in ["..", ".", ""] {
            assert_eq!(run(app, &["company", "show", path]).await.failure().0, 2, "{path}");
        }
        let steps = run(app, &["company", "show", "../plugins"]).await;
        assert_eq!(steps.failure(), (1, "tollhouse: company not found"));
    }
}

/// Serves the internal API over TLS with a self-signed certificate. Returns its URL and the
/// certificate's path.
async fn with_tls(app: &TestApp) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = file(app, "tls.pem", made.cert.pem().as_bytes());
    let key = file(app, "tls-key.pem", made.signing_key.serialize_pem().as_bytes());
    let files = TlsFiles { certificate: certificate.clone().into(), key: key.into() };
    let endpoint = Endpoint { address: "127.0.0.1:0".parse().unwrap(), tls: Some(files) };
    let listener = Listener::bind(&endpoint).await.unwrap();
    let url = format!("https://{}", listener.address().unwrap());
    let app = app.app.clone();
    tokio::spawn(async move {
        let (_open, closing) = watch::channel(false);
        wiring::listen(&app, listener, routes::internal_routes(), closing).await;
    });
    (url, certificate)
}

#[tokio::test]
async fn a_host_is_trusted_over_tls_only_with_its_ca_file() {
    let app = TestApp::start(Engine::Sqlite).await;
    let (url, certificate) = with_tls(&app).await;
    let stranger = run_against(&url, OPERATOR_TOKEN, &["plugin", "list"]).await;
    assert!(stranger.failure().0 == 3 && stranger.err.contains("certificate"), "{}", stranger.err);
    let known = ["plugin", "list", "--internal-ca-file", &certificate];
    assert!(
        run_against(&url, OPERATOR_TOKEN, &known).await.success_output().contains("provider_a")
    );
    let garbage = file(&app, "garbage.pem", b"once upon a time");
    let refused =
        run_against(&url, OPERATOR_TOKEN, &["plugin", "list", "--internal-ca-file", &garbage])
            .await;
    assert!(
        refused.failure().0 == 2 && refused.err.contains("internal_ca_file"),
        "{}",
        refused.err
    );
    app.finish().await;
}

#[tokio::test]
async fn redirects_of_a_host_are_not_followed() {
    let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let (host, other) = (bind().await, bind().await);
    let address = |listener: &TcpListener| listener.local_addr().expect("a bound listener");
    let (at, elsewhere) = (address(&host), address(&other));
    let moved =
        format!("HTTP/1.1 307 Moved\r\nlocation: http://{elsewhere}/\r\ncontent-length: 0\r\n\r\n");
    let responding = tokio::spawn(async move {
        let (mut stream, _) = host.accept().await.expect("the program");
        stream.readable().await.expect("a request");
        stream.write_all(moved.as_bytes()).await.expect("a response that is sent");
        stream
    });
    let create = ["company", "create", "Acme", "--server", "test"];
    let ended = run_against(&format!("http://{at}"), OPERATOR_TOKEN, &create).await;
    assert_eq!(ended.code, 3, "{}", ended.err);
    assert!(other.accept().now_or_never().is_none(), "the redirect was followed");
    drop(responding.await);
}

#[test]
fn every_command_exits_with_3_if_the_database_is_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let run = |database: &str, arguments: &[&str]| {
        let mut command = program(arguments);
        command.current_dir(dir.path()).env("TOLLHOUSE_DATABASE", database).env("RUST_LOG", "off");
        command
            .env("TOLLHOUSE_OPERATOR_TOKEN", OPERATOR_TOKEN)
            .env("TOLLHOUSE_MASTER_KEY", MASTER_KEY);
        program_output(command.output().unwrap())
    };
    for database in ["sqlite://no/such/folder.db", "postgres://ada@127.0.0.1:1/t"] {
        let mut commands = vec![
            vec!["serve", "--listen=127.0.0.1:0", "--internal-listen=127.0.0.1:0"],
            vec!["migrate"],
        ];
        commands.push(vec!["plugin", "bench", "--installed=provider_a"]);
        if database.starts_with("sqlite") {
            commands.push(vec!["backup", "copy.db"]);
        }
        for arguments in commands {
            let ended = run(database, &arguments);
            assert_eq!(ended.failure().0, 3, "{arguments:?} at {database}: {}", ended.err);
        }
        assert_eq!(run(database, &["serve", "--tls-key=none"]).failure().0, 2);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("--listen={}", taken.local_addr().unwrap());
    let refused = run("sqlite://host.db", &["serve", &listen, "--internal-listen=127.0.0.1:0"]);
    assert!(
        refused.failure().0 == 1 && refused.err.contains("cannot listen on"),
        "{}",
        refused.err
    );
}
