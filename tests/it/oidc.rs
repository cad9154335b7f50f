//! Signing in with an OpenID provider: the first sign-in stores the account, later ones find it, and
//! everything that the provider or a browser may send wrongly is refused.

mod provider;

use reqwest::{Client, Method, Response, redirect::Policy};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};
use tollhouse_app::{routes, state::App, wiring};
use tollhouse_http::Listener;
use tollhouse_platform::random::Random;

use self::provider::{CLIENT_ID, CLIENT_SECRET, Signing, TestProvider};
use crate::{
    app::{OPERATOR_TOKEN, Reply, TestApp, config, reply},
    ports,
    principals::entries,
    sign_in::PASSWORD,
};

const REFUSED: (u16, &str) = (401, "this account cannot sign in");
const NOT_BEGUN: (u16, &str) =
    (401, "the sign-in has expired or was begun in another browser: start again");

/// A second host on the database of the test, whose people sign in with the provider.
struct Host<'a> {
    app: &'a TestApp,
    provider: TestProvider,
    internal: String,
    browser: Client,
}

impl<'a> Host<'a> {
    async fn start(app: &'a TestApp) -> Host<'a> {
        let provider = TestProvider::start(app.app.clock.clone()).await;
        Host::with(app, provider).await
    }

    async fn with(app: &'a TestApp, provider: TestProvider) -> Host<'a> {
        let secret = app.database.dir.path().join("client-secret");
        std::fs::write(&secret, CLIENT_SECRET).expect("a file in a temporary folder");
        let flags = [
            format!("--oidc-issuer={}", provider.issuer),
            format!("--oidc-client-id={CLIENT_ID}"),
            format!("--oidc-client-secret-file={}", secret.display()),
            "--oidc-name=Example & Co".to_owned(),
            "--console-url=https://console.example/".to_owned(),
        ];
        let config = config(&app.database, &flags.each_ref().map(|flag| &**flag));
        let host = App::open(&config, app.app.clock.clone(), Random::system(), None).await;
        let host = host.expect("a host that starts");
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let internal = format!("http://{}", tcp.local_addr().expect("a bound listener"));
        tokio::spawn(async move {
            let (_keep, never) = watch::channel(false);
            let routes = routes::internal_routes();
            wiring::listen(&host, Listener::plain(tcp), routes, never).await;
        });
        let browser = Client::builder().redirect(Policy::none()).no_proxy().build();
        Host { app, provider, internal, browser: browser.expect("a client") }
    }

    async fn call(&self, token: &str, method: Method, path: &str, body: Value) -> Reply {
        let request =
            self.app.client.request(method, format!("{}/internal/v1{path}", self.internal));
        let request = if token.is_empty() { request } else { request.bearer_auth(token) };
        reply(if body.is_null() { request } else { request.json(&body) }).await
    }

    async fn post(&self, path: &str, body: Value) -> Reply {
        self.call("", Method::POST, path, body).await
    }

    async fn begin(&self) -> Value {
        self.app.app.clock.advance_to(self.app.app.clock.now().plus_seconds(10)); // for the rate limit
        self.post("/sign-in/oidc/begin", json!({ "next": "/console/jobs" })).await.data().clone()
    }

    async fn finish(&self, begun: &Value, (code, state): (String, String)) -> Reply {
        let body = json!({ "pending": begun["pending"], "state": state, "code": code });
        self.post("/sign-in/oidc/finish", body).await
    }

    /// Signs in the person with these claims.
    async fn sign_in(&self, claims: Value) -> Reply {
        let begun = self.begin().await;
        let returned = self.provider.authorize(text(&begun, "url"), claims);
        self.finish(&begun, returned).await
    }

    async fn status(&self, token: &str) -> u16 {
        self.call(token, Method::GET, "/me", Value::Null).await.status.as_u16()
    }

    /// Requests a page with these cookies.
    async fn page(&self, path: &str, cookies: &str) -> Response {
        let request = self.browser.get(format!("{}{path}", self.internal));
        request.header("cookie", cookies).send().await.expect("a response")
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

fn ada(subject: &str) -> Value {
    json!({ "sub": subject, "email": "Ada@Lender.example", "email_verified": true })
}

/// Creates a person with this role. Returns her id.
async fn create(app: &TestApp, name: &str, role: &str) -> String {
    let new = json!({ "name": name, "email": format!("{name}@lender.example"), "roles": [role] });
    text(app.operator(Method::POST, "/operators", new).await.data(), "id").to_owned()
}

async fn reasons(app: &TestApp) -> Vec<Value> {
    let refused = entries(app, "/audit", "session.refuse").await;
    refused.iter().map(|entry| entry["detail"]["reason"].clone()).collect()
}

fn header<'r>(response: &'r Response, name: &str) -> Vec<&'r str> {
    response.headers().get_all(name).iter().map(|value| value.to_str().expect("text")).collect()
}

both! {
    async fn the_first_sign_in_stores_the_account_and_later_ones_find_it(app: TestApp) {
        let host = Host::start(app).await;
        let id = create(app, "ada", "support-read").await;
        let first = host.sign_in(ada("sub-1")).await.data().clone();
        assert_eq!((text(&first, "next"), text(&first["operator"], "id")), ("/console/jobs", &*id));
        assert_eq!(host.status(text(&first, "session_token")).await, 200);
        let stored = entries(app, "/audit", "operator.identity").await;
        let detail = json!({ "operator": id, "issuer": host.provider.issuer, "subject": "sub-1" });
        assert_eq!((stored.len(), &stored[0]["actor"], &stored[0]["detail"]), (1, &json!("ada"), &detail));

        // From now on the account identifies the operator, whatever its address. Another account is
        // refused, even with the address.
        let renamed = json!({ "sub": "sub-1", "email": "lovelace@lender.example", "email_verified": false });
        host.sign_in(renamed).await.data();
        host.sign_in(json!({ "sub": "sub-1" })).await.data();
        assert_eq!(host.sign_in(ada("sub-2")).await.failure(), REFUSED);
        assert_eq!(reasons(app).await, ["the operator has another account"]);
        assert_eq!(entries(app, "/audit", "session.create").await.len(), 3);

        // Changing the operator's address unlinks the account.
        let path = format!("/operators/{id}");
        app.operator(Method::PATCH, &path, json!({ "email": "obi@lender.example" })).await.data();
        assert_eq!(host.sign_in(ada("sub-1")).await.failure(), REFUSED);
        let obi = json!({ "sub": "sub-3", "email": "obi@lender.example", "email_verified": true });
        host.sign_in(obi.clone()).await.data();
        app.operator(Method::PATCH, &path, json!({ "active": false })).await.data();
        assert_eq!(host.sign_in(obi).await.failure(), REFUSED);
        assert_eq!(reasons(app).await[0], "the operator is not active");
    }

    async fn two_first_sign_ins_at_once_store_one_account(app: TestApp) {
        let host = Host::start(app).await;
        create(app, "ada", "support-read").await;
        let sign_ins = ["sub-1", "sub-2", "sub-1", "sub-2"].map(|subject| host.sign_in(ada(subject)));
        let replies = futures::future::join_all(sign_ins).await;
        let succeeded = |reply: &&Reply| reply.status == 200;
        assert_eq!(replies.iter().filter(succeeded).count(), 2);
        assert_eq!(entries(app, "/audit", "operator.identity").await.len(), 1);
    }

    async fn a_token_that_fails_a_check_is_refused(app: TestApp) {
        let host = Host::start(app).await;
        create(app, "ada", "support-read").await;
        let past = app.app.clock.now().unix_seconds() - 1;
        for changes in [
            json!({ "nonce": "another" }),
            json!({ "nonce": null }),
            json!({ "aud": "another-client" }),
            json!({ "aud": [CLIENT_ID, "another-client"] }),
            json!({ "azp": "another-client" }),
            json!({ "iss": "https://login.example" }),
            json!({ "exp": past }),
            json!({ "email_verified": false }),
            json!({ "email_verified": null }),
            json!({ "email": "nobody@lender.example" }),
        ] {
            host.provider.change_claims(changes.clone());
            assert_eq!(host.sign_in(ada("sub-1")).await.failure(), REFUSED, "{changes}");
        }
        host.provider.change_claims(json!({}));
        for signing in [Signing::ForeignKey, Signing::Unsigned, Signing::SharedSecret] {
            host.provider.sign(signing);
            assert_eq!(host.sign_in(ada("sub-1")).await.failure(), REFUSED, "{signing:?}");
        }
        assert_eq!(reasons(app).await, ["the e-mail address is not verified"; 2]);
        assert!(entries(app, "/audit", "operator.identity").await.is_empty());
        host.provider.sign(Signing::Valid);
        host.provider.change_claims(json!({ "azp": CLIENT_ID, "aud": [CLIENT_ID] }));
        host.sign_in(ada("sub-1")).await.data();
    }

    async fn claims_come_from_user_info_if_the_token_has_none(app: TestApp) {
        let host = Host::start(app).await;
        create(app, "ada", "support-read").await;
        host.provider.set_user_info(ada("sub-2"));
        // The claims must be about the person of the token.
        assert_eq!(host.sign_in(json!({ "sub": "sub-1" })).await.status, 503);
        host.provider.set_user_info(json!({ "sub": "sub-1" }));
        assert_eq!(host.sign_in(json!({ "sub": "sub-1" })).await.failure(), REFUSED);
        host.provider.set_user_info(ada("sub-1"));
        host.sign_in(json!({ "sub": "sub-1" })).await.data();
    }

    async fn metadata_is_fetched_again_after_an_hour_and_for_an_unknown_key(app: TestApp) {
        let host = Host::start(app).await;
        create(app, "ada", "support-read").await;
        for _ in 0..2 {
            host.sign_in(ada("sub-1")).await.data();
        }
        assert_eq!(host.provider.discoveries(), 1);
        host.provider.rotate_key();
        host.sign_in(ada("sub-1")).await.data();
        assert_eq!(host.provider.discoveries(), 2);
        app.advance(3_600).await;
        host.sign_in(ada("sub-1")).await.data();
        assert_eq!(host.provider.discoveries(), 3);
    }

    async fn a_response_belongs_to_the_browser_that_began(app: TestApp) {
        let host = Host::start(app).await;
        create(app, "ada", "support-read").await;
        let (mine, other) = (host.begin().await, host.begin().await);
        let returned = host.provider.authorize(text(&mine, "url"), ada("sub-1"));
        assert_eq!(host.finish(&other, returned.clone()).await.failure(), NOT_BEGUN);
        let forged = json!({ "pending": "v1.00000000.AAAA" });
        assert_eq!(host.finish(&forged, returned.clone()).await.failure(), NOT_BEGUN);
        // Another host finishes it, once.
        let second = Host::with(app, host.provider.clone()).await;
        second.finish(&mine, returned.clone()).await.data();
        let ended = (401, "the provider no longer accepts this sign-in: start again");
        assert_eq!(host.finish(&mine, returned).await.failure(), ended);
        let late = host.begin().await;
        let returned = host.provider.authorize(text(&late, "url"), ada("sub-1"));
        app.advance(600).await;
        assert_eq!(host.finish(&late, returned).await.failure(), NOT_BEGUN);
        let begun = host.begin().await;
        let (_, state) = host.provider.authorize(text(&begun, "url"), ada("sub-1"));
        let body = json!({ "pending": begun["pending"], "state": state, "error": "access_denied" });
        let denied = host.post("/sign-in/oidc/finish", body).await;
        assert_eq!(denied.failure(), (401, "the provider did not sign you in: start again"));
    }

    async fn passwords_are_refused_with_a_provider(app: TestApp) {
        let id = create(app, "ada", "support-read").await;
        let path = format!("/operators/{id}/invite");
        let invited = app.operator(Method::POST, &path, json!({})).await.data().clone();
        let host = Host::start(app).await;
        let refused = (403, "passwords are disabled: people sign in with Example & Co");
        let (password, email) = (json!(PASSWORD), "ada@lender.example");
        for (path, body) in [
            ("/sign-in", json!({ "email": email, "password": password, "code": "123456" })),
            ("/sign-in/enrol", json!({ "invitation": invited["invitation"], "password": password })),
            ("/sign-in/enrol", json!({ "invitation": "x", "password": password })),
            ("/sign-in/confirm", json!({ "invitation": "x", "enrolment": "x", "code": "123456" })),
        ] {
            assert_eq!(host.post(path, body).await.failure(), refused, "{path}");
        }
        let invite = host.call(OPERATOR_TOKEN, Method::POST, &path, json!({})).await;
        assert_eq!(invite.failure(), refused);
        // And the other way round.
        let none = (403, "no OpenID provider is configured");
        for (path, body) in [
            ("begin", json!({})),
            ("finish", json!({ "pending": "x", "state": "x", "code": "x" })),
        ] {
            let url = format!("{}/internal/v1/sign-in/oidc/{path}", app.internal);
            assert_eq!(reply(app.client.post(url).json(&body)).await.failure(), none);
        }
    }

    async fn the_configured_token_is_disabled_once_an_administrator_has_signed_in(app: TestApp) {
        let host = Host::start(app).await;
        let id = create(app, "ada", "administrator").await;
        assert_eq!(host.status(OPERATOR_TOKEN).await, 200);
        host.sign_in(ada("sub-1")).await.data();
        assert_eq!(host.status(OPERATOR_TOKEN).await, 401);
        // Without the provider, or with another one, she cannot authenticate.
        assert_eq!(app.operator(Method::GET, "/me", Value::Null).await.status, 200);
        assert_eq!(Host::start(app).await.status(OPERATOR_TOKEN).await, 200);
        app.operator(Method::PATCH, &format!("/operators/{id}"), json!({ "active": false })).await.data();
        assert_eq!(host.status(OPERATOR_TOKEN).await, 200);
    }

    async fn an_unreachable_provider_is_503(app: TestApp) {
        let issuer = format!("http://{}", ports::reserve_address());
        let host = Host::with(app, TestProvider::at(issuer, app.app.clock.clone())).await;
        let message = "the OpenID provider cannot be used now: try again later";
        let refused = host.post("/sign-in/oidc/begin", json!({})).await;
        assert_eq!(refused.failure(), (503, message));
        assert!(refused.headers.contains_key("retry-after"));
        let page = host.page("/console/sign-in/oidc", "").await;
        assert_eq!(page.status(), 503);
        let html = page.text().await.expect("text");
        assert!(html.contains("The OpenID provider cannot be used now"), "{html}");
    }

    async fn a_person_signs_in_to_the_console(app: TestApp) {
        let host = Host::start(app).await;
        create(app, "ada", "support-read").await;
        let page = host.page("/console/sign-in?next=/console/companies", "").await;
        let html = page.text().await.expect("text");
        assert!(html.contains("Sign in with Example &#38; Co") && !html.contains("password"), "{html}");
        let begin = "/console/sign-in/oidc?next=%2Fconsole%2Fcompanies";
        assert!(html.contains(begin), "{html}");

        let redirect = host.page(begin, "").await;
        assert_eq!(redirect.status(), 303);
        let [cookie] = header(&redirect, "set-cookie").try_into().expect("a cookie");
        assert!(cookie.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"), "{cookie}");
        let cookie = cookie.split(';').next().expect("a value");
        let (code, state) = host.provider.authorize(header(&redirect, "location")[0], ada("sub-1"));
        let callback = format!(
            "/console/sign-in/oidc/callback?code={}&state={state}", code.replace(' ', "+"),
        );
        for cookies in ["", "__Host-tollhouse-sign-in=v1.00000000.AAAA"] {
            let refused = host.page(&callback, cookies).await;
            assert_eq!(refused.status(), 403);
            let html = refused.text().await.expect("text");
            assert!(html.contains("begun in another browser: start again"), "{html}");
        }
        let signed_in = host.page(&callback, cookie).await;
        assert_eq!((signed_in.status().as_u16(), &*header(&signed_in, "location")), (303, &["/console/companies"][..]));
        let [session, ended] = header(&signed_in, "set-cookie").try_into().expect("two cookies");
        assert!(ended.starts_with("__Host-tollhouse-sign-in=; Path=/; Max-Age=0"), "{ended}");
        let home = host.page("/console", session.split(';').next().expect("a value")).await;
        assert!(home.status() == 200 && home.text().await.expect("text").contains("ada"));

        let denied = host.page(&format!("/console/sign-in/oidc/callback?error=access_denied&state={state}"), cookie).await;
        assert_eq!((denied.status().as_u16(), header(&denied, "set-cookie").len()), (403, 1));
        assert!(denied.text().await.expect("text").contains("The provider did not sign you in"));
        let elsewhere = host.page("/console/sign-in/oidc?next=//evil.example", "").await;
        assert_eq!(elsewhere.status(), 303);
    }
}
