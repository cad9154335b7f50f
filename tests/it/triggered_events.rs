//! Events that a test company triggers, and the list that `tollhouse listen` reads.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::webhooks::outgoing::TYPES;

use crate::{
    app::{Reply, TestApp, reply},
    contract::check_event,
    event_endpoints,
    events::{Receiver, newest, receive, redeliver, succeed},
};

async fn trigger(app: &TestApp, body: Value) -> Reply {
    app.post("/event/trigger", body).await
}

async fn list(app: &TestApp, query: &str) -> (Vec<Value>, String) {
    let data = app.get(&format!("/event/list{query}")).await.data().clone();
    let next = data["next"].as_str().expect("a cursor").to_owned();
    (data["events"].as_array().expect("a list").clone(), next)
}

fn ids(events: &[Value]) -> BTreeSet<String> {
    events.iter().map(|event| event["id"].as_str().expect("an id").to_owned()).collect()
}

both! {
    async fn every_type_can_be_triggered_and_matches_its_schema(app: TestApp) {
        let registered = receive(app).await;
        let endpoint = Receiver::start().await;
        let fields = json!({ "url": endpoint.url, "types": ["card.validation.failed"] });
        let secret = event_endpoints::create(app, &app.company, fields).await["secret"].clone();
        for kind in TYPES {
            let event = trigger(app, json!({ "type": kind })).await.data().clone();
            app.run_until_idle().await;
            let (headers, body) = registered.got.lock().unwrap().last().expect("a webhook").clone();
            check_event(kind, &body);
            assert!(event_endpoints::is_signed_with(&(headers.clone(), body.clone()), &app.company.event_secret));
            assert_eq!(headers["webhook-id"], event["id"].as_str().unwrap());
            assert_eq!(event["body"], serde_json::from_str::<Value>(&body).unwrap());
            let data = &event["body"]["data"];
            let marked = ["reference", "service_ref", "loan"].map(|name| data[name].as_str().unwrap_or_default());
            assert!(marked.iter().any(|reference| reference.starts_with("test-")), "{data}");
        }
        assert_eq!((registered.count(), endpoint.count()), (TYPES.len(), 1));
        let got = endpoint.got.lock().unwrap()[0].clone();
        assert!(event_endpoints::is_signed_with(&got, secret.as_str().unwrap()));
        // Operators see them like any other, and redeliver them.
        let event = newest(app).await;
        redeliver(app, &event).await;
        assert_eq!(registered.count(), TYPES.len() + 1);
        assert_eq!(app.get("/payment/list").await.data()["total"], 0);
    }

    async fn fields_of_the_example_can_be_set(app: TestApp) {
        let set = json!({ "amount": 5000.25, "reference": "order-7", "metadata": { "order": 7 } });
        let event = trigger(app, json!({ "type": "payment.success", "data": set })).await.data().clone();
        let data = &event["body"]["data"];
        assert_eq!([&data["amount"], &data["reference"], &data["metadata"]["order"]], [&json!(5000.25), &json!("order-7"), &json!(7)]);
        check_event("payment.success", &event["body"].to_string());
        let known = "an object of any of user_id, email, payment_service, amount, fees, currency, reference, narration, metadata, payment_channel";
        for (body, message) in [
            (json!({}), "the type field is required".to_owned()),
            (json!({ "type": "payment.sucess" }), format!("the type field must be one of {}", TYPES.join(", "))),
            (json!({ "type": "payment.success", "data": { "amuont": 5 } }), format!("the data field must be {known}")),
            (json!({ "type": "payment.success", "data": { "status": "failed" } }), format!("the data field must be {known}")),
            (json!({ "type": "payment.success", "data": { "amount": "5" } }), "the data.amount field must be a number".to_owned()),
            (json!({ "type": "payment.success", "data": { "email": null } }), "the data.email field must be a string".to_owned()),
            (json!({ "type": "payment.success", "data": { "metadata": 5 } }), "the data.metadata field must be an object".to_owned()),
        ] {
            assert_eq!(trigger(app, body).await.failure(), (400, &*message));
        }
        app.run_until_idle().await;
    }

    async fn a_live_company_cannot_trigger_events(app: TestApp) {
        let live = json!({ "name": "Beta Lending", "server": "live" });
        let live = app.operator(Method::POST, "/companies", live).await.data().clone();
        let request = app.client.post(format!("{}/api/v1/event/trigger", app.api));
        let request = request.bearer_auth(live["api_key"].as_str().unwrap());
        let refused = reply(request.json(&json!({ "type": "payment.success" }))).await;
        assert_eq!(refused.failure(), (403, "only a test company can trigger events"));
        let path = format!("/companies/{}/events", live["id"].as_str().unwrap());
        assert_eq!(app.operator(Method::GET, &path, Value::Null).await.data()["total"], 0);
    }

    async fn a_trigger_repeated_with_its_key_writes_one_event(app: TestApp) {
        let send = async || {
            let request = app.client.post(format!("{}/api/v1/event/trigger", app.api));
            let request = request.bearer_auth(&app.company.key).header("Idempotency-Key", "once");
            reply(request.json(&json!({ "type": "payment.failed" }))).await.data().clone()
        };
        assert_eq!(send().await, send().await);
        assert_eq!(list(app, "").await.0.len(), 1);
        app.run_until_idle().await;
    }

    async fn a_reader_of_events_misses_none(app: TestApp) {
        succeed(app, "order-1").await;
        let (first, mut next) = list(app, "").await;
        assert_eq!((first.len(), &first[0]["event"]), (1, &json!("payment.success")));
        assert_eq!(first[0], app.get("/event/list?after=00000000").await.data()["events"][0]);
        // Recent events are returned again, later ones after them.
        let mut written = ids(&first);
        for n in 0..5 {
            app.advance(10).await;
            written.insert(trigger(app, json!({ "type": "payment.failed" })).await.data()["id"].as_str().unwrap().to_owned());
            let (events, after) = list(app, &format!("?after={next}")).await;
            assert!(ids(&events).is_subset(&written) && events.len() > n, "{events:?}");
            next = after;
        }
        // One that is committed late, before those that were read.
        let late = format!("evt_{}", app.app.random.id(app.app.clock.now().plus_seconds(-15)));
        let (id, company) = (late.clone(), app.company.id.clone());
        let inserted = app.app.store.write(async move |tx| {
            tx.sql("INSERT INTO events (company_id, id, kind, subject_id, body, created_at) VALUES ($1, $2, 'payment.failed', 'x', '{}', 0)")
                .bind(company).bind(id).run().await
        });
        inserted.await.unwrap();
        let (events, _) = list(app, &format!("?after={next}")).await;
        assert!(ids(&events).contains(&late));
        written.insert(late);
        // Pages reach the end, and the cursor returns to the horizon.
        let (mut read, mut cursor) = (BTreeSet::new(), "00000000".to_owned());
        for _ in 0..4 {
            let (events, after) = list(app, &format!("?after={cursor}&limit=2")).await;
            read.append(&mut ids(&events));
            cursor = after;
        }
        assert_eq!((read, cursor.len()), (written, 8));
        // After a while, the cursor has passed all of them.
        app.advance(600).await;
        let (_, next) = list(app, &format!("?after={next}")).await;
        assert_eq!(list(app, &format!("?after={next}")).await.0, Vec::<Value>::new());
        assert_eq!(list(app, "").await.0, Vec::<Value>::new());

        let (paid, _) = list(app, "?after=00000000&types=payment.success,payment.refunded").await;
        assert_eq!(paid, first);
        let known = format!("the types field must be any of {}", TYPES.join(", "));
        assert_eq!(app.get("/event/list?types=payment.sucess").await.failure(), (400, &*known));
        assert_eq!(app.get("/event/list?after=x").await.failure().0, 400);
        let other = app.new_company("Beta Lending").await;
        let theirs = app.request(&other, Method::GET, "/event/list?after=00000000", None).await;
        assert_eq!(theirs.data()["events"], json!([]));
    }
}
