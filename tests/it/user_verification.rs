//! Verification of users' e-mail addresses and phone numbers.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store;

use crate::{
    app::{Reply, TestApp, reply},
    codes::{
        EMAIL, PHONE, balance, credit, different_code, latest_code, listed_messages, messages,
        set_prices, status_and_message, use_gateways,
    },
};

const WRONG: (u16, &str) = (400, "invalid or expired otp provided");

async fn create(app: &TestApp) -> Value {
    let user = json!({ "user_id": "ada", "first_name": "Ada", "last_name": "Obi", "email": EMAIL, "phone": PHONE });
    app.post("/user/create", user).await.data().clone()
}

async fn edit(app: &TestApp, change: Value) {
    app.request(&app.company, Method::PUT, "/user/edit/ada", Some(change)).await.data();
}

async fn send(app: &TestApp, what: &str) -> Reply {
    let sent = app.get(&format!("/user/{what}-verification/send/ada")).await;
    app.run_until_idle().await;
    sent
}

async fn verify(app: &TestApp, what: &str, token: &str) -> Reply {
    app.post(&format!("/user/{what}-verification/verify/ada"), json!({ "token": token })).await
}

async fn user(app: &TestApp) -> Value {
    app.get("/user/fetch/ada").await.data().clone()
}

/// Channel, flag, address and title of both verifications.
const BOTH: [(&str, &str, &str, &str); 2] =
    [("email", "email_verified", EMAIL, "Email"), ("phone", "phone_verified", PHONE, "Phone")];

