//! Backup and restore of SQLite databases.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::json;
use sqlx::Connection;
use sqlx_sqlite::SqliteConnection;
use tempfile::TempDir;
use tollhouse_app::operations::audit;
use tollhouse_platform::{
    random::Random,
    store::{self, BackupError, Store, StoreLimits, backup, restore},
};

use crate::{
    app::{Engine, TestApp, test_actor},
    store::count,
};

fn url(file: &Path) -> String {
    format!("sqlite://{}", file.display())
}

async fn open(file: &Path) -> Store {
    let store = Store::open(&url(file), StoreLimits::default(), Random::seeded(1)).await;
    store.expect("a database that opens")
}

/// Creates a database with one company of this name.
async fn database(dir: &TempDir, name: &str, company: &'static str) -> PathBuf {
    let file = dir.path().join(name);
    let store = open(&file).await;
    let insert = async move |tx: &mut store::Tx| {
        tx.sql(
            "INSERT INTO companies (id, name, server, active, event_secret, subscription_active, created_at, updated_at)
             VALUES ('c', $1, 'test', TRUE, '', TRUE, 0, 0)",
        )
        .bind(company)
        .run()
        .await
    };
    store.write(insert).await.expect("a company");
    file
}

async fn company(file: &Path) -> String {
    let store = open(file).await;
    let name = store.select(async |tx| tx.sql("SELECT name FROM companies").one().await).await;
    let (name,): (String,) = store::Result::<_>::expect(name, "a company");
    name
}

/// Restores as soon as the database is no longer in use: shortly after its store is dropped.
async fn restore_when_unused(from: &Path, to: &Path) -> Result<(), BackupError> {
    let restored = async {
        loop {
            match restore(from, &url(to), true).await {
                Err(error) if error.to_string().contains("in use") => {
                    tokio::task::yield_now().await
                }
                done => return done,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), restored)
        .await
        .expect("a database that is no longer in use")
}

#[track_caller]
fn assert_refused(done: Result<(), BackupError>, reason: &str) {
    let text = done.expect_err(reason).to_string();
    assert!(text.contains(reason), "{text}");
}

#[tokio::test]
async fn a_backup_during_writes_is_consistent_and_private_and_can_be_restored() {
    let app = TestApp::start(Engine::Sqlite).await;
    app.paid_payment("order-1").await;
    let (copy, restored) =
        (app.database.dir.path().join("copy"), app.database.dir.path().join("new.db"));
    let done = AtomicBool::new(false);
    let (host, id) = (&app.app, &app.company.id);
    let writes = async {
        let mut writes = 0;
        while !done.load(Ordering::SeqCst) || writes == 0 {
            let (clone, company) = (host.clone(), id.clone());
            let two = host.store.write(async move |tx| -> store::Result<()> {
                audit::record(tx, &clone, &test_actor(), &company, "one of two", json!({})).await?;
                audit::record(tx, &clone, &test_actor(), &company, "one of two", json!({})).await
            });
            two.await.expect("a write during a backup");
            writes += 1;
        }
        writes
    };
    let copied = async {
        let copied = backup(&app.database.url, &copy).await;
        done.store(true, Ordering::SeqCst);
        copied
    };
    let (writes, copied) = futures::future::join(writes, copied).await;
    copied.expect("a backup");
    assert_eq!(fs::metadata(&copy).expect("a copy").permissions().mode() & 0o777, 0o600);

    restore(&copy, &url(&restored), false).await.expect("a restored database");
    let store = open(&restored).await;
    let kept = count(&store, id, "one of two").await;
    assert!(kept % 2 == 0 && kept <= 2 * writes, "{kept} of {writes} pairs");
    let payment = "SELECT status FROM payments WHERE reference = 'order-1'";
    let (status,): (String,) = store::Result::<_>::expect(
        store.select(async |tx| tx.sql(payment).one().await).await,
        "a payment",
    );
    assert_eq!(status, "success");
    app.finish().await;
}

#[tokio::test]
async fn a_failed_backup_overwrites_nothing_and_leaves_no_partial_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let database = database(&dir, "host.db", "Acme").await;
    let there = dir.path().join("there");
    fs::write(&there, "kept").expect("a file");
    assert_refused(backup(&url(&database), &there).await, "already exists");
    assert_eq!(fs::read_to_string(&there).expect("a file"), "kept");
    assert_refused(
        backup(&url(&database), &dir.path().join("no/such/folder")).await,
        "No such file",
    );
    assert_refused(
        backup(&url(&dir.path().join("none.db")), &dir.path().join("copy")).await,
        "No such file",
    );
    assert_refused(
        backup("postgres://localhost/tollhouse", &dir.path().join("copy")).await,
        "pg_dump",
    );
    assert_refused(restore(&there, "postgres://localhost/tollhouse", true).await, "pg_restore");
    let left = fs::read_dir(dir.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name());
    let left: Vec<_> = left.filter(|name| !name.to_string_lossy().starts_with("host.db")).collect();
    assert_eq!(left, ["there"]);
}

