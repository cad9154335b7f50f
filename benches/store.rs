//! Writes of a row by few and by many concurrent writers, and the smallest possible read.

use std::time::Duration;

use tollhouse_platform::store::params;
use tollhouse_platform::{
    clock::Clock,
    random::Random,
    store::{self, Store, StoreLimits},
};

use crate::{Bench, database, divide};

const READERS: u32 = 32;

pub fn measure(bench: &mut Bench) {
    for database in database::create_for_each_engine(&bench.runtime) {
        let store = Store::open(&database.url, StoreLimits::default(), Random::system());
        let store = bench.runtime.block_on(store).expect("a database");
        for writers in [1, 32, 128] {
            let name = format!("store/write/{}/{writers}", database.engine);
            bench.measure(&name, async |iterations| {
                divide(iterations, 0..writers, |_, own| write(store.clone(), own)).await
            });
        }
        let name = format!("store/select/{}/{READERS}", database.engine);
        bench.measure(&name, async |iterations| {
            divide(iterations, 0..READERS, |_, own| select(store.clone(), own)).await
        });
        count_switches(bench, &format!("store/write/{}/32", database.engine), async |count| {
            divide(count, 0..32, |_, own| write(store.clone(), own)).await
        });
        count_switches(bench, &name, async |count| {
            divide(count, 0..READERS, |_, own| select(store.clone(), own)).await
        });
        drop(store);
        database.drop_schema(&bench.runtime);
    }
}

/// Prints the context switches of this process per operation.
fn count_switches(bench: &Bench, name: &str, run: impl AsyncFn(u64) -> Duration) {
    const OPERATIONS: u64 = 20_000;
    if bench.runs_once() || !bench.is_selected(name) {
        return;
    }
    let before = context_switches();
    bench.runtime.block_on(run(OPERATIONS));
    let switches = (context_switches() - before) as f64 / OPERATIONS as f64;
    println!("{name}: {switches:.2} context switches per operation");
}

/// Number of context switches of all threads, voluntary or not.
fn context_switches() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the threads of this process");
    let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status"));
    let texts = tasks.filter_map(|task| status(task.ok()?).ok());
    let count = |text: String| -> u64 {
        let lines = text.lines().filter(|line| line.contains("ctxt_switches"));
        lines.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum()
    };
    texts.map(count).sum()
}

async fn select(store: Store, times: u64) {
    for _ in 0..times {
        let one = store.select(async |tx| tx.sql("SELECT CAST(1 AS BIGINT)").one::<(i64,)>().await);
        let one: store::Result<(i64,)> = one.await;
        assert_eq!(one.expect("a row"), (1,));
    }
}

async fn write(store: Store, rows: u64) {
    let (clock, random) = (Clock::system(), Random::system());
    for _ in 0..rows {
        let now = clock.now();
        let id = random.id(now);
        let written = store.write(async move |tx| {
            tx.sql(
                "INSERT INTO audit_log (company_id, id, actor, action, detail, created_at)
                 VALUES ('', $1, 'bench', 'bench', '{}', $2)",
            )
            .params(params![id, now])
            .run()
            .await
        });
        let rows: store::Result<u64> = written.await;
        assert_eq!(rows.expect("a row"), 1);
    }
}
