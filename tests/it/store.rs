//! Guarantees of transactions, on both engines.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection, Executor};
use sqlx_postgres::PgConnection;
use tollhouse_app::operations::audit;
use tollhouse_platform::{
    error::{Error, Result},
    random::Random,
    store::{self, Store, StoreLimits, Tx, params},
};

use crate::app::{TestApp, test_actor};

pub async fn count(store: &Store, company: &str, action: &'static str) -> i64 {
    let (count,): (i64,) = store
        .read(async |tx| {
            tx.sql("SELECT COUNT(*) FROM audit_log WHERE company_id = $1 AND action = $2")
                .params(params![company.to_owned(), action])
                .one()
                .await
        })
        .await
        .expect("a count");
    count
}

/// Writes a row, and then fails if `fail` is set.
async fn write(app: &TestApp, action: &'static str, fail: bool) -> Result<()> {
    let (db, app, company) = (app.app.store.clone(), app.app.clone(), app.company.id.clone());
    db.write(async move |tx| {
        audit::record(tx, &app, &test_actor(), &company, action, json!({})).await?;
        if fail { Err(Error::invalid("deliberate failure")) } else { Ok(()) }
    })
    .await
}

both! {
    async fn a_failed_write_is_rolled_back_and_concurrent_ones_are_not(app: TestApp) {
        let writes = (0..60).map(|n| write(app, "test", n % 3 == 0));
        let failed = join_all(writes).await.into_iter().filter(Result::is_err).count();
        assert_eq!(failed, 20);
        assert_eq!(count(&app.app.store, &app.company.id, "test").await, 40);
    }

    async fn a_panic_in_a_write_affects_only_its_caller(app: TestApp) {
        let (db, host, company) = (app.app.store.clone(), app.app.clone(), app.company.id.clone());
        let panicked = tokio::spawn(async move {
            db.write(async move |tx| -> Result<()> {
                audit::record(tx, &host, &test_actor(), &company, "test", json!({})).await?;
                panic!("deliberate panic");
            })
            .await
        });
        assert!(panicked.await.unwrap_err().is_panic());
        write(app, "test", false).await.expect("a working store");
        assert_eq!(count(&app.app.store, &app.company.id, "test").await, 1);
    }

    async fn a_row_read_under_a_lock_is_not_changed_by_others(app: TestApp) {
        let lengthen = async || {
            let company = app.company.id.clone();
            let write = app.app.store.write(async move |tx| -> store::Result<_> {
                let (name,): (String,) = tx
                    .sql("SELECT name FROM companies WHERE id = $1 FOR UPDATE")
                    .bind(company.clone())
                    .one()
                    .await?;
                let longer = format!("{name}+");
                tx.sql("UPDATE companies SET name = $2 WHERE id = $1").bind(company).bind(longer).run().await
            });
            write.await.expect("a write")
        };
        join_all((0..25).map(|_| lengthen())).await;
        let path = format!("/companies/{}", app.company.id);
        let company = app.operator(Method::GET, &path, Value::Null).await;
        let name = company.data()["name"].as_str().unwrap().to_owned();
        assert_eq!(name, format!("Acme Lending{}", "+".repeat(25)));
    }

    async fn a_read_is_one_snapshot(app: TestApp) {
        const COUNT: &str = "SELECT COUNT(*) FROM audit_log";
        let counts: Result<(i64, i64)> = app
            .app
            .store
            .read(async |tx| {
                let (before,) = tx.sql(COUNT).one().await?;
                write(app, "test", false).await?;
                let (after,) = tx.sql(COUNT).one().await?;
                Ok((before, after))
            })
            .await;
        let (before, after) = counts.expect("two counts");
        assert_eq!(before, after);
        assert_eq!(count(&app.app.store, &app.company.id, "test").await, 1);
    }

    async fn a_read_cannot_write(app: TestApp) {
        let delete: store::Result<u64> =
            app.app.store.read(async |tx| tx.sql("DELETE FROM jobs").run().await).await;
        assert!(delete.is_err());
    }

    async fn a_select_is_one_statement_that_changes_nothing(app: TestApp) {
        let one: store::Result<(i32,)> =
            app.app.store.select(async |tx| tx.sql("SELECT 1").one().await).await;
        assert_eq!(one.expect("a row").0, 1);
        for statements in [&["SELECT 1", "SELECT 1"][..], &["DELETE FROM jobs"]] {
            let db = app.app.store.clone();
            let refused = tokio::spawn(async move {
                let all = async |tx: &mut Tx| -> store::Result<()> {
                    for statement in statements {
                        tx.sql(statement).run().await?;
                    }
                    Ok(())
                };
                db.select(all).await
            });
            assert!(refused.await.is_err_and(|error| error.is_panic()), "{statements:?}");
        }
    }

    async fn a_long_read_begins_again_apart_from_other_tasks_on_sqlite(app: TestApp) {
        let sql = "SELECT CAST(COUNT(*) AS BIGINT) FROM (
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i FROM n) AS numbers";
        let store = app.app.store.clone();
        for (sql, runs_on_sqlite) in [("SELECT CAST(100000 AS BIGINT)", 1), (sql, 2)] {
            let runs = AtomicUsize::new(0);
            let read = async |tx: &mut Tx| -> store::Result<i64> {
                runs.fetch_add(1, Relaxed);
                tx.sql(sql).value().await
            };
            let counted = [store.select(read).await, store.read(read).await];
            assert_eq!(counted.map(Result::unwrap), [100_000; 2], "{sql}");
            let expected = if app.database.url.starts_with("sqlite") { runs_on_sqlite } else { 1 };
            assert_eq!(runs.into_inner(), 2 * expected, "{sql}");
        }
    }

    async fn an_ignored_error_still_aborts_its_transaction(app: TestApp) {
        let (host, company) = (app.app.clone(), app.company.id.clone());
        let ignored = app.app.store.write(async move |tx| -> Result<()> {
            audit::record(tx, &host, &test_actor(), &company, "test", json!({})).await?;
            let twice = "INSERT INTO companies SELECT * FROM companies WHERE id = $1";
            assert!(tx.sql(twice).bind(&company).run().await.is_err());
            assert!(tx.sql("SELECT 1").one::<(i32,)>().await.is_err());
            Ok(())
        });
        assert!(ignored.await.is_err());
        assert_eq!(count(&app.app.store, &app.company.id, "test").await, 0);
    }

    async fn statements_and_idle_transactions_time_out_on_postgres(app: TestApp) {
        if app.database.url.starts_with("sqlite") {
            return; // its writers are queued
        }
        for (limit, value) in [("SHOW statement_timeout", "10s"), ("SHOW idle_in_transaction_session_timeout", "30s")] {
            let shown: store::Result<(String,)> =
                app.app.store.read(async move |tx| tx.sql(limit).one().await).await;
            assert_eq!(shown.expect("a setting").0, value, "{limit}");
        }
    }

    async fn a_table_that_has_grown_is_analyzed_on_postgres(app: TestApp) {
        if app.database.url.starts_with("sqlite") {
            return; // it plans by the schema
        }
        let mut connection = PgConnection::connect(&app.database.url).await.expect("the database");
        let only_by_hosts = "ALTER TABLE otp_buckets SET (autovacuum_enabled = false)";
        connection.execute(only_by_hosts).await.expect("a setting");
        let known_rows = "SELECT reltuples FROM pg_class WHERE oid = 'otp_buckets'::regclass";
        for (more, known) in [(500, -1.0), (1, 501.0)] {
            let grow = "INSERT INTO otp_buckets (company_id, key, full_at)
                SELECT '', gen_random_uuid()::text, 0 FROM generate_series(1, $1)";
            sqlx::query(grow).bind(more).execute(&mut connection).await.expect("rows");
            connection.execute("SELECT pg_stat_force_next_flush()").await.expect("statistics");
            connection.ping().await.expect("a connection, which has reported its changes");
            for _ in 0..10 {
                app.app.store.refresh_statistics().await.expect("statistics");
            }
            let rows: f32 =
                sqlx::query_scalar(known_rows).fetch_one(&mut connection).await.expect("a table");
            assert_eq!(rows, known);
        }
    }

    async fn a_statement_with_an_unbound_parameter_never_reaches_the_database(app: TestApp) {
        for bind in [false, true] {
            let db = app.app.store.clone();
            let task = tokio::spawn(async move {
                let result: store::Result<(Option<i64>,)> = db
                    .read(async |tx| {
                        let statement = tx.sql("SELECT MIN(run_at) FROM jobs WHERE company_id = $1");
                        if bind { statement.bind("x").one().await } else { statement.one().await }
                    })
                    .await;
                result
            });
            assert_eq!(task.await.is_err_and(|e| e.is_panic()), !bind);
        }
    }
}

