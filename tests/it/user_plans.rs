//! Query plans of user lists: each uses an index.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection;
use sqlx_postgres::PgConnection;
use tollhouse_app::customers::{UserFilter, explain, metadata_digests};
use tollhouse_http::request::query::Parameters;
use tollhouse_platform::values::listing::{PageRequest, Period, SortOrder};

use crate::app::TestApp;

const USERS: usize = 10_000;

async fn fill(app: &TestApp) {
    let other = app.new_company("Beta Lending").await;
    for company in [&app.company, &other] {
        for first in (0..USERS).step_by(1_000) {
            let users: Value = (first..first + 1_000)
                .map(|n| {
                    json!({
                        "user_id": format!("customer-{n}"), "first_name": format!("Ada{}", n % 100), "last_name": "Obi",
                        "email": format!("customer-{n}@example.com"), "country": if n % 50 == 0 { "ghana" } else { "nigeria" },
                        "date_of_birth": "01/02/1990", "metadata": { "number": n, "tier": n % 3 },
                    })
                })
                .collect();
            let body = Some(json!({ "users": users }));
            assert_eq!(
                app.request(company, Method::POST, "/user/bulk/create", body).await.status,
                200
            );
        }
    }
    if app.database.url.starts_with("postgres") {
        // Autovacuum does this later.
        let mut connection = PgConnection::connect(&app.database.url).await.expect("the server");
        for table in
            ["VACUUM ANALYZE users", "VACUUM ANALYZE user_words", "VACUUM ANALYZE user_metadata"]
        {
            sqlx::query(table).execute(&mut connection).await.expect("a statement");
        }
    }
}

/// The query plans of counting, of finding the first page, and of reading users by their ids.
async fn plan(app: &TestApp, filter: UserFilter) -> [String; 3] {
    let page = PageRequest { number: 1, limit: 50 };
    let plan =
        app.app.store.read(async |tx| explain(tx, &app.company.id, &filter, page).await).await;
    plan.expect("a plan").map(|steps| steps.join("\n"))
}

both! {
    async fn user_lists_use_indexes(app: TestApp) {
        fill(app).await;
        let is_sqlite = app.database.url.starts_with("sqlite");
        let today = app.app.clock.now().to_datetime().date_naive();
        let all = UserFilter::read(&Parameters::default(), today).expect("a filter");
        let words = |words: &[&str]| UserFilter { search: words.iter().map(|word| (*word).to_owned()).collect(), ..all.clone() };
        let now = app.app.clock.now();
        let today = Period { from: now.plus_seconds(-60), before: now.plus_seconds(60) };
        // Found by trigrams first, then by words.
        let trigrams = if is_sqlite { "user_words USING INTEGER PRIMARY KEY" } else { "user_words_by_part" };
        let by_user_id = if is_sqlite { "sqlite_autoindex_users" } else { "users_company_id_user_id_key" };
        for (what, filter, counted_by, found_by) in [
            ("all", all.clone(), "", "users_listed"),
            ("by change", UserFilter { sort_updated_at: Some(SortOrder::Ascending), ..all.clone() }, "", "users_by_change"),
            ("by first name", UserFilter { sort_first_name: Some(SortOrder::Ascending), ..all.clone() }, "", "users_by_first_name"),
            ("by last name", UserFilter { sort_last_name: Some(SortOrder::Descending), ..all.clone() }, "", "users_by_last_name"),
            ("a user_id", UserFilter { user_id: Some("customer-7".into()), ..all.clone() }, by_user_id, by_user_id),
            ("a flag", UserFilter { active: Some(true), ..all.clone() }, "", "users_listed"),
            ("a country", UserFilter { country: Some("ghana".into()), ..all.clone() }, "", "users_listed"),
            ("a time", UserFilter { date_by: Some(today), ..all.clone() }, "", "users_listed"),
            ("a word", words(&["customer-4711"]), trigrams, trigrams),
            ("two words", words(&["customer-4711", "obi"]), trigrams, trigrams),
            ("metadata", UserFilter { metadata: vec![metadata_digests("number", "4711")], ..all.clone() }, "user_metadata", "user_metadata"),
        ] {
            let [counting, finding, by_ids] = plan(app, filter).await;
            let key = if is_sqlite { "(company_id=? AND id=?)" } else { "users_pkey" };
            assert!(by_ids.contains(key), "users are found by their ids without {key}:\n{by_ids}");
            assert!(counting.contains(counted_by), "{what} is counted without {counted_by}:\n{counting}");
            assert!(finding.contains(found_by), "{what} is found without {found_by}:\n{finding}");
            // Rows of users are long, so only those of the page may be read.
            for plan in [&counting, &finding] {
                if is_sqlite {
                    let scans = plan.lines().find(|step| step.starts_with("SCAN users") || step.starts_with("SCAN user_words"));
                    assert_eq!(scans, None, "{what}:\n{plan}");
                }
            }
        }
    }
}
