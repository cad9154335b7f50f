//! Users: creation, lookup, and no duplicates.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store;

use crate::app::{NOW, Reply, TestApp};

const TAKEN: (u16, &str) = (400, "user already exists");

/// A user with the required fields only.
fn ada() -> Value {
    json!({ "first_name": "Ada", "last_name": "Obi", "email": "ada@example.com" })
}

/// [`ada`] with one field changed.
fn with(field: &str, value: Value) -> Value {
    let mut user = ada();
    user[field] = value;
    user
}

async fn create(app: &TestApp, user: Value) -> Reply {
    app.post("/user/create", user).await
}

async fn fetch(app: &TestApp, name: &str) -> Reply {
    app.get(&format!("/user/fetch/{name}")).await
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().expect(field)
}

/// Number of users of all companies.
async fn count(app: &TestApp) -> i64 {
    let counted =
        async |tx: &mut store::Tx| tx.sql("SELECT COUNT(*) FROM users").one::<(i64,)>().await;
    app.app.store.read(counted).await.expect("a count").0
}

/// The date this number of days ago, in the format of dates of birth.
fn birthday(days_ago: i64) -> String {
    NOW.plus_seconds(-days_ago * 86_400).to_datetime().format("%d/%m/%Y").to_string()
}

both! {
    async fn a_created_user_has_every_sent_field(app: TestApp) {
        let sent = json!({
            "user_id": "customer-7", "first_name": "Adaeze", "middle_name": "N.", "last_name": "Obi-Ünal",
            "email": "Ada.Obi+Loan@Example.com", "phone": "+2348012345678", "date_of_birth": "29/02/2000",
            "gender": "female", "address": "1 Marina Road", "state": "Lagos", "city": "Ikeja",
            "country": "Nigeria", "image": "https://acme.example/ada.png",
            "employment_status": "self-employed", "years_of_employment": 3, "active": false, "role": "customer",
            "metadata": { "tier": 1, "tags": ["a", null, 1.50], "NESTED": { "ключ": true } },
        });
        let response = create(app, sent.clone()).await;
        let mut expected = sent;
        expected["id"] = response.data()["id"].clone();
        expected["country"] = json!("nigeria");
        expected["country_code"] = json!("NG");
        expected["age"] = json!(26);
        expected["email_verified"] = json!(false);
        expected["phone_verified"] = json!(false);
        expected["created_at"] = json!(NOW);
        expected["updated_at"] = json!(NOW);
        let mut made = response.data().clone();
        let mut found = fetch(app, "customer-7").await.data().clone();
        // An engine may store a number as written or by its value.
        for user in [&mut made, &mut found, &mut expected] {
            let number = user["metadata"]["tags"][2].take();
            assert_eq!(number.as_f64(), Some(1.5));
        }
        assert_eq!(made, expected);
        assert_eq!(found, expected);
        assert_eq!(response.body["message"], "User created successfully");
        assert_eq!(fetch(app, "customer-7").await.body["message"], "User fetched successfully");
    }

    async fn omitted_and_empty_fields_are_absent(app: TestApp) {
        let optional = [
            "user_id", "middle_name", "phone", "date_of_birth", "gender", "address", "state", "city", "country",
            "image", "employment_status", "years_of_employment", "role", "metadata", "active",
        ];
        let not_texts = ["years_of_employment", "metadata", "active"];
        let (mut empty, mut null) = (ada(), ada());
        for field in optional {
            null[field] = Value::Null;
            empty[field] = if not_texts.contains(&field) { Value::Null } else { json!("") };
        }
        empty["email"] = json!("empty@example.com");
        null["email"] = json!("null@example.com");
        for user in [ada(), empty, null] {
            let made = create(app, user.clone()).await.data().clone();
            let id = text(&made, "id");
            assert!(id.len() == 24 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
            let user_id = text(&made, "user_id");
            assert!(user_id.strip_prefix("usr-").is_some_and(|rest| rest.len() >= 24), "{user_id}");
            assert_eq!(made, json!({
                "id": id, "user_id": user_id, "first_name": "Ada", "last_name": "Obi", "email": user["email"],
                "middle_name": null, "phone": null, "date_of_birth": null, "gender": null, "address": null,
                "state": null, "city": null, "country": null, "country_code": null, "image": null,
                "employment_status": null, "years_of_employment": null, "email_verified": false,
                "phone_verified": false, "active": true, "role": "customer", "age": null, "metadata": {},
                "created_at": NOW, "updated_at": NOW,
            }));
        }
        assert_eq!(count(app).await, 3);
    }

    async fn an_invalid_field_gets_400_with_its_name_and_creates_no_user(app: TestApp) {
        let long = "x".repeat(101);
        let (date, phone) = ("must be a past date in the form DD/MM/YYYY", "must be a phone number in E.164 format");
        let country = "must be the name of a country";
        let years = "must be a whole number from 0 to 100";
        let hundred = "must be at most 100 characters";
        for (field, value, problem) in [
            ("user_id", json!(5), "must be a string"),
            ("user_id", json!(long), hundred),
            ("user_id", json!("a b"), "must be visible characters only"),
            ("user_id", json!("a\u{a0}b"), "must be visible characters only"),
            ("user_id", json!("."), "must be neither . nor .."),
            ("user_id", json!(".."), "must be neither . nor .."),
            ("first_name", Value::Null, "is required"),
            ("first_name", json!(""), "is required"),
            ("first_name", json!(long), hundred),
            ("last_name", Value::Null, "is required"),
            ("last_name", json!(["Obi"]), "must be a string"),
            ("middle_name", json!(long), hundred),
            ("middle_name", json!("a\tb"), "must be free of control characters"),
            ("email", Value::Null, "is required"),
            ("email", json!(""), "is required"),
            ("email", json!("ada"), "must be a valid email address"),
            ("email", json!("ada@localhost"), "must be a valid email address"),
            ("phone", json!("08012345678"), phone),
            ("phone", json!("+1234567"), phone),
            ("phone", json!("+1234567890123456"), phone),
            ("phone", json!(2_348_012_345_678_i64), "must be a string"),
            ("date_of_birth", json!("2000-02-29"), date),
            ("date_of_birth", json!("29/02/2001"), date),
            ("date_of_birth", json!("1/1/2000"), date),
            ("date_of_birth", json!(" 1/ 1/2000"), date),
            ("date_of_birth", json!("01/01/-999"), date),
            ("date_of_birth", json!("01/01/+999"), date),
            ("date_of_birth", json!(birthday(-1)), date),
            ("gender", json!("Female"), "must be one of male, female, others"),
            ("address", json!("x".repeat(501)), "must be at most 500 characters"),
            ("address", json!("a\u{1b}b"), "must be free of control characters"),
            ("state", json!(1), "must be a string"),
            ("city", json!(long), hundred),
            ("country", json!("atlantis"), country),
            ("country", json!("NG"), country),
            ("image", json!("ada.png"), "must be a valid http or https URL"),
            ("employment_status", json!("retired"), "must be one of employed, self-employed, contract-worker, business-owner, student, unemployed"),
            ("years_of_employment", json!(-1), years),
            ("years_of_employment", json!(1.5), years),
            ("years_of_employment", json!("1"), years),
            ("active", json!("yes"), "must be a boolean"),
            ("role", json!("admin"), "must be one of customer"),
            ("metadata", json!([]), "must be an object"),
            ("metadata", json!("{}"), "must be an object"),
            ("metadata", json!({ "x": "x".repeat(16 << 10) }), "must be at most 16 KiB of JSON"),
        ] {
            let refused = create(app, with(field, value.clone())).await;
            assert_eq!(refused.failure(), (400, &*format!("the {field} field {problem}")), "{value}");
        }
        assert_eq!(count(app).await, 0);
    }

    async fn the_first_invalid_field_is_reported(app: TestApp) {
        let order = [
            "user_id", "first_name", "last_name", "middle_name", "email", "phone", "date_of_birth", "gender",
            "address", "state", "city", "country", "image", "employment_status", "years_of_employment",
            "active", "role", "metadata",
        ];
        // A list is invalid in each field; the fields are corrected one by one.
        let mut user: Value = order.iter().map(|field| ((*field).to_owned(), json!([1]))).collect();
        for field in order {
            let refused = create(app, user.clone()).await;
            let (status, message) = refused.failure();
            assert!(status == 400 && message.starts_with(&format!("the {field} field must be ")), "{field}: {message}");
            user[field] = ada()[field].clone();
        }
        create(app, user).await.data();
    }

    async fn age_and_country_code_are_derived(app: TestApp) {
        for (n, (born, age)) in [(birthday(0), 0), (birthday(1), 0), (birthday(364), 0), (birthday(365), 1)].into_iter().enumerate() {
            let mut user = with("date_of_birth", json!(born));
            user["email"] = json!(format!("{n}@example.com"));
            let made = create(app, user).await.data().clone();
            assert_eq!((&made["age"], text(&made, "date_of_birth")), (&json!(age), &*born));
        }
        for (name, code) in [
            ("Ghana", "GH"), ("SOUTH AFRICA", "ZA"), ("united kingdom", "GB"), ("United States of America", "US"),
        ] {
            let mut user = with("country", json!(name));
            user["email"] = json!(format!("{code}@example.com"));
            user["country_code"] = json!("XX"); // read-only, as is the age
            user["age"] = json!(7);
            let made = create(app, user).await.data().clone();
            assert_eq!((text(&made, "country"), text(&made, "country_code")), (&*name.to_lowercase(), code));
            assert_eq!(made["age"], Value::Null);
        }
        // A year later, the age is 1.
        app.advance(365 * 86_400).await;
        assert_eq!(fetch(app, "0@example.com").await.data()["age"], 1);
    }

    async fn a_user_is_found_by_email_user_id_and_id(app: TestApp) {
        let mut user = with("user_id", json!("customer-7"));
        user["email"] = json!("Ada+1@Example.com");
        let made = create(app, user).await.data().clone();
        for name in ["customer-7", text(&made, "id"), "Ada+1@Example.com", "ada%2B1@example.COM", "ADA+1%40EXAMPLE.COM"] {
            assert_eq!(fetch(app, name).await.data(), &made, "{name}");
        }
        for name in ["customer-8", "CUSTOMER-7", "000000000000000000000000", "bola@example.com", "@", "%25", "_", "a%2Fb"] {
            assert_eq!(fetch(app, name).await.failure(), (404, "user not found"), "{name}");
        }
        // A user_id takes precedence over an internal id, even that of another user.
        let impostor = json!({ "user_id": made["id"], "first_name": "Bola", "last_name": "Obi", "email": "b@example.com" });
        let impostor = create(app, impostor).await.data().clone();
        assert_eq!(fetch(app, text(&made, "id")).await.data(), &impostor);
    }
}

both! {
    async fn a_user_id_may_be_any_visible_characters(app: TestApp) {
        for (n, user_id) in ["ada@lender.example", "branch/7", "@", "100%", "...", ".a", "a?b#c", "Ünïcode-用户", "a+b&c=d;e", "'-1"].into_iter().enumerate() {
            let user = json!({ "user_id": user_id, "first_name": "Ada", "last_name": "Obi", "email": format!("{n}@example.com") });
            let made = create(app, user).await.data().clone();
            assert_eq!(made["user_id"], user_id);
            let encoded: String = user_id.bytes().map(|byte| format!("%{byte:02X}")).collect();
            assert_eq!(fetch(app, &encoded).await.data(), &made, "{user_id}");
            let (path, change) = (format!("/user/edit/{encoded}"), json!({ "city": "Ikeja" }));
            let edited = app.request(&app.company, Method::PUT, &path, Some(change)).await;
            assert_eq!(edited.data()["id"], made["id"], "{user_id}");
        }
        // An e-mail address takes precedence over a user_id, even that of another user.
        let bola = json!({ "user_id": "0@example.com", "first_name": "Bola", "last_name": "Ade", "email": "bola@example.com" });
        let bola = create(app, bola).await.data().clone();
        assert_eq!(fetch(app, "0@example.com").await.data()["user_id"], "ada@lender.example");
        assert_eq!(fetch(app, "bola@example.com").await.data(), &bola);
    }

    async fn a_new_user_is_not_verified_and_an_address_can_have_line_breaks(app: TestApp) {
        for (n, sent) in [json!(true), json!("yes"), json!(1), json!([])].into_iter().enumerate() {
            let email = format!("{n}@example.com");
            let user = json!({
                "first_name": "Ada", "last_name": "Obi", "email": email, "email_verified": sent, "phone_verified": sent,
                "address": "1 Marina Road\r\nLagos\nNigeria",
            });
            let made = create(app, user).await.data().clone();
            assert_eq!((&made["email_verified"], &made["phone_verified"]), (&json!(false), &json!(false)), "{sent}");
            assert_eq!(made["address"], "1 Marina Road\r\nLagos\nNigeria");
            let change = json!({ "email_verified": true, "address": "2 Marina Road\nLagos" });
            let edited = app.request(&app.company, Method::PUT, &format!("/user/edit/{email}"), Some(change)).await.data().clone();
            assert_eq!((&edited["email_verified"], &edited["phone_verified"]), (&json!(true), &json!(false)));
            assert_eq!(edited["address"], "2 Marina Road\nLagos");
        }
    }
}

// ---- existing users -----------------------------------------------------------------------------

both! {
    async fn the_same_email_is_the_same_user_unchanged(app: TestApp) {
        let made = create(app, with("phone", json!("+2348012345678"))).await.data().clone();
        app.advance(5).await;
        for email in ["ada@example.com", "ADA@Example.COM"] {
            let again = json!({
                "first_name": "Bola", "last_name": "Ade", "email": email, "phone": "+15551234567", "active": false,
                "email_verified": true, "metadata": { "x": 1 },
            });
            assert_eq!(create(app, again).await.data(), &made, "{email}");
        }
        assert_eq!(fetch(app, "ada@example.com").await.data(), &made);
        assert_eq!(count(app).await, 1);
        // Invalid fields are rejected nevertheless.
        let wrong = create(app, with("gender", json!("x"))).await;
        assert_eq!(wrong.failure(), (400, "the gender field must be one of male, female, others"));
    }

    async fn a_sent_user_id_replaces_that_of_an_existing_user(app: TestApp) {
        let made = create(app, ada()).await.data().clone();
        app.advance(5).await;
        let renamed = create(app, with("user_id", json!("customer-7"))).await.data().clone();
        let mut expected = made.clone();
        expected["user_id"] = json!("customer-7");
        expected["updated_at"] = json!(app.app.clock.now());
        assert_eq!(renamed, expected);
        assert_eq!(fetch(app, "customer-7").await.data(), &expected);
        assert_eq!(fetch(app, text(&made, "user_id")).await.failure(), (404, "user not found"));
        app.advance(5).await;
        assert_eq!(create(app, with("user_id", json!("customer-7"))).await.data(), &expected); // its own already
        assert_eq!(create(app, ada()).await.data(), &expected); // none sent: it stays
        assert_eq!(count(app).await, 1);
    }

    async fn payments_are_found_by_the_current_user_id(app: TestApp) {
        let made = create(app, ada()).await.data().clone();
        let mut order = app.order("order-1");
        order["user_id"] = made["user_id"].clone();
        app.post("/payment/initialize", order).await.data();
        app.initialize("order-2").await; // without a user
        create(app, with("user_id", json!("customer-7"))).await.data();
        for (user_id, total) in [(text(&made, "user_id"), 0), ("customer-7", 1), ("customer-8", 0)] {
            let listed = app.get(&format!("/payment/list?user_id={user_id}&sort-created_at=asc")).await.data().clone();
            let docs = listed["docs"].as_array().expect("a list");
            assert_eq!((&listed["total"], docs.len()), (&json!(total), total), "{user_id}");
            assert!(docs.iter().all(|payment| payment["reference"] == "order-1"));
        }
    }

    async fn a_user_id_of_another_user_is_rejected(app: TestApp) {
        let made = create(app, with("user_id", json!("customer-7"))).await.data().clone();
        let mut bola = json!({ "user_id": "customer-7", "first_name": "Bola", "last_name": "Ade", "email": "bola@example.com" });
        assert_eq!(create(app, bola.clone()).await.failure(), TAKEN); // the e-mail is unused
        assert_eq!(count(app).await, 1);
        bola["user_id"] = json!("customer-8");
        let other = create(app, bola.clone()).await.data().clone();
        bola["user_id"] = json!("customer-7");
        assert_eq!(create(app, bola).await.failure(), TAKEN); // another user has the e-mail
        assert_eq!(fetch(app, "customer-7").await.data(), &made);
        assert_eq!(fetch(app, "customer-8").await.data(), &other);

        // In another company it is available.
        let neighbour = app.new_company("Beta Lending").await;
        let same = Some(with("user_id", json!("customer-7")));
        let theirs = app.request(&neighbour, Method::POST, "/user/create", same).await.data().clone();
        assert_ne!(theirs["id"], made["id"]);
    }

    async fn concurrent_requests_for_a_user_create_one(app: TestApp) {
        let emails = ["ada@example.com", "ADA@example.com"];
        let responses = join_all((0..20).map(|n| create(app, with("email", json!(emails[n % 2]))))).await;
        let ids: Vec<&Value> = responses.iter().map(|response| &response.data()["id"]).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(count(app).await, 1);

        // Concurrent requests for one user_id: one user is created, the others are rejected.
        let strangers = (0..20).map(|n| {
            let mut user = with("user_id", json!("wanted"));
            user["email"] = json!(format!("{n}@example.com"));
            create(app, user)
        });
        let responses = join_all(strangers).await;
        let (won, lost): (Vec<Reply>, Vec<Reply>) = responses.into_iter().partition(|response| response.status == 200);
        assert_eq!((won.len(), lost.len()), (1, 19));
        assert!(lost.iter().all(|response| response.failure() == TAKEN));
        assert_eq!(fetch(app, "wanted").await.data(), won[0].data());
        assert_eq!(count(app).await, 2);
    }

    async fn concurrent_renames_to_one_user_id_give_it_to_one_user(app: TestApp) {
        for n in 0..8 {
            let mut user = ada();
            user["email"] = json!(format!("{n}@example.com"));
            create(app, user).await.data();
        }
        // All of them exist, so each request would rename a user.
        let responses = join_all((0..8).map(|n| {
            let mut user = with("user_id", json!("wanted"));
            user["email"] = json!(format!("{n}@example.com"));
            create(app, user)
        }))
        .await;
        let won = responses.iter().filter(|response| response.status == 200).count();
        assert_eq!(won, 1);
        assert!(responses.iter().filter(|response| response.status != 200).all(|response| response.failure() == TAKEN));
        assert_eq!(count(app).await, 8);
    }
}
