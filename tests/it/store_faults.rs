//! The store under slow work, conflicts and failures of the database.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::{join, join_all, try_join};
use reqwest::StatusCode;
use serde_json::json;
use sqlx::Connection;
use sqlx_sqlite::SqliteConnection;
use tokio::sync::{Barrier, Notify};
use tollhouse_app::operations::audit;
use tollhouse_platform::{
    error,
    random::Random,
    store::{self, Error, Store, StoreLimits, Tx, UnavailableReason},
    values::id::{CompanyId, Owner},
};

use crate::{
    app::{Database, Engine, TestApp, postgres, test_actor},
    proxy::Proxy,
    store::count,
};

/// Limits that no test reaches by waiting.
const GENEROUS: StoreLimits = StoreLimits {
    connections: 4,
    acquire_timeout: Duration::from_secs(30),
    transaction_timeout: Duration::from_secs(30),
};
const SOON: Duration = Duration::from_millis(200);

/// Another store on the database of `app`.
async fn open(app: &TestApp, limits: StoreLimits) -> Store {
    Store::open(&app.database.url, limits, Random::seeded(1)).await.expect("a database that opens")
}

async fn write(store: &Store, app: &TestApp, action: &'static str) -> store::Result<()> {
    let (host, company) = (app.app.clone(), app.company.id.clone());
    store
        .write(async move |tx| {
            audit::record(tx, &host, &test_actor(), &company, action, json!({})).await
        })
        .await
}

#[track_caller]
fn reason_of<T>(done: store::Result<T>) -> UnavailableReason {
    match done {
        Err(Error::Unavailable { reason, .. }) => reason,
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("it succeeded"),
    }
}

both! {
    async fn a_slow_transaction_is_rolled_back_and_others_commit(app: TestApp) {
        let store = open(app, StoreLimits { transaction_timeout: SOON, ..GENEROUS }).await;
        let host = app.app.clone();
        let slow = store.write(async move |tx| -> store::Result<()> {
            // Another log: entries of one log are recorded one after the other.
            audit::record(tx, &host, &test_actor(), Owner::Service, "slow", json!({})).await?;
            pending().await
        });
        let quick = join_all((0..20).map(|_| write(&store, app, "quick")));
        let (slow, quick) = join(slow, quick).await;
        assert_eq!(reason_of(slow), UnavailableReason::TimedOut);
        assert!(quick.iter().all(Result::is_ok), "{quick:?}");
        assert_eq!(count(&app.app.store, "", "slow").await, 0);
        assert_eq!(count(&app.app.store, &app.company.id, "quick").await, 20);
    }

    async fn an_endless_statement_is_cancelled_and_others_commit(app: TestApp) {
        const ENDLESS: &str = "SELECT COUNT(*) FROM (WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT)
             UNION ALL SELECT i + 1 FROM n) SELECT i FROM n) AS endless";
        const CHANGE: &str = "UPDATE companies SET name = 'slow' WHERE 0 < (SELECT COUNT(*) FROM (
             WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n)
             SELECT i FROM n) AS endless)";
        let store = open(app, StoreLimits { transaction_timeout: SOON, connections: 1, ..GENEROUS }).await;
        for _ in 0..2 {
            let read = store.read(async |tx| tx.sql(ENDLESS).one::<(i64,)>().await).await;
            assert_eq!(reason_of(read), UnavailableReason::TimedOut);
            let select = store.select(async |tx| tx.sql(ENDLESS).one::<(i64,)>().await).await;
            assert_eq!(reason_of(select), UnavailableReason::TimedOut);
        }
        let quick = || join_all((0..5).map(|_| write(&store, app, "quick")));
        let slow = store.write(async |tx| tx.sql(CHANGE).run().await);
        let ((before, slow), after) = join(join(quick(), slow), quick()).await;
        assert_eq!(reason_of(slow), UnavailableReason::TimedOut);
        assert!(before.iter().chain(&after).all(Result::is_ok), "{before:?} {after:?}");
        assert_eq!(count(&app.app.store, &app.company.id, "quick").await, 10);
    }

    async fn a_write_that_waits_too_long_is_rejected_and_not_done_later(app: TestApp) {
        let store = open(app, StoreLimits { acquire_timeout: SOON, connections: 1, ..GENEROUS }).await;
        let (held, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let holder = {
            let (store, held, release) = (store.clone(), held.clone(), release.clone());
            tokio::spawn(async move {
                let hold = async move |_: &mut Tx| -> store::Result<()> {
                    held.notify_one();
                    release.notified().await;
                    Ok(())
                };
                store.write(hold).await
            })
        };
        held.notified().await;
        let sqlite = app.database.url.starts_with("sqlite");
        let expected = if sqlite { UnavailableReason::WriterBusy } else { UnavailableReason::PoolExhausted };
        assert_eq!(reason_of(write(&store, app, "late").await), expected);
        release.notify_one();
        holder.await.expect("no panic").expect("a commit");
        write(&store, app, "in time").await.expect("a write in time");
        assert_eq!(count(&app.app.store, &app.company.id, "late").await, 0);
        assert_eq!(count(&app.app.store, &app.company.id, "in time").await, 1);
    }
}

