//! Saved views: the filters of a list, for the operator who saved them only.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    console::Browser,
    principals::{call, create, entries},
};

both! {
    async fn views_belong_to_the_operator_who_saved_them(app: TestApp) {
        let [ada, eve] = [create(app, "ada", &["support-read"]).await, create(app, "eve", &[]).await];
        let put = async |token: &str, path: &str, filters: Value| {
            call(app, token, Method::PUT, &format!("/me/views/{path}"), json!({ "filters": filters })).await
        };
        let views = async |token: &str| {
            let found = call(app, token, Method::GET, "/me/views", Value::Null).await.data().clone();
            found.as_array().expect("a list").iter().map(|view| json!([view["list"], view["name"], view["filters"]])).collect::<Vec<_>>()
        };
        put(&ada.token, "payments/Failed%20today", json!({ "status": "failed" })).await.data();
        put(&ada.token, "payments/Failed%20today", json!({ "status": "failed", "provider": "provider_a" })).await.data();
        put(&ada.token, "jobs/Mine", json!({ "kind": "event.deliver" })).await.data();
        put(&eve.token, "payments/Failed%20today", json!({ "status": "pending" })).await.data();
        assert_eq!(views(&ada.token).await, [
            json!(["jobs", "Mine", { "kind": "event.deliver" }]),
            json!(["payments", "Failed today", { "status": "failed", "provider": "provider_a" }]),
        ]);
        assert_eq!(views(&eve.token).await, [json!(["payments", "Failed today", { "status": "pending" }])]);
        let saved = &entries(app, "/audit", "view.save").await;
        assert_eq!((saved.len(), &saved[0]["actor"], &saved[0]["detail"]), (4, &json!("eve"), &json!({ "list": "payments", "view": "Failed today" })));

        let gone = call(app, &eve.token, Method::DELETE, "/me/views/jobs/Mine", Value::Null).await;
        assert_eq!(gone.failure(), (404, "view not found"));
        assert_eq!(call(app, &ada.token, Method::DELETE, "/me/views/jobs/Mine", Value::Null).await.status, 200);
        assert_eq!(views(&ada.token).await.len(), 1);
    }

    async fn views_are_short_and_few(app: TestApp) {
        let ada = create(app, "ada", &[]).await;
        let put = async |path: &str, body: Value| call(app, &ada.token, Method::PUT, &format!("/me/views/{path}"), body).await;
        let long = "x".repeat(101);
        let many: serde_json::Map<_, _> = (0..21).map(|n| (format!("f{n}"), json!("x"))).collect();
        let filters = "the filters field must be at most 20 texts of at most 100 characters";
        for (path, body, message) in [
            ("payments/one", json!({}), "the filters field is required"),
            ("payments/one", json!({ "filters": { "status": long } }), filters),
            ("payments/one", json!({ "filters": many }), filters),
            ("payments/%20", json!({ "filters": { "a": "b" } }), "the view must have 1 to 100 characters"),
            (&format!("payments/{long}"), json!({ "filters": { "a": "b" } }), "the view must have 1 to 100 characters"),
            (&format!("{long}/one"), json!({ "filters": { "a": "b" } }), "the list must have 1 to 100 characters"),
        ] {
            assert_eq!(put(path, body).await.failure(), (400, message), "{path}");
        }
        let view = json!({ "filters": { "a": "b" } });
        for n in 0..100 {
            assert_eq!(put(&format!("payments/{n}"), view.clone()).await.status, 200, "{n}");
        }
        assert_eq!(put("payments/more", view.clone()).await.failure(), (409, "an operator can save at most 100 views"));
        assert_eq!(put("payments/99", view).await.status, 200);
    }

    async fn filters_are_saved_and_found_above_the_list(app: TestApp) {
        let mut browser = Browser::signed_in(app, "ada", "support-read").await;
        let list = format!("/console/companies/{}/payments", app.company.id);
        let plain = browser.get(&list).await;
        assert!(!plain.html.contains("Save this view"), "{}", plain.html);
        let page = format!("{list}?status=failed&user_id=ada");
        let filtered = browser.get(&page).await;
        filtered.shows(&["Save this view", "Customer identifiers are not saved"]);
        let (token, query) = (filtered.form_token(), filtered.field("query"));
        assert_eq!(query, "status=failed");
        let form = [("form_token", &*token), ("name", " Failed & <new> "), ("query", &query), ("back", &page)];
        let saved = browser.submit("/console/views/payments", &form).await;
        assert_eq!((saved.status, &*saved.location), (303, &*page), "{}", saved.html);
        let shown = browser.get(&format!("{list}?status=failed")).await;
        shown.shows(&["Saved views", "Failed &#38; &#60;new&#62;", "aria-current=\"true\"", &format!("{list}?status=failed")]);
        assert!(!shown.html.contains("Save this view"), "it is saved: {}", shown.html);
        // The view applies to the same list of every company, and to no other list.
        let other = app.new_company("Beta Lending").await;
        browser.get(&format!("/console/companies/{}/payments", other.id)).await.shows(&["Failed &#38;"]);
        assert!(!browser.get("/console/refunds?state=done").await.html.contains("Failed &#38;"));
        assert!(!Browser::signed_in(app, "eve", "support-read").await.get(&list).await.html.contains("Failed &#38;"));

        for back in ["https://evil.example/", "//evil.example", "/internal"] {
            let form = [("form_token", &*token), ("name", "two"), ("query", "status=pending"), ("back", back)];
            let saved = browser.submit("/console/views/payments", &form).await;
            assert_eq!((saved.status, &*saved.location), (303, "/console"), "{back}");
        }
        let delete = "/console/views/payments/Failed%20&%20%3Cnew%3E/delete";
        assert_eq!(browser.submit(delete, &[("form_token", "x"), ("back", &list)]).await.status, 403);
        let deleted = browser.submit(delete, &[("form_token", &token), ("back", &list)]).await;
        assert_eq!((deleted.status, &*deleted.location), (303, &*list), "{}", deleted.html);
        assert!(!browser.get(&list).await.html.contains("Failed &#38;"));
        let nameless = [("form_token", &*token), ("name", " "), ("query", "status=pending"), ("back", &list)];
        let refused = browser.submit("/console/views/payments", &nameless).await;
        assert!(refused.status == 400 && refused.html.contains("1 to 100 characters"), "{}", refused.html);
    }
}
