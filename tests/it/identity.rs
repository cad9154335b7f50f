//! Identity lookups: results, errors, fees and UID records.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store;
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Company, Engine, NOW, Reply, TestApp, reply},
    codes::{balance, credit, merged, status_and_message},
};

const DAY: i64 = 24 * 3600;
pub const BVN: &str = "12345678901";
const LOOKUP: &str = "/kyc/nigeria/bvn/lookup";

/// The service account at the simulators of the registers.
pub fn account(app: &TestApp, country: &str) -> Value {
    let sandbox = app.simulators.url();
    let mut credentials = json!({
        "prembly_key": "prembly-secret", "prembly_app_id": "app", "prembly_url": format!("{sandbox}/prembly"),
    });
    if country == "nigeria" {
        credentials["dojah_key"] = json!("dojah-secret");
        credentials["dojah_app_id"] = json!("app");
        credentials["dojah_url"] = json!(format!("{sandbox}/dojah"));
    }
    json!({ "credentials": credentials, "active": true })
}

pub async fn install(app: &TestApp, country: &str, wasm: &[u8]) {
    app.install(wasm).await;
    app.operator(Method::PUT, &format!("/providers/{country}"), account(app, country)).await.data();
}

/// Installs the plugin for Nigeria and credits the wallet.
pub async fn set_up(app: &TestApp) {
    install(app, "nigeria", artifacts::NIGERIA).await;
    credit(app, 10_000, "identities").await;
}

/// Makes a free lookup; returns the id of its UID record.
pub async fn free_uid(app: &TestApp, company: &Company, more: Value) -> String {
    install(app, "nigeria", artifacts::NIGERIA).await;
    let prices = json!({ "identity.nigeria.bvn": 0 });
    app.operator(Method::PATCH, "/prices", prices).await.data();
    let body = merged(json!({ "bvn": BVN }), more);
    let uid = app.request(company, Method::POST, LOOKUP, Some(body)).await;
    uid.data()["id"].as_str().expect("an id").to_owned()
}

async fn user(app: &TestApp, user_id: &str) -> Value {
    let user = json!({
        "user_id": user_id, "first_name": "Ada", "last_name": "Obi", "email": format!("{user_id}@example.com"),
        "date_of_birth": "10/12/1990",
    });
    app.post("/user/create", user).await.data().clone()
}

fn image(app: &TestApp, name: &str) -> String {
    format!("{}/images/{name}.jpg", app.simulators.url())
}

pub async fn look_up_bvn(app: &TestApp, number: &str) -> Reply {
    app.post(LOOKUP, json!({ "bvn": number })).await
}

/// Returns the number of UID records of all companies.
pub async fn count_uids(app: &TestApp) -> i64 {
    let count = async |tx: &mut store::Tx| tx.sql("SELECT COUNT(*) FROM uids").one().await;
    let (count,): (i64,) = app.app.store.read(count).await.expect("a count");
    count
}