// ---- PostgreSQL ---------------------------------------------------------------------------------

/// Runs `test` on PostgreSQL, if there is a server.
async fn on_postgres(test: impl AsyncFnOnce(&TestApp)) {
    let Some(server) = postgres() else { return };
    let app = TestApp::start(Engine::Postgres(server)).await;
    test(&app).await;
    app.finish().await;
}

/// State of two transactions that conflict once.
#[derive(Clone)]
struct Collision {
    runs: Arc<AtomicUsize>,
    both: Arc<Barrier>,
}

impl Collision {
    fn new() -> Collision {
        Collision { runs: Arc::default(), both: Arc::new(Barrier::new(2)) }
    }

    fn begin(&self) -> usize {
        self.runs.fetch_add(1, Ordering::SeqCst)
    }

    /// Makes the first run of each wait for that of the other.
    async fn meet(&self, run: usize) {
        if run < 2 {
            self.both.wait().await;
        }
    }
}

#[tokio::test]
async fn both_transactions_of_a_deadlock_commit() {
    on_postgres(async |app| {
        let (a, b) = (app.company.id.clone(), app.new_company("Other").await.id);
        let collision = Collision::new();
        let lock_both = |first: &CompanyId, second: &CompanyId| {
            let (collision, order) = (collision.clone(), [first.clone(), second.clone()]);
            let app = app.app.clone();
            let store = app.store.clone();
            async move {
                let work = async move |tx: &mut Tx| -> store::Result<()> {
                    let run = collision.begin();
                    for (n, company) in order.iter().enumerate() {
                        let name = "UPDATE companies SET name = name WHERE id = $1";
                        tx.sql(name).bind(company).run().await?;
                        audit::record(tx, &app, &test_actor(), company, "locked", json!({}))
                            .await?;
                        if n == 0 {
                            collision.meet(run).await;
                        }
                    }
                    Ok(())
                };
                store.write(work).await
            }
        };
        try_join(lock_both(&a, &b), lock_both(&b, &a)).await.expect("two commits");
        assert!(collision.runs.load(Ordering::SeqCst) > 2, "there was no conflict");
        for company in [&a, &b] {
            assert_eq!(count(&app.app.store, company, "locked").await, 2);
        }
    })
    .await;
}

#[tokio::test]
async fn both_transactions_of_a_serialization_failure_commit() {
    on_postgres(async |app| {
        let collision = Collision::new();
        let record_if_even = || {
            let (collision, app) = (collision.clone(), app.app.clone());
            let (store, company) = (app.store.clone(), CompanyId::from("whose log is read"));
            async move {
                let work = async move |tx: &mut Tx| -> store::Result<i64> {
                    let run = collision.begin();
                    tx.sql("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE").run().await?;
                    let counted = tx.sql("SELECT COUNT(*) FROM audit_log WHERE company_id = $1");
                    let (count,): (i64,) = counted.bind(&company).one().await?;
                    collision.meet(run).await;
                    audit::record(tx, &app, &test_actor(), &company, "counted", json!({})).await?;
                    Ok(count)
                };
                store.write(work).await
            }
        };
        let (a, b) = try_join(record_if_even(), record_if_even()).await.expect("two commits");
        assert_eq!(a.min(b)..=a.max(b), 0..=1, "one after the other");
        assert!(collision.runs.load(Ordering::SeqCst) > 2, "there was no conflict");
    })
    .await;
}

