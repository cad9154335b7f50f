//! Jobs: hosts share them, a dead host loses none, and one enqueued while it runs runs again.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    time::timeout,
};
use tollhouse_app::{money::charges, state::App, wiring};
use tollhouse_http as http;
use tollhouse_platform::{background::jobs, random::Random, store};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::app::TestApp;

/// Number of verification requests that the provider has received.
fn verifications(app: &TestApp) -> usize {
    let requests = app.simulators.paystack().requests();
    requests.iter().filter(|(_, path)| path.starts_with("/transaction/verify/")).count()
}

async fn enqueue_settlement(app: &TestApp, payment: &serde_json::Value) {
    let (company, now) = (app.company.id.clone(), app.app.clock.now());
    let payment = payment["id"].as_str().unwrap().to_owned();
    let enqueued = app.app.store.write(async move |tx| {
        let charge = tx.sql("SELECT id FROM charges WHERE owner_id = $1").bind(payment);
        let charge: String = charge.value().await?;
        jobs::enqueue(tx, &company, charges::RECONCILE_JOB, &charge, now).await
    });
    let enqueued: store::Result<()> = enqueued.await;
    enqueued.expect("an enqueued job");
}

both! {
    async fn two_hosts_share_the_work_and_run_no_job_twice(app: TestApp) {
        let config = crate::app::config(&app.database, &[]);
        let second = App::open(&config, app.app.clock.clone(), Random::system(), None).await;
        let second = second.expect("another host");
        for n in 0..30 {
            let payment = app.initialize(&format!("order-{n}")).await;
            enqueue_settlement(app, &payment).await;
        }
        let runs = join_all([jobs::run_due(&app.app), jobs::run_due(&second)]).await;
        let runs: usize = runs.into_iter().map(|runs| runs.expect("jobs that run")).sum();
        assert_eq!((runs, verifications(app)), (30, 30));
    }

    async fn a_job_of_a_dead_host_runs_when_its_lease_expires(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "success").await;
        // Whether the webhook has arrived by now or not.
        let lease_ends = app.app.clock.now().plus_seconds(120);
        let dead: store::Result<u64> = app
            .app
            .store
            .write(async move |tx| {
                let sql = "UPDATE jobs SET lease = 'of a host that died', run_at = $1";
                tx.sql(sql).bind(lease_ends).run().await
            })
            .await;
        assert_eq!(dead.expect("a statement"), 1);
        app.advance(119).await; // the webhook that arrives meanwhile does not break the lease
        assert_eq!(app.fetch("order-1").await["status"], "pending");
        app.advance(1).await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
    }

    async fn a_job_enqueued_while_it_runs_runs_again(app: TestApp) {
        let payment = app.initialize("order-1").await;
        enqueue_settlement(app, &payment).await;
        app.simulators.faults().push(Fault::new("verify", FaultKind::SlowAfter).times(1).delay_ms(300));
        let enqueue_meanwhile = async {
            while verifications(app) == 0 {
                tokio::task::yield_now().await;
            }
            enqueue_settlement(app, &payment).await;
        };
        tokio::join!(app.run_until_idle(), enqueue_meanwhile);
        assert_eq!(verifications(app), 2);
        app.run_until_idle().await;
        assert_eq!(verifications(app), 2);
        assert_eq!(app.fetch("order-1").await["checkout"]["success_url"], json!("https://lender.example/paid"));
    }

    async fn a_job_being_claimed_when_the_host_stops_is_done(app: TestApp) {
        let payment = app.initialize("order-1").await;
        enqueue_settlement(app, &payment).await;
        let claims = "LOCK TABLE jobs IN SHARE ROW EXCLUSIVE MODE";
        let is_sqlite = app.database.url.starts_with("sqlite");
        let (begun, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (begins, releases) = (begun.clone(), released.clone());
        let store = app.app.store.clone();
        // Locks the jobs; on SQLite an open write is enough, because it has one writer.
        let held = tokio::spawn(async move {
            let hold = async move |tx: &mut store::Tx| -> store::Result<()> {
                if !is_sqlite {
                    tx.sql(claims).run().await?;
                }
                begins.notify_one();
                releases.notified().await;
                Ok(())
            };
            store.write(hold).await
        });
        begun.notified().await;
        let bind = async || http::Listener::plain(TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(wiring::serve(app.app.clone(), bind().await, bind().await, stopped));
        tokio::time::sleep(Duration::from_secs(2)).await; // the host is claiming now, even under load
        stop.send_replace(true);
        tokio::time::sleep(Duration::from_millis(100)).await; // the worker no longer waits for the claim
        released.notify_one();
        held.await.expect("no panic").expect("a write");
        timeout(Duration::from_secs(30), serving).await.expect("an end").expect("no panic");
        // Read by a write transaction, which is queued behind the remaining ones.
        let leased = async |tx: &mut store::Tx| tx.sql("SELECT lease FROM jobs WHERE lease IS NOT NULL").all().await;
        let leased: store::Result<Vec<(String,)>> = app.app.store.write(leased).await;
        assert_eq!((leased.expect("the jobs"), verifications(app)), (Vec::new(), 1));
    }

    async fn jobs_locked_by_another_transaction_are_claimed_again_after_one_second(app: TestApp) {
        if app.database.url.starts_with("sqlite") {
            return; // no row locks
        }
        let payment = app.initialize("order-1").await;
        enqueue_settlement(app, &payment).await;
        let (locked, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (lock, release) = (locked.clone(), released.clone());
        let held = app.app.store.write(async move |tx| -> store::Result<()> {
            tx.sql("UPDATE jobs SET failures = failures").run().await?;
            lock.notify_one();
            released.notified().await;
            Ok(())
        });
        let start = async {
            locked.notified().await;
            let waits = timeout(Duration::from_secs(10), jobs::start_due(&app.app)).await;
            release.notify_one();
            waits
        };
        let (held, waits) = tokio::join!(held, start);
        held.expect("a write");
        let waits = waits.expect("workers that wait").expect("a database that responds");
        assert_eq!(waits, Duration::from_secs(1));
        app.run_until_idle().await;
        assert_eq!(verifications(app), 1);
    }
}
