//! Lists that continue after a record (`after`).

use serde_json::{Value, json};

use crate::{
    app::{Reply, TestApp},
    lending::{create_loan, create_recollection, create_user},
};

const SORTS: [&str; 3] = ["", "sort-created_at=asc", "sort-created_at=desc"];

/// Creates records of each kind, several in each of three milliseconds.
async fn create_records(app: &TestApp) {
    create_user(app, "ada").await;
    create_loan(app, "loan-1", "ada", &[(30, 1_000.0)]).await;
    for batch in 0..3 {
        for n in 0..=batch {
            let name = format!("{batch}-{n}");
            create_user(app, &name).await;
            app.initialize(&name).await;
            let manual = json!({ "loan": "loan-1", "with_provider": false, "amount": 1.0 });
            create_recollection(app, manual).await.data();
        }
        app.advance(1).await;
    }
    // An older record becomes the last that was updated.
    app.complete(&app.fetch("1-0").await, "success").await;
    app.run_until_idle().await;
}

fn ids(reply: &Reply) -> Vec<String> {
    let docs = reply.data()["docs"].as_array().expect("a list");
    docs.iter().map(|doc| doc["id"].as_str().expect("an id").to_owned()).collect()
}

/// Reads a list to its end, two records at a time.
async fn read(app: &TestApp, list: &str, parameters: &str, total: usize) -> Vec<String> {
    let first = app.get(&format!("{list}?limit=2&{parameters}")).await;
    let mut seen = ids(&first);
    loop {
        let last = seen.last().expect("a record");
        let next = app.get(&format!("{list}?limit=2&after={last}&{parameters}")).await;
        let listed = next.data();
        assert_eq!(
            (&listed["total"], &listed["page"], &listed["prev"]),
            (&json!(total), &json!(0), &json!(0))
        );
        seen.extend(ids(&next));
        assert_eq!(listed["next"], i32::from(seen.len() < total), "{list} after {}", seen.len());
        if listed["next"] == 0 {
            return seen;
        }
    }
}

both! {
    async fn a_list_continues_after_each_record_in_its_order(app: TestApp) {
        create_records(app).await;
        for (list, filters, sorts) in [
            ("/payment/list", ["", "status=pending", "user_id=ada"], &SORTS[..]),
            ("/recollection/list", ["", "loan=loan-1", "user_id=ada"], &SORTS),
            ("/user/list", ["", "search=example", "active=true"],
             &SORTS),
        ] {
            for parameters in filters.iter().flat_map(|filter| sorts.iter().map(move |sort| format!("{filter}&{sort}"))) {
                let all = app.get(&format!("{list}?limit=100&{parameters}")).await;
                let all = ids(&all);
                if all.is_empty() {
                    continue;
                }
                assert!(all.len() > 4, "{list}?{parameters}: {all:?}");
                assert_eq!(read(app, list, &parameters, all.len()).await, all, "{list}?{parameters}");
            }
        }
    }

    async fn records_created_meanwhile_are_neither_skipped_nor_repeated(app: TestApp) {
        for n in 0..6 {
            app.initialize(&n.to_string()).await;
            app.advance(1).await;
        }
        let first = ids(&app.get("/payment/list?limit=3").await);
        app.initialize("new").await;
        let next = ids(&app.get(&format!("/payment/list?limit=3&after={}", first[2])).await);
        let all = ids(&app.get("/payment/list?limit=7").await);
        assert_eq!([first, next].concat(), all[1..]);
    }

    async fn an_unknown_record_or_a_page_number_beside_after_is_400(app: TestApp) {
        let other = app.new_company("Beta Lending").await;
        let body = Some(app.order("of-the-other"));
        let foreign = app.request(&other, reqwest::Method::POST, "/payment/initialize", body).await;
        let foreign: &Value = &foreign.data()["id"];
        for list in ["/payment/list", "/recollection/list", "/user/list"] {
            for id in [foreign.as_str().expect("an id"), "none"] {
                let refused = app.get(&format!("{list}?after={id}")).await;
                assert_eq!(refused.failure(), (400, "the after field must be the id of a listed record"));
            }
            let refused = app.get(&format!("{list}?after=none&sort-updated_at=asc")).await;
            let omitted = "the after field must be omitted if the list is not sorted by created_at";
            assert_eq!(refused.failure(), (400, omitted));
            let refused = app.get(&format!("{list}?after=none&page=2")).await;
            assert_eq!(refused.failure(), (400, "the page field must be omitted if after is set"));
        }
    }
}
