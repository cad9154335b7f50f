//! Bulk creation of users: all or none, and one upload per company at a time.

use std::{fmt::Write, time::Instant};
use tollhouse_platform::store::params;

use futures::future::join_all;
use reqwest::{Method, multipart};
use serde_json::{Value, json};
use tollhouse_app::{routes, state::App};
use tollhouse_platform::{random::Random, store};

use crate::{
    app::{Company, Reply, TestApp, config, reply},
    codes::{balance, credit},
};

const CREATED: &str = "Users created successfully";
const PROCESSING: (u16, &str) = (400, "upload is processing");
const NO_CSV: (u16, &str) = (400, "invalid file type, only csv files are allowed");

fn user(n: usize) -> Value {
    json!({ "user_id": format!("user-{n}"), "first_name": "Ada", "last_name": "Obi", "email": format!("user-{n}@example.com") })
}

async fn bulk(app: &TestApp, users: impl Into<Value>) -> Reply {
    app.post("/user/bulk/create", json!({ "users": users.into() })).await
}

async fn upload_as(
    app: &TestApp,
    field: &'static str,
    name: &'static str,
    content: impl Into<Vec<u8>>,
) -> Reply {
    let file = multipart::Part::bytes(content.into()).file_name(name);
    let request = app.client.post(format!("{}/api/v1/user/bulk/create", app.api));
    reply(request.bearer_auth(&app.company.key).multipart(multipart::Form::new().part(field, file)))
        .await
}

async fn upload(app: &TestApp, content: impl Into<Vec<u8>>) -> Reply {
    upload_as(app, "csv", "users.csv", content).await
}

async fn total(app: &TestApp, company: &Company) -> Value {
    app.request(company, Method::GET, "/user/list", None).await.data()["total"].clone()
}

async fn set_price(app: &TestApp) {
    let path = format!("/companies/{}/prices", app.company.id);
    app.operator(Method::PATCH, &path, json!({ "customer.create": 10 })).await.data();
}

async fn leases(app: &TestApp) -> i64 {
    let count = async |tx: &mut store::Tx| {
        tx.sql("SELECT COUNT(*) FROM user_imports").one::<(i64,)>().await
    };
    app.app.store.read(count).await.expect("a count").0
}

