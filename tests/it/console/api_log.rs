//! The page of the API log.

use serde_json::json;
use tollhouse_app::tenants::requests;

use super::Browser;

both! {
    async fn the_api_log_is_shown_filtered_and_downloaded(app: TestApp, "--api-log-days=3") {
        for _ in 0..26 {
            app.get("/payment/list").await.data();
        }
        app.post("/user/create", json!({})).await;
        requests::flush(&app.app).await.expect("saved requests");
        let browser = Browser::signed_in(app, "ada", "support-read").await;
        let log = format!("/console/companies/{}/requests", app.company.id);
        let overview = browser.get(&format!("/console/companies/{}", app.company.id)).await;
        overview.shows(&["API log", &log]);
        let first = browser.get(&log).await;
        first.shows(&["/api/v1/user/create", "/api/v1/payment/list", "invalid", "first_name", "400", "sk_test_", "?after="]);
        let (_, rest) = first.html.split_once("?after=").expect("a link to the next page");
        let after = rest.split('"').next().expect("a cursor");
        let second = browser.get(&format!("{log}?after={after}")).await;
        second.shows(&["/api/v1/payment/list"]);
        assert!(!second.html.contains("/api/v1/user/create") && !second.html.contains("?after="), "{}", second.html);
        let failed = browser.get(&format!("{log}?outcome=failed")).await;
        failed.shows(&["/api/v1/user/create"]);
        assert!(!failed.html.contains("/api/v1/payment/list"), "{}", failed.html);
        browser.get(&format!("{log}?method=DELETE")).await.shows(&["There are no such requests"]);

        let file = browser.get(&format!("{log}?format=csv")).await;
        let mut csv = csv::Reader::from_reader(file.html.as_bytes());
        let headings = csv.headers().expect("headings").iter().collect::<Vec<_>>().join(", ");
        assert_eq!(headings, "Time, Method, Route, Status, Error, Field, Milliseconds, API key, Address, Request id");
        let rows: Vec<_> = csv.records().map(|row| row.expect("a row")).collect();
        assert_eq!((rows.len(), &rows[0][2], &rows[0][3]), (27, "/api/v1/user/create", "400"));

        let finance = Browser::signed_in(app, "eve", "finance-read").await;
        assert_eq!(finance.get(&log).await.status, 403);
        let overview = finance.get(&format!("/console/companies/{}", app.company.id)).await;
        assert!(!overview.html.contains("API log"), "{}", overview.html);
    }
}
