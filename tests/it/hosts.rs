//! Reports of hosts: which live, what they serve, and which are gone.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::{operations::monitor::hosts, state::App};
use tollhouse_platform::random::Random;

use crate::{
    app::{TestApp, config},
    fleet::{another_host, eventually, served_version},
};

async fn listed(app: &TestApp) -> Vec<Value> {
    let found = app.operator(Method::GET, "/hosts", Value::Null).await;
    found.data().as_array().expect("a list").clone()
}

/// The versions of a plugin that a host reported.
fn served<'h>(host: &'h Value, plugin: &str) -> Vec<&'h Value> {
    let all = host["plugins"].as_array().expect("a list").iter();
    all.filter(|version| version["name"] == plugin).collect()
}

both! {
    async fn each_host_reports_what_it_serves_until_it_stops(app: TestApp) {
        assert_eq!(listed(app).await, Vec::<Value>::new());
        app.install(artifacts::SPROUT).await;
        hosts::report(&app.app).await.expect("a report");
        let (own, now) = (listed(app).await[0].clone(), json!(app.app.clock.now()));
        assert_eq!((&own["is_this_host"], &own["is_lost"], &own["runs_jobs"]), (&json!(true), &json!(false), &json!(true)));
        assert_eq!((&own["running_jobs"], &own["seen_at"]), (&json!(0), &now));
        let sprout = served(&own, "sprout");
        assert_eq!((sprout.len(), &sprout[0]["state"], &sprout[0]["quarantined"]), (1, &json!("active"), &json!(false)));

        let (host, _, stop) = another_host(app).await;
        eventually(|| served_version(&host).is_some()).await;
        let reported = async |count: usize| {
            for _ in 0..1_000 {
                if listed(app).await.len() == count {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            panic!("{count} hosts: {:?}", listed(app).await);
        };
        reported(2).await;
        let all = listed(app).await;
        let other = all.iter().find(|host| host["is_this_host"] == false).expect("another host");
        assert_eq!(served(other, "sprout")[0]["digest"], sprout[0]["digest"]);
        stop.send_replace(true);
        reported(1).await;
        assert_eq!(listed(app).await[0]["id"], own["id"]);
    }

    async fn a_host_without_reports_is_lost_after_a_minute_and_forgotten_after_a_day(app: TestApp) {
        let config = config(&app.database, &[]);
        let other = App::open(&config, app.app.clock.clone(), Random::system(), None).await.expect("a host");
        hosts::report(&other).await.expect("a report");
        let lost = async || listed(app).await.iter().map(|host| host["is_lost"] == true).collect::<Vec<_>>();
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(60));
        assert_eq!(lost().await, [false]);
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(1));
        assert_eq!(lost().await, [true]);
        hosts::report(&app.app).await.expect("a report");
        assert_eq!(lost().await.len(), 2);
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(86_400));
        hosts::report(&app.app).await.expect("a report");
        assert_eq!(lost().await, [false]);
    }
}