both! {
    async fn a_code_verifies_only_the_address_it_was_sent_to(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        set_prices(app).await;
        credit(app, 100, "first").await;
        let mut expected = create(app).await;
        for ((what, flag, to, title), left) in BOTH.into_iter().zip([97.5, 93.5]) {
            let sent = send(app, what).await;
            assert_eq!(status_and_message(&sent), (200, &*format!("{title} verification token sent successfully")));
            assert_eq!(sent.headers["cache-control"], "no-store");
            assert!(sent.body["data"].is_null());
            assert_eq!(balance(app).await, json!(left));
            let code = latest_code(app, to, 6);
            assert_eq!(status_and_message(&verify(app, what, &different_code(&code)).await), WRONG);
            assert_eq!(user(app).await, expected);
            app.advance(1).await;
            let verified = verify(app, what, &code).await;
            assert_eq!(status_and_message(&verified), (200, &*format!("{title} verified successfully")));
            expected[flag] = json!(true);
            expected["updated_at"] = json!(app.app.clock.now());
            assert_eq!(user(app).await, expected);
            assert_eq!(status_and_message(&verify(app, what, &code).await), WRONG);
            assert_eq!(status_and_message(&send(app, what).await), (400, &*format!("{what} already verified")));
        }
        let mail = messages(app, EMAIL).remove(0);
        assert!(mail.text.contains("Hello Ada,") && mail.text.contains("10 minutes"), "{}", mail.text);
        let purposes: Vec<Value> = listed_messages(app).await.iter().map(|m| m["purpose"].clone()).collect();
        assert!(purposes.contains(&json!("user.email")) && purposes.contains(&json!("user.phone")));
    }

    async fn a_verification_without_address_or_user_is_rejected(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        create(app).await;
        edit(app, json!({ "email": null, "phone": "" })).await;
        for (what, message) in [
            ("email", "email address not found for this user"),
            ("phone", "phone number not found for this user"),
        ] {
            assert_eq!(status_and_message(&send(app, what).await), (400, message));
            assert_eq!(status_and_message(&verify(app, what, "123456").await), WRONG);
            assert_eq!(verify(app, what, "").await.failure(), (400, "the token field is required"));
            let missing = app.get(&format!("/user/{what}-verification/send/nobody")).await;
            assert_eq!(missing.failure(), (404, "user not found"));
            let missing = app.post(&format!("/user/{what}-verification/verify/nobody"), json!({ "token": "1" })).await;
            assert_eq!(missing.failure(), (404, "user not found"));
        }
        // The flag counts, even if it was set by an edit.
        edit(app, json!({ "email_verified": true })).await;
        assert_eq!(status_and_message(&send(app, "email").await), (400, "email already verified"));
        edit(app, json!({ "email_verified": false, "email": EMAIL })).await;
        assert_eq!(send(app, "email").await.status, 200);
    }

    async fn a_code_is_valid_for_ten_minutes_and_five_attempts(app: TestApp) {
        create(app).await;
        send(app, "email").await;
        app.advance(599).await;
        let late = latest_code(app, EMAIL, 6);
        app.advance(1).await;
        assert_eq!(status_and_message(&verify(app, "email", &late).await), WRONG);
        send(app, "email").await;
        let good = latest_code(app, EMAIL, 6);
        for _ in 0..4 {
            assert_eq!(status_and_message(&verify(app, "email", &different_code(&good)).await), WRONG);
        }
        let cancelled = (400, "too many invalid attempts, please request a new otp");
        for token in [different_code(&good), good] {
            assert_eq!(status_and_message(&verify(app, "email", &token).await), cancelled);
        }
        send(app, "email").await;
        assert_eq!(verify(app, "email", &latest_code(app, EMAIL, 6)).await.status, 200);
    }

    async fn a_code_is_bound_to_its_user_channel_and_address(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        create(app).await;
        let bola = json!({ "user_id": "bola", "first_name": "Bola", "last_name": "Obi", "email": "b@example.com", "phone": "+2348000000001" });
        app.post("/user/create", bola).await.data();
        send(app, "email").await;
        send(app, "phone").await;
        app.get("/user/email-verification/send/bola").await;
        app.run_until_idle().await;
        let (mailed, texted, theirs) = (latest_code(app, EMAIL, 6), latest_code(app, PHONE, 6), latest_code(app, "b@example.com", 6));
        for (what, token) in [("email", &texted), ("phone", &mailed), ("email", &theirs)] {
            if ![&mailed, &texted].contains(&token) || mailed != texted {
                assert_eq!(status_and_message(&verify(app, what, token).await), WRONG);
            }
        }
        // The code does not pass at `/otp/verify` either.
        let verified = app.post("/otp/verify", json!({ "identifier": user(app).await["id"], "token": mailed, "type": "email" })).await;
        assert_eq!(status_and_message(&verified), WRONG);
        // Another address needs its own code. After a change back, or in another case, the code is
        // valid.
        edit(app, json!({ "phone": "+2348000000002" })).await;
        assert_eq!(status_and_message(&verify(app, "phone", &texted).await), WRONG);
        edit(app, json!({ "phone": PHONE, "email": EMAIL.to_uppercase() })).await;
        assert_eq!(verify(app, "phone", &texted).await.status, 200);
        assert_eq!(verify(app, "email", &mailed).await.status, 200);
    }

    async fn a_head_request_sends_no_code(app: TestApp) {
        create(app).await;
        for what in ["email", "phone"] {
            let url = format!("{}/api/v1/user/{what}-verification/send/ada", app.api);
            let response = app.client.head(url).bearer_auth(&app.company.key).send().await.expect("a response");
            assert_eq!((response.status().as_u16(), &response.headers()["allow"]), (405, &"GET".parse().unwrap()));
        }
        assert!(listed_messages(app).await.is_empty());
    }

    async fn a_verification_whose_response_was_lost_runs_once(app: TestApp) {
        create(app).await;
        send(app, "email").await;
        let token = latest_code(app, EMAIL, 6);
        let verify = async |key: &str| {
            let request = app.client.post(format!("{}/api/v1/user/email-verification/verify/ada", app.api));
            let request = request.bearer_auth(&app.company.key).header("idempotency-key", key);
            reply(request.json(&json!({ "token": token }))).await
        };
        assert_eq!(verify("k").await.status, 200);
        let lost: store::Result<u64> = app.app.store.write(async |tx| {
            tx.sql("UPDATE idempotency_keys SET answer = NULL, lease_until = 0").run().await
        }).await;
        assert_eq!(lost.expect("a statement"), 1);
        // It does not verify another address.
        edit(app, json!({ "email": "new@example.com", "email_verified": false })).await;
        assert_eq!(status_and_message(&verify("k").await), WRONG);
        assert_eq!(user(app).await["email_verified"], false);
        edit(app, json!({ "email": EMAIL })).await;
        assert_eq!(verify("k").await.status, 200);
        assert_eq!(user(app).await["email_verified"], true);
    }
}
