//! The portal: invitations of members by e-mail, roles, limits to one company, and its pages.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::{
    operations::operators::permissions::{MEMBER_ROLES, PERMISSIONS, of_built_in},
    tenants::companies::scopes::SCOPES,
    webhooks::outgoing::TYPES,
};

use crate::{
    app::{Company, Reply, TestApp},
    console::Browser,
    exceptions::insert_exception,
    principals::{call, entries},
    sign_in::{self, PASSWORD, code_at, enrol},
};

/// Invites a person by the API, and returns its record.
pub async fn invite(app: &TestApp, company: &Company, email: &str, role: &str) -> Value {
    let path = format!("/companies/{}/members", company.id);
    let body = json!({ "email": email, "role": role });
    app.operator(Method::POST, &path, body).await.data().clone()
}

/// Returns the path of the link in the last e-mail to an address.
async fn link(app: &TestApp, email: &str) -> String {
    app.run_until_idle().await;
    let sent = app.simulators.mailbox().list(Some(email));
    let text = &sent.first().expect("an e-mail").text;
    let start = format!("{}/portal/", app.api);
    let line = text.lines().find(|line| line.starts_with(&start)).expect("a link");
    line.strip_prefix(&app.api).expect("the host").to_owned()
}

/// Sets a password by a link, and returns the browser that is signed in, and the secret of codes.
async fn accept<'a>(app: &'a TestApp, link: &str) -> (Browser<'a>, String) {
    let mut browser = Browser::in_portal(app);
    let enrolled = browser.submit(link, &[("password", PASSWORD)]).await;
    let (secret, enrolment) = (enrolled.field("secret"), enrolled.field("enrolment"));
    let code = code_at(&secret, app.app.clock.now());
    let confirmed = browser.submit(link, &[("code", &code), ("enrolment", &enrolment)]).await;
    assert_eq!((confirmed.status, &*confirmed.location), (303, "/portal"), "{}", confirmed.html);
    (browser, secret)
}

/// Invites a person and accepts the invitation.
pub async fn member<'a>(app: &'a TestApp, company: &Company, role: &str) -> Browser<'a> {
    let email = format!("{role}@{}.example", company.id.to_lowercase());
    invite(app, company, &email, role).await;
    accept(app, &link(app, &email).await).await.0
}

fn token<'b>(browser: &'b Browser<'_>) -> &'b str {
    browser.cookie.strip_prefix("tollhouse-portal=").expect("a session of the portal")
}

fn members(company: &Company) -> String {
    format!("/companies/{}/members", company.id)
}

