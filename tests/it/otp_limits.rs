//! Rate limits of sending and verifying codes, allowed countries, and the alarm for operators.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    app::{Engine, Reply, TestApp},
    codes::{
        EMAIL, VERIFIED, WRONG_CODE, different_code, edit_company, email_request, latest_code,
        listed_messages, send, send_ok, sms_request, status_and_message, use_gateways, verify,
    },
};

/// Checks a 429 response and returns its seconds to wait.
#[track_caller]
fn throttled(reply: &Reply) -> u64 {
    let seconds = reply.headers["retry-after"].to_str().expect("a text").parse().expect("seconds");
    let message = format!("too many requests, try again in {seconds} seconds");
    assert_eq!(reply.failure(), (429, &*message));
    seconds
}

/// Sends until one is refused. Returns the number of accepted sends, and the seconds to wait.
async fn until_refused(app: &TestApp, body: impl Fn(usize) -> Value) -> (usize, u64) {
    for n in 0..1_000 {
        let sent = app.post("/otp/send", body(n)).await;
        if sent.status != 200 {
            return (n, throttled(&sent));
        }
    }
    panic!("nothing was refused");
}

both! {
    async fn a_destination_gets_at_most_sixty_codes_an_hour(app: TestApp) {
        let request_of = |n: usize| email_request(json!({ "identifier": format!("login-{n}") }));
        let shouted = |n: usize| {
            // Addresses are compared without case.
            let email = if n.is_multiple_of(2) { EMAIL.to_owned() } else { EMAIL.to_uppercase() };
            email_request(json!({ "identifier": format!("login-{n}"), "email": email }))
        };
        assert_eq!(until_refused(app, shouted).await, (60, 60));
        send_ok(app, email_request(json!({ "email": "bea@example.com" }))).await;
        let beta = app.new_company("Beta Lending").await;
        let others = app.request(&beta, Method::POST, "/otp/send", Some(request_of(0))).await;
        assert_eq!(others.status, 200, "{}", others.body);
        app.advance(60).await;
        assert_eq!(until_refused(app, request_of).await, (1, 60));
        app.advance(3_600).await;
        assert_eq!(until_refused(app, request_of).await, (60, 60));
        app.run_until_idle().await;
    }

    async fn a_phone_number_gets_at_most_ten_codes_an_hour(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        let request_of = |n: usize| sms_request(json!({ "identifier": format!("login-{n}") }));
        assert_eq!(until_refused(app, request_of).await, (10, 360));
        // Other numbers and e-mail are not affected.
        send_ok(app, sms_request(json!({ "phone": "+2348031234568" }))).await;
        send_ok(app, email_request(json!({}))).await;
        app.advance(360).await;
        assert_eq!(until_refused(app, request_of).await, (1, 360));
        app.run_until_idle().await;
    }

    async fn resending_does_not_evade_the_limit_of_wrong_attempts(app: TestApp) {
        for round in 0..6 {
            send_ok(app, email_request(json!({}))).await;
            let wrong = different_code(&latest_code(app, EMAIL, 6));
            for n in 1..=5 {
                assert_eq!(verify(app, &wrong).await.status, 400, "round {round}, attempt {n}");
            }
            app.advance(60).await;
        }
        send_ok(app, email_request(json!({}))).await;
        let token = latest_code(app, EMAIL, 6);
        // The first of thirty wrong attempts counts for an hour.
        assert_eq!(throttled(&verify(app, &token).await), 3_600 - 6 * 60);
        assert_eq!(status_and_message(&verify_other_type(app).await), WRONG_CODE);
        app.advance(3_600 - 6 * 60).await;
        send_ok(app, email_request(json!({}))).await;
        assert_eq!(status_and_message(&verify(app, &latest_code(app, EMAIL, 6)).await), VERIFIED);
    }

    async fn numbers_of_other_countries_are_rejected_without_cost(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        for bad in [json!(["234"]), json!(["+0"]), json!(["+23a"]), json!("+234")] {
            let refused = edit_company(app, &app.company, json!({ "sms_prefixes": bad })).await;
            assert!(refused.failure().1.starts_with("the sms_prefixes field must be"), "{bad}");
        }
        for bad in [json!(["Nigeria"]), json!(["ng"]), json!(["XX"]), json!([]), json!("NG")] {
            let refused = edit_company(app, &app.company, json!({ "countries": bad })).await;
            assert!(refused.failure().1.starts_with("the countries field must be"), "{bad}");
            let made = json!({ "name": "Beta Lending", "server": "test", "countries": bad });
            let refused = app.operator(Method::POST, "/companies", made).await;
            assert!(refused.failure().1.starts_with("the countries field must be"), "{bad}");
        }
        let to = |phone: &str| sms_request(json!({ "phone": phone }));
        let (home, ghana, states, jamaica) = ("+2348031234567", "+233201234567", "+12025550123", "+18765550123");
        let satellite = "+881612345678";
        let only = |countries: &str| format!("the phone field must be a number in one of these countries: {countries}");
        let begins = "the phone field must begin with one of +234, +233".to_owned();
        for (change, refusal, allowed, refused) in [
            (json!({}), only("NG"), &[home][..], &[ghana, states, satellite][..]),
            (json!({ "countries": ["GH", "US"] }), only("GH, US"), &[ghana, states], &[home, jamaica, satellite]),
            (json!({ "countries": null }), only("NG"), &[home], &[ghana]),
            (json!({ "sms_prefixes": ["+234", "+233"] }), begins, &[home, ghana], &[states, satellite]),
            (json!({ "sms_prefixes": ["+"] }), String::new(), &[home, ghana, states, satellite], &[]),
            (json!({ "sms_prefixes": null }), only("NG"), &[home], &[states]),
        ] {
            edit_company(app, &app.company, change.clone()).await.data();
            let before = listed_messages(app).await.len();
            for phone in refused {
                assert_eq!(send(app, to(phone)).await.failure(), (400, &*refusal), "{change} {phone}");
            }
            assert_eq!(listed_messages(app).await.len(), before);
            for phone in allowed {
                send_ok(app, to(phone)).await;
            }
        }
    }
}

