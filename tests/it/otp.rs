//! One-time passwords: sending and verifying, for each row of the specification's tables.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store;

use crate::{
    app::{Company, Engine, NOW, TestApp, reply},
    codes::{
        CANCELLED, EMAIL, PHONE, VERIFIED, WRONG_CODE, balance, credit, different_code,
        edit_company, email_request, latest_code, listed_messages, merged, messages, send, send_ok,
        set_prices, sms_request, status_and_message, use_gateways, verify,
    },
};

/// Numbers of rows in the tables that a send writes, except messages and rate limits.
async fn rows(app: &TestApp) -> Vec<i64> {
    let mut counts = Vec::new();
    for sql in [
        "SELECT COUNT(*) FROM otp_codes",
        "SELECT COUNT(*) FROM otp_counts",
        "SELECT COUNT(*) FROM jobs",
        "SELECT COUNT(*) FROM ledger_entries",
    ] {
        let count = async |tx: &mut store::Tx| tx.sql(sql).one::<(i64,)>().await;
        counts.push(app.app.store.read(count).await.expect("a count").0);
    }
    counts
}

both! {
    async fn a_code_is_sent_once_per_channel_and_passes_once(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        set_prices(app).await;
        credit(app, 100, "first").await;
        let both = json!({ "channels": ["email", "sms", "email", "sms"], "phone": PHONE });
        send_ok(app, email_request(both)).await;
        assert_eq!((messages(app, EMAIL).len(), messages(app, PHONE).len()), (1, 1));
        let token = latest_code(app, EMAIL, 6);
        assert_eq!(latest_code(app, PHONE, 6), token);
        assert_eq!(balance(app).await, 93.5);
        assert_eq!(status_and_message(&verify(app, &token).await), VERIFIED);
        assert_eq!(status_and_message(&verify(app, &token).await), WRONG_CODE);
        assert_eq!(balance(app).await, 93.5);
        // An address that no requested channel uses is ignored.
        send_ok(app, sms_request(json!({ "email": EMAIL }))).await;
        assert_eq!((messages(app, EMAIL).len(), messages(app, PHONE).len()), (1, 2));
        assert_eq!(balance(app).await, 89.5);
        for nonsense in [json!("nobody"), json!(5), json!({ "a": [] })] {
            send_ok(app, sms_request(json!({ "email": nonsense }))).await;
            send_ok(app, email_request(json!({ "phone": nonsense }))).await;
        }
        assert_eq!((messages(app, EMAIL).len(), messages(app, PHONE).len()), (4, 5));
    }

    async fn an_invalid_send_gets_400_for_its_first_wrong_field_and_has_no_effect(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        let long = "x".repeat(256);
        let rows = [
            (json!({ "identifier": null }), "the identifier field is required"),
            (json!({ "identifier": "" }), "the identifier field is required"),
            (json!({ "identifier": 5 }), "the identifier field must be a string"),
            (json!({ "identifier": long }), "the identifier field must be at most 255 characters"),
            (json!({ "channels": null }), "the channels field is required"),
            (json!({ "channels": [] }), "the channels field is required"),
            (json!({ "channels": ["fax"] }), "the channels field must be any of email, sms"),
            (json!({ "channels": ["email", "fax"] }), "the channels field must be any of email, sms"),
            (json!({ "channels": "email" }), "the channels field must be a list of at most 100 strings"),
            (json!({ "email": null }), "the email field is required"),
            (json!({ "email": "" }), "the email field is required"),
            (json!({ "email": "ada" }), "the email field must be a valid email address"),
            (json!({ "channels": ["sms"] }), "the phone field is required"),
            (json!({ "channels": ["email", "sms"] }), "the phone field is required"),
            (json!({ "channels": ["sms"], "phone": "08031234567" }), "the phone field must be a phone number in E.164 format"),
            (json!({ "type": 1 }), "the type field must be a string"),
            (json!({ "exp": 0 }), "the exp field must be a whole number from 1 to 60"),
            (json!({ "exp": 61 }), "the exp field must be a whole number from 1 to 60"),
            (json!({ "exp": 1.5 }), "the exp field must be a whole number from 1 to 60"),
            (json!({ "exp": "5" }), "the exp field must be a whole number from 1 to 60"),
            (json!({ "length": 3 }), "the length field must be a whole number from 4 to 8"),
            (json!({ "length": 9 }), "the length field must be a whole number from 4 to 8"),
            (json!({ "metadata": "x" }), "the metadata field must be an object"),
            (json!({ "metadata": { "name": 5 } }), "the metadata.name field must be a string"),
            (json!({ "metadata": { "body": [] } }), "the metadata.body field must be a string"),
            (json!({ "metadata": { "header": "\u{7}" } }), "the metadata.header field must be free of control characters"),
            (json!({ "identifier": null, "channels": null, "exp": 0 }), "the identifier field is required"),
            (json!({ "email": null, "exp": 0, "length": 0 }), "the email field is required"),
        ];
        for (change, message) in rows {
            let refused = send(app, email_request(change.clone())).await;
            assert_eq!(refused.failure(), (400, message), "{change}");
        }
        assert_eq!(listed_messages(app).await, Vec::<Value>::new());
        assert!(app.simulators.mailbox().list(None).is_empty());
    }

    async fn an_invalid_verification_gets_400(app: TestApp) {
        send_ok(app, email_request(json!({}))).await;
        let token = latest_code(app, EMAIL, 6);
        let rows = [
            (json!({ "identifier": null }), "the identifier field is required"),
            (json!({ "token": null }), "the token field is required"),
            (json!({ "token": "" }), "the token field is required"),
            (json!({ "token": 123456 }), "the token field must be a string"),
            (json!({ "identifier": null, "token": null }), "the identifier field is required"),
            (json!({ "type": 5, "token": null }), "the type field must be a string"),
            // Compared with the stored values, without format checks.
            (json!({ "token": "x" }), WRONG_CODE.1),
            (json!({ "token": format!("{token} ") }), WRONG_CODE.1),
            (json!({ "token": format!("{token}\n") }), WRONG_CODE.1),
            (json!({ "token": "1".repeat(300) }), WRONG_CODE.1),
            (json!({ "identifier": "Login" }), WRONG_CODE.1),
            (json!({ "identifier": "somebody" }), WRONG_CODE.1),
            (json!({ "type": "payment" }), WRONG_CODE.1),
        ];
        let right = json!({ "identifier": "login", "token": token });
        for (change, message) in rows {
            let refused = app.post("/otp/verify", merged(right.clone(), change.clone())).await;
            assert_eq!(refused.failure(), (400, message), "{change}");
        }
        assert_eq!(status_and_message(&verify(app, &token).await), VERIFIED);
    }

    async fn the_fifth_wrong_attempt_cancels_a_code(app: TestApp) {
        for (wrong, then) in [(4, VERIFIED), (5, CANCELLED)] {
            send_ok(app, email_request(json!({}))).await;
            let token = latest_code(app, EMAIL, 6);
            for n in 1..=wrong {
                let refused = verify(app, &different_code(&token)).await;
                assert_eq!(status_and_message(&refused), if n < 5 { WRONG_CODE } else { CANCELLED }, "attempt {n}");
            }
            assert_eq!(status_and_message(&verify(app, &token).await), then, "after {wrong} wrong attempts");
        }
        // A code stays cancelled until it expires.
        app.advance(299).await;
        assert_eq!(status_and_message(&verify(app, "000000").await), CANCELLED);
        app.advance(1).await;
        assert_eq!(status_and_message(&verify(app, "000000").await), WRONG_CODE);
        // A new code has five attempts of its own.
        send_ok(app, email_request(json!({}))).await;
        assert_eq!(status_and_message(&verify(app, &latest_code(app, EMAIL, 6)).await), VERIFIED);
    }

    async fn a_code_is_valid_until_it_expires(app: TestApp) {
        for (exp, minutes) in [(json!({}), 5), (json!({ "exp": 1 }), 1), (json!({ "exp": 60 }), 60)] {
            send_ok(app, email_request(exp.clone())).await;
            app.advance(minutes * 60 - 1).await;
            assert_eq!(status_and_message(&verify(app, &latest_code(app, EMAIL, 6)).await), VERIFIED, "{exp}");
            send_ok(app, email_request(exp.clone())).await;
            app.advance(minutes * 60).await;
            assert_eq!(status_and_message(&verify(app, &latest_code(app, EMAIL, 6)).await), WRONG_CODE, "{exp}");
        }
    }

    async fn a_code_has_the_requested_length(app: TestApp) {
        for length in 4..=8_usize {
            send_ok(app, email_request(json!({ "length": length }))).await;
            assert_eq!(status_and_message(&verify(app, &latest_code(app, EMAIL, length)).await), VERIFIED, "{length}");
        }
    }

    async fn a_new_code_replaces_the_former_one(app: TestApp) {
        send_ok(app, email_request(json!({}))).await;
        let first = latest_code(app, EMAIL, 6);
        send_ok(app, email_request(json!({ "length": 8 }))).await;
        assert_eq!(status_and_message(&verify(app, &first).await), WRONG_CODE);
        assert_eq!(status_and_message(&verify(app, &latest_code(app, EMAIL, 8)).await), VERIFIED);
    }

    async fn codes_are_separate_by_company_identifier_and_type(app: TestApp) {
        let beta = app.new_company("Beta Lending").await;
        let keys: Vec<(&Company, &str, &str, String)> = [
            (&app.company, "login", "otp"),
            (&app.company, "login", "payment"),
            (&app.company, "logout", "otp"),
            (&beta, "login", "otp"),
        ]
        .into_iter()
        .enumerate()
        .map(|(n, (company, identifier, kind))| (company, identifier, kind, format!("to{n}@example.com")))
        .collect();
        for (company, identifier, kind, email) in &keys {
            let body = json!({ "identifier": identifier, "channels": ["email"], "email": email, "type": kind, "length": 8 });
            let sent = app.request(company, Method::POST, "/otp/send", Some(body)).await;
            assert_eq!(sent.status, 200, "{}", sent.body);
        }
        app.run_until_idle().await;
        let tries = |token: String| {
            let keys = &keys;
            async move {
                let mut passed = Vec::new();
                for (n, (company, identifier, kind, _)) in keys.iter().enumerate() {
                    let body = json!({ "identifier": identifier, "type": kind, "token": token });
                    let tried = app.request(company, Method::POST, "/otp/verify", Some(body)).await;
                    passed.extend((tried.status == 200).then_some(n));
                }
                passed
            }
        };
        for (n, (.., email)) in keys.iter().enumerate() {
            assert_eq!(tries(latest_code(app, email, 8)).await, [n], "each code passes for its own key only");
        }
    }

    async fn one_of_many_concurrent_verifications_passes(app: TestApp) {
        for _ in 0..3 {
            send_ok(app, email_request(json!({}))).await;
            let token = latest_code(app, EMAIL, 6);
            let tries = join_all((0..12).map(|_| verify(app, &token))).await;
            let passed = tries.iter().filter(|tried| status_and_message(tried) == VERIFIED).count();
            let wrong = tries.iter().filter(|tried| status_and_message(tried) == WRONG_CODE).count();
            assert_eq!((passed, wrong), (1, 11));
        }
    }

    async fn a_send_that_the_wallet_does_not_cover_has_no_effect(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        set_prices(app).await;
        credit(app, 6, "first").await;
        let both = email_request(json!({ "channels": ["email", "sms"], "phone": PHONE }));
        let refused = send(app, both.clone()).await;
        let message = "insufficient balance, please top up your wallet.";
        assert_eq!(refused.failure(), (400, message));
        assert_eq!(balance(app).await, json!(6));
        assert!(app.simulators.mailbox().list(None).is_empty());
        // An earlier code stays valid.
        send_ok(app, email_request(json!({}))).await;
        let token = latest_code(app, EMAIL, 6);
        assert_eq!(send(app, both.clone()).await.status, 400);
        assert_eq!(status_and_message(&verify(app, &token).await), VERIFIED);
        credit(app, 3, "second").await;
        send_ok(app, both).await;
        assert_eq!(balance(app).await, 0);
    }

    async fn a_send_that_the_wallet_does_not_cover_is_recorded_as_failed_messages(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        set_prices(app).await;
        credit(app, 6, "first").await;
        let before = rows(app).await;
        let both = email_request(json!({ "channels": ["email", "sms"], "phone": PHONE }));
        assert_eq!(send(app, both).await.status, 400);
        let mut recorded = listed_messages(app).await;
        recorded.sort_by_key(|message| message["channel"].to_string());
        assert_eq!(recorded.len(), 2);
        for (message, channel, to) in [(&recorded[0], "email", "a***@example.com"), (&recorded[1], "sms", "+234***67")] {
            for (field, value) in [
                ("channel", json!(channel)), ("to", json!(to)), ("purpose", json!("otp")), ("state", json!("failed")),
                ("reason", json!("insufficient balance")), ("attempts", json!(0)), ("via", Value::Null),
                ("charge_key", Value::Null), ("created_at", json!(NOW)), ("ended_at", json!(NOW)),
            ] {
                assert_eq!(message[field], value, "{channel} {field}");
            }
        }
        let content: Vec<(Option<String>,)> = app.app.store
            .read(async |tx| tx.sql("SELECT content FROM messages").all().await).await.expect("the messages");
        assert_eq!(content, [(None,), (None,)]);
        // No code, no charge, no job.
        assert_eq!(rows(app).await, before);
        assert_eq!(balance(app).await, json!(6));
        assert_eq!(status_and_message(&verify(app, "123456").await), WRONG_CODE);
        // They are kept as long as other messages, and limited like sends: 60 e-mails, 10 SMS.
        for n in 0..70 {
            assert_eq!(send(app, sms_request(json!({ "identifier": format!("login-{n}"), "channels": ["sms", "email"], "email": EMAIL }))).await.status, 400);
        }
        for (channel, total) in [("email", 60), ("sms", 10)] {
            let path = format!("/companies/{}/messages?state=failed&channel={channel}", app.company.id);
            assert_eq!(app.operator(Method::GET, &path, Value::Null).await.data()["total"], total, "{channel}");
        }
        credit(app, 100, "second").await;
        send_ok(app, sms_request(json!({}))).await;
        app.advance(91 * 24 * 3_600).await;
        app.operator(Method::POST, "/clock/advance", json!({ "seconds": 0 })).await.data();
        assert_eq!(listed_messages(app).await, Vec::<Value>::new());
    }

    async fn a_plan_without_otp_gets_403(app: TestApp) {
        let path = format!("/companies/{}/subscription", app.company.id);
        let plan = json!({ "features": ["payments"] });
        let message = "your plan does not include otp";
        let token = {
            send_ok(app, email_request(json!({}))).await;
            latest_code(app, EMAIL, 6)
        };
        app.operator(Method::PUT, &path, plan).await.data();
        assert_eq!(send(app, email_request(json!({}))).await.failure(), (403, message));
        // A code sent before can be verified, because that is free.
        assert_eq!(status_and_message(&verify(app, &different_code(&token)).await), WRONG_CODE);
        assert_eq!(status_and_message(&verify(app, &token).await), VERIFIED);
    }

    async fn a_test_company_can_fix_its_codes(app: TestApp) {
        let fixed = |code: Value| json!({ "fixed_otp": code });
        for bad in ["123", "123456789", "12345a", "١٢٣٤"] {
            let refused = edit_company(app, &app.company, fixed(bad.into())).await;
            assert!(refused.failure().1.starts_with("the fixed_otp field must be"), "{bad}");
        }
        edit_company(app, &app.company, fixed("123456".into())).await.data();
        for (length, token) in [(6, "123456"), (4, "1234"), (8, "12345612")] {
            send_ok(app, email_request(json!({ "length": length }))).await;
            assert_eq!(latest_code(app, EMAIL, length), token);
            assert_eq!(status_and_message(&verify(app, token).await), VERIFIED);
        }
        edit_company(app, &app.company, fixed(Value::Null)).await.data();
        send_ok(app, email_request(json!({ "length": 8 }))).await;
        assert_ne!(latest_code(app, EMAIL, 8), "12345612");
        let live = json!({ "name": "Live Lending", "server": "live" });
        let live = app.operator(Method::POST, "/companies", live).await.data().clone();
        let path = format!("/companies/{}", live["id"].as_str().expect("an id"));
        let refused = app.operator(Method::PATCH, &path, fixed("123456".into())).await;
        let message = "the fixed_otp field must be omitted: the company is live";
        assert_eq!(refused.failure(), (400, message));
    }

    async fn a_live_company_has_no_fixed_codes_even_if_its_row_has_one(app: TestApp) {
        edit_company(app, &app.company, json!({ "fixed_otp": "123456" })).await.data();
        let live: store::Result<u64> =
            app.app.store.write(async |tx| tx.sql("UPDATE companies SET server = 'live'").run().await).await;
        assert_eq!(live.expect("a statement"), 1);
        let mut codes = Vec::new();
        for _ in 0..3 {
            send_ok(app, email_request(json!({}))).await;
            codes.push(latest_code(app, EMAIL, 6));
        }
        assert!(codes.iter().any(|code| code != "123456"), "{codes:?}");
    }

    async fn the_text_of_a_message_follows_its_metadata(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        let rows = [
            (json!({}), "OTP", "Your OTP is", "Hello,"),
            (json!({ "metadata": {} }), "One Time Token", "Acme Lending", "Hello,"),
            (json!({ "metadata": { "header": "", "body": "" } }), "One Time Token", "Acme Lending", "Hello,"),
            (json!({ "metadata": { "name": "Ada" } }), "One Time Token", "Acme Lending", "Hello Ada,"),
            (
                json!({ "metadata": { "header": "Sign <in>", "body": "Type & go:", "name": "Ada" } }),
                "Sign <in>", "Type & go:", "Hello Ada,",
            ),
        ];
        for (metadata, header, body, greeting) in rows {
            let both = json!({ "channels": ["email", "sms"], "phone": PHONE });
            send_ok(app, merged(email_request(both), metadata.clone())).await;
            let (mail, sms) = (messages(app, EMAIL).remove(0), messages(app, PHONE).remove(0));
            assert_eq!(mail.subject.as_deref(), Some(header), "{metadata}");
            let token = latest_code(app, EMAIL, 6);
            for part in [greeting, body, &token, "expires in 5 minutes"] {
                assert!(sms.text.contains(part), "{part} in {}", sms.text);
                assert!(mail.text.contains(part), "{part} in {}", mail.text);
            }
            let html = mail.html.expect("an HTML part");
            let escaped = body.replace('&', "&amp;");
            assert!(html.contains(&token) && !html.contains("<in>"), "{html}");
            assert!(html.contains(&escaped) || html.contains("Type &#38; go:"), "{html}");
        }
    }

    async fn a_header_with_line_breaks_becomes_a_one_line_subject(app: TestApp) {
        let header = "Sign in\r\nBcc: eve@example.com\r\n\r\nand more";
        send_ok(app, email_request(json!({ "metadata": { "header": header } }))).await;
        let mail = messages(app, EMAIL).remove(0);
        let subject = mail.subject.expect("a subject");
        assert!(subject.starts_with("Sign in") && !subject.contains(['\r', '\n']), "{subject}");
        assert!(messages(app, "eve@example.com").is_empty());
    }

    async fn a_verification_whose_response_was_lost_passes_again_under_its_key(app: TestApp) {
        send_ok(app, email_request(json!({}))).await;
        let body = json!({ "identifier": "login", "token": latest_code(app, EMAIL, 6) });
        let send = async |key: &str| {
            let request = app.client.post(format!("{}/api/v1/otp/verify", app.api));
            let request = request.bearer_auth(&app.company.key).header("idempotency-key", key);
            reply(request.json(&body)).await
        };
        assert_eq!(status_and_message(&send("k").await), VERIFIED);
        // As after the crash of a host that did not store the response: the lease has expired.
        let lost: store::Result<u64> = app.app.store.write(async |tx| {
            tx.sql("UPDATE idempotency_keys SET answer = NULL, lease_until = 0").run().await
        }).await;
        assert_eq!(lost.expect("a statement"), 1);
        assert_eq!(status_and_message(&send("other").await), (400, "invalid or expired otp provided"));
        assert_eq!(status_and_message(&send("k").await), VERIFIED);
        send_ok(app, email_request(json!({}))).await;
        assert_eq!(status_and_message(&send("third").await), (400, "invalid or expired otp provided"));
    }

    async fn a_send_with_an_idempotency_key_runs_once(app: TestApp) {
        set_prices(app).await;
        credit(app, 100, "first").await;
        let send = async |key: &str| {
            let request = app.client.post(format!("{}/api/v1/otp/send", app.api));
            let request = request.bearer_auth(&app.company.key).header("idempotency-key", key);
            reply(request.json(&email_request(json!({})))).await
        };
        let first = send("k").await;
        let again = send("k").await;
        assert_eq!((first.status, &first.body), (again.status, &again.body));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        app.run_until_idle().await;
        assert_eq!((messages(app, EMAIL).len(), balance(app).await), (1, json!(97.5)));
        send("other").await;
        app.run_until_idle().await;
        assert_eq!((messages(app, EMAIL).len(), balance(app).await), (2, json!(95)));
    }
}

#[tokio::test]
async fn a_channel_that_is_not_configured_gets_503_and_sends_nothing() {
    let app = TestApp::start_with(Engine::Sqlite, &["--smtp-host="]).await;
    let refused = send(&app, email_request(json!({}))).await;
    let message = "e-mail is not configured: contact the operator of this service";
    assert_eq!(refused.failure(), (503, message));
    let refused = send(&app, sms_request(json!({}))).await;
    let message = "text messages are not configured: contact the operator of this service";
    assert_eq!(refused.failure(), (503, message));
    assert!(listed_messages(&app).await.is_empty());
    app.finish().await;
}
