//! Events for operators and internal consumers: read by cursor, each once and none missed.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tollhouse_app::operations::operator_events;
use tollhouse_platform::{store, values::id::Owner};

use crate::app::TestApp;

/// Time for which an event is held back: longer than a transaction may last.
const HELD_BACK_SECONDS: i64 = 60;

async fn emit(app: &TestApp, owner: impl Into<Owner>, kind: &'static str, n: i64) {
    let (host, company) = (app.app.clone(), owner.into());
    let emitted: store::Result<()> = app
        .app
        .store
        .write(async move |tx| {
            operator_events::emit(tx, &host, company.clone(), kind, json!({ "n": n })).await
        })
        .await;
    emitted.expect("an event");
}

async fn read(app: &TestApp, query: &str) -> Value {
    app.operator(Method::GET, &format!("/events{query}"), Value::Null).await.data().clone()
}

/// The numbers of events.
fn numbers(read: &Value) -> Vec<i64> {
    let events = read["events"].as_array().expect("a list").iter();
    events.map(|event| event["data"]["n"].as_i64().expect("a number")).collect()
}

fn next(read: &Value) -> &str {
    read["next"].as_str().expect("a cursor")
}

both! {
    async fn events_are_kept_for_ninety_days(app: TestApp) {
        for n in 0..2 {
            emit(app, &app.company.id, "a.kind", n).await;
            app.app.clock.advance_to(app.app.clock.now().plus_seconds(3600));
        }
        let sweep = async || operator_events::sweep(app.app.clone()).await.expect("a sweep");
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(90 * 24 * 3600 - 2 * 3600));
        assert_eq!(sweep().await, 0);
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(1));
        assert_eq!(sweep().await, 1);
        assert_eq!(numbers(&read(app, "").await), [1]);
    }

    async fn pages_of_the_feed_contain_each_event_once(app: TestApp) {
        let other = app.new_company("Beta Lending").await;
        assert_eq!(numbers(&read(app, "").await), Vec::<i64>::new());
        for n in 0..10 {
            let company = if n % 2 == 0 { &app.company.id } else { &other.id };
            emit(app, company, if n % 3 == 0 { "a.third" } else { "of.the.rest" }, n).await;
            app.advance(1).await;
        }
        emit(app, Owner::Service, "of.the.service", 10).await;
        app.advance(HELD_BACK_SECONDS + 1).await;
        let all = read(app, "").await;
        assert_eq!(numbers(&all), (0..=10).collect::<Vec<_>>());
        let event = &all["events"][3];
        assert_eq!((&event["kind"], &event["company_id"], &event["data"]), (&json!("a.third"), &json!(other.id), &json!({ "n": 3 })));
        assert_eq!(all["events"][10]["company_id"], "");
        for (filter, expected) in [
            (String::new(), (0..=10).collect()),
            ("&kind=a.third".to_owned(), vec![0, 3, 6, 9]),
            (format!("&company={}", other.id), vec![1, 3, 5, 7, 9]),
            (format!("&kind=a.third&company={}", other.id), vec![3, 9]),
            ("&kind=nothing".to_owned(), vec![]),
        ] {
            let (mut after, mut found) = (String::new(), Vec::new());
            loop {
                let part = read(app, &format!("?after={after}&limit=2{filter}")).await;
                found.extend(numbers(&part));
                next(&part).clone_into(&mut after);
                if numbers(&part).len() < 2 {
                    break;
                }
            }
            assert_eq!(found, expected, "{filter}");
            assert_eq!(next(&all), after, "{filter}: the last cursor does not depend on page size and filter");
        }
    }

    async fn a_young_event_is_held_back(app: TestApp) {
        emit(app, &app.company.id, "x", 0).await;
        let early = read(app, "").await;
        app.advance(HELD_BACK_SECONDS).await;
        let still = read(app, &format!("?after={}", next(&early))).await;
        app.advance(1).await;
        let late = read(app, &format!("?after={}", next(&still))).await;
        assert_eq!([early, still, late].map(|read| numbers(&read)), [vec![], vec![], vec![0]]);
    }

    async fn a_reader_misses_no_event_that_is_committed_late(app: TestApp) {
        let (written, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (host, company) = (app.app.clone(), app.company.id.clone());
        let (wrote, wait) = (written.clone(), go_on.clone());
        let db = app.app.store.clone();
        let late = tokio::spawn(async move {
            let emitted: store::Result<()> = db.write(async move |tx| {
                operator_events::emit(tx, &host, &company, "x", json!({ "n": 1 })).await?;
                wrote.notify_one();
                wait.notified().await;
                Ok(())
            }).await;
            emitted
        });
        written.notified().await;
        // A transaction that began later ends sooner, except on SQLite, which has one writer.
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(30));
        let is_alone = app.database.url.starts_with("sqlite");
        if !is_alone {
            emit(app, &app.company.id, "x", 2).await;
        }
        let before = read(app, "").await;
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(HELD_BACK_SECONDS - 31));
        let middle = read(app, &format!("?after={}", next(&before))).await;
        go_on.notify_one();
        late.await.expect("a task that ends").expect("an event");
        if is_alone {
            emit(app, &app.company.id, "x", 2).await;
        }
        app.advance(HELD_BACK_SECONDS + 1).await;
        let after = read(app, &format!("?after={}", next(&middle))).await;
        assert_eq!([before, middle, after].map(|read| numbers(&read)), [vec![], vec![], vec![1, 2]]);
    }

    async fn a_cursor_that_no_response_contained_is_rejected(app: TestApp) {
        for after in ["x", "6B018EED", "6b018ee", "6b018eed9f8a1c2b3d4e5f601", "yesterday"] {
            let refused = app.operator(Method::GET, &format!("/events?after={after}"), Value::Null).await;
            assert_eq!(refused.failure(), (400, "the after field must be the `next` of an earlier response"), "{after}");
        }
        // If a host's clock is behind, the cursor does not move back.
        assert_eq!(next(&read(app, "?after=ffffffff").await), "ffffffff");
    }
}