#[tokio::test]
async fn settings_limit_countries_and_sends() {
    let flags = ["--sms-countries=KE,GH", "--otp-sms-per-hour=0", "--otp-sends-per-hour=3"];
    let app = TestApp::start_with(Engine::Sqlite, &flags).await;
    use_gateways(&app, &["termii"]).await;
    let message = "the phone field must be a number in one of these countries: KE, GH";
    assert_eq!(send(&app, sms_request(json!({}))).await.failure(), (400, message));
    let kenyan = |n: usize| {
        sms_request(json!({ "phone": "+254712345678", "identifier": format!("login-{n}") }))
    };
    // The limit of destinations applies to phone numbers, too.
    assert_eq!(until_refused(&app, kenyan).await, (3, 1_200));
    let own = json!({ "name": "Own", "server": "test", "countries": ["NG"] });
    let own = app.operator(Method::POST, "/companies", own).await.data().clone();
    assert_eq!(own["countries"], json!(["NG"]));
    app.run_until_idle().await;
    app.finish().await;
}

async fn verify_other_type(app: &TestApp) -> Reply {
    let body = json!({ "identifier": "login", "type": "other", "token": "123456" });
    app.post("/otp/verify", body).await
}

#[tokio::test]
async fn each_company_has_its_own_limit() {
    let flags = ["--otp-company-sends-per-hour=5", "--otp-sends-per-hour=0"];
    let app = TestApp::start_with(Engine::Sqlite, &flags).await;
    let to = |n: usize| email_request(json!({ "email": format!("to{n}@example.com") }));
    assert_eq!(until_refused(&app, to).await, (5, 720));
    let beta = app.new_company("Beta Lending").await;
    let others = app.request(&beta, Method::POST, "/otp/send", Some(to(0))).await;
    assert_eq!(others.status, 200, "{}", others.body);
    app.run_until_idle().await;
    app.finish().await;
}

/// The alarm events for operators.
async fn alarms(app: &TestApp) -> Vec<Value> {
    let path = "/events?kind=otp.few_verified";
    app.operator(Method::GET, path, Value::Null).await.data()["events"]
        .as_array()
        .expect("a list")
        .clone()
}

both! {
    async fn operators_get_an_alarm_if_few_codes_are_verified(app: TestApp) {
        let send_to = async |n: usize, verified: bool| {
            let (identifier, email) = (format!("login-{n}"), format!("to{n}@example.com"));
            send_ok(app, email_request(json!({ "identifier": identifier, "email": email }))).await;
            if verified {
                let body = json!({ "identifier": identifier, "token": latest_code(app, &email, 6) });
                assert_eq!(status_and_message(&app.post("/otp/verify", body).await), VERIFIED);
            }
        };
        // A fifth is enough.
        for n in 0..100 {
            send_to(n, n % 5 == 0).await;
        }
        app.advance(2 * 3_600).await;
        assert!(alarms(app).await.is_empty());
        for n in 100..200 {
            send_to(n, n % 5 == 0 && n < 195).await;
        }
        app.advance(2 * 3_600).await;
        let alarms = alarms(app).await;
        assert_eq!(alarms.len(), 1, "{alarms:?}");
        assert_eq!(alarms[0]["company_id"], app.company.id.as_str());
        let data = &alarms[0]["data"];
        assert_eq!((&data["sent"], &data["verified"]), (&json!(100), &json!(19)));
    }
}