/// An identity type: its path, a field and its value, the display name, the name, and some of its
/// details.
type Type =
    (&'static str, &'static str, &'static str, &'static str, &'static str, &'static [&'static str]);

const OF_BVN: &[&str] = &[
    "first_name", "enrollment_bank", "level_of_account", "phone_number2", "watch_listed", "image",
];
const OF_NIN: &[&str] = &[
    "level_of_education", "employment_status", "profession", "religion", "nok_firstname",
    "nok_surname",
];
const OF_LICENCE: &[&str] =
    &["first_name", "middle_name", "gender", "issued_date", "expiry_date", "issued_at", "image"];
const OF_PASSPORT: &[&str] =
    &["first_name", "date_of_birth", "issued_at", "image", "signature", "phone_number"];

#[rustfmt::skip] // one type per line
const TYPES: [Type; 8] = [
    ("bvn", "bvn", BVN, "BVN", "bvn", OF_BVN),
    ("nin", "nin", "12345678902", "NIN", "nin", OF_NIN),
    ("nin/virtual", "virtual_nin", "AB12345678901234", "Virtual NIN", "virtual_nin", OF_NIN),
    ("drivers-license", "number", "ABC12345XY67", "Driver's license", "drivers_license", OF_LICENCE),
    ("passport", "number", "A01234567", "International passport", "passport", OF_PASSPORT),
    ("voters-card", "number", "90F5AB1234567890123", "Voter's card", "voters_card", &["vin", "full_name", "polling_unit_code"]),
    ("cac", "number", "1234567", "CAC", "cac", &["rc_number", "company_name", "branch_address", "email"]),
    ("phone-number", "number", "+2348031234567", "Phone number", "phone_number", OF_NIN),
];
const WITH_FACE: [&str; 4] = ["bvn", "nin", "drivers_license", "passport"];
const BY_DOCUMENT: [&str; 2] = ["drivers_license", "passport"];

/// Returns the lookup methods of a type: path suffix, request body and price.
fn lookup_methods(
    app: &TestApp,
    (_, field, number, _, id, _): Type,
) -> Vec<(&'static str, Value, u32)> {
    let mut ways = vec![("lookup", json!({ field: number, "user_id": "" }), 50)];
    if WITH_FACE.contains(&id) {
        let selfie = image(app, &format!("match-{number}"));
        ways.push(("lookup/with-face", json!({ field: number, "image": selfie }), 100));
    }
    if BY_DOCUMENT.contains(&id) {
        let document = image(app, &format!("document-{number}"));
        ways.push(("lookup/image", json!({ "image": document }), 80));
    }
    ways
}

#[tokio::test]
async fn a_lookup_waits_for_a_slow_register() {
    let app = TestApp::start(Engine::Sqlite).await;
    set_up(&app).await;
    assert_eq!(
        status_and_message(&look_up_bvn(&app, "12345688888").await),
        (200, "BVN lookup successful")
    );
    app.finish().await;
}

both! {
    async fn every_identity_type_is_found_charged_and_described(app: TestApp) {
        set_up(app).await;
        let types = app.get("/kyc/identity/list").await.data().as_array().expect("a list").clone();
        let mut left = 10_000;
        for row in TYPES {
            let (path, _, _, name, id, fields) = row;
            for (end, body, price) in lookup_methods(app, row) {
                let found = app.post(&format!("/kyc/nigeria/{path}/{end}"), body).await;
                assert_eq!(status_and_message(&found), (200, &*format!("{name} lookup successful")), "{path} {end}");
                let uid = found.data();
                left -= price;
                assert_eq!(balance(app).await, json!(left), "{path} {end}");
                // A record stays verified after a match.
                let (faced, verified) = (end == "lookup/with-face", end != "lookup");
                let mut methods = vec!["face_validation", "otp"];
                methods.retain(|method| match *method {
                    "otp" => id != "cac" && (!uid["email"].is_null() || !uid["phone_number"].is_null()),
                    _ => WITH_FACE.contains(&id),
                });
                for (field, value) in [
                    ("user", Value::Null),
                    ("user_id", Value::Null),
                    ("identity_name", json!(format!("nigeria.{id}"))),
                    ("otp_sent", json!(false)),
                    ("otp_error", Value::Null),
                    ("can_be_verified_by", json!(methods)),
                    ("verified", json!(verified)),
                    ("expires_at", json!(NOW.plus_seconds(30 * DAY))),
                    ("created_at", json!(NOW)),
                ] {
                    assert_eq!(uid[field], value, "{path} {end} {field}");
                }
                let listed = types.iter().find(|kind| kind["identity_name"] == uid["identity_name"]).expect("a type");
                assert_eq!(uid["identity"], listed["id"], "{path} {end}");
                assert_eq!(uid["face_data"].is_object(), faced || verified, "{path} {end}");
                for field in fields {
                    assert!(uid["details"].get(field).is_some(), "{path} {end} {field}: {}", uid["details"]);
                }
            }
        }
        assert_eq!(count_uids(app).await, 8);
    }

    async fn a_request_rejected_before_the_register_is_queried_costs_nothing(app: TestApp) {
        set_up(app).await;
        let number = |number: &str| json!({ "number": number });
        for (path, body, status, message) in [
            ("bvn/lookup", json!({}), 400, "the bvn field is required"),
            ("bvn/lookup", json!({ "bvn": "1234567890" }), 400, "the bvn field must be 11 digits"),
            ("bvn/lookup", json!({ "bvn": "1234567890a" }), 400, "the bvn field must be 11 digits"),
            ("bvn/lookup", json!({ "bvn": 12_345_678_901_u64 }), 400, "the bvn field must be a string"),
            ("bvn/lookup/with-face", json!({ "bvn": BVN }), 400, "the image field is required"),
            ("bvn/lookup", json!({ "bvn": BVN, "send_otp": "yes" }), 400, "the send_otp field must be a boolean"),
            ("bvn/lookup", json!({ "bvn": BVN, "user_id": "nobody" }), 404, "user not found"),
            ("nin/lookup", json!({ "nin": "123" }), 400, "the nin field must be 11 digits"),
            ("drivers-license/lookup/image", json!({}), 400, "the image field is required"),
            ("bvn/lookup/image", json!({ "image": "x" }), 404, "path not found"),
            ("cac/lookup/with-face", number("1234567"), 404, "path not found"),
            ("library-card/lookup", number("1"), 404, "path not found"),
            ("bvn", json!({ "bvn": BVN }), 404, "path not found"),
        ] {
            let refused = app.post(&format!("/kyc/nigeria/{path}"), body).await;
            assert_eq!(refused.failure(), (status, message), "{path}");
        }
        for (path, field) in [("nin/virtual", "virtual_nin"), ("drivers-license", "number"), ("passport", "number"), ("voters-card", "number"), ("cac", "number"), ("phone-number", "number")] {
            for wrong in ["?", "+", " - ", "0123/456"] {
                let refused = app.post(&format!("/kyc/nigeria/{path}/lookup"), json!({ field: wrong })).await;
                let (status, message) = refused.failure();
                assert!(status == 400 && message.starts_with(&format!("the {field} field must")), "{path}: {message}");
            }
        }
        let elsewhere = app.post("/kyc/atlantis/bvn/lookup", json!({ "bvn": BVN })).await;
        assert_eq!(elsewhere.failure(), (404, "path not found"));
        assert_eq!((balance(app).await, count_uids(app).await), (json!(10_000), 0));
    }

    async fn a_lookup_is_charged_even_if_the_register_finds_nothing_or_fails(app: TestApp) {
        set_up(app).await;
        for (n, (number, status, message)) in [
            ("12345670000", 404, "bvn data not found"),
            ("12345699999", 502, "bvn service is unavailable, please try again later"),
            ("12345609999", 200, "BVN lookup successful"),
            ("12345667777", 200, "BVN lookup successful"),
        ].into_iter().enumerate() {
            let response = look_up_bvn(app, number).await;
            assert_eq!(status_and_message(&response), (status, message), "{number}");
            assert_eq!(balance(app).await, json!(10_000 - 50 * (n + 1)), "{number}");
            if number.ends_with("7777") {
                assert_eq!(response.data()["details"]["watch_listed"], "YES");
            }
        }
        for (path, body, message) in [
            ("nin", json!({ "nin": "12345670000" }), "nin data not found"),
            ("nin/virtual", json!({ "virtual_nin": "AB12345678900000" }), "virtual nin data not found"),
            ("drivers-license", json!({ "number": "ABC12345XY0000" }), "driver's license data not found"),
            ("passport", json!({ "number": "A01230000" }), "international passport data not found"),
            ("voters-card", json!({ "number": "90F5AB1234567890000" }), "voter's card data not found"),
            ("cac", json!({ "number": "1230000" }), "cac data not found"),
            ("phone-number", json!({ "number": "+2348031230000" }), "phone number data not found"),
        ] {
            let missing = app.post(&format!("/kyc/nigeria/{path}/lookup"), body).await;
            assert_eq!(missing.failure(), (404, message), "{path}");
        }
        assert_eq!(count_uids(app).await, 2);
    }

    async fn the_second_register_is_queried_when_the_first_fails(app: TestApp) {
        set_up(app).await;
        for kind in [FaultKind::Cut, FaultKind::Error500, FaultKind::Malformed] {
            app.simulators.faults().push(Fault::new("prembly", kind));
            look_up_bvn(app, BVN).await.data();
            app.simulators.faults().push(Fault::new("prembly", kind));
            app.simulators.faults().push(Fault::new("dojah", kind));
            let failed = look_up_bvn(app, BVN).await;
            assert_eq!(failed.failure(), (502, "bvn service is unavailable, please try again later"), "{kind:?}");
        }
        // Without credentials for the second register, only the first is queried.
        let mut only = account(app, "nigeria");
        for name in ["dojah_key", "dojah_app_id", "dojah_url"] {
            only["credentials"].as_object_mut().unwrap().remove(name);
        }
        app.operator(Method::PUT, "/providers/nigeria", only).await.data();
        app.simulators.faults().push(Fault::new("prembly", FaultKind::Error500));
        assert_eq!(look_up_bvn(app, BVN).await.failure().0, 502);
        look_up_bvn(app, BVN).await.data();
    }

    async fn an_uncovered_lookup_or_one_outside_the_plan_is_rejected(app: TestApp) {
        install(app, "nigeria", artifacts::NIGERIA).await;
        credit(app, 49, "first").await;
        let refused = look_up_bvn(app, BVN).await;
        assert_eq!(refused.failure(), (400, "insufficient balance, please top up your wallet."));
        let path = format!("/companies/{}", app.company.id);
        app.operator(Method::PATCH, &format!("{path}/prices"), json!({ "identity.nigeria.bvn": 49 })).await.data();
        look_up_bvn(app, BVN).await.data();
        assert_eq!(balance(app).await, json!(0));
        app.operator(Method::PUT, &format!("{path}/subscription"), json!({ "features": ["otp"] })).await.data();
        assert_eq!(look_up_bvn(app, BVN).await.failure(), (403, "your plan does not include identity"));
        assert_eq!(count_uids(app).await, 1);
    }

    async fn a_repeated_lookup_updates_the_record_of_its_user(app: TestApp) {
        set_up(app).await;
        let (ada, _) = (user(app, "ada").await, user(app, "bola").await);
        let look_up = async |user_id: &str| {
            app.post(LOOKUP, json!({ "bvn": BVN, "user_id": user_id })).await.data().clone()
        };
        let first = look_up("ada").await;
        assert_eq!((&first["user"], &first["user_id"]), (&ada["id"], &json!("ada")));
        app.advance(DAY).await;
        let again = look_up(ada["id"].as_str().unwrap()).await;
        assert_eq!((&again["id"], &again["user"], &again["user_id"]), (&first["id"], &ada["id"], &ada["id"]));
        assert_eq!((&again["created_at"], &again["details"]), (&first["created_at"], &first["details"]));
        assert_eq!(again["expires_at"], json!(NOW.plus_seconds(30 * DAY)));
        assert_eq!(again["updated_at"], json!(NOW.plus_seconds(DAY)));
        let other = [look_up("bola").await, look_up_bvn(app, BVN).await.data().clone()];
        assert!(other[0]["id"] != first["id"] && other[1]["id"] != first["id"] && other[0]["id"] != other[1]["id"]);
        let listed = app.get("/kyc/uid/list/ada").await;
        assert_eq!(status_and_message(&listed), (200, "Uids fetched successfully"));
        let of_list = merged(again, json!({ "otp_sent": null, "otp_error": null }));
        assert!(listed.data() == &json!([of_list]), "the list shows the record of the lookup");
        assert_eq!(app.get("/kyc/uid/list/nobody").await.failure(), (404, "user not found"));
    }

    async fn concurrent_equal_lookups_create_one_record_and_are_charged_each(app: TestApp) {
        set_up(app).await;
        let responses = join_all((0..6).map(|_| look_up_bvn(app, BVN))).await;
        let ids: std::collections::BTreeSet<String> = responses.iter().map(|response| response.data()["id"].to_string()).collect();
        assert_eq!((ids.len(), count_uids(app).await, balance(app).await), (1, 1, json!(10_000 - 6 * 50)));
    }

    async fn a_request_repeated_with_its_idempotency_key_is_charged_once(app: TestApp) {
        set_up(app).await;
        let send = async || {
            let request = app.client.post(format!("{}/api/v1{LOOKUP}", app.api)).bearer_auth(&app.company.key);
            reply(request.header("idempotency-key", "one").json(&json!({ "bvn": BVN }))).await
        };
        app.simulators.faults().push(Fault::new("prembly", FaultKind::Error500));
        app.simulators.faults().push(Fault::new("dojah", FaultKind::Error500));
        assert_eq!(send().await.failure().0, 502);
        let found = send().await.data().clone();
        assert_eq!(send().await.data(), &found);
        assert_eq!(balance(app).await, json!(9_950));
        // The response to a charged lookup is replayed, even if nothing was found.
        for (number, status) in [("12345670000", 404), (BVN, 409)] {
            let request = app.client.post(format!("{}/api/v1{LOOKUP}", app.api)).bearer_auth(&app.company.key);
            let missing = reply(request.header("idempotency-key", "two").json(&json!({ "bvn": number }))).await;
            assert_eq!(missing.failure().0, status);
            assert_eq!(balance(app).await, json!(9_900));
        }
        let request = app.client.post(format!("{}/api/v1{LOOKUP}", app.api)).bearer_auth(&app.company.key);
        let again = reply(request.header("idempotency-key", "two").json(&json!({ "bvn": "12345670000" }))).await;
        assert_eq!((again.failure(), balance(app).await), ((404, "bvn data not found"), json!(9_900)));
        assert_eq!(again.headers["idempotent-replayed"], "true");
    }

    async fn a_stored_response_expires_with_its_record(app: TestApp) {
        set_up(app).await;
        let first = look_up_bvn(app, BVN).await.data()["id"].clone();
        app.advance(30 * DAY - 3_600).await;
        let send = async || {
            let request = app.client.post(format!("{}/api/v1{LOOKUP}", app.api)).bearer_auth(&app.company.key);
            reply(request.header("idempotency-key", "one").json(&json!({ "bvn": BVN }))).await
        };
        let (run, replayed) = (send().await, send().await);
        assert_eq!((&run.data()["id"], replayed.data()), (&first, run.data()));
        assert_eq!(replayed.headers["idempotent-replayed"], "true");
        app.advance(3_600).await;
        let later = send().await;
        assert_ne!(later.data()["id"], first);
        assert!(!later.headers.contains_key("idempotent-replayed"));
        assert_eq!(balance(app).await, json!(10_000 - 3 * 50));
    }

    async fn a_matching_face_verifies_a_record_permanently(app: TestApp) {
        set_up(app).await;
        user(app, "ada").await;
        let compare = async |selfie: &str| {
            let body = json!({ "bvn": BVN, "user_id": "ada", "image": image(app, &format!("{selfie}-{BVN}")) });
            app.post("/kyc/nigeria/bvn/lookup/with-face", body).await
        };
        let other = compare("mismatch").await.data().clone();
        assert_eq!((&other["verified"], &other["verified_at"], &other["verified_by"]), (&json!(false), &Value::Null, &json!([])));
        assert_eq!(other["face_data"]["status"], false);
        assert_eq!(compare("noface").await.failure(), (400, "the image field must show a face"));
        app.advance(1).await;
        let same = compare("match").await.data().clone();
        assert_eq!((&same["verified"], &same["verified_at"], &same["verified_by"]), (&json!(true), &json!(NOW.plus_seconds(1)), &json!(["face_validation"])));
        let confidence = same["face_data"]["confidence"].as_f64().unwrap();
        assert!(same["face_data"]["status"] == true && (50.0..=100.0).contains(&confidence), "{}", same["face_data"]);
        let plain = app.post(LOOKUP, json!({ "bvn": BVN, "user_id": "ada" })).await.data().clone();
        assert_eq!(plain["face_data"], same["face_data"]);
        app.advance(1).await;
        let again = compare("mismatch").await.data().clone();
        assert_eq!((&again["verified"], &again["verified_at"], &again["face_data"]), (&json!(true), &same["verified_at"], &other["face_data"]));
        assert_eq!((count_uids(app).await, balance(app).await), (1, json!(10_000 - 4 * 100 - 50)));
    }

    async fn a_document_and_its_number_have_the_same_record(app: TestApp) {
        set_up(app).await;
        for (path, number) in [("drivers-license", "ABC12345XY67"), ("passport", "A01234567")] {
            let path = format!("/kyc/nigeria/{path}/lookup");
            let by_number = app.post(&path, json!({ "number": number })).await.data().clone();
            let document = image(app, &format!("document-{number}"));
            let by_document = app.post(&format!("{path}/image"), json!({ "image": document })).await.data().clone();
            assert_eq!(by_document["id"], by_number["id"], "{path}");
            let selfie = image(app, &format!("match-{number}"));
            let refused = app.post(&format!("{path}/image"), json!({ "image": selfie })).await;
            let (status, message) = refused.failure();
            assert!(status == 400 && message.starts_with("the image field must show"), "{message}");
        }
        assert_eq!(count_uids(app).await, 2);
    }

    async fn an_identity_type_can_be_disabled_for_everyone_or_for_one_company(app: TestApp) {
        set_up(app).await;
        let beta = app.new_company("Beta Lending").await;
        app.operator(Method::PATCH, "/prices", json!({ "identity.nigeria.bvn": 0 })).await.data();
        let of_company = format!("/companies/{}/identities", app.company.id);
        let switch = async |path: &str, active: bool| {
            let path = format!("{path}/nigeria/bvn");
            app.operator(Method::PUT, &path, json!({ "active": active })).await.data()["active"].clone()
        };
        let off = async |listed: Reply| -> Vec<String> {
            let all = listed.data().as_array().expect("a list").clone();
            assert_eq!(all.len(), 8);
            let off = all.into_iter().filter(|identity| identity["active"] == false);
            off.map(|identity| identity["identity_name"].as_str().expect("a name").to_owned()).collect()
        };
        let listed = async || {
            let ours = app.get("/kyc/identity/list").await;
            assert_eq!(status_and_message(&ours), (200, "Identities fetched successfully"));
            let seen = app.operator(Method::GET, &of_company, Value::Null).await;
            assert_eq!(ours.data(), seen.data());
            let everyones = app.operator(Method::GET, "/identities", Value::Null).await;
            (off(ours).await, off(everyones).await)
        };
        let none: Vec<String> = Vec::new();
        let one = vec!["nigeria.bvn".to_owned()];
        let disabled = (400, "bvn identity has been disabled, please try again later");
        let look_up = async || {
            let theirs = app.request(&beta, Method::POST, LOOKUP, Some(json!({ "bvn": BVN }))).await;
            (status_and_message(&look_up_bvn(app, BVN).await) == disabled, status_and_message(&theirs) == disabled)
        };
        assert_eq!((listed().await, look_up().await), ((none.clone(), none.clone()), (false, false)));
        assert_eq!(switch(&of_company, false).await, false);
        assert_eq!((listed().await, look_up().await), ((one.clone(), none.clone()), (true, false)));
        assert_eq!(switch("/identities", false).await, false);
        assert_eq!((listed().await, look_up().await), ((one.clone(), one.clone()), (true, true)));
        // Enabled for the company, but disabled for everyone.
        assert_eq!(switch(&of_company, true).await, false);
        assert_eq!((listed().await, look_up().await), ((one.clone(), one), (true, true)));
        assert_eq!(switch("/identities", true).await, true);
        assert_eq!((listed().await, look_up().await), ((none.clone(), none), (false, false)));
        app.post("/kyc/nigeria/nin/lookup", json!({ "nin": BVN })).await.data();
        let unknown = app.operator(Method::PUT, "/identities/nigeria/none", json!({ "active": true })).await;
        assert_eq!(unknown.failure(), (404, "identity type not found"));
    }

    async fn an_expired_record_is_hidden_and_then_deleted(app: TestApp) {
        set_up(app).await;
        user(app, "ada").await;
        let look_up = async || app.post(LOOKUP, json!({ "bvn": BVN, "user_id": "ada" })).await.data()["id"].clone();
        let first = look_up().await;
        // A repeated lookup does not extend the expiry.
        app.advance(29 * DAY).await;
        assert_eq!(look_up().await, first);
        app.advance(DAY - 1).await;
        assert_eq!((app.get("/kyc/uid/list/ada").await.data().as_array().unwrap().len(), count_uids(app).await), (1, 1));
        app.advance(1).await;
        assert_eq!(app.get("/kyc/uid/list/ada").await.data(), &json!([]));
        let uid = first.as_str().unwrap();
        assert_eq!(app.get(&format!("/kyc/uid/send-verification/{uid}")).await.failure(), (404, "uid not found"));
        assert_eq!(app.post(&format!("/kyc/uid/verify/{uid}"), json!({ "token": "123456" })).await.failure(), (404, "uid not found"));
        let again = app.post(LOOKUP, json!({ "bvn": BVN, "user_id": "ada" })).await.data().clone();
        assert_ne!(again["id"], first);
        assert_eq!(again["expires_at"], json!(NOW.plus_seconds(60 * DAY)));
        let advance = async |seconds: i64| {
            app.operator(Method::POST, "/clock/advance", json!({ "seconds": seconds })).await.data();
        };
        advance(0).await;
        assert_eq!(count_uids(app).await, 1);
        advance(31 * DAY).await;
        assert_eq!(count_uids(app).await, 0);
    }

    async fn a_country_can_be_added_to_a_running_host(app: TestApp) {
        credit(app, 1_000, "first").await;
        let path = "/kyc/ghana/ssnit/lookup";
        let send = async || app.post(path, json!({ "number": "C123456789012" })).await;
        let document = async || reply(app.client.get(format!("{}/openapi.json", app.api))).await.body["paths"].clone();
        assert_eq!(send().await.failure(), (404, "path not found"));
        assert_eq!(app.get("/kyc/identity/list").await.data(), &json!([]));
        assert!(document().await.get(format!("/api/v1{path}")).is_none());
        install(app, "ghana", artifacts::GHANA).await;
        let found = send().await;
        assert_eq!((status_and_message(&found), &found.data()["identity_name"]), ((200, "SSNIT lookup successful"), &json!("ghana.ssnit")));
        assert_eq!(found.data()["identity"], "7b6985c35fb3abc0c0ad0b31");
        let described = document().await[format!("/api/v1{path}")]["post"].clone();
        assert_eq!(described["requestBody"]["content"]["application/json"]["schema"]["required"], json!(["number"]));
        assert_eq!(described["operationId"], "identity.look_up.ghana.ssnit");
        let listed = app.get("/kyc/identity/list").await.data().clone();
        let ghana: Vec<&Value> = listed.as_array().unwrap().iter().filter(|identity| identity["countries"] == json!(["Ghana"])).collect();
        assert_eq!(ghana.len(), 4);
        for (path, body) in [
            ("passport/lookup", json!({ "number": "G0012345" })),
            ("drivers-license/lookup", json!({ "number": "ABC-12345678-90123" })),
            ("voters-card/lookup", json!({ "number": "9001234567" })),
            ("ssnit/lookup/with-face", json!({ "number": "C123456789012", "image": image(app, "match-C123456789012") })),
        ] {
            app.post(&format!("/kyc/ghana/{path}"), body).await.data();
        }
    }
}
