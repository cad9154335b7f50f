//! Editing users, and fees of creating them.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    app::{Reply, TestApp},
    codes::{balance, credit},
};

const BALANCE: (u16, &str) = (400, "insufficient balance, please top up your wallet.");

async fn create(app: &TestApp, name: &str) -> Value {
    let user = json!({ "user_id": name, "first_name": "Ada", "last_name": "Obi", "email": format!("{name}@example.com") });
    app.post("/user/create", user).await.data().clone()
}

async fn edit(app: &TestApp, name: &str, change: Value) -> Reply {
    app.request(&app.company, Method::PUT, &format!("/user/edit/{name}"), Some(change)).await
}

async fn fetch(app: &TestApp, name: &str) -> Value {
    app.get(&format!("/user/fetch/{name}")).await.data().clone()
}

async fn set_price(app: &TestApp, price: f64) {
    let path = format!("/companies/{}/prices", app.company.id);
    app.operator(Method::PATCH, &path, json!({ "customer.create": price })).await.data();
}

both! {
    async fn an_edit_changes_only_the_sent_fields(app: TestApp) {
        let mut expected = create(app, "ada").await;
        let mut name = "ada".to_owned();
        for (field, value, shown) in [
            ("user_id", json!("ada-2"), json!("ada-2")),
            ("first_name", json!("Bola"), json!("Bola")),
            ("last_name", json!("Ünal"), json!("Ünal")),
            ("middle_name", json!("N."), json!("N.")),
            ("email", json!("Bola@Example.com"), json!("Bola@Example.com")),
            ("phone", json!("+2348012345678"), json!("+2348012345678")),
            ("date_of_birth", json!("29/02/2000"), json!("29/02/2000")),
            ("gender", json!("others"), json!("others")),
            ("address", json!("1 Marina Road"), json!("1 Marina Road")),
            ("country", json!("Ghana"), json!("ghana")),
            ("state", json!("Accra"), json!("Accra")),
            ("city", json!("Accra"), json!("Accra")),
            ("image", json!("https://acme.example/b.png"), json!("https://acme.example/b.png")),
            ("employment_status", json!("student"), json!("student")),
            ("years_of_employment", json!(3), json!(3)),
            ("active", json!(false), json!(false)),
            ("email_verified", json!(true), json!(true)),
            ("phone_verified", json!(true), json!(true)),
            ("metadata", json!({ "tier": 1 }), json!({ "tier": 1 })),
            ("metadata", json!({ "level": "a" }), json!({ "level": "a" })),
            // Empty values clear a field.
            ("middle_name", json!(""), Value::Null),
            ("phone", Value::Null, Value::Null),
            ("years_of_employment", Value::Null, Value::Null),
            ("metadata", Value::Null, json!({})),
            ("email", json!(""), Value::Null),
        ] {
            app.advance(1).await;
            let edited = edit(app, &name, json!({ field: value })).await;
            expected[field] = shown;
            match field {
                "date_of_birth" => expected["age"] = json!(26),
                "country" => expected["country_code"] = json!("GH"),
                "user_id" => name = "ada-2".to_owned(),
                _ => {}
            }
            expected["updated_at"] = json!(app.app.clock.now());
            assert_eq!(edited.data(), &expected, "{field}");
            assert_eq!(edited.body["message"], "User updated successfully");
            assert_eq!(fetch(app, &name).await, expected, "{field}");
        }
        let cleared = edit(app, &name, json!({ "date_of_birth": null, "country": "" })).await.data().clone();
        for field in ["date_of_birth", "age", "country", "country_code"] {
            assert_eq!(cleared[field], Value::Null, "{field}");
        }
    }

    async fn an_invalid_edit_gets_400_with_the_field_and_changes_nothing(app: TestApp) {
        let ada = create(app, "ada").await;
        create(app, "bola").await;
        for (change, message) in [
            (json!({ "user_id": "" }), "the user_id field is required"),
            (json!({ "user_id": null }), "the user_id field is required"),
            (json!({ "user_id": "a b" }), "the user_id field must be visible characters only"),
            (json!({ "user_id": "." }), "the user_id field must be neither . nor .."),
            (json!({ "user_id": ".." }), "the user_id field must be neither . nor .."),
            (json!({ "user_id": "bola" }), "user already exists"),
            (json!({ "first_name": "" }), "the first_name field is required"),
            (json!({ "last_name": null }), "the last_name field is required"),
            (json!({ "email": "ada" }), "the email field must be a valid email address"),
            (json!({ "email": "BOLA@example.com" }), "email already exists"),
            (json!({ "phone": "0801" }), "the phone field must be a phone number in E.164 format"),
            (json!({ "date_of_birth": "31/02/2000" }), "the date_of_birth field must be a past date in the form DD/MM/YYYY"),
            (json!({ "gender": "x" }), "the gender field must be one of male, female, others"),
            (json!({ "country": "atlantis" }), "the country field must be the name of a country"),
            (json!({ "years_of_employment": 101 }), "the years_of_employment field must be a whole number from 0 to 100"),
            (json!({ "active": null }), "the active field is required"),
            (json!({ "active": "no" }), "the active field must be a boolean"),
            (json!({ "metadata": [] }), "the metadata field must be an object"),
            (json!({ "first_name": "Bola", "metadata": (0..101).map(|n| (n.to_string(), n.into())).collect::<serde_json::Map<_, Value>>() }),
                "the metadata field must be an object with at most 100 keys"),
            (json!([]), "the body must be a JSON object"),
        ] {
            assert_eq!(edit(app, "ada", change.clone()).await.failure(), (400, message), "{change}");
        }
        assert_eq!(fetch(app, "ada").await, ada);
        for unknown in ["carol", "carol@example.com", "000000000000000000000000"] {
            assert_eq!(edit(app, unknown, json!({})).await.failure(), (404, "user not found"));
        }
        // A user's own user_id and e-mail do not conflict.
        edit(app, "ada", json!({ "user_id": "ada", "email": "ADA@example.com" })).await.data();
        // Fields that cannot be edited are ignored.
        let same = edit(app, "ada@example.com", json!({ "role": "admin", "age": 3, "id": "x" })).await.data().clone();
        assert_eq!((&same["role"], &same["id"]), (&json!("customer"), &ada["id"]));
    }

    async fn one_of_concurrent_edits_to_one_email_succeeds(app: TestApp) {
        for n in 0..8 {
            create(app, &format!("user-{n}")).await;
        }
        let wanted = json!({ "email": "wanted@example.com" });
        let responses = join_all((0..8).map(async |n| edit(app, &format!("user-{n}"), wanted.clone()).await)).await;
        let (won, lost): (Vec<Reply>, Vec<Reply>) = responses.into_iter().partition(|response| response.status == 200);
        assert_eq!((won.len(), lost.len()), (1, 7));
        assert!(lost.iter().all(|response| response.failure() == (400, "email already exists")));
        assert_eq!(fetch(app, "wanted@example.com").await, *won[0].data());
    }
}

