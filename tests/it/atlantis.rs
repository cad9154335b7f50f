//! Invalid results of a country plugin: they are reported as an outage, or clamped or dropped. The
//! lookup is charged.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    app::{Reply, TestApp},
    codes::{balance, credit},
    identity::count_uids,
};

const UNAVAILABLE: &str = "citizen service is unavailable, please try again later";

async fn set_up(app: &TestApp) {
    app.install(artifacts::ATLANTIS).await;
    let account = json!({ "credentials": {}, "active": true });
    app.operator(Method::PUT, "/providers/atlantis", account).await.data();
    credit(app, 1_000, "identities").await;
}

async fn look_up(app: &TestApp, way: &str, body: Value) -> Reply {
    app.post(&format!("/kyc/atlantis/citizen/{way}"), body).await
}

/// A request whose image passes for a JPEG and contains this text.
fn document(written: &str) -> Value {
    json!({ "image": STANDARD.encode([b"\xff\xd8\xff", written.as_bytes()].concat()) })
}

both! {
    async fn a_failed_or_invalid_lookup_gets_502_and_stores_nothing(app: TestApp) {
        set_up(app).await;
        let unusable = ["list", "broken", "deep", "large", "huge", "trap", "gossip", "unavailable", "misconfigured"];
        for (n, word) in (1..).zip(unusable) {
            let refused = look_up(app, "lookup", json!({ "number": word })).await;
            assert_eq!(refused.failure(), (502, UNAVAILABLE), "{word}");
            assert_eq!(balance(app).await, json!(1_000 - n * 10), "{word}");
        }
        for written in ["", "NO WORD", "two/words"] {
            let refused = look_up(app, "lookup/image", document(written)).await;
            assert_eq!(refused.failure(), (502, UNAVAILABLE), "{written}");
        }
        assert_eq!(count_uids(app).await, 0);
    }

    async fn a_rejected_lookup_gets_the_hosts_error_message(app: TestApp) {
        set_up(app).await;
        for (word, status, message) in [
            ("invalid", 400, "the number field must be one that the register accepts"),
            ("refused", 400, "citizen data cannot be disclosed"),
            ("not-found", 404, "citizen data not found"),
        ] {
            let refused = look_up(app, "lookup", json!({ "number": word })).await;
            assert_eq!(refused.failure(), (status, message), "{word}");
        }
        let refused = look_up(app, "lookup/image", document("invalid")).await;
        assert_eq!(refused.failure(), (400, "the image field must show a document that the register accepts"));
    }

    async fn out_of_range_values_are_clamped_or_dropped(app: TestApp) {
        set_up(app).await;
        let nowhere = look_up(app, "lookup", json!({ "number": "unreachable" })).await;
        let uid = nowhere.data();
        assert_eq!((&uid["email"], &uid["phone_number"]), (&Value::Null, &Value::Null));
        assert_eq!(uid["can_be_verified_by"], json!(["face_validation"]));

        let mut selfie = document("a face");
        selfie["number"] = json!("well");
        let compared = look_up(app, "lookup/with-face", selfie).await.data()["face_data"].clone();
        assert_eq!((&compared["status"], &compared["confidence"]), (&json!(true), &json!(100.0)));
        assert!(compared["message"].as_str().expect("a text").len() < 10_000);

        let read = look_up(app, "lookup/image", document("well")).await.data().clone();
        assert_eq!(read["details"], json!({ "first_name": "Critias" }));
        assert_eq!(count_uids(app).await, 2);
    }
}
