//! Exports of users: content, access and removal of the file.

use std::path::PathBuf;
use tollhouse_app::customers;

use reqwest::{Method, StatusCode, multipart};
use serde_json::{Value, json};

use crate::app::{NOW, Reply, TestApp, reply};

const HEADER: &str = "user_id,first_name,last_name,middle_name,email,phone,date_of_birth,gender,address,country,state,city,country_code,image,employment_states,years_of_employment,email_verified,phone_verified,active,age,metadata,created_at,updated_at";

async fn create(app: &TestApp, user: Value) {
    app.post("/user/create", user).await.data();
}

fn user(n: usize) -> Value {
    json!({ "user_id": format!("user-{n}"), "first_name": "Ada", "last_name": "Obi", "email": format!("user-{n}@example.com") })
}

async fn export(app: &TestApp, query: &str) -> Reply {
    app.get(&format!("/user/export{query}")).await
}

fn path(link: &Reply) -> &str {
    link.data()["path"].as_str().expect("a URL")
}

/// Fetches a URL without a key.
async fn fetch(app: &TestApp, url: &str) -> (StatusCode, String, String) {
    let response = app.client.get(url).send().await.expect("a response");
    let (status, headers) = (response.status(), response.headers().clone());
    let text = |name: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let about = format!(
        "{} {} {}",
        text("content-type"),
        text("content-disposition"),
        text("cache-control")
    );
    (status, about, response.text().await.expect("a text"))
}

async fn exported(app: &TestApp, query: &str) -> String {
    let link = export(app, query).await;
    let (status, about, text) = fetch(app, path(&link)).await;
    assert_eq!(
        (status, &*about),
        (StatusCode::OK, "text/csv attachment; filename=\"users.csv\" no-store")
    );
    text
}

/// The first cells of the rows below the header.
fn ids(csv: &str) -> Vec<&str> {
    csv.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect()
}

fn files(app: &TestApp) -> Vec<PathBuf> {
    let Ok(folder) = std::fs::read_dir(app.database.dir.path().join("files")) else {
        return Vec::new();
    };
    folder.map(|file| file.expect("a file").path()).collect()
}

async fn import(app: &TestApp, key: &str, csv: String) -> Reply {
    let file = multipart::Part::text(csv).file_name("users.csv");
    let request = app.client.post(format!("{}/api/v1/user/bulk/create", app.api)).bearer_auth(key);
    reply(request.multipart(multipart::Form::new().part("csv", file))).await
}

