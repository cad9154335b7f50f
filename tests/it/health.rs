//! Readiness: its conditions, its cost and its timeout.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::{sync::Semaphore, task::JoinHandle, time::timeout};
use tollhouse_platform::store;

use crate::{
    app::{Reply, TestApp, reply},
    telemetry::{metric_value, scrape},
};

/// Longer than a response may take.
const TIMEOUT: Duration = Duration::from_secs(4);

async fn ready(app: &TestApp) -> Reply {
    let request = reply(app.client.get(format!("{}/health/ready", app.api)));
    timeout(TIMEOUT, request).await.expect("a response in time")
}

/// Expires the cached result.
fn expire_result(app: &TestApp) {
    app.app.clock.advance_to(app.app.clock.now().plus_seconds(1));
}

/// Returns the number of database reads so far.
async fn reads(app: &TestApp) -> f64 {
    let page = scrape(app).await;
    metric_value(&page, "tollhouse_store_duration_seconds_count{operation=\"read\"}")
        .expect("a count")
}

/// Holds a transaction open until `released` has a permit.
async fn hold(app: &TestApp, released: &Arc<Semaphore>) -> JoinHandle<store::Result<()>> {
    let (store, released, begun) =
        (app.app.store.clone(), released.clone(), Arc::new(Semaphore::new(0)));
    let begins = begun.clone();
    let held = tokio::spawn(async move {
        let hold = async move |tx: &mut store::Tx| -> store::Result<()> {
            tx.sql("SELECT id FROM companies LIMIT 1").all::<(String,)>().await?;
            begins.add_permits(1);
            released.acquire().await.expect("an open semaphore").forget();
            Ok(())
        };
        store.write(hold).await
    });
    begun.acquire().await.expect("an open semaphore").forget();
    held
}

both! {
    async fn concurrent_requests_share_one_database_read(app: TestApp) {
        let before = reads(app).await;
        let responses = join_all((0..40).map(|_| ready(app))).await;
        assert!(responses.iter().all(|response| response.status == 200));
        assert_eq!(reads(app).await, before + 1.0);
        expire_result(app);
        ready(app).await;
        assert_eq!(reads(app).await, before + 2.0);
    }

    async fn a_host_whose_tables_cannot_be_read_is_not_ready(app: TestApp) {
        assert_eq!(ready(app).await.status, 200);
        let rename = |sql: &'static str| app.app.store.write(async move |tx: &mut store::Tx| tx.sql(sql).run().await);
        rename("ALTER TABLE companies RENAME TO elsewhere").await.expect("a statement");
        expire_result(app);
        assert_eq!(ready(app).await.failure(), (503, "the database does not respond"));
        rename("ALTER TABLE elsewhere RENAME TO companies").await.expect("a statement");
        assert_eq!(ready(app).await.status, 503, "the result is cached for a second");
        expire_result(app);
        assert_eq!(ready(app).await.status, 200);
    }

    async fn a_host_that_cannot_write_is_not_ready_and_responds_in_time(app: TestApp) {
        let released = Arc::new(Semaphore::new(0));
        // Occupies the writer of SQLite, or all connections to PostgreSQL.
        let most = if app.database.url.starts_with("sqlite") { 1 } else { 8 };
        let held = join_all((0..most).map(|_| hold(app, &released))).await;
        let responses = join_all((0..10).map(|_| ready(app))).await;
        assert!(responses.iter().all(|response| response.status == 503), "{responses:?}");
        released.add_permits(most);
        for held in held {
            held.await.expect("no panic").expect("a commit");
        }
        expire_result(app);
        assert_eq!(ready(app).await.status, 200);
    }
}