#[tokio::test]
async fn restore_replaces_a_database_only_if_unused_and_on_request() {
    let dir = tempfile::tempdir().expect("a folder");
    let (old, new) = (database(&dir, "old.db", "Old").await, database(&dir, "new.db", "New").await);
    let copy = dir.path().join("copy");
    backup(&url(&new), &copy).await.expect("a backup");
    let host = open(&old).await;
    assert_refused(restore(&copy, &url(&old), true).await, "in use");
    drop(host);
    restore_when_unused(&copy, &old).await.expect("a replaced database");
    assert_eq!(company(&old).await, "New");

    let other = dir.path().join("other.db");
    restore(&copy, &url(&other), false).await.expect("a new database");
    assert_refused(restore(&copy, &url(&other), false).await, "exists");
}

#[tokio::test]
async fn restore_discards_the_log_of_the_replaced_database() {
    let dir = tempfile::tempdir().expect("a folder");
    let (old, new) = (dir.path().join("old.db"), database(&dir, "new.db", "New").await);
    let copy = dir.path().join("copy");
    backup(&url(&new), &copy).await.expect("a backup");
    // The files of a killed host: its write-ahead log has not been checkpointed.
    let host = database(&dir, "killed.db", "Old").await;
    let still = open(&host).await;
    let rename =
        async |tx: &mut store::Tx| tx.sql("UPDATE companies SET name = 'Older'").run().await;
    still.write(rename).await.expect("a change in the log");
    for suffix in ["", "-wal"] {
        fs::copy(format!("{}{suffix}", host.display()), format!("{}{suffix}", old.display()))
            .expect("a file");
    }
    drop(still);
    assert!(fs::metadata(dir.path().join("old.db-wal")).expect("a log").len() > 0);
    restore(&copy, &url(&old), true).await.expect("a replaced database");
    assert_eq!(company(&old).await, "New");
}

#[tokio::test]
async fn a_damaged_foreign_or_newer_backup_is_not_restored() {
    let dir = tempfile::tempdir().expect("a folder");
    let database = database(&dir, "host.db", "Acme").await;
    let copy = dir.path().join("copy");
    backup(&url(&database), &copy).await.expect("a backup");
    let target = url(&dir.path().join("target.db"));

    let damaged = dir.path().join("damaged");
    let mut bytes = fs::read(&copy).expect("a copy");
    let middle = bytes.len() / 2;
    bytes[middle - 8192..middle + 8192].fill(0xAA);
    fs::write(&damaged, bytes).expect("a file");
    assert_refused(restore(&damaged, &target, false).await, "damaged");

    let letter = dir.path().join("letter");
    fs::write(&letter, "Dear reader, ".repeat(500)).expect("a file");
    assert_refused(restore(&letter, &target, false).await, "damaged");

    for (sql, reason) in [
        (
            "UPDATE _sqlx_migrations SET version = 9000 WHERE version = 1",
            "use the version of Tollhouse that created it",
        ),
        ("DROP TABLE _sqlx_migrations", "not a Tollhouse database"),
    ] {
        let mut other = SqliteConnection::connect(&url(&copy)).await.expect("a connection");
        sqlx::query(sql).execute(&mut other).await.expect(sql);
        other.close().await.expect("the end");
        assert_refused(restore(&copy, &target, false).await, reason);
    }
    assert!(!dir.path().join("target.db").exists());
}
