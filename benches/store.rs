//! Writes of a row by few and by many concurrent writers, and the smallest possible read.

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
        drop(store);
        database.drop_schema(&bench.runtime);
    }
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
