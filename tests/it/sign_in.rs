//! Signing in: invitations, passwords, one-time codes, sessions and their limits.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;
use totp_rs::{Builder, Secret};

use crate::{
    app::{OPERATOR_TOKEN, Reply, TestApp, reply},
    principals::{call, entries},
};

pub const PASSWORD: &str = "correct horse battery staple";
const REFUSED: (u16, &str) = (401, "the e-mail address, the password or the code is not valid");

/// A person and the secret of her authenticator app.
pub struct Person {
    pub id: String,
    pub email: String,
    pub secret: String,
}

impl Person {
    /// The code of her app, or of a later period.
    pub fn code(&self, app: &TestApp, periods: i64) -> String {
        code_at(&self.secret, app.app.clock.now().plus_seconds(30 * periods))
    }

    pub async fn sign_in(&self, app: &TestApp, password: &str, code: &str) -> Reply {
        sign_in(app, &self.email, password, code).await
    }
}

/// The code of a secret in base32 at a time.
pub fn code_at(secret: &str, at: Timestamp) -> String {
    let secret = Secret::try_from_base32(secret).expect("base32");
    let totp = Builder::new().with_secret(secret).build().expect("a secret");
    totp.generate(u64::try_from(at.unix_seconds()).expect("after 1970")).to_string()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

async fn post(app: &TestApp, path: &str, body: Value) -> Reply {
    reply(app.client.post(format!("{}/internal/v1{path}", app.internal)).json(&body)).await
}

async fn sign_in(app: &TestApp, email: &str, password: &str, code: &str) -> Reply {
    let body = json!({ "email": email, "password": password, "code": code });
    post(app, "/sign-in", body).await
}

pub async fn invite(app: &TestApp, id: &str) -> String {
    let invited = app.operator(Method::POST, &format!("/operators/{id}/invite"), Value::Null).await;
    text(invited.data(), "invitation").to_owned()
}

/// Creates a person with this role and lets her enrol. Returns her with her first session.
pub async fn enrol(app: &TestApp, name: &str, role: &str) -> (Person, String) {
    let email = format!("{name}@lender.example");
    let new = json!({ "name": name, "email": email, "roles": [role] });
    let id = text(app.operator(Method::POST, "/operators", new).await.data(), "id").to_owned();
    let invitation = invite(app, &id).await;
    let body = json!({ "invitation": invitation, "password": PASSWORD });
    let enrolled = post(app, "/sign-in/enrol", body).await.data().clone();
    let url = text(&enrolled, "totp_url");
    assert!(url.starts_with("otpauth://totp/Tollhouse:"), "{url}");
    let person = Person { id, email, secret: text(&enrolled, "totp_secret").to_owned() };
    let code = person.code(app, 0);
    let body = json!({
        "invitation": invitation, "enrolment": enrolled["enrolment"], "code": code,
    });
    let session = post(app, "/sign-in/confirm", body).await.data().clone();
    (person, text(&session, "session_token").to_owned())
}

async fn status(app: &TestApp, token: &str) -> u16 {
    call(app, token, Method::GET, "/me", Value::Null).await.status.as_u16()
}

both! {
    async fn a_person_enrols_signs_in_and_signs_out(app: TestApp) {
        let (ada, first) = enrol(app, "ada", "support-read").await;
        let me = call(app, &first, Method::GET, "/me", Value::Null).await.data().clone();
        assert_eq!((text(&me, "name"), text(&me, "id")), ("ada", &*ada.id));
        assert!(me["permissions"].as_array().is_some_and(|all| all.contains(&json!("payments.read"))));
        app.advance(30).await;
        let second = ada.sign_in(app, PASSWORD, &ada.code(app, 0)).await.data().clone();
        let second = text(&second, "session_token").to_owned();
        call(app, &first, Method::POST, "/sign-out", json!({})).await;
        assert_eq!([status(app, &first).await, status(app, &second).await], [401, 200]);
        app.advance(30).await;
        let third = ada.sign_in(app, PASSWORD, &ada.code(app, 0)).await.data().clone();
        let third = text(&third, "session_token").to_owned();
        call(app, &third, Method::POST, "/sign-out", json!({ "everywhere": true })).await;
        assert_eq!([status(app, &second).await, status(app, &third).await], [401, 401]);
        let actions = ["session.create", "session.end"].map(|action| entries(app, "/audit", action));
        let [created, ended] = futures::future::join_all(actions).await.try_into().expect("two");
        assert_eq!((created.len(), ended.len(), &created[0]["actor"]), (3, 2, &json!("ada")));
        assert_eq!(created[0]["address"], "127.0.0.1");
    }

    async fn sessions_end_when_idle_and_at_the_latest_after_twelve_hours(app: TestApp) {
        let (_, session) = enrol(app, "ada", "support-read").await;
        // Uses are recorded in the background.
        for _ in 0..12 * 3_600 / 1_500 {
            assert_eq!(status(app, &session).await, 200);
            app.app.tasks.wait_until_idle().await;
            app.advance(1_500).await;
        }
        assert_eq!(status(app, &session).await, 200);
        app.advance(1_500).await;
        assert_eq!(status(app, &session).await, 401);
        let (_, idle) = enrol(app, "ben", "support-read").await;
        app.advance(1_801).await;
        assert_eq!(status(app, &idle).await, 401);
    }

    async fn every_failed_sign_in_has_the_same_response(app: TestApp) {
        let (ada, session) = enrol(app, "ada", "support-read").await;
        let invited = json!({ "name": "ben", "email": "ben@lender.example", "roles": [] });
        let ben = app.operator(Method::POST, "/operators", invited).await.data().clone();
        let body = json!({ "invitation": invite(app, text(&ben, "id")).await, "password": PASSWORD });
        post(app, "/sign-in/enrol", body).await.data();
        let used = ada.code(app, 0);
        app.advance(30).await;
        let code = ada.code(app, 0);
        for (email, password, code) in [
            ("nobody@lender.example", PASSWORD, &*code),
            ("ben@lender.example", PASSWORD, &code), // invited, but not confirmed
            (&*ada.email, "wrong horse battery staple", &code),
            (&ada.email, PASSWORD, "000000"),
            (&ada.email, PASSWORD, &used),
            (&ada.email, "", &code),
        ] {
            let refused = sign_in(app, email, password, code).await;
            if !password.is_empty() {
                assert_eq!(refused.failure(), REFUSED, "{email} {password} {code}");
            } else {
                assert_eq!(refused.status, 400);
            }
        }
        // The operator of the deactivated account is treated as unknown.
        let path = format!("/operators/{}", ada.id);
        app.operator(Method::PATCH, &path, json!({ "active": false })).await.data();
        assert_eq!(ada.sign_in(app, PASSWORD, &code).await.failure(), REFUSED);
        assert_eq!(status(app, &session).await, 401);
        app.operator(Method::PATCH, &path, json!({ "active": true })).await.data();
        ada.sign_in(app, PASSWORD, &code).await.data();
        assert_eq!(ada.sign_in(app, PASSWORD, &code).await.failure(), REFUSED); // each code once
    }

    async fn repeated_failures_lock_the_account_and_limit_the_address(app: TestApp) {
        let (ada, _) = enrol(app, "ada", "support-read").await;
        app.advance(60).await;
        for _ in 0..5 {
            assert_eq!(ada.sign_in(app, "wrong horse battery staple", "000000").await.failure(), REFUSED);
        }
        assert_eq!(ada.sign_in(app, PASSWORD, &ada.code(app, 0)).await.failure(), REFUSED);
        app.advance(60).await;
        ada.sign_in(app, PASSWORD, &ada.code(app, 0)).await.data();
        let refused = entries(app, "/audit", "session.refuse").await;
        assert_eq!((refused.len(), &refused[0]["detail"]["failures"]), (5, &json!(5)));
        for _ in 0..40 {
            let last = sign_in(app, "eve@lender.example", "wrong horse battery staple", "000000").await;
            if last.status == 429 {
                assert!(last.headers.contains_key("retry-after"));
                return;
            }
        }
        panic!("40 attempts at once were allowed");
    }

    async fn an_invitation_is_used_once_and_replaces_the_password(app: TestApp) {
        let (ada, session) = enrol(app, "ada", "support-read").await;
        let (first, second) = (invite(app, &ada.id).await, invite(app, &ada.id).await);
        assert_eq!(status(app, &session).await, 401); // an invitation ends all sessions
        let ended = (401, "the invitation was used or has expired: request a new one");
        let body = |invitation: &str, password: &str| json!({ "invitation": invitation, "password": password });
        assert_eq!(post(app, "/sign-in/enrol", body(&first, PASSWORD)).await.failure(), ended);
        let short = post(app, "/sign-in/enrol", body(&second, "too short")).await;
        assert_eq!(short.failure(), (400, "the password field must be at least 12 characters long"));
        let other = "another horse battery staple";
        let enrolled = post(app, "/sign-in/enrol", body(&second, other)).await.data().clone();
        let ada = Person { secret: text(&enrolled, "totp_secret").to_owned(), ..ada };
        let confirm = async |code: &str| {
            let enrolment = &enrolled["enrolment"];
            let body = json!({ "invitation": second, "enrolment": enrolment, "code": code });
            post(app, "/sign-in/confirm", body).await
        };
        let foreign = json!({ "invitation": second, "enrolment": "v1.x", "code": "123456" });
        let foreign = post(app, "/sign-in/confirm", foreign).await;
        assert_eq!(foreign.failure(), (400, "the enrolment field must be that of the invitation"));
        let wrong = confirm("12345").await;
        assert_eq!(wrong.failure(), (400, "the code field must be the current code of the app"));
        let code = ada.code(app, 0);
        confirm(&code).await.data();
        assert_eq!(confirm(&code).await.failure(), ended);
        assert_eq!(entries(app, "/audit", "password.set").await.len(), 2);
        app.advance(30).await;
        assert_eq!(ada.sign_in(app, PASSWORD, &ada.code(app, 0)).await.failure(), REFUSED);
        ada.sign_in(app, other, &ada.code(app, 0)).await.data();
        // An invitation is no token, and ends after a day.
        let late = invite(app, &ada.id).await;
        assert_eq!(status(app, &late).await, 401);
        app.advance(24 * 3_600).await;
        assert_eq!(post(app, "/sign-in/enrol", body(&late, other)).await.failure(), ended);
        let service = json!({ "name": "service", "roles": [] });
        let service = app.operator(Method::POST, "/operators", service).await.data().clone();
        let path = format!("/operators/{}/invite", text(&service, "id"));
        let message = "the operator has no e-mail address, so it cannot sign in";
        assert_eq!(app.operator(Method::POST, &path, Value::Null).await.failure(), (400, message));
    }

    async fn passwords_and_codes_are_stored_sealed_or_hashed(app: TestApp) {
        let (ada, session) = enrol(app, "ada", "administrator").await;
        let rows: Vec<(String, String)> = app.app.store
            .read(async |tx| tx.sql("SELECT hash, totp_secret FROM operator_passwords").all().await)
            .await
            .expect("rows");
        assert!(rows[0].0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{rows:?}");
        assert!(rows[0].1.starts_with("v1.") && !rows[0].1.contains(&ada.secret), "{rows:?}");
        // An administrator who can sign in disables the configured token.
        assert_eq!(status(app, OPERATOR_TOKEN).await, 401);
        let log = call(app, &session, Method::GET, "/audit", Value::Null).await.body.to_string();
        for secret in [&*session, &*ada.secret, PASSWORD] {
            assert!(!log.contains(secret), "{log}");
        }
    }
}