both! {
    async fn all_new_users_are_created_and_each_is_charged(app: TestApp) {
        set_price(app).await;
        credit(app, 100, "first").await;
        let known = app.post("/user/create", user(0)).await.data().clone();
        app.advance(5).await;
        let mut again = user(1);
        again["email"] = json!("USER-1@example.com");
        again["user_id"] = json!("somebody-else");
        let mut same_id = user(2);
        same_id["email"] = json!("new@example.com");
        let nameless = json!({ "first_name": "Bola", "last_name": "Ade", "email": "bola@example.com" });
        let done = bulk(app, vec![user(0), user(1), again, user(2), same_id, nameless]).await;
        assert_eq!((done.status.as_u16(), &done.body), (200, &json!({ "error": false, "message": CREATED })));
        assert_eq!((total(app, &app.company).await, balance(app).await), (json!(4), json!(60)));
        assert_eq!(app.get("/user/fetch/user-0").await.data(), &known);
        let bola = app.get("/user/fetch/bola@example.com").await.data().clone();
        assert!(bola["user_id"].as_str().unwrap().starts_with("usr-") && bola["role"] == "customer");
        // All of them exist now: none is created or charged.
        assert_eq!(bulk(app, vec![user(0), user(2)]).await.status, 200);
        assert_eq!((total(app, &app.company).await, balance(app).await), (json!(4), json!(60)));
        assert_eq!(app.get("/user/list?search=bola").await.data()["total"], 1);
        assert_eq!(leases(app).await, 0);
    }

    async fn a_file_written_by_a_spreadsheet_is_read(app: TestApp) {
        let file = "\u{feff}user_id,first_name,last_name,email,phone,date_of_birth,country,employment_status,years_of_employment,active,metadata\r\n\
            customer-1,\"Ada \"\"the first\"\"\",\"Obi, Jr.\",ada@example.com,'+2348012345678,29/02/2000,Nigeria,student,2,FALSE,\"{\"\"tier\"\":1}\"\r\n\
            ,'=Bola,Ade,bola@example.com,,,,,,,\r\n";
        assert_eq!(upload(app, file).await.body["message"], CREATED);
        let ada = app.get("/user/fetch/customer-1").await.data().clone();
        for (field, value) in [
            ("first_name", json!("Ada \"the first\"")), ("last_name", json!("Obi, Jr.")), ("phone", json!("+2348012345678")),
            ("date_of_birth", json!("29/02/2000")), ("country", json!("nigeria")), ("employment_status", json!("student")),
            ("years_of_employment", json!(2)), ("active", json!(false)), ("metadata", json!({ "tier": 1 })),
        ] {
            assert_eq!(ada[field], value, "{field}");
        }
        let bola = app.get("/user/fetch/bola@example.com").await.data().clone();
        assert_eq!((&bola["first_name"], &bola["active"]), (&json!("=Bola"), &json!(true)));
    }

    async fn imported_users_are_not_verified(app: TestApp) {
        let file = "user_id,first_name,last_name,email,email_verified,phone_verified,address\r\n\
            branch/7,Ada,Obi,ada@example.com,TRUE,yes,\"1 Marina Road\nLagos\"\r\n";
        assert_eq!(upload(app, file).await.body["message"], CREATED);
        let mut json = user(1);
        (json["email_verified"], json["phone_verified"]) = (json!(true), json!("yes"));
        assert_eq!(bulk(app, vec![json]).await.body["message"], CREATED);
        for name in ["branch%2F7", "user-1"] {
            let made = app.get(&format!("/user/fetch/{name}")).await.data().clone();
            assert_eq!((&made["email_verified"], &made["phone_verified"]), (&json!(false), &json!(false)), "{name}");
        }
        assert_eq!(app.get("/user/fetch/branch%2F7").await.data()["address"], "1 Marina Road\nLagos");
    }

    async fn one_invalid_row_rejects_the_batch_with_its_number(app: TestApp) {
        set_price(app).await;
        credit(app, 100_000, "first").await;
        let wrong = |field: &str, value: Value| {
            let mut all = vec![user(1), user(2), user(3)];
            all[2][field] = value;
            Value::from(all)
        };
        for (users, message) in [
            (json!([]), "the users field is required"),
            (Value::Null, "the users field is required"),
            (json!({}), "the users field must be a list"),
            (json!([1]), "row 1 must be an object"),
            ((0..1_001).map(user).collect(), "the users field must be at most 1000"),
            (wrong("email", Value::Null), "row 3: the email field is required"),
            (wrong("first_name", json!("")), "row 3: the first_name field is required"),
            (wrong("phone", json!("0801")), "row 3: the phone field must be a phone number in E.164 format"),
            (wrong("role", json!("admin")), "row 3: the role field must be one of customer"),
            (wrong("user_id", json!("a b")), "row 3: the user_id field must be visible characters only"),
            (wrong("user_id", json!("..")), "row 3: the user_id field must be neither . nor .."),
            (wrong("metadata", json!([])), "row 3: the metadata field must be an object"),
        ] {
            assert_eq!(bulk(app, users.clone()).await.failure(), (400, message), "{users}");
        }
        for (content, message) in [
            ("email\n", "the users field is required"),
            ("first_name,last_name,email\nAda,Obi,ada@example.com\nBola,Ade,\n", "row 2: the email field is required"),
            ("first_name,last_name,email\nAda,Obi,ada@example.com\nBola,Ade,bola\n", "row 2: the email field must be a valid email address"),
            ("first_name,last_name,email,active\nAda,Obi,ada@example.com,perhaps\n", "row 1: the active field must be a boolean"),
            ("user_id,first_name,last_name,email\n.,Ada,Obi,ada@example.com\n", "row 1: the user_id field must be neither . nor .."),
            ("first_name,last_name,email\nAda,Obi,ada@example.com,more\n", "row 1 has more cells than the first line"),
        ] {
            assert_eq!(upload(app, content).await.failure(), (400, message), "{content}");
        }
        let many: String = (0..1_001).fold("first_name,last_name,email\n".to_owned(), |mut all, n| {
            writeln!(all, "Ada,Obi,{n}@example.com").unwrap();
            all
        });
        assert_eq!(upload(app, many).await.failure(), (400, "the users field must be at most 1000"));
        assert_eq!((total(app, &app.company).await, balance(app).await, leases(app).await), (json!(0), json!(100_000), 0));
    }

    async fn an_upload_that_is_not_csv_is_rejected(app: TestApp) {
        let fine = "first_name,last_name,email\nAda,Obi,ada@example.com\n";
        for (field, name, content, failure) in [
            ("file", "users.csv", fine.as_bytes(), (400, "the csv field is required")),
            ("csv", "users.xlsx", fine.as_bytes(), NO_CSV),
            ("csv", "users.csv", b"PK\x03\x04", NO_CSV),
            ("csv", "users.csv", b"{\"users\":[]}", NO_CSV),
        ] {
            assert_eq!(upload_as(app, field, name, content).await.failure(), failure, "{field} {name}");
        }
        let request = |content_type: &str, body: &'static str| {
            let request = app.client.post(format!("{}/api/v1/user/bulk/create", app.api)).bearer_auth(&app.company.key);
            reply(request.header("content-type", content_type).body(body))
        };
        let refused = request("text/csv", fine).await;
        assert_eq!(refused.failure(), (415, "the content type must be application/json or multipart/form-data"));
        for broken in ["multipart/form-data", "multipart/form-data; boundary=x"] {
            assert_eq!(request(broken, "--y\r\n").await.failure(), (400, "the form cannot be read"));
        }
        let large = upload(app, vec![b'x'; (16 << 20) + 1]).await;
        assert_eq!(large.failure().0, 413);
        assert_eq!(total(app, &app.company).await, 0);
    }

    async fn an_upload_that_the_wallet_does_not_cover_creates_no_user(app: TestApp) {
        set_price(app).await;
        credit(app, 25, "first").await;
        let refused = bulk(app, (0..3).map(user).collect::<Value>()).await;
        assert_eq!(refused.failure(), (400, "insufficient balance, please top up your wallet."));
        assert_eq!((total(app, &app.company).await, balance(app).await, leases(app).await), (json!(0), json!(25), 0));
        assert_eq!(bulk(app, (0..2).map(user).collect::<Value>()).await.status, 200);
        assert_eq!((total(app, &app.company).await, balance(app).await), (json!(2), json!(5)));
    }

    async fn a_thousand_users_fit_into_one_upload(app: TestApp) {
        let began = Instant::now();
        assert_eq!(bulk(app, (0..1_000).map(user).collect::<Value>()).await.status, 200);
        println!("a thousand users took {:?}", began.elapsed());
        assert_eq!(total(app, &app.company).await, 1_000);
    }

    async fn an_upload_whose_response_was_lost_runs_once(app: TestApp) {
        set_price(app).await;
        credit(app, 100, "first").await;
        let send = async || {
            let request = app.client.post(format!("{}/api/v1/user/bulk/create", app.api));
            let request = request.bearer_auth(&app.company.key).header("idempotency-key", "k");
            reply(request.json(&json!({ "users": [user(0), user(1)] }))).await
        };
        assert_eq!(send().await.status, 200);
        let lost: store::Result<u64> = app.app.store.write(async |tx| {
            tx.sql("UPDATE idempotency_keys SET answer = NULL, lease_until = 0").run().await
        }).await;
        assert_eq!(lost.expect("a statement"), 1);
        assert_eq!(send().await.status, 200);
        assert_eq!((total(app, &app.company).await, balance(app).await), (json!(2), json!(80)));
    }
}

