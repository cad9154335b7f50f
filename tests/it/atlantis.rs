//! A country whose registers say what no register may: it costs its caller the price, and nothing else comes of it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    app::{Reply, TestApp},
    codes::{balance, credit},
    identity::kept,
};

const OUT_OF_ORDER: &str = "citizen service is unavailable, please try again later";

async fn set_up(app: &TestApp) {
    app.install(artifacts::ATLANTIS).await;
    let account = json!({ "credentials": {}, "active": true });
    app.operator(Method::PUT, "/providers/atlantis", account).await.data();
    credit(app, 1_000, "identities").await;
}

async fn look_up(app: &TestApp, way: &str, body: Value) -> Reply {
    app.post(&format!("/kyc/atlantis/citizen/{way}"), body).await
}

/// A JPEG to the host, on which this is written.
fn document(written: &str) -> Value {
    json!({ "image": STANDARD.encode([b"\xff\xd8\xff", written.as_bytes()].concat()) })
}

both! {
    async fn what_a_register_may_not_say_is_an_outage(app: TestApp) {
        set_up(app).await;
        let unusable = ["list", "broken", "deep", "large", "huge", "trap", "gossip", "unavailable", "misconfigured"];
        for (n, word) in (1..).zip(unusable) {
            let refused = look_up(app, "lookup", json!({ "number": word })).await;
            assert_eq!(refused.failure(), (502, OUT_OF_ORDER), "{word}");
            assert_eq!(balance(app).await, json!(1_000 - n * 10), "{word}");
        }
        for written in ["", "NO WORD", "two/words"] {
            let refused = look_up(app, "lookup/image", document(written)).await;
            assert_eq!(refused.failure(), (502, OUT_OF_ORDER), "{written}");
        }
        assert_eq!(kept(app).await, 0);
    }

    async fn what_it_refuses_is_told_in_the_hosts_words(app: TestApp) {
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

    async fn what_is_more_than_can_be_is_cut(app: TestApp) {
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
        assert_eq!(kept(app).await, 2);
    }
}
