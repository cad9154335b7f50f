//! Verification of UID records with codes sent to the addresses on record.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    app::{NOW, Reply, TestApp},
    codes::{
        balance, credit, different_code, latest_code, listed_messages, messages, set_prices,
        status_and_message, use_gateways,
    },
    identity::{BVN, install, set_up},
};

const INVALID: (u16, &str) = (400, "invalid token");

async fn look_up(app: &TestApp, number: &str, send_otp: bool) -> Reply {
    let body = json!({ "bvn": number, "send_otp": send_otp });
    let found = app.post("/kyc/nigeria/bvn/lookup", body).await;
    app.run_until_idle().await;
    found
}

fn text<'v>(uid: &'v Value, field: &str) -> &'v str {
    uid[field].as_str().expect(field)
}

async fn send(app: &TestApp, uid: &Value) -> Reply {
    let sent = app.get(&format!("/kyc/uid/send-verification/{}", text(uid, "id"))).await;
    app.run_until_idle().await;
    sent
}

async fn verify(app: &TestApp, uid: &Value, token: &str) -> Reply {
    app.post(&format!("/kyc/uid/verify/{}", text(uid, "id")), json!({ "token": token })).await
}

async fn look_up_again(app: &TestApp, number: &str) -> Value {
    look_up(app, number, false).await.data().clone()
}