#[tokio::test]
async fn a_commit_without_a_response_is_reported_as_unknown_and_not_repeated() {
    on_postgres(async |app| {
        let proxy = Proxy::start(&app.database.url).await;
        let limits = StoreLimits { connections: 1, ..GENEROUS };
        let store = Store::open(&proxy.url, limits, Random::seeded(1)).await.expect("a database");
        proxy.cut_next("COMMIT\0");
        let lost = write(&store, app, "lost").await.expect_err("a missing response");
        assert!(matches!(lost, Error::CommitUnknown(_)), "{lost}");
        assert_eq!(count(&app.app.store, &app.company.id, "lost").await, 1);

        let response = axum::response::IntoResponse::into_response(error::Error::from(lost));
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(
            !response.headers().contains_key("retry-after"),
            "a blind retry must not be suggested"
        );

        write(&store, app, "after").await.expect("a new connection");
    })
    .await;
}

#[tokio::test]
async fn work_cut_off_before_its_commit_is_repeated_on_a_new_connection() {
    on_postgres(async |app| {
        let proxy = Proxy::start(&app.database.url).await;
        let limits = StoreLimits { connections: 1, ..GENEROUS };
        let store = Store::open(&proxy.url, limits, Random::seeded(1)).await.expect("a database");
        for statement in ["INSERT INTO audit_log", "BEGIN\0"] {
            proxy.cut_next(statement);
            write(&store, app, "cut").await.expect(statement);
        }
        assert_eq!(count(&app.app.store, &app.company.id, "cut").await, 2);
        proxy.cut_next("FROM audit_log");
        assert_eq!(count(&store, &app.company.id, "cut").await, 2);
        assert_eq!(proxy.cuts(), 3);
    })
    .await;
}

#[tokio::test]
async fn a_select_is_one_round_trip() {
    on_postgres(async |app| {
        let proxy = Proxy::start(&app.database.url).await;
        let limits = StoreLimits { connections: 1, ..GENEROUS };
        let store = Store::open(&proxy.url, limits, Random::seeded(1)).await.expect("a database");
        let select = async || {
            let one = store.select(async |tx: &mut Tx| tx.sql("SELECT 1").one::<(i32,)>().await);
            assert_eq!(one.await.expect("a response"), (1,));
        };
        select().await; // prepares it
        let before = proxy.round_trips();
        for _ in 0..10 {
            select().await;
        }
        assert_eq!(proxy.round_trips() - before, 10);
    })
    .await;
}

#[tokio::test]
async fn after_a_restart_of_the_server_only_new_connections_are_used() {
    on_postgres(async |app| {
        let proxy = Proxy::start(&app.database.url).await;
        // More connections than a transaction has attempts.
        let limits = StoreLimits { connections: 8, ..GENEROUS };
        let store = Store::open(&proxy.url, limits, Random::seeded(1)).await.expect("a database");
        let select = async || -> store::Result<(i32,)> {
            store.select(async |tx: &mut Tx| tx.sql("SELECT 1").one().await).await
        };
        let all_used = Arc::new(Barrier::new(8));
        let open = || {
            let all_used = all_used.clone();
            store.select(async move |tx: &mut Tx| -> store::Result<(i32,)> {
                all_used.wait().await;
                tx.sql("SELECT 1").one().await
            })
        };
        assert!(join_all((0..8).map(|_| open())).await.iter().all(Result::is_ok));
        proxy.restart().await;
        for _ in 0..8 {
            assert_eq!(select().await.expect("a response"), (1,));
        }
    })
    .await;
}

#[tokio::test]
async fn a_migration_causes_no_failures_on_a_running_host() {
    const ALL: &str = "SELECT * FROM audit_log WHERE company_id = $1 LIMIT 1";
    on_postgres(async |app| {
        // More connections than a transaction has attempts.
        let store = open(app, StoreLimits { connections: 8, ..GENEROUS }).await;
        let company = app.company.id.clone();
        let read = async || -> store::Result<(String,)> {
            store.select(async |tx: &mut Tx| tx.sql(ALL).bind(&company).one().await).await
        };
        let all_used = Arc::new(Barrier::new(8));
        let prepare = || {
            let (company, all_used) = (app.company.id.clone(), all_used.clone());
            store.read(async move |tx: &mut Tx| -> store::Result<(String,)> {
                let first = tx.sql(ALL).bind(&company).one().await?;
                all_used.wait().await;
                Ok(first)
            })
        };
        assert!(join_all((0..8).map(|_| prepare())).await.iter().all(Result::is_ok));
        let change = "ALTER TABLE audit_log ADD COLUMN later TEXT";
        app.app
            .store
            .write(async |tx: &mut Tx| tx.sql(change).run().await)
            .await
            .expect("a column");
        for _ in 0..8 {
            assert_eq!(read().await.expect("the company").0, *company);
        }
        let locked = store.write(async move |tx: &mut Tx| -> store::Result<(String,)> {
            tx.sql("SELECT * FROM audit_log WHERE company_id = $1 LIMIT 1 FOR UPDATE")
                .bind(&company)
                .one()
                .await
        });
        locked.await.expect("the company");
    })
    .await;
}