#[tokio::test]
async fn a_url_of_an_unsupported_database_is_rejected() {
    for url in ["none", "mysql://localhost/tollhouse", "tollhouse.db"] {
        let refused = Store::open(url, StoreLimits::default(), Random::system())
            .await
            .err()
            .expect("a refusal")
            .to_string();
        assert!(
            refused.contains("the database must be sqlite://FILE or postgres://"),
            "{url}: {refused}"
        );
    }
}

#[tokio::test]
async fn an_announcement_is_delivered_when_it_is_committed() {
    const CHANNEL: &str = "tollhouse_test_announcements";
    let Some(server) = crate::app::postgres() else { return };
    let app = TestApp::start(crate::app::Engine::Postgres(server)).await;
    let another = Store::open(&app.database.url, StoreLimits::default(), Random::system()).await;
    let another = another.expect("another host's store");
    let (announced, mut announcements) = tokio::sync::mpsc::unbounded_channel();
    let listening = tokio::spawn(async move {
        another.listen(CHANNEL, move || announced.send(()).unwrap_or_default()).await
    });
    let mut next = async || {
        let patience = std::time::Duration::from_secs(30);
        tokio::time::timeout(patience, announcements.recv())
            .await
            .expect("an announcement in time")
            .expect("a listener")
    };
    next().await; // earlier announcements may have been missed
    let db = &app.app.store;
    let rolled_back = db.write(async |tx| -> Result<()> {
        tx.notify(CHANNEL).await?;
        Err(Error::invalid("deliberate failure"))
    });
    assert!(rolled_back.await.is_err());
    for _ in 0..2 {
        db.write(async |tx| tx.notify(CHANNEL).await).await.expect("an announcement");
        next().await;
    }
    listening.abort();
    let left = listening.await;
    assert!(left.is_err(), "{left:?}");
    assert!(announcements.recv().await.is_none(), "a rolled-back announcement was delivered");
    app.finish().await;
}
