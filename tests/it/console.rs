//! The console: signing in by forms, permissions of pages, and protection of forms and cookies.

mod actions;
mod api_log;
mod customers;
mod platform;

use reqwest::{Client, Method, Response, redirect::Policy};
use serde_json::{Value, json};

use crate::{
    app::{OPERATOR_TOKEN, TestApp},
    principals::{call, entries},
    sign_in::{PASSWORD, Person, enrol, invite},
};

const FORM: &str = "application/x-www-form-urlencoded";

/// A browser: it keeps the cookie, and follows no redirect.
pub struct Browser<'a> {
    /// The URL of the listener.
    host: &'a str,
    client: Client,
    pub cookie: String,
}

/// A page that was shown.
pub struct Page {
    pub status: u16,
    pub location: String,
    pub html: String,
}

impl<'a> Browser<'a> {
    fn new(app: &'a TestApp) -> Browser<'a> {
        let client = Client::builder().redirect(Policy::none()).no_proxy().build();
        let host = &app.internal;
        Browser { host, client: client.expect("a client"), cookie: String::new() }
    }

    /// A browser with a session of the console.
    pub fn with_session(app: &'a TestApp, session: &str) -> Browser<'a> {
        Browser { cookie: format!("tollhouse={session}"), ..Browser::new(app) }
    }

    /// A browser at the portal.
    pub fn in_portal(app: &'a TestApp) -> Browser<'a> {
        Browser { host: &app.api, ..Browser::new(app) }
    }

    /// A browser with the session of a person with this role.
    pub async fn signed_in(app: &'a TestApp, name: &str, role: &str) -> Browser<'a> {
        let (_, session) = enrol(app, name, role).await;
        Browser { cookie: format!("tollhouse={session}"), ..Browser::new(app) }
    }

    pub async fn get(&self, path: &str) -> Page {
        let request = self.client.get(format!("{}{path}", self.host));
        page(request.header("cookie", &self.cookie).send().await.expect("a response")).await
    }

    /// Sends a form as a page of this site does, and keeps the cookie of the response.
    pub async fn submit(&mut self, path: &str, form: &[(&str, &str)]) -> Page {
        let request = self.client.post(format!("{}{path}", self.host)).body(encoded(form));
        let request =
            request.header("cookie", &self.cookie).header("sec-fetch-site", "same-origin");
        let request = request.header("content-type", FORM);
        let response = request.send().await.expect("a response");
        if let Some(cookie) = response.headers().get("set-cookie") {
            let cookie = cookie.to_str().expect("text").to_owned();
            assert!(cookie.ends_with("; HttpOnly; SameSite=Lax"), "{cookie}");
            cookie.split(';').next().expect("a value").clone_into(&mut self.cookie);
        }
        page(response).await
    }
}

/// Encodes a form as browsers do.
fn encoded(form: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish()
}

async fn page(response: Response) -> Page {
    let header = |name: &str| {
        let value = response.headers().get(name).map(|value| value.to_str().expect("text"));
        value.unwrap_or_default().to_owned()
    };
    let policy = header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(
        (&*header("x-frame-options"), &*header("x-content-type-options")),
        ("DENY", "nosniff")
    );
    let (status, location) = (response.status().as_u16(), header("location"));
    Page { status, location, html: response.text().await.expect("text") }
}

impl Page {
    /// Asserts that the page is shown and has these texts.
    #[track_caller]
    pub fn shows(&self, texts: &[&str]) {
        assert_eq!(self.status, 200, "{}", self.html);
        for text in texts {
            assert!(self.html.contains(text), "{text} is not in {}", self.html);
        }
    }

    /// The value of a hidden field.
    pub fn field(&self, name: &str) -> String {
        let start = format!("name=\"{name}\" value=\"");
        let (_, rest) = self.html.split_once(&start).expect("a hidden field");
        rest.split('"').next().expect("a value").to_owned()
    }

    pub fn form_token(&self) -> String {
        self.field("form_token")
    }
}

both! {
    async fn a_person_accepts_an_invitation_and_signs_in_and_out(app: TestApp) {
        let new = json!({ "name": "ada", "email": "ada@lender.example", "roles": ["support-read"] });
        let made = app.operator(Method::POST, "/operators", new).await.data().clone();
        let id = made["id"].as_str().expect("an id").to_owned();
        let invitation = invite(app, &id).await;
        let mut browser = Browser::new(app);
        let welcome = format!("/console/welcome/{invitation}");
        browser.get(&welcome).await.shows(&["Choose a password"]);
        let short = browser.submit(&welcome, &[("password", "short")]).await;
        assert!(short.status == 400 && short.html.contains("at least 12 characters"), "{}", short.html);
        let enrolled = browser.submit(&welcome, &[("password", PASSWORD)]).await;
        enrolled.shows(&["<svg", "Authenticator code"]);
        let (secret, enrolment) = (enrolled.field("secret"), enrolled.field("enrolment"));
        let ada = Person { id, email: "ada@lender.example".to_owned(), secret };
        let code = ada.code(app, 0);
        let confirmed = browser.submit(&welcome, &[("code", &code), ("enrolment", &enrolment)]).await;
        assert_eq!((confirmed.status, &*confirmed.location), (303, "/console"));
        let home = browser.get("/console").await;
        home.shows(&["ada", "Sign out", "Companies"]);
        assert!(!home.html.contains("Plugins"), "{}", home.html);
        let out = browser.submit("/console/sign-out", &[("form_token", &home.form_token())]).await;
        assert_eq!((out.status, &*out.location, &*browser.cookie), (303, "/console/sign-in", "tollhouse="));

        app.advance(30).await;
        let page = browser.get("/console/companies?page=2").await;
        assert_eq!((page.status, &*page.location), (303, "/console/sign-in?next=%2Fconsole%2Fcompanies%3Fpage%3D2"));
        let code = ada.code(app, 0);
        let form = |password: &'static str| [
            ("email", "ada@lender.example".to_owned()), ("password", password.to_owned()),
            ("code", code.clone()), ("next", "/console/companies".to_owned()),
        ];
        let wrong = form("wrong horse battery staple");
        let wrong: Vec<_> = wrong.iter().map(|(name, value)| (*name, &**value)).collect();
        let refused = browser.submit("/console/sign-in", &wrong).await;
        assert!(refused.status == 403 && refused.html.contains("is not valid"), "{}", refused.html);
        let right = form(PASSWORD);
        let right: Vec<_> = right.iter().map(|(name, value)| (*name, &**value)).collect();
        let page = browser.submit("/console/sign-in", &right).await;
        assert_eq!((page.status, &*page.location), (303, "/console/companies"));
        browser.get("/console/companies").await.shows(&["Acme Lending"]);
    }

    async fn the_page_of_a_pending_payment_refreshes_itself_for_ten_minutes(app: TestApp) {
        app.initialize("order-1").await;
        let browser = Browser::signed_in(app, "ada", "support-read").await;
        let path = browser.get("/console?q=order-1").await.location;
        let refreshes = |shown: &Page| shown.html.split_once("hx-get=\"").map(|(_, rest)| rest.split('"').next().unwrap_or_default().to_owned());
        let shown = browser.get(&path).await;
        let next = refreshes(&shown).expect("a pending payment");
        assert_eq!(next, format!("{path}?refreshes=1"));
        assert_eq!(refreshes(&browser.get(&next).await), Some(format!("{path}?refreshes=2")));
        assert_eq!(refreshes(&browser.get(&format!("{path}?refreshes=120")).await), None);
        app.paid_payment("order-2").await;
        let path = browser.get("/console?q=order-2").await.location;
        assert_eq!(refreshes(&browser.get(&path).await), None);
        assert!(shown.html.contains("\"allowEval\":false") && shown.html.contains("\"historyCacheSize\":0"), "nothing is stored in the browser");
    }

    async fn a_payment_is_found_verified_and_refunded(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        let mut browser = Browser::signed_in(app, "ada", "support-act").await;
        let id = payment["id"].as_str().expect("an id");
        let path = format!("/console/companies/{}/payments/{id}", app.company.id);
        for q in ["order-1", id, payment["service_ref"].as_str().expect("a reference"), "ADA@example.com"] {
            let found = browser.get(&format!("/console?q={q}")).await;
            assert_eq!((found.status, &*found.location), (303, &*path), "{q}");
        }
        browser.get("/console?q=nothing").await.shows(&["No matches"]);
        let shown = browser.get(&path).await;
        shown.shows(&["2\u{202F}500.50", "success", "ada@example.com", "Verify with the provider", "Refund the payment"]);
        let token = shown.form_token();
        let verified = browser.submit(&format!("{path}/verify"), &[("form_token", &token)]).await;
        assert_eq!((verified.status, &*verified.location), (303, &*path));
        let refunded = browser.submit(&format!("{path}/refund"), &[("form_token", &token)]).await;
        assert_eq!(refunded.status, 303, "{}", refunded.html);
        app.run_until_idle().await;
        let shown = browser.get(&path).await;
        assert!(!shown.html.contains("ada: payment"), "without audit.read: {}", shown.html);
        shown.shows(&[
            "refunded", "Payment created", "Provider webhook: charge.success", "Charge succeeded", "Ledger: payment.success", "Refund requested",
            "Event payment.success", "Event payment.refunded", "Event delivery: delivered", "/redeliver\"",
        ]);
        let permissions = json!({ "permissions": ["companies.read", "payments.read", "audit.read"] });
        app.operator(Method::PUT, "/roles/auditor", permissions).await.data();
        let auditor = Browser::signed_in(app, "eve", "auditor").await;
        auditor.get(&path).await.shows(&["ada: payment.verify", "ada: payment.refund"]);
        let log = format!("/companies/{}/audit", app.company.id);
        assert_eq!(entries(app, &log, "payment.refund").await[0]["actor"], "ada");
        let payments = format!("/console/companies/{}/payments", app.company.id);
        browser.get(&format!("{payments}?status=refunded")).await.shows(&["order-1", "<option selected>refunded"]);
        browser.get(&format!("{payments}?status=pending")).await.shows(&["There are no such payments"]);
        let wrong = browser.get(&format!("{payments}?created_at=yesterday")).await;
        assert!(wrong.status == 400 && wrong.html.contains("DD-MM-YYYY"), "{}", wrong.html);
        for page in ["", "/payments", "/messages", "/events"] {
            browser.get(&format!("/console/companies/{}{page}", app.company.id)).await.shows(&["Acme Lending"]);
        }
        browser.get("/console/refunds").await.shows(&["Refunds"]);
    }

    async fn the_timeline_says_why_a_payment_is_pending(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.advance(120).await;
        let path = format!("/companies/{}/payments/{}/timeline", app.company.id, payment["id"].as_str().expect("an id"));
        let timeline = app.operator(Method::GET, &path, Value::Null).await.data().clone();
        let entries = timeline.as_array().expect("a list");
        let of = |kind: &str| entries.iter().filter(|entry| entry["kind"] == kind).collect::<Vec<_>>();
        assert_eq!((&of("payment")[0]["action"], &of("payment")[0]["amount"]), (&json!("created"), &json!(2500.5)));
        assert_eq!(of("charge").iter().map(|entry| &entry["action"]).collect::<Vec<_>>(), ["requested", "open"]);
        assert_eq!(of("ledger")[0]["note"], "provider:provider_a → pending");
        let (last, now) = (entries.last().expect("an entry"), json!(app.app.clock.now()));
        assert_eq!((&last["kind"], &last["action"]), (&json!("verification"), &json!("due")));
        assert!(last["at"].as_str() > now.as_str(), "{last} {now}");
        let browser = Browser::signed_in(app, "ada", "support-read").await;
        let page = format!("/console{}", path.strip_suffix("/timeline").expect("the path"));
        browser.get(&page).await.shows(&["Charge open", "Next verification with the provider"]);
    }

    async fn pages_need_the_permission_of_what_they_show(app: TestApp) {
        let company = format!("/console/companies/{}", app.company.id);
        let (wallet, audit) = (format!("{company}/wallet"), format!("{company}/audit"));
        let pages = [
            "/console", "/console/companies", &company, &wallet, &audit, "/console/refunds", "/console/exceptions",
            "/console/jobs", "/console/plugins", "/console/plugins/provider_a", "/console/plugins/provider_a/recordings",
            "/console/hosts", "/console/master-key", "/console/operators", "/console/approvals", "/console/audit",
        ];
        for (role, allowed) in [
            ("support-read", &["/console", "/console/companies", &company, "/console/refunds", "/console/exceptions"][..]),
            ("security", &["/console", "/console/companies", &company, &audit, "/console/plugins", "/console/plugins/provider_a", "/console/hosts", "/console/master-key", "/console/operators", "/console/approvals", "/console/audit"]),
        ] {
            let browser = Browser::signed_in(app, role, role).await;
            for page in pages {
                let status = if allowed.contains(&page) { 200 } else { 403 };
                let shown = browser.get(page).await;
                assert_eq!(shown.status, status, "{role} {page}: {}", shown.html);
            }
            assert_eq!(browser.get("/console/nothing").await.status, 404);
        }
        for page in pages {
            assert_eq!(Browser::new(app).get(page).await.status, 303, "{page}");
        }
    }

    async fn a_person_limited_to_a_company_sees_its_pages(app: TestApp) {
        let other = app.new_company("Beta Lending").await;
        let (ada, session) = enrol(app, "ada", "company-admin").await;
        let limit = json!({ "companies": [app.company.id] });
        app.operator(Method::PATCH, &format!("/operators/{}", ada.id), limit).await.data();
        let browser = Browser { cookie: format!("tollhouse={session}"), ..Browser::new(app) };
        let home = browser.get("/console").await;
        assert_eq!((home.status, &*home.location), (303, &*format!("/console/companies/{}", app.company.id)));
        let home = browser.get(&home.location).await;
        home.shows(&["Acme Lending"]);
        for hidden in ["Beta Lending", "Refunds", "id=\"q\""] {
            assert!(!home.html.contains(hidden), "{hidden}: {}", home.html);
        }
        let of = |company: &str, page: &str| format!("/console/companies/{company}{page}");
        for page in ["", "/events", "/wallet"] {
            browser.get(&of(&app.company.id, page)).await.shows(&["Acme Lending"]);
            assert_eq!(browser.get(&of(&other.id, page)).await.status, 403);
        }
        assert!(entries(app, "/audit", "access.refuse").await.is_empty(), "the pages ask for too much");
    }

    async fn forms_of_other_sites_and_sessions_are_rejected(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        let mut ada = Browser::signed_in(app, "ada", "support-act").await;
        let eve = Browser::signed_in(app, "eve", "support-act").await;
        let path = format!("/console/companies/{}/payments/{}", app.company.id, payment["id"].as_str().expect("an id"));
        let foreign = eve.get(&path).await.form_token();
        let own = ada.get(&path).await.form_token();
        assert_ne!(own, foreign);
        for token in [&*foreign, "", "x"] {
            let refused = ada.submit(&format!("{path}/refund"), &[("form_token", token)]).await;
            assert_eq!(refused.status, 403, "{token}");
        }
        for (name, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")] {
            let request = ada.client.post(format!("{}{path}/refund", app.internal));
            let request = request.header("cookie", &ada.cookie).header(name, value).header("content-type", FORM);
            let refused = request.body(encoded(&[("form_token", &*own)])).send().await.expect("a response");
            assert_eq!(refused.status(), 403, "{name}");
        }
        assert_eq!(app.fetch("order-1").await["status"], "success");
        // A session is no API key, and the cookie does not authenticate the interface itself.
        let request = ada.client.get(format!("{}/internal/v1/companies", app.internal));
        let request = request.header("cookie", &ada.cookie).send().await.expect("a response");
        assert_eq!(request.status(), 401);
        assert_eq!(call(app, OPERATOR_TOKEN, Method::GET, "/me", Value::Null).await.data()["name"], "operator");
    }
}
