//! Changes that people make on the console.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Browser, Page};
use crate::{
    app::PAYSTACK_KEY,
    exceptions::insert_exception,
    principals::entries,
    sign_in::{PASSWORD, enrol},
};

/// Submits the form of a company with these changes, and the rest as the form shows it.
async fn edit(browser: &mut Browser<'_>, page: &str, changes: &[(&str, &str)]) -> Page {
    let shown = browser.get(page).await;
    let field = |name: &str| {
        let start = format!("name=\"shown_{name}\" value=\"");
        let rest = shown.html.split_once(&start).map(|(_, rest)| rest);
        rest.and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
    };
    let mut form = vec![("form_token".to_owned(), shown.form_token())];
    for name in [
        "name", "event_url", "logo", "payment_service", "countries", "low_balance", "sms_gateway",
        "sms_sender", "active",
    ] {
        let changed = changes.iter().find(|(changed, _)| *changed == name);
        let value = changed.map_or_else(|| field(name), |(_, value)| (*value).to_owned());
        form.extend([(format!("shown_{name}"), field(name)), (name.to_owned(), value)]);
    }
    let form: Vec<_> = form.iter().map(|(name, value)| (&**name, &**value)).collect();
    browser.submit(page, &form).await
}

both! {
    async fn a_collection_policy_is_shown_and_changed(app: TestApp) {
        let own = format!("/companies/{}", app.company.id);
        let page = format!("/console{own}/collection-policy");
        let role = json!({ "permissions": ["companies.read", "lending.read", "lending.write"] });
        app.operator(Method::PUT, "/roles/collector", role).await.data();
        let mut browser = Browser::signed_in(app, "ada", "collector").await;
        let shown = browser.get(&page).await;
        shown.shows(&["There is no policy: each installment is collected once, on its due date."]);
        let token = shown.form_token();
        let form = |max_attempts| [
            ("form_token", &*token), ("active", "yes"), ("instruments", "mandates, default_card"), ("days", "0, 3"),
            ("from", "8"), ("to", "20"), ("utc_offset", "+01:00"), ("utc_offsets", "KE=+03:00"),
            ("max_attempts", max_attempts), ("max_fees", "49.50"), ("min_partial_debit", ""),
            ("upcoming_days", "2"), ("due", "yes"), ("overdue_days", ""),
        ];
        assert_eq!(browser.submit(&page, &form("4")).await.status, 303);
        browser.get(&page).await.shows(&["mandates, default_card", "0, 3", "8 to 20", "value=\"KE=+03:00\""]);
        let path = format!("{own}/collection-policy");
        let policy = app.operator(Method::GET, &path, Value::Null).await.data()["policy"].clone();
        assert_eq!(policy["events"], json!({ "upcoming_days": 2, "due": true, "overdue_days": null }));
        assert_eq!((&policy["instruments"], &policy["max_attempts"]), (&json!(["mandates", "default_card"]), &json!(4)));
        let refused = browser.submit(&page, &form("many")).await;
        assert!(refused.status == 400 && refused.html.contains("max_attempts"), "{}", refused.html);
        app.run_until_idle().await;
    }

    async fn a_key_is_revoked_and_an_account_is_tested(app: TestApp) {
        let own = format!("/companies/{}", app.company.id);
        let account = json!({
            "active": true,
            "credentials": { "secret_key": PAYSTACK_KEY, "base_url": format!("{}/paystack", app.simulators.url()) },
        });
        app.operator(Method::PUT, &format!("{own}/providers/provider_a"), account).await.data();
        let key = app.operator(Method::POST, &format!("{own}/keys"), json!({ "label": "old" })).await.data().clone();
        app.operator(Method::PATCH, "/prices", json!({ "otp.sms": 4.5 })).await.data();
        let mut browser = Browser::signed_in(app, "ada", "company-admin").await;
        let page = format!("/console{own}");
        let shown = browser.get(&page).await;
        shown.shows(&["Test this account", "<td>otp.sms</td>", "4.50", "the default plan"]);
        let keys = format!("{page}/keys");
        browser.get(&keys).await.shows(&["Revoke", "Requests with this key are rejected", "Create an API key"]);
        let token = [("form_token", &*shown.form_token())];
        let tested = browser.submit(&format!("{page}/providers/provider_a/test"), &token).await;
        tested.shows(&["Test of the account at provider_a", "ok"]);
        let revoke = format!("{page}/keys/{}/revoke", key["id"].as_str().expect("an id"));
        let revoked = browser.submit(&revoke, &token).await;
        assert_eq!((revoked.status, &*revoked.location), (303, &*keys));
        assert_eq!(entries(app, &format!("{own}/audit"), "key.revoke").await[0]["actor"], "ada");

        let mut reader = Browser::signed_in(app, "eve", "support-read").await;
        for page in [&page, &keys] {
            let shown = reader.get(page).await;
            for hidden in ["Revoke…", "Test this", "Create an API key"] {
                assert!(!shown.html.contains(hidden), "{hidden}: {}", shown.html);
            }
        }
        let token = reader.get("/console").await.form_token();
        for path in [&revoke, &format!("{page}/providers/provider_a/test")] {
            assert_eq!(reader.submit(path, &[("form_token", &token)]).await.status, 403, "{path}");
            assert_eq!(browser.submit(path, &[("form_token", "x")]).await.status, 403, "{path}");
        }
    }

    async fn an_exception_is_resolved_with_a_reason(app: TestApp) {
        app.initialize("order-1").await;
        let exception = insert_exception(app, &app.company.id).await;
        let mut browser = Browser::signed_in(app, "ada", "finance-act").await;
        let page = format!("/console/companies/{}/exceptions/{exception}", app.company.id);
        browser.get("/console/exceptions").await.shows(&[&page, "Resolve"]);
        let form = browser.get(&page).await;
        form.shows(&["Resolve the exception", "Assign to me"]);
        let token = form.form_token();
        let edit = format!("{page}/edit");
        for fields in [("note", "Asked <the> bank"), ("mine", "true")] {
            let edited = browser.submit(&edit, &[("form_token", &*token), fields]).await;
            assert_eq!((edited.status, &*edited.location), (303, &*page), "{}", edited.html);
        }
        browser.get(&page).await.shows(&["Asked &#60;the&#62; bank", "Unassign", "ada"]);
        browser.get("/console/exceptions").await.shows(&["Owner", "ada"]);
        let sent = |reason| [("form_token", &*token), ("action", "none"), ("reason", reason)];
        let refused = browser.submit(&page, &sent("")).await;
        assert!(refused.status == 400 && refused.html.contains("reason"), "{}", refused.html);
        let resolved = browser.submit(&page, &sent("a test of ours")).await;
        assert_eq!((resolved.status, &*resolved.location), (303, "/console/exceptions"), "{}", resolved.html);
        browser.get("/console/exceptions?state=resolved").await.shows(&["a test of ours"]);
    }

    async fn a_failing_job_is_retried(app: TestApp) {
        let mut browser = Browser::signed_in(app, "ada", "platform").await;
        let page = browser.get("/console/jobs").await;
        page.shows(&["No job is failing"]);
        let token = page.form_token();
        let path = format!("/console/jobs/retry?company={}&kind=event.deliver&subject=none", app.company.id);
        let retried = browser.submit(&path, &[("form_token", &token)]).await;
        assert_eq!((retried.status, &*retried.location), (303, "/console/jobs"), "{}", retried.html);
        let entry = entries(app, "/audit", "job.retry").await[0].clone();
        assert_eq!((&entry["actor"], &entry["detail"]["subject"], &entry["detail"]["jobs"]), (&json!("ada"), &json!("none"), &json!(0)));
        assert_ne!(entry["request_id"], Value::Null);
    }

    async fn a_company_is_edited_and_suspended(app: TestApp) {
        let own = format!("/companies/{}", app.company.id);
        let page = format!("/console{own}");
        let mut browser = Browser::signed_in(app, "ada", "company-admin").await;
        browser.get(&page).await.shows(&["Edit the company", "value=\"Acme Lending\""]);
        let company = async || app.operator(Method::GET, &own, Value::Null).await.data().clone();
        let before = company().await;
        let saved = edit(&mut browser, &page, &[("name", "Acme Loans"), ("countries", "NG, GH"), ("low_balance", "1500.5")]).await;
        assert_eq!((saved.status, &*saved.location), (303, &*page), "{}", saved.html);
        let after = company().await;
        assert_eq!(
            ["name", "countries", "low_balance", "event_url", "active"].map(|field| after[field].clone()),
            [json!("Acme Loans"), json!(["NG", "GH"]), json!(1500.5), before["event_url"].clone(), json!(true)],
        );
        let entry = entries(app, &format!("{own}/audit"), "company.edit").await[0].clone();
        assert_eq!(entry["actor"], "ada");
        assert!(!entry["detail"].to_string().contains("event_url"), "{entry}");
        browser.get(&page).await.shows(&["value=\"NG, GH\""]);

        let wrong = edit(&mut browser, &page, &[("low_balance", "many")]).await;
        assert!(wrong.status == 400 && wrong.html.contains("low_balance"), "{}", wrong.html);
        assert_eq!(edit(&mut browser, &page, &[("low_balance", ""), ("active", "false")]).await.status, 303);
        assert_eq!(edit(&mut browser, &page, &[("name", "Acme")]).await.status, 303);
        let after = company().await;
        assert_eq!((&after["name"], &after["active"], &after["low_balance"]), (&json!("Acme"), &json!(false), &Value::Null));

        let mut reader = Browser::signed_in(app, "eve", "support-read").await;
        let shown = reader.get(&page).await;
        assert!(!shown.html.contains("Edit the company"), "{}", shown.html);
        let token = reader.get("/console").await.form_token();
        let refused = reader.submit(&page, &[("form_token", &token), ("name", "Eve")]).await;
        assert_eq!(refused.status, 403);
    }

    async fn a_person_signs_out_everywhere(app: TestApp) {
        let (ada, first) = enrol(app, "ada", "support-read").await;
        app.advance(30).await;
        let second = ada.sign_in(app, PASSWORD, &ada.code(app, 0)).await.data().clone();
        let other = Browser::with_session(app, second["session_token"].as_str().expect("a token"));
        let mut browser = Browser::with_session(app, &first);
        let home = browser.get("/console").await;
        home.shows(&["Sign out everywhere"]);
        assert_eq!(other.get("/console").await.status, 200);
        let form = [("form_token", &*home.form_token()), ("everywhere", "true")];
        assert_eq!(browser.submit("/console/sign-out", &form).await.status, 303);
        assert_eq!(other.get("/console").await.status, 303);
    }
}