// ---- one at a time ------------------------------------------------------------------------------

async fn another_host(app: &TestApp) -> String {
    let config = config(&app.database, &[]);
    let host = App::open(&config, app.app.clock.clone(), Random::system(), None)
        .await
        .expect("a host that starts");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let router = routes::router(&host, routes::public_routes());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// Inserts the lease of an upload in progress.
async fn begin(app: &TestApp, company: &Company) {
    let (id, until) = (company.id.clone(), app.app.clock.now().plus_seconds(120));
    let begun: store::Result<u64> = app
        .app
        .store
        .write(async move |tx| {
            tx.sql("INSERT INTO user_imports (company_id, lease, lease_until) VALUES ($1, 'of a host that died', $2)")
                .params(params![&id, until])
                .run()
                .await
        })
        .await;
    assert_eq!(begun.expect("a statement"), 1);
}

both! {
    async fn concurrent_hosts_run_one_upload_of_a_company_at_a_time(app: TestApp) {
        let other = another_host(app).await;
        let hosts = [&app.api, &other];
        let uploads = (0..12).map(async |n| {
            let users: Value = (0..200).map(|row| user(n * 200 + row)).collect();
            let request = app.client.post(format!("{}/api/v1/user/bulk/create", hosts[n % 2]));
            reply(request.bearer_auth(&app.company.key).json(&json!({ "users": users }))).await
        });
        let responses = join_all(uploads).await;
        let done = responses.iter().filter(|response| response.status == 200).count();
        assert!(done >= 1, "{responses:?}");
        assert!(responses.iter().filter(|response| response.status != 200).all(|response| response.failure() == PROCESSING));
        assert_eq!((total(app, &app.company).await, leases(app).await), (json!(done * 200), 0));
    }

    async fn an_upload_of_a_dead_host_blocks_its_company_until_its_lease_expires(app: TestApp) {
        begin(app, &app.company).await;
        let beta = app.new_company("Beta Lending").await;
        let theirs = json!({ "users": [user(1)] });
        assert_eq!(app.request(&beta, Method::POST, "/user/bulk/create", Some(theirs)).await.status, 200);
        assert_eq!(bulk(app, vec![user(1)]).await.failure(), PROCESSING);
        app.post("/user/create", user(2)).await.data(); // single users are not blocked
        app.advance(119).await;
        assert_eq!(bulk(app, vec![user(1)]).await.failure(), PROCESSING);
        app.advance(1).await;
        assert_eq!(bulk(app, vec![user(1)]).await.status, 200);
        assert_eq!((total(app, &app.company).await, total(app, &beta).await, leases(app).await), (json!(2), json!(1), 0));
    }
}
