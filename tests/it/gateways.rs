//! SMS gateway components in a host, against a scripted upstream and the simulators.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap};
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse_app::tenants::{
    companies,
    providers::{self, Account},
};
use tollhouse_platform::store;
use tollhouse_plugins::{CallError, Certainty, FaultCategory, Manifest, PluginKind, TextMessage};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Reply, TestApp, reply},
    sprout::repack,
};

const SECRET: &str = "gateway_secret_of_the_service";
const NUMBER: &str = "+2348012345678";
const TEXT: &str = "Your code is 012345.";

/// A gateway: its component, its credentials, and responses of its upstream.
struct Subject {
    name: &'static str,
    wasm: &'static [u8],
    secret: &'static str,
    settings: Value,
    path: &'static str,
    accepted: (u16, Value),
    /// Successful in HTTP, but the message is rejected.
    refused: (u16, Value),
    /// The account is misconfigured.
    misconfigured: (u16, Value),
}

impl Subject {
    fn credentials(&self, base_url: &str) -> Value {
        let mut credentials = self.settings.clone();
        credentials[self.secret] = json!(SECRET);
        credentials["base_url"] = json!(base_url);
        credentials
    }
}

fn subjects() -> [Subject; 3] {
    let recipient = |status: u16, id: &str| {
        let recipient = json!({ "statusCode": status, "number": NUMBER, "messageId": id });
        json!({ "SMSMessageData": { "Message": "Sent", "Recipients": [recipient] } })
    };
    [
        Subject {
            name: "africastalking",
            wasm: artifacts::AFRICASTALKING,
            secret: "api_key",
            settings: json!({ "username": "acme" }),
            path: "/version1/messaging",
            accepted: (201, recipient(101, "id-1")),
            refused: (201, recipient(403, "None")),
            misconfigured: (201, recipient(402, "None")),
        },
        Subject {
            name: "termii",
            wasm: artifacts::TERMII,
            secret: "api_key",
            settings: json!({ "sender": "Acme" }),
            path: "/sms/send",
            accepted: (200, json!({ "code": "ok", "message_id_str": "id-1" })),
            refused: (200, json!({ "message": "DND Active on Phone Number" })),
            misconfigured: (404, json!({ "message": "Invalid Sender Id" })),
        },
        Subject {
            name: "twilio",
            wasm: artifacts::TWILIO,
            secret: "auth_token",
            settings: json!({ "account_sid": "AC1", "sender": "+15005550006" }),
            path: "/2010-04-01/Accounts/AC1/Messages.json",
            accepted: (201, json!({ "sid": "id-1", "status": "queued", "error_code": null })),
            refused: (201, json!({ "sid": "id-1", "status": "failed", "error_code": 21610 })),
            misconfigured: (400, json!({ "code": 21606, "message": NUMBER, "status": 400 })),
        },
    ]
}

#[test]
fn every_built_in_gateway_is_tested() {
    let kind = |wasm| Manifest::read(wasm).expect("a built-in component").kind;
    let gateways =
        artifacts::BUILT_IN.iter().filter(|component| kind(component.wasm) == PluginKind::Sms);
    let names: Vec<&str> = gateways.map(|component| component.name).collect();
    assert_eq!(names, subjects().map(|subject| subject.name));
}

/// A request that the upstream received.
#[derive(Clone, Debug)]
struct ReceivedRequest {
    path: String,
    headers: HeaderMap,
    body: String,
}

