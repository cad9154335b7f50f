//! Writes: a row and its commit, by few and by many at once.

use tollhouse::{
    clock::Clock,
    random::Random,
    store::{self, Limits, Store},
};

use crate::{Bench, database, share};

pub fn measure(bench: &mut Bench) {
    for database in database::of_each_engine(&bench.runtime) {
        let store = Store::open(&database.url, Limits::default(), Random::system());
        let store = bench.runtime.block_on(store).expect("a database");
        for writers in [1, 32, 128] {
            let name = format!("store/write/{}/{writers}", database.engine);
            bench.measure(&name, async |iterations| {
                share(iterations, 0..writers, |_, own| write(store.clone(), own)).await
            });
        }
        drop(store);
        database.drop(&bench.runtime);
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
            .bind(id)
            .bind(now)
            .run()
            .await
        });
        let rows: store::Result<u64> = written.await;
        assert_eq!(rows.expect("a row"), 1);
    }
}