both! {
    async fn a_file_has_the_specified_columns_and_cells(app: TestApp) {
        create(app, json!({
            "user_id": "customer-7", "first_name": "Ada, \"the\" first", "middle_name": "=1+1", "last_name": "Obi",
            "email": "ada@example.com", "phone": "+2348012345678", "date_of_birth": "29/02/2000", "gender": "female",
            "address": "-1 Marina Road", "state": "Lagos", "city": "@Ikeja", "country": "Nigeria", "image": "https://acme.example/a.png",
            "employment_status": "self-employed", "years_of_employment": 3, "metadata": { "tier": "a,b" },
        })).await;
        let verified = json!({ "email_verified": true });
        app.request(&app.company, Method::PUT, "/user/edit/customer-7", Some(verified)).await.data();
        let moment = NOW.to_datetime().format("%b %d, %Y %H:%M:%S UTC");
        let row = format!(
            "customer-7,\"Ada, \"\"the\"\" first\",Obi,'=1+1,ada@example.com,'+2348012345678,29/02/2000,female,'-1 Marina Road,nigeria,Lagos,'@Ikeja,NG,\
             https://acme.example/a.png,self-employed,3,true,false,true,26,\"{{\"\"tier\"\":\"\"a,b\"\"}}\",\"{moment}\",\"{moment}\""
        );
        assert_eq!(exported(app, "").await, format!("{HEADER}\r\n{row}\r\n"));
        let link = export(app, "").await;
        assert_eq!(link.body["message"], "Users exported successfully");
        assert_eq!(link.data()["expires_at"], json!(NOW.plus_seconds(900)));
        assert!(path(&link).starts_with(&format!("{}/api/v1/", app.api)));
    }

    async fn a_head_request_creates_no_file(app: TestApp) {
        let url = format!("{}/api/v1/user/export", app.api);
        let response = app.client.head(&url).bearer_auth(&app.company.key).send().await.expect("a response");
        assert_eq!((response.status(), &response.headers()["allow"]), (StatusCode::METHOD_NOT_ALLOWED, &"GET".parse().unwrap()));
        assert_eq!(files(app), Vec::<PathBuf>::new());
        let unknown = app.client.head(&url).bearer_auth("sk_test_unknown").send().await.expect("a response");
        assert_eq!(unknown.status(), StatusCode::UNAUTHORIZED);
    }

    async fn an_export_is_filtered_sorted_and_limited_like_a_list(app: TestApp) {
        for n in 0..5 {
            let mut user = user(n);
            user["active"] = json!(n % 2 == 0);
            create(app, user).await;
            app.advance(1).await;
        }
        let beta = app.new_company("Beta Lending").await;
        app.request(&beta, Method::POST, "/user/create", Some(user(9))).await.data();
        for (query, expected) in [
            ("", vec!["user-4", "user-3", "user-2", "user-1", "user-0"]),
            ("?active=true&sort-created_at=asc", vec!["user-0", "user-2", "user-4"]),
            ("?limit=2", vec!["user-4", "user-3"]),
            ("?search=user-1", vec!["user-1"]),
            ("?search=nobody", vec![]),
        ] {
            assert_eq!(ids(&exported(app, query).await), expected, "{query}");
        }
        assert_eq!(export(app, "?limit=0").await.failure(), (400, "the limit field must be a whole number from 1 to 1000000000"));
        assert_eq!(export(app, "?age=x").await.failure().0, 400);
    }

    async fn a_large_export_contains_each_user_once(app: TestApp) {
        for part in 0..3 {
            let users: Value = (0..900).map(|n| user(part * 900 + n)).collect();
            assert_eq!(app.post("/user/bulk/create", json!({ "users": users })).await.status, 200);
        }
        for (query, expected) in [("", 2_700), ("?sort-first_name=asc", 2_700), ("?limit=2001", 2_001), ("?limit=1000", 1_000)] {
            let csv = exported(app, query).await;
            let mut ids = ids(&csv);
            ids.sort_unstable();
            ids.dedup();
            assert_eq!((csv.lines().count() - 1, ids.len()), (expected, expected), "{query}");
        }
    }

    async fn an_export_can_be_imported(app: TestApp) {
        for (n, (first_name, city, metadata)) in [
            ("Ada", "Lagos", json!({})),
            ("=cmd|' /C calc'!A0", "'+x", json!({ "a": [1, "x,\"y\""], "b": null })),
            ("''-1", "@", json!({ "n": 1.5 })),
            ("Zoë \"Z\"", "a,b", json!({ "t": true })),
            ("  =1+1", " ' +x", json!({ "t": "\t=1" })),
        ].into_iter().enumerate() {
            let mut user = user(n);
            for (field, value) in [
                ("first_name", json!(first_name)), ("city", json!(city)), ("metadata", metadata), ("phone", json!(format!("+23480000000{n:02}"))),
                ("date_of_birth", json!("01/02/1990")), ("employment_status", json!("student")), ("years_of_employment", json!(n)),
                ("address", json!(format!("{n} Marina Road\r\n\"Lagos\",\nNigeria"))), ("active", json!(n % 2 == 1)), ("country", json!("ghana")),
            ] {
                user[field] = value;
            }
            create(app, user).await;
        }
        let mut formula = user(5);
        formula["address"] = json!("\r\n\t=1+1");
        create(app, formula).await;
        let verified = Some(json!({ "email_verified": true, "phone_verified": true }));
        let verified = app.request(&app.company, Method::PUT, "/user/edit/user-1", verified).await;
        assert_eq!(verified.data()["email_verified"], true);
        let beta = app.new_company("Beta Lending").await;
        let csv = exported(app, "").await;
        assert!(csv.contains(",{},") && csv.contains(",true,true,"), "{csv}");
        assert!(csv.contains(",\"0 Marina Road\r\n\"\"Lagos\"\",\nNigeria\","), "{csv}");
        for guarded in [",'  =1+1,", ",' ' +x,", ",\"'\r\n\t=1+1\","] {
            assert!(csv.contains(guarded), "{guarded:?} in {csv}");
        }
        assert_eq!(import(app, &beta.key, csv).await.body["message"], "Users created successfully");
        for n in 0..6 {
            let path = format!("/user/fetch/user-{n}");
            let mut ours = app.get(&path).await.data().clone();
            let mut theirs = app.request(&beta, Method::GET, &path, None).await.data().clone();
            for own in ["id", "created_at", "updated_at"] {
                (ours[own], theirs[own]) = (Value::Null, Value::Null);
            }
            // Imported users are new: the other company's verification does not count.
            for flag in ["email_verified", "phone_verified"] {
                assert_eq!((ours[flag].take(), theirs[flag].take()), (json!(n == 1), json!(false)), "{flag}");
            }
            assert_eq!(ours, theirs);
        }
    }

    async fn a_link_expires_after_fifteen_minutes_and_its_file_is_removed(app: TestApp) {
        create(app, user(1)).await;
        let link = export(app, "").await;
        let url = path(&link).to_owned();
        assert_eq!(files(app).len(), 1);
        let expired = "{\"error\":true,\"message\":\"this link has expired or was altered\"}";
        let (base, query) = url.split_once('?').expect("a query");
        let (name, signature) = (base.rsplit('/').next().unwrap(), query.split_once("signature=").unwrap().1);
        let later = NOW.plus_seconds(9_999).unix_seconds();
        let flipped = if signature.ends_with('0') { "1" } else { "0" };
        for altered in [
            base.to_owned(),
            format!("{base}?expires={later}&signature={signature}"),
            format!("{}{flipped}", &url[..url.len() - 1]),
            url.replace(name, "sample.csv"),
            url.replace(name, "..%2Foperator-token"),
            url.replace("signature=d1", "signature=d2"),
            format!("{base}?expires=x&signature={signature}"),
        ] {
            let (status, _, text) = fetch(app, &altered).await;
            assert_eq!((status, &*text), (StatusCode::FORBIDDEN, expired), "{altered}");
        }
        app.advance(899).await;
        assert_eq!(fetch(app, &url).await.0, StatusCode::OK);
        app.advance(1).await;
        let (status, _, text) = fetch(app, &url).await;
        assert_eq!((status, &*text), (StatusCode::FORBIDDEN, expired));
        app.advance(60).await;
        assert_eq!(files(app), Vec::<PathBuf>::new());
    }

    async fn the_sample_file_can_be_imported(app: TestApp) {
        let link = app.get("/user/sample-csv").await;
        assert_eq!(link.body["message"], "Sample csv fetched successfully");
        let (status, _, csv) = fetch(app, path(&link)).await;
        let columns = "user_id,first_name,last_name,middle_name,email,phone,date_of_birth,gender,image,country,state,city,address,employment_status,active";
        assert_eq!((status, csv.lines().next()), (StatusCode::OK, Some(columns)));
        assert_eq!(import(app, &app.company.key, csv).await.status, 200);
        assert_eq!(app.get("/user/list").await.data()["total"], 2);
        app.advance(900).await;
        assert_eq!(fetch(app, path(&link)).await.0, StatusCode::FORBIDDEN);
    }

    async fn abandoned_files_of_a_host_are_swept_after_a_day(app: TestApp) {
        create(app, user(1)).await;
        export(app, "").await.data();
        let folder = app.database.dir.path().join("files");
        let (old, other) = (folder.join(format!("{}.csv#1", "a1".repeat(20))), folder.join("tollhouse.db"));
        for file in [&old, &other] {
            std::fs::write(file, "user_id").expect("a file");
        }
        let yesterday = app.app.clock.now().plus_seconds(-25 * 3600).to_datetime();
        for file in [&old, &other] {
            let file = std::fs::File::options().write(true).open(file).expect("the file");
            file.set_modified(yesterday.into()).expect("a time");
        }
        let swept = customers::sweep(app.app.clone()).await.expect("a sweep");
        assert_eq!((swept, files(app).len(), old.exists(), other.exists()), (1, 2, false, true));
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&folder).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "only the owner may read it");
    }
}