#[derive(Clone)]
struct Upstream {
    url: String,
    response: Arc<Mutex<(u16, Value)>>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Upstream {
    async fn start() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (response, requests) = (Arc::new(Mutex::new((500, Value::Null))), Arc::default());
        let upstream = Upstream { url, response, requests };
        let router = Router::new().fallback(Upstream::handle).with_state(upstream.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        upstream
    }

    async fn handle(
        State(upstream): State<Upstream>,
        uri: axum::http::Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> (StatusCode, axum::Json<Value>) {
        let body = String::from_utf8(body.to_vec()).expect("a text");
        let path = uri.path().to_owned();
        upstream.requests.lock().unwrap().push(ReceivedRequest { path, headers, body });
        let (status, body) = upstream.response.lock().unwrap().clone();
        (StatusCode::from_u16(status).expect("a status"), axum::Json(body))
    }

    async fn send(
        &self,
        app: &TestApp,
        name: &str,
        response: &(u16, Value),
    ) -> Result<String, CallError> {
        *self.response.lock().unwrap() = response.clone();
        send(app, name, NUMBER).await
    }

    fn last(&self) -> ReceivedRequest {
        self.requests.lock().unwrap().last().expect("a request").clone()
    }

    async fn set_up(&self, app: &TestApp, subject: &Subject) -> Value {
        app.install(subject.wasm).await;
        let set = json!({ "credentials": subject.credentials(&self.url) });
        let path = format!("/providers/{}", subject.name);
        app.operator(Method::PUT, &path, set).await.data().clone()
    }
}

/// Sends a message through the account that the company uses.
async fn send(app: &TestApp, name: &str, to: &str) -> Result<String, CallError> {
    let account = usable(app, name).await.expect("an account");
    let credentials = account.open_credentials(&app.app).expect("credentials");
    let gateway = app.app.plugins.gateway(name, "").expect("a gateway");
    let message = TextMessage {
        to: to.to_owned(),
        sender: String::new(),
        text: TEXT.to_owned(),
        reference: "message-1".to_owned(),
    };
    gateway.send_text(&credentials, &message).await
}

async fn usable(app: &TestApp, name: &str) -> Option<Account> {
    let find = async |tx: &mut store::Tx| {
        let company = companies::get(tx, &app.company.id).await?;
        providers::find_usable(tx, &company, name).await
    };
    app.app.store.read(find).await.expect("the accounts").ok()
}

both! {
    async fn a_gateway_with_an_account_sends_messages(app: TestApp) {
        let upstream = Upstream::start().await;
        for subject in subjects() {
            let name = subject.name;
            let path = format!("/providers/{name}");
            let unknown = app.operator(Method::PUT, &path, json!({})).await;
            assert_eq!(unknown.failure(), (404, "provider not found"));
            let installed = app.install(subject.wasm).await;
            assert_eq!((&installed["interfaces"], &installed["manifest"]["kind"]), (&json!(["sms"]), &json!("sms")));
            let refused = app.operator(Method::PUT, &path, json!({ "credentials": {} })).await;
            let (status, message) = refused.failure();
            assert!(status == 400 && message.contains(&format!("credentials.{}", subject.secret)), "{message}");
            // All missing settings are named at once.
            let settings = subject.settings.as_object().expect("an object").keys();
            let named = settings.filter(|setting| message.contains(&format!("credentials.{setting}"))).count();
            assert_eq!(named, subject.settings.as_object().map_or(0, serde_json::Map::len), "{message}");
            assert!(usable(app, name).await.is_none());

            let account = upstream.set_up(app, &subject).await;
            assert_eq!((&account["has_credentials"], &account["notification_url"]), (&json!(true), &Value::Null));
            let id = upstream.send(app, name, &subject.accepted).await.expect("an accepted message");
            assert_eq!(id, "id-1");
            let request = upstream.last();
            assert_eq!(request.path, subject.path);
            let body = request.body.replace("%20", " ").replace("%2B", "+");
            assert!(body.contains(&NUMBER[1..]) && body.contains(TEXT), "{body}");
        }
        let key = |request: &ReceivedRequest, name: &str| request.headers[name].to_str().expect("a text").to_owned();
        let [africastalking, termii, twilio] = &upstream.requests.lock().unwrap()[..] else { panic!("three messages") };
        assert_eq!(key(africastalking, "apikey"), SECRET);
        assert_eq!(serde_json::from_str::<Value>(&termii.body).unwrap()["api_key"], SECRET);
        // AC1:gateway_secret_of_the_service
        assert_eq!(key(twilio, "authorization"), "Basic QUMxOmdhdGV3YXlfc2VjcmV0X29mX3RoZV9zZXJ2aWNl");
    }

    async fn a_failed_message_has_a_category_and_a_certainty(app: TestApp) {
        let upstream = Upstream::start().await;
        let unreadable = (200, json!("?"));
        let overloaded = (503, Value::Null);
        for subject in subjects() {
            upstream.set_up(app, &subject).await;
            for (response, categories, certainty) in [
                (&subject.refused, &[FaultCategory::Invalid, FaultCategory::Refused][..], Certainty::NotDone),
                (&subject.misconfigured, &[FaultCategory::Misconfigured], Certainty::NotDone),
                (&unreadable, &[FaultCategory::Unavailable], Certainty::Unknown),
                (&overloaded, &[FaultCategory::Unavailable], Certainty::Unknown),
            ] {
                let error = upstream.send(app, subject.name, response).await.expect_err("no message");
                let what = format!("{}: {response:?}: {error:?}", subject.name);
                assert!(categories.contains(&error.fault.category), "{what}");
                assert_eq!(error.certainty, certainty, "{what}");
                let fault = format!("{:?}", error.fault);
                assert!(![&NUMBER[1..], TEXT, SECRET].iter().any(|private| fault.contains(private)), "{what}");
            }
        }
    }

    async fn the_simulators_deliver_messages_and_reject_some(app: TestApp) {
        use FaultCategory::{Invalid, Refused, Unavailable};
        let (mailbox, faults) = (app.simulators.mailbox(), app.simulators.faults());
        let received = || mailbox.list(Some(NUMBER)).len();
        for subject in subjects() {
            let name = subject.name;
            app.install(subject.wasm).await;
            let api = if name == "termii" { "/api" } else { "" };
            let base_url = format!("{}/{name}{api}", app.simulators.url());
            let set = json!({ "credentials": subject.credentials(&base_url) });
            app.operator(Method::PUT, &format!("/providers/{name}"), set).await.data();

            let before = received();
            assert!(!send(app, name, NUMBER).await.expect("an accepted message").is_empty());
            assert_eq!(received(), before + 1, "{name}");
            assert_eq!(mailbox.list(None)[0].text, TEXT);
            for (ending, category) in [("0000", Refused), ("0001", Invalid), ("0002", Unavailable)] {
                let error = send(app, name, &format!("+234801234{ending}")).await.expect_err("no message");
                assert_eq!(error.fault.category, category, "{name} {ending}: {error:?}");
            }
            faults.push(Fault::new(name, FaultKind::Decline));
            let declined = send(app, name, NUMBER).await.expect_err("a refused recipient");
            assert_eq!((declined.fault.category, declined.certainty), (Refused, Certainty::NotDone), "{name}");
            faults.push(Fault::new(name, FaultKind::CutAfter));
            let lost = send(app, name, NUMBER).await.expect_err("no response");
            assert_eq!(lost.certainty, Certainty::Unknown, "{name}: {lost:?}");
            assert_eq!(received(), before + 2, "{name}");
        }
    }

    async fn a_gateway_without_an_active_account_and_credentials_is_not_used(app: TestApp) {
        let upstream = Upstream::start().await;
        let [_, termii, _] = subjects();
        let service = upstream.set_up(app, &termii).await["account"].clone();
        let own = format!("/companies/{}/providers/termii", app.company.id);
        let used = async || usable(app, "termii").await.map(|account| json!(account.id));
        let set = async |path: &str, body: Value| app.operator(Method::PUT, path, body).await.data()["account"].clone();
        assert_eq!(used().await, Some(service.clone()));

        let of_company = set(&own, json!({ "credentials": termii.credentials(&upstream.url) })).await;
        assert_eq!(used().await, Some(of_company.clone()));
        set(&own, json!({ "credentials": null })).await;
        assert_eq!(used().await, Some(service));
        set(&own, json!({ "active": false })).await;
        assert_eq!(used().await, None);
        set(&own, json!({ "credentials": termii.credentials(&upstream.url), "active": true })).await;
        assert_eq!(used().await, Some(of_company));
        set("/providers/termii", json!({ "active": false })).await;
        assert_eq!(used().await, None);
    }

    async fn a_gateway_is_not_a_provider_and_a_provider_is_not_a_gateway(app: TestApp) {
        let upstream = Upstream::start().await;
        let [_, termii, _] = subjects();
        upstream.set_up(app, &termii).await;
        let plugins = &app.app.plugins;
        assert!(plugins.provider("termii", "").is_err() && plugins.gateway("provider_a", "").is_none());
        assert_eq!(plugins.names(PluginKind::Provider), ["provider_a"]);
        assert_eq!(plugins.names(PluginKind::Sms), ["termii"]);

        let choose = json!({ "payment_service": "termii" });
        let chosen = app.operator(Method::PATCH, &format!("/companies/{}", app.company.id), choose).await;
        assert_eq!(chosen.failure(), (400, "the payment_service field must be one of provider_a"));
        let mut order = app.order("order-1");
        order["payment_service"] = json!("termii");
        let refused = app.post("/payment/initialize", order).await;
        let message = "the payment_service field must be one of provider_a, provider_b, provider_c";
        assert_eq!(refused.failure(), (400, message));
        let account = usable(app, "termii").await.expect("an account").id;
        let notified = reply(app.client.post(format!("{}/api/v1/notifications/termii/{account}", app.api))).await;
        assert_eq!(notified.failure().0, 404);
    }

    async fn a_plugin_cannot_replace_one_of_another_kind(app: TestApp) {
        let named = |wasm: &[u8], name: &str| repack(wasm, |manifest| {
            manifest["name"] = json!(name);
            manifest["version"] = json!("2.0.0");
        });
        app.install(artifacts::TERMII).await;
        let install = async |wasm: Vec<u8>| -> Reply {
            let request = app.client.post(format!("{}/internal/v1/plugins?grant=true", app.internal));
            reply(request.bearer_auth(crate::app::OPERATOR_TOKEN).body(wasm)).await
        };
        for (wasm, name) in [(artifacts::TERMII, "provider_a"), (artifacts::SPROUT, "termii")] {
            let message = format!("{name} was a plugin of another kind in version 1.0.0; give the new one another name");
            assert_eq!(install(named(wasm, name)).await.failure(), (400, &*message));
        }
        assert!(app.app.plugins.provider("provider_a", "").is_ok() && app.app.plugins.gateway("termii", "").is_some());
    }
}

#[test]
fn a_gateway_can_reach_only_its_configured_address() {
    for subject in subjects() {
        let manifest = Manifest::read(subject.wasm).expect("a built-in component");
        assert!(manifest.hosts.is_empty(), "{}", subject.name);
        let base = manifest.settings["base_url"].default.as_deref().expect("a default");
        assert_eq!(Url::parse(base).expect("a URL").scheme(), "https");
    }
}