both! {
    async fn a_code_goes_to_both_addresses_on_record_and_verifies(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        set_up(app).await;
        set_prices(app).await;
        let uid = look_up(app, BVN, true).await.data().clone();
        assert_eq!((&uid["otp_sent"], &uid["otp_error"]), (&json!(true), &Value::Null));
        assert_eq!(text(&uid, "email"), format!("{BVN}@people.example"));
        assert_eq!(balance(app).await, json!(10_000.0 - 50.0 - 2.5 - 4.0));
        let sent = latest_code(app, text(&uid, "email"), 6);
        assert_eq!(latest_code(app, text(&uid, "phone_number"), 6), sent);
        assert_eq!(status_and_message(&verify(app, &uid, &different_code(&sent)).await), INVALID);
        assert_eq!(look_up_again(app, BVN).await["verified"], false);
        app.advance(1).await;
        assert_eq!(status_and_message(&verify(app, &uid, &sent).await), (200, "Uid verified successfully"));
        let verified = look_up_again(app, BVN).await;
        assert_eq!((&verified["verified"], &verified["verified_by"], &verified["verified_at"]), (&json!(true), &json!(["otp"]), &json!(NOW.plus_seconds(1))));
        assert_eq!(status_and_message(&verify(app, &uid, &sent).await), INVALID);
        // A verified record can be verified again, and keeps its time of verification.
        assert_eq!(status_and_message(&send(app, &uid).await), (200, "Verification token sent successfully"));
        assert_eq!(status_and_message(&verify(app, &uid, &latest_code(app, text(&uid, "email"), 6)).await).0, 200);
        assert_eq!(look_up_again(app, BVN).await["verified_at"], verified["verified_at"]);
    }

    async fn a_code_is_valid_for_ten_minutes_and_five_attempts(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        set_up(app).await;
        let uid = look_up(app, BVN, false).await.data().clone();
        assert!(messages(app, text(&uid, "email")).is_empty());
        assert_eq!(status_and_message(&verify(app, &uid, "123456").await), INVALID);
        send(app, &uid).await;
        let sent = latest_code(app, text(&uid, "email"), 6);
        app.advance(600).await;
        assert_eq!(status_and_message(&verify(app, &uid, &sent).await), INVALID);
        send(app, &uid).await;
        let sent = latest_code(app, text(&uid, "email"), 6);
        for _ in 0..5 {
            assert_eq!(status_and_message(&verify(app, &uid, &different_code(&sent)).await), INVALID);
        }
        assert_eq!(status_and_message(&verify(app, &uid, &sent).await), INVALID);
        assert_eq!(verify(app, &uid, "").await.failure(), (400, "the token field is required"));
        assert_eq!(look_up_again(app, BVN).await["verified"], false);
    }

    async fn a_record_without_addresses_cannot_be_verified_by_otp(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        set_up(app).await;
        let hidden = look_up(app, "12345676666", true).await;
        assert_eq!(status_and_message(&hidden), (200, "BVN lookup successful"));
        assert_eq!((&hidden.data()["otp_sent"], &hidden.data()["otp_error"]), (&json!(false), &Value::Null));
        let firm = app.post("/kyc/nigeria/cac/lookup", json!({ "number": "1234567", "send_otp": true })).await;
        assert_eq!(status_and_message(&firm), (200, "CAC lookup successful"));
        app.run_until_idle().await;
        assert!(app.simulators.mailbox().list(None).is_empty());
        for uid in [hidden.data(), firm.data()] {
            assert!(!uid["can_be_verified_by"].to_string().contains("otp"), "{uid}");
            assert_eq!(send(app, uid).await.failure(), (400, "uid cannot be verified by otp"));
            assert_eq!(verify(app, uid, "123456").await.failure(), (400, "uid cannot be verified by otp"));
        }
        assert_eq!(app.get("/kyc/uid/send-verification/nothing").await.failure(), (404, "uid not found"));
        assert_eq!(balance(app).await, json!(10_000 - 2 * 50));
    }

    async fn a_record_can_be_verified_by_both_methods(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        set_up(app).await;
        let selfie = format!("{}/images/match-{BVN}.jpg", app.simulators.url());
        let body = json!({ "bvn": BVN, "image": selfie, "send_otp": true });
        let uid = app.post("/kyc/nigeria/bvn/lookup/with-face", body).await.data().clone();
        app.run_until_idle().await;
        assert_eq!(uid["verified_by"], json!(["face_validation"]));
        let sent = latest_code(app, text(&uid, "phone_number"), 6);
        assert_eq!(verify(app, &uid, &sent).await.status, 200);
        let both = look_up_again(app, BVN).await;
        assert_eq!((&both["verified_by"], &both["verified_at"]), (&json!(["face_validation", "otp"]), &uid["verified_at"]));
    }

    async fn a_lookup_succeeds_even_if_no_code_can_be_sent(app: TestApp) {
        install(app, "nigeria", artifacts::NIGERIA).await;
        set_prices(app).await;
        credit(app, 51, "first").await;
        let found = look_up(app, BVN, true).await;
        let uid = found.data().clone();
        assert_eq!(found.body["message"], "BVN lookup successful");
        assert_eq!((&uid["otp_sent"], &uid["otp_error"]), (&json!(false), &json!("insufficient balance, please top up your wallet.")));
        let noted: Vec<Value> = listed_messages(app).await;
        assert!(noted.iter().all(|message| message["purpose"] == "identity" && message["reason"] == "insufficient balance"));
        assert_eq!(noted.len(), 1);
        assert_eq!(send(app, &uid).await.failure(), (400, "insufficient balance, please top up your wallet."));
        credit(app, 10, "second").await;
        // No gateway is installed, so only the e-mail is sent.
        assert_eq!(send(app, &uid).await.status, 200);
        assert_eq!((messages(app, text(&uid, "email")).len(), messages(app, text(&uid, "phone_number")).len()), (1, 0));
        assert_eq!(balance(app).await, json!(8.5));
    }

    async fn a_company_cannot_verify_the_record_of_another(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        set_up(app).await;
        let uid = look_up(app, BVN, true).await.data().clone();
        let sent = latest_code(app, text(&uid, "email"), 6);
        let beta = app.new_company("Beta Lending").await;
        let path = format!("/kyc/uid/verify/{}", text(&uid, "id"));
        let refused = app.request(&beta, Method::POST, &path, Some(json!({ "token": sent }))).await;
        assert_eq!(refused.failure(), (404, "uid not found"));
        assert_eq!(verify(app, &uid, &sent).await.status, 200);
    }
}