both! {
    async fn a_member_is_invited_by_email_signs_in_and_out(app: TestApp) {
        let invited = invite(app, &app.company, "ada@acme.example", "company-owner").await;
        assert_eq!((&invited["state"], &invited["role"]), (&json!("invited"), &json!("company-owner")));
        let first = link(app, "ada@acme.example").await;
        let (mut browser, secret) = accept(app, &first).await;
        let used = Browser::in_portal(app).submit(&first, &[("password", PASSWORD)]).await;
        assert!(used.status == 403 && used.html.contains("request a new one"), "{}", used.html);
        let home = browser.get("/portal").await;
        let overview = format!("/portal/companies/{}", app.company.id);
        assert_eq!((home.status, &*home.location), (303, &*overview));
        let shown = browser.get(&overview).await;
        shown.shows(&["ada@acme.example", "Team", "API keys", "Event endpoints", "Statement"]);
        for hidden in ["Operators", "Plugins", "Audit log", "Test this account"] {
            assert!(!shown.html.contains(hidden), "{hidden}: {}", shown.html);
        }
        let out = browser.submit("/portal/sign-out", &[("form_token", &shown.form_token())]).await;
        assert_eq!((&*out.location, &*browser.cookie), ("/portal/sign-in", "tollhouse-portal="));

        app.advance(60).await;
        let code = code_at(&secret, app.app.clock.now());
        let form = [("email", "ada@acme.example"), ("password", PASSWORD), ("code", &code), ("next", &overview)];
        let entered = browser.submit("/portal/sign-in", &form).await;
        assert_eq!((entered.status, &*entered.location), (303, &*overview), "{}", entered.html);
        let log = format!("/companies/{}/audit", app.company.id);
        for (action, count) in [("member.create", 1), ("password.set", 1), ("session.create", 2), ("session.end", 1)] {
            assert_eq!(entries(app, &log, action).await.len(), count, "{action}");
            assert!(action == "member.create" || entries(app, "/audit", action).await.is_empty());
        }
        let messages = app.operator(Method::GET, &format!("/companies/{}/messages", app.company.id), Value::Null).await;
        let message = &messages.data()["docs"][0];
        assert_eq!((&message["purpose"], &message["charge_key"]), (&json!("invitation"), &Value::Null));
    }

    async fn members_and_operators_have_separate_sites(app: TestApp) {
        let member = member(app, &app.company, "company-owner").await;
        let (operator, session) = enrol(app, "ada", "support-act").await;
        // The session of each is unknown to the other site.
        let mut portal = Browser::in_portal(app);
        portal.cookie = format!("tollhouse-portal={session}");
        assert_eq!(&*portal.get("/portal").await.location, "/portal/sign-in?next=%2Fportal");
        let console = Browser::with_session(app, token(&member));
        assert_eq!(&*console.get("/console").await.location, "/console/sign-in?next=%2Fconsole");
        // Neither can sign in at the other site, and the failure does not say why.
        app.advance(60).await;
        let (code, email) = (operator.code(app, 0), operator.email.clone());
        let form = [("email", &*email), ("password", PASSWORD), ("code", &code)];
        let refused = Browser::in_portal(app).submit("/portal/sign-in", &form).await;
        assert!(refused.status == 403 && refused.html.contains("is not valid"), "{}", refused.html);
        for page in ["/console", "/internal/v1/me"] {
            assert_eq!(app.client.get(format!("{}{page}", app.api)).send().await.unwrap().status(), 404);
        }
        for page in ["/portal/companies", "/portal/operators", "/portal/sign-in/oidc", "/portal/nothing"] {
            assert_eq!(member.get(page).await.status, 404, "{page}");
        }
        let all = app.operator(Method::GET, "/operators", Value::Null).await.data().clone();
        assert_eq!(all.as_array().map(Vec::len), Some(1), "members are not operators");
        let me = call(app, token(&member), Method::GET, "/me", Value::Null).await.data().clone();
        for (method, body) in [(Method::GET, Value::Null), (Method::PATCH, json!({ "active": false }))] {
            let path = format!("/operators/{}", me["id"].as_str().expect("an id"));
            assert_eq!(app.operator(method, &path, body).await.failure(), (404, "operator not found"));
        }
        let new = json!({ "name": "eve", "roles": ["company-owner"] });
        assert_eq!(app.operator(Method::POST, "/operators", new).await.status, 400);
    }

    async fn each_role_sees_its_pages_of_its_company_only(app: TestApp) {
        let other = app.new_company("Beta Lending").await;
        let pages = [
            ("", "companies.read"), ("/users", "users.read"), ("/payments", "payments.read"),
            ("/recollections", "lending.read"), ("/messages", "messages.read"), ("/events", "events.read"),
            ("/requests", "requests.read"),
            ("/endpoints", "companies.read"), ("/keys", "companies.read"), ("/wallet", "wallet.read"),
            ("/statement", "wallet.read"), ("/totals", "wallet.read"), ("/members", "members.read"),
            ("/audit", "audit.read"),
        ];
        for role in MEMBER_ROLES {
            let browser = member(app, &app.company, role).await;
            let held = of_built_in(role).expect("a role");
            for (page, permission) in pages {
                let status = if held.contains(&permission) { 200 } else { 403 };
                let shown = browser.get(&format!("/portal/companies/{}{page}", app.company.id)).await;
                assert_eq!(shown.status, status, "{role} {page}: {}", shown.html);
                assert!(!shown.html.contains("\"/console"), "{role} {page}: {}", shown.html);
                let foreign = browser.get(&format!("/portal/companies/{}{page}", other.id)).await;
                assert_eq!(foreign.status, 403, "{role} {page}");
                let page = format!("/portal/companies/{}{page}", app.company.id);
                assert_eq!(Browser::in_portal(app).get(&page).await.status, 303, "{page}");
            }
        }
        // No role has a permission that concerns the service, or that moves the company's money.
        for permission in ["wallet.write", "refunds.write", "companies.write", "audit.read", "plugins.read"] {
            assert!(PERMISSIONS.iter().any(|known| known.name == permission));
            assert!(MEMBER_ROLES.iter().all(|role| !of_built_in(role).expect("a role").contains(&permission)));
        }
    }

    async fn an_owner_manages_the_team_and_one_owner_remains(app: TestApp) {
        let mut owner = member(app, &app.company, "company-owner").await;
        let team = format!("/portal{}", members(&app.company));
        let form = owner.get(&team).await.form_token();
        let new = [("form_token", &*form), ("email", "ben@acme.example"), ("role", "company-developer")];
        assert_eq!(owner.submit(&team, &new).await.status, 303);
        let again = owner.submit(&team, &new).await;
        assert!(again.status == 409 && again.html.contains("has this e-mail address"), "{}", again.html);
        let (ben, _) = accept(app, &link(app, "ben@acme.example").await).await;
        owner.get(&team).await.shows(&["ben@acme.example", "Developer", "active"]);
        let me = call(app, token(&ben), Method::GET, "/me", Value::Null).await.data().clone();
        let page = format!("{team}/{}", me["id"].as_str().expect("an id"));
        owner.get(&page).await.shows(&["Invite again", "Deactivate", "Change the role"]);
        let act = async |owner: &mut Browser<'_>, action: &str, role: &str| {
            owner.submit(&format!("{page}/{action}"), &[("form_token", &*form), ("role", role)]).await
        };
        assert_eq!(act(&mut owner, "role", "company-support").await.status, 303);
        assert_eq!(ben.get(&format!("/portal/companies/{}/keys", app.company.id)).await.status, 200);
        assert_eq!(ben.get(&format!("/portal/companies/{}/messages", app.company.id)).await.status, 200);
        assert_eq!(act(&mut owner, "role", "administrator").await.status, 400);
        assert_eq!(act(&mut owner, "deactivate", "").await.status, 303);
        assert_eq!(ben.get("/portal").await.location, "/portal/sign-in?next=%2Fportal");
        assert_eq!(act(&mut owner, "activate", "").await.status, 303);
        assert_eq!(act(&mut owner, "invite", "").await.status, 303);
        accept(app, &link(app, "ben@acme.example").await).await;

        // The last owner stays an active owner, and other roles cannot manage the team.
        let me = call(app, token(&owner), Method::GET, "/me", Value::Null).await.data().clone();
        let own = format!("{}/{}", members(&app.company), me["id"].as_str().expect("an id"));
        for change in [json!({ "role": "company-support" }), json!({ "active": false })] {
            let refused = call(app, token(&owner), Method::PATCH, &own, change).await;
            assert_eq!(refused.failure(), (409, "the company needs another active owner who has set a password"));
        }
        // An owner who has not accepted the invitation does not count.
        let second = json!({ "email": "second@acme.example", "role": "company-owner" });
        call(app, token(&owner), Method::POST, &members(&app.company), second).await.data();
        let refused = call(app, token(&owner), Method::PATCH, &own, json!({ "active": false })).await;
        assert_eq!(refused.status, 409);
        accept(app, &link(app, "second@acme.example").await).await;
        call(app, token(&owner), Method::PATCH, &own, json!({ "role": "company-support" })).await.data();
        let developer = member(app, &app.company, "company-developer").await;
        let invite = json!({ "email": "eve@acme.example", "role": "company-finance" });
        let refused = call(app, token(&developer), Method::POST, &members(&app.company), invite.clone()).await;
        assert_eq!(refused.failure(), (403, "you lack the permission members.write"));
        let limited = json!({ "name": "inviter", "permissions": ["members.write"] });
        app.operator(Method::PUT, "/roles/inviter", limited).await.data();
        let (_, session) = enrol(app, "cleo", "inviter").await;
        let refused = call(app, &session, Method::POST, &members(&app.company), invite).await;
        assert!(refused.failure().1.starts_with("you lack the permission"), "{}", refused.body);
        for (body, message) in [
            (json!({ "email": "x", "role": "company-owner" }), "the email field must be a valid email address"),
            (json!({ "email": "x@acme.example", "role": "administrator" }),
                "the role field must be one of company-owner, company-finance, company-support, company-developer"),
        ] {
            let refused = app.operator(Method::POST, &members(&app.company), body).await;
            assert_eq!(refused.failure(), (400, message));
        }
    }

    async fn members_of_another_company_do_not_exist(app: TestApp) {
        let other = app.new_company("Beta Lending").await;
        let ada = invite(app, &other, "ada@beta.example", "company-owner").await;
        let path = format!("{}/{}", members(&app.company), ada["id"].as_str().expect("an id"));
        let change = async |method, path: &str, body| -> Reply { app.operator(method, path, body).await };
        let refused = change(Method::PATCH, &path, json!({ "active": false })).await;
        assert_eq!(refused.failure(), (404, "member not found"));
        let refused = change(Method::POST, &format!("{path}/invite"), Value::Null).await;
        assert_eq!(refused.failure(), (404, "member not found"));
        app.run_until_idle().await;
    }

    async fn a_developer_creates_keys_and_endpoints_and_triggers_events(app: TestApp) {
        let mut ada = member(app, &app.company, "company-developer").await;
        let own = format!("/portal/companies/{}", app.company.id);
        let keys = ada.get(&format!("{own}/keys")).await;
        for scope in SCOPES {
            keys.shows(&[&format!("value=\"{scope}\"")]);
        }
        let form = keys.form_token();
        let new = [
            ("form_token", &*form), ("label", "reports"), ("scopes", "payments.read"),
            ("scopes", "users.read"), ("addresses", "127.0.0.0/8, 203.0.113.7"),
        ];
        let created = ada.submit(&format!("{own}/keys"), &new).await;
        created.shows(&["not shown again"]);
        let key = created.html.split("break\">").nth(1).and_then(|rest| rest.split('<').next()).expect("a key");
        let status = async |path: &str| {
            let request = app.client.get(format!("{}/api/v1{path}", app.api)).bearer_auth(key);
            request.send().await.expect("a response").status().as_u16()
        };
        assert_eq!([status("/payment/list").await, status("/recollection/list").await], [200, 403]);
        let bad = [("form_token", &*form), ("addresses", "everywhere")];
        let bad = ada.submit(&format!("{own}/keys"), &bad).await;
        assert!(bad.status == 400 && bad.html.contains("addresses"), "{}", bad.html);

        let endpoints = ada.get(&format!("{own}/endpoints")).await;
        for kind in TYPES {
            endpoints.shows(&[&format!("value=\"{kind}\"")]);
        }
        let url = format!("{}/events", app.simulators.url());
        let new = [("form_token", &*form), ("url", &*url), ("types", "payment.success")];
        ada.submit(&format!("{own}/endpoints"), &new).await.shows(&["whsec_"]);
        let list = ada.get(&format!("{own}/endpoints")).await;
        list.shows(&["payment.success", "active", "Rotate the secret"]);
        let (_, rest) = list.html.split_once("/endpoints/").expect("a button");
        let path = format!("{own}/endpoints/{}", rest.split('/').next().expect("an id"));
        let send = [("form_token", &*form)];
        ada.submit(&format!("{path}/rotate"), &send).await.shows(&["whsec_"]);

        let trigger = [("form_token", &*form), ("type", "payment.success")];
        let triggered = ada.submit(&format!("{own}/events/trigger"), &trigger).await;
        assert_eq!(triggered.status, 303, "{}", triggered.html);
        app.run_until_idle().await;
        ada.get(&format!("{own}/events")).await.shows(&["payment.success", "delivered"]);
        for action in ["deactivate", "activate", "delete"] {
            assert_eq!(ada.submit(&format!("{path}/{action}"), &send).await.status, 303, "{action}");
        }
        assert_eq!(ada.submit(&format!("{path}/other"), &send).await.status, 404);
        for foreign in [format!("{path}/delete"), format!("{own}/keys"), format!("{own}/events/trigger")] {
            assert_eq!(ada.submit(&foreign, &[("form_token", "x")]).await.status, 403, "{foreign}");
        }
        let log = format!("/companies/{}/audit", app.company.id);
        let email = format!("company-developer@{}.example", app.company.id.to_lowercase());
        for action in ["key.create", "event_endpoint.create", "event.trigger", "event_endpoint.delete"] {
            assert_eq!(entries(app, &log, action).await[0]["actor"], *email, "{action}");
        }
    }

    async fn an_invitation_is_valid_on_its_own_site_only(app: TestApp) {
        let new = json!({ "name": "ada", "email": "ada@lender.example", "roles": ["support-read"] });
        let operator = app.operator(Method::POST, "/operators", new).await.data().clone();
        let of_operator = sign_in::invite(app, operator["id"].as_str().expect("an id")).await;
        invite(app, &app.company, "Ben@Acme.example", "company-support").await;
        let of_member = link(app, "ben@acme.example").await.replace("/portal/", "/console/");
        let password = [("password", PASSWORD)];
        let mut console = Browser::with_session(app, "");
        for (browser, path) in [
            (&mut Browser::in_portal(app), format!("/portal/welcome/{of_operator}")),
            (&mut console, of_member),
        ] {
            let refused = browser.submit(&path, &password).await;
            assert!(refused.status == 403 && refused.html.contains("was used or has expired"), "{}", refused.html);
        }
        // The case of an e-mail address does not matter.
        let (mut ben, secret) = accept(app, &link(app, "ben@acme.example").await).await;
        app.advance(60).await;
        let code = code_at(&secret, app.app.clock.now());
        let form = [("email", "BEN@acme.example"), ("password", PASSWORD), ("code", &*code)];
        assert_eq!(ben.submit("/portal/sign-in", &form).await.status, 303);
        let again = json!({ "email": "BEN@ACME.example", "role": "company-owner" });
        assert_eq!(app.operator(Method::POST, &members(&app.company), again).await.status, 409);
    }

    async fn failures_lock_a_member_for_a_minute_at_most(app: TestApp) {
        invite(app, &app.company, "ada@acme.example", "company-owner").await;
        let (mut ada, secret) = accept(app, &link(app, "ada@acme.example").await).await;
        for attempt in 0..9 {
            app.advance(60).await;
            let form = [("email", "ada@acme.example"), ("password", "wrong horse battery staple"), ("code", "000000")];
            assert_eq!(ada.submit("/portal/sign-in", &form).await.status, 403, "{attempt}");
        }
        app.advance(60).await;
        let code = code_at(&secret, app.app.clock.now());
        let form = [("email", "ada@acme.example"), ("password", PASSWORD), ("code", &*code)];
        assert_eq!(ada.submit("/portal/sign-in", &form).await.status, 303);
    }

    async fn pages_have_the_limits_of_the_server(app: TestApp) {
        let large = "x".repeat(65 << 10);
        let mut browser = Browser::in_portal(app);
        let refused = browser.submit("/portal/sign-in", &[("email", &large)]).await;
        assert!(refused.status == 413 && refused.html.contains("<html"), "{}", refused.html);
    }

    async fn members_of_a_suspended_company_can_only_read(app: TestApp) {
        let owner = member(app, &app.company, "company-owner").await;
        let own = format!("/companies/{}", app.company.id);
        app.operator(Method::PATCH, &own, json!({ "active": false })).await.data();
        let keys = format!("{own}/keys");
        let refused = call(app, token(&owner), Method::POST, &keys, json!({})).await;
        assert_eq!(refused.failure(), (403, "the company is suspended"));
        call(app, token(&owner), Method::GET, &keys, Value::Null).await.data();
        call(app, token(&owner), Method::POST, "/sign-out", json!({})).await;
        assert_eq!(owner.get("/portal").await.location, "/portal/sign-in?next=%2Fportal");
    }

    async fn members_see_no_notes_of_operators(app: TestApp) {
        let payment = app.initialize("order-1").await;
        let exception = insert_exception(app, &app.company.id).await;
        let own = format!("/companies/{}", app.company.id);
        let body = json!({ "action": "none", "reason": "the provider was wrong" });
        app.operator(Method::POST, &format!("{own}/exceptions/{exception}/resolve"), body).await.data();
        let path = format!("{own}/payments/{}/timeline", payment["id"].as_str().expect("an id"));
        let shown = app.operator(Method::GET, &path, Value::Null).await.data().to_string();
        assert!(shown.contains("the provider was wrong"), "{shown}");
        let support = member(app, &app.company, "company-support").await;
        let shown = call(app, token(&support), Method::GET, &path, Value::Null).await.data().to_string();
        assert!(shown.contains("\"exception\"") && !shown.contains("the provider was wrong"), "{shown}");
    }

    async fn invitations_of_a_company_are_limited(app: TestApp) {
        for n in 0..20 {
            invite(app, &app.company, &format!("m{n}@acme.example"), "company-support").await;
        }
        let body = json!({ "email": "more@acme.example", "role": "company-support" });
        let refused = app.operator(Method::POST, &members(&app.company), body.clone()).await;
        assert_eq!(refused.status, 429);
        app.advance(60).await;
        app.operator(Method::POST, &members(&app.company), body).await.data();
        app.run_until_idle().await;
    }

    async fn without_the_setting_there_is_no_portal(app: TestApp, "--portal=false") {
        for page in ["/portal", "/portal/sign-in"] {
            let response = app.client.get(format!("{}{page}", app.api)).send().await.expect("a response");
            assert_eq!(response.status(), 404, "{page}");
        }
        let body = json!({ "email": "ada@acme.example", "role": "company-owner" });
        let refused = app.operator(Method::POST, &members(&app.company), body).await;
        assert_eq!(refused.failure(), (403, "the portal is not enabled: set portal"));
    }
}