// ---- SQLite -------------------------------------------------------------------------------------

#[tokio::test]
async fn a_full_disk_causes_503_until_there_is_space() {
    let app = TestApp::start(Engine::Sqlite).await;
    let most_pages = async |sql: &'static str| {
        let set = app.app.store.write(async |tx: &mut Tx| tx.sql(sql).one::<(i64,)>().await);
        set.await.expect("a limit").0
    };
    let before = most_pages("PRAGMA max_page_count").await;
    assert!(
        most_pages("PRAGMA max_page_count = 1").await < before,
        "the limit is the current size"
    );
    let mut order = app.order("order-1");
    order["metadata"] = json!({ "filler": "x".repeat(16_000) });
    let refused = app.post("/payment/initialize", order.clone()).await;
    assert_eq!(refused.failure(), (503, "the database is unavailable, try again later"));
    assert_eq!(refused.headers["retry-after"], "5");
    assert_eq!(app.get("/payment/fetch/reference/order-1").await.failure().0, 404);

    most_pages("PRAGMA max_page_count = 1000000").await;
    app.post("/payment/initialize", order).await.data();
    app.finish().await;
}

#[tokio::test]
async fn a_file_locked_by_another_process_is_unavailable_until_it_is_released() {
    let app = TestApp::start(Engine::Sqlite).await;
    let store = open(&app, StoreLimits { acquire_timeout: SOON, ..GENEROUS }).await;
    let mut other = SqliteConnection::connect(&app.database.url).await.expect("a connection");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock");
    assert_eq!(reason_of(write(&store, &app, "locked").await), UnavailableReason::Locked);
    let reads = count(&store, &app.company.id, "locked").await;
    sqlx::query("ROLLBACK").execute(&mut other).await.expect("no lock");
    write(&store, &app, "locked").await.expect("a write in time");
    assert_eq!((reads, count(&store, &app.company.id, "locked").await), (0, 1));
    app.finish().await;
}

#[tokio::test]
async fn a_database_that_cannot_be_opened_is_reported_with_its_reason() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = |name: &str| format!("sqlite://{}", dir.path().join(name).display());
    let open = async |url: &str| {
        let limits = StoreLimits { acquire_timeout: SOON, ..GENEROUS };
        Store::open(url, limits, Random::seeded(1)).await.map(drop)
    };
    assert_eq!(reason_of(open(&file("no/such/folder.db")).await), UnavailableReason::NotWritable);
    std::fs::create_dir(dir.path().join("folder.db")).expect("a folder");
    assert_eq!(reason_of(open(&file("folder.db")).await), UnavailableReason::NotWritable);
    std::fs::write(dir.path().join("letter.db"), "Dear reader, ".repeat(500)).expect("a file");
    assert_eq!(reason_of(open(&file("letter.db")).await), UnavailableReason::Corrupt);

    let create = file("locked.db?mode=rwc");
    let mut other = SqliteConnection::connect(&create).await.expect("a connection");
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.expect("the lock");
    let refused = open(&file("locked.db")).await;
    let text = refused.as_ref().expect_err("a refusal").to_string();
    assert!(text.contains("locked by another process"), "{text}");
    assert_eq!(reason_of(refused), UnavailableReason::Locked);
}

// ---- both ---------------------------------------------------------------------------------------

#[tokio::test]
async fn hosts_that_start_together_on_a_new_database_all_start() {
    for engine in [Some(Engine::Sqlite), postgres().map(Engine::Postgres)].into_iter().flatten() {
        let database = Database::create(engine).await;
        let limits = StoreLimits { connections: 1, ..GENEROUS };
        let open = || Store::open(&database.url, limits, Random::seeded(1));
        let opened = join_all((0..6).map(|_| open())).await;
        let errors: Vec<&Error> = opened.iter().filter_map(|store| store.as_ref().err()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        drop(opened);
        database.drop().await;
    }
}