// ---- fees and plans -----------------------------------------------------------------------------

both! {
    async fn a_new_user_is_charged_once_and_a_known_one_not_at_all(app: TestApp) {
        set_price(app, 10.0).await;
        credit(app, 25, "first").await;
        let ada = || json!({ "first_name": "Ada", "last_name": "Obi", "email": "ada@example.com" });
        let responses = join_all((0..10).map(|_| app.post("/user/create", ada()))).await;
        assert!(responses.iter().all(|response| response.data()["id"] == responses[0].data()["id"]));
        assert_eq!(balance(app).await, 15);
        create(app, "bola").await;
        assert_eq!(balance(app).await, 5);
        let poor = app.post("/user/create", json!({ "first_name": "C", "last_name": "D", "email": "c@example.com" })).await;
        assert_eq!(poor.failure(), BALANCE);
        assert_eq!(app.get("/user/fetch/c@example.com").await.failure().0, 404);
        app.post("/user/create", ada()).await.data();
        assert_eq!(balance(app).await, 5);
    }

    async fn a_plan_without_users_rejects_new_ones_and_shows_existing_ones(app: TestApp) {
        let ada = create(app, "ada").await;
        let plan = format!("/companies/{}/subscription", app.company.id);
        app.operator(Method::PUT, &plan, json!({ "features": ["payments"] })).await.data();
        let refused = app.post("/user/create", json!({ "first_name": "B", "last_name": "C", "email": "b@example.com" })).await;
        assert_eq!(refused.failure().0, 403);
        assert_eq!(fetch(app, "ada").await, ada);
        edit(app, "ada", json!({ "first_name": "Bola" })).await.data();
    }
}
