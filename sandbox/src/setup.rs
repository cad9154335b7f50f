//! Creates the company of the sandbox, through the host's operator API.

use std::path::Path;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tollhouse_app::state::config::Config;
use tollhouse_platform::{
    clock::{Clock, Timestamp},
    crypto::tls,
};
use tollhouse_sandbox::{Hint, Link, Simulators, jenga, mpesa};

use crate::{Failure, examples::Examples};

/// The service accounts at the simulators of payment providers.
const PAYSTACK_KEY: &str = "sk_test_tollhouse_service_account";
const FLUTTERWAVE_KEY: &str = "FLWSECK_TEST-tollhouse_service_account-X";
const FLUTTERWAVE_HASH: &str = "tollhouse_webhook_hash";
const MONNIFY_KEY: &str = "MK_TEST_TOLLHOUSE1";
const MONNIFY_SECRET: &str = "tollhouse_service_account";
const MONNIFY_CONTRACT: &str = "4934121686";
/// In the major unit; large enough for any amount of testing.
const INITIAL_CREDIT: u64 = 5_000_000;

/// The addresses and credentials of a running sandbox.
pub struct SandboxInfo {
    api: String,
    internal: String,
    operator_token: String,
    sandbox: String,
    smtp: String,
    company_id: String,
    api_key: String,
    event_secret: String,
    /// The page on which a person sets a password for the console.
    console: String,
}

/// Roles for all areas. `administrator` is absent: it would disable the operator token.
const ROLES: [&str; 5] = ["support-act", "finance-act", "platform", "company-admin", "security"];

/// The e-mail address of the company's owner, whose invitation to the portal is in the mailbox.
const OWNER: &str = "owner@lending.example";

/// Creates what a company needs, and example data up to `examples_end` if there is one.
pub async fn run(
    config: &Config,
    simulators: &Simulators,
    clock: &Clock,
    examples_end: Option<Timestamp>,
) -> Result<SandboxInfo, Failure> {
    let client = tls::http_client().build()?;
    let internal = format!("http://{}", config.listeners.internal_listen);
    let token = config.operator_token.read()?;
    let url = format!("{internal}/internal/v1");
    let operator = Caller { client: client.clone(), url, token };
    for plugin in artifacts::BUILT_IN {
        operator.install(plugin.wasm).await?;
    }
    let sandbox = simulators.url();
    for (provider, credentials, configure_webhook) in provider_accounts(&sandbox) {
        if is_built_in(provider) {
            let set = json!({ "credentials": credentials, "active": true, "mode": "test" });
            let path = format!("/providers/{provider}");
            let account = operator.json(Method::PUT, &path, &set).await?;
            configure_webhook(simulators, text(&account, "notification_url")?);
        }
    }
    for (gateway, credentials) in gateway_accounts(&sandbox) {
        let set = json!({ "credentials": credentials, "active": true, "mode": "test" });
        operator.json(Method::PUT, &format!("/providers/{gateway}"), &set).await?;
    }
    for (country, credentials) in country_accounts(&sandbox) {
        if is_built_in(country) {
            let set = json!({ "credentials": credentials, "active": true, "mode": "test" });
            operator.json(Method::PUT, &format!("/providers/{country}"), &set).await?;
        }
    }

    let prices = json!({ "otp.email": 2.5, "otp.sms": 4 });
    operator.json(Method::PATCH, "/prices", &prices).await?;

    let company = json!({
        "name": "Sandbox Lending",
        "server": "test",
        "event_url": format!("{sandbox}/events"),
    });
    let company = operator.json(Method::POST, "/companies", &company).await?;
    let (id, event_secret) = (text(&company, "id")?, text(&company, "event_secret")?);
    simulators.set_event_secret(id, event_secret);
    let credit = json!({ "amount": INITIAL_CREDIT, "currency": "NGN", "key": "sandbox" });
    operator.json(Method::POST, &format!("/companies/{id}/wallet/credit"), &credit).await?;
    if let Some(now) = examples_end {
        let url = format!("http://{}/api/v1", config.listeners.listen);
        let company = Caller { client, url, token: text(&company, "api_key")?.to_owned() };
        let operator = &operator;
        let examples = Examples { company, company_id: id, operator, simulators, clock, now };
        examples.create().await?;
    }
    let owner = json!({ "email": OWNER, "role": "company-owner" });
    operator.json(Method::POST, &format!("/companies/{id}/members"), &owner).await?;
    let person = json!({ "name": "ada", "email": "ada@tollhouse.example", "roles": ROLES });
    let person = operator.json(Method::POST, "/operators", &person).await?;
    let invite = format!("/operators/{}/invite", text(&person, "id")?);
    let invited = operator.json(Method::POST, &invite, &json!({})).await?;
    let invitation = text(&invited, "invitation")?;
    Ok(SandboxInfo {
        console: format!("{internal}/console/welcome/{invitation}"),
        api: format!("http://{}", config.listeners.listen),
        internal,
        operator_token: operator.token.clone(),
        sandbox,
        smtp: simulators.smtp_addr().to_string(),
        company_id: id.to_owned(),
        api_key: text(&company, "api_key")?.to_owned(),
        event_secret: event_secret.to_owned(),
    })
}

/// Registers the webhook URL of the service account at a simulator.
type SetWebhook = fn(&Simulators, notification_url: &str);

/// The service accounts at the simulators of payment providers.
fn provider_accounts(sandbox: &str) -> [(&'static str, Value, SetWebhook); 5] {
    [
        (
            "provider_a",
            json!({ "secret_key": PAYSTACK_KEY, "base_url": format!("{sandbox}/paystack") }),
            |simulators, url| simulators.paystack().set_webhook(PAYSTACK_KEY, url),
        ),
        (
            "provider_b",
            json!({
                "secret_key": FLUTTERWAVE_KEY, "webhook_hash": FLUTTERWAVE_HASH,
                "base_url": format!("{sandbox}/flutterwave/v3"),
            }),
            |simulators, url| {
                simulators.flutterwave().set_webhook(FLUTTERWAVE_KEY, FLUTTERWAVE_HASH, url);
            },
        ),
        (
            "provider_c",
            json!({
                "api_key": MONNIFY_KEY, "secret_key": MONNIFY_SECRET,
                "contract_code": MONNIFY_CONTRACT, "base_url": format!("{sandbox}/monnify"),
            }),
            |simulators, url| simulators.monnify().set_webhook(MONNIFY_KEY, MONNIFY_SECRET, url),
        ),
        // Each push and each reversal has a URL of its own.
        ("mpesa", mpesa_credentials(sandbox), |_, _| {}),
        ("jenga", jenga_credentials(sandbox), |_, _| {}),
    ]
}

fn mpesa_credentials(sandbox: &str) -> Value {
    let account = mpesa::Credentials::default();
    json!({
        "consumer_key": account.consumer_key, "consumer_secret": account.consumer_secret,
        "shortcode": account.shortcode, "passkey": account.passkey,
        "initiator_name": account.initiator, "initiator_password": account.initiator_password,
        "certificate": mpesa::CERTIFICATE, "base_url": format!("{sandbox}/mpesa"),
    })
}

fn jenga_credentials(sandbox: &str) -> Value {
    let account = jenga::Credentials::default();
    json!({
        "merchant_code": account.merchant_code, "api_key": account.api_key,
        "consumer_secret": account.consumer_secret, "account_number": account.account_number,
        "merchant_name": account.merchant_name, "private_key": jenga::PRIVATE_KEY,
        "base_url": format!("{sandbox}/jenga"),
    })
}

/// The service accounts at the simulators of SMS gateways, which accept any credentials.
fn gateway_accounts(sandbox: &str) -> [(&'static str, Value); 3] {
    let (key, sender) = ("tollhouse_service_account", "Tollhouse");
    let account_sid = format!("AC{}", "0".repeat(32));
    [
        (
            "termii",
            json!({ "api_key": key, "sender": sender, "base_url": format!("{sandbox}/termii/api") }),
        ),
        (
            "africastalking",
            json!({
                "api_key": key, "username": "sandbox", "base_url": format!("{sandbox}/africastalking"),
            }),
        ),
        (
            "twilio",
            json!({
                "auth_token": key, "account_sid": account_sid, "sender": sender,
                "base_url": format!("{sandbox}/twilio"),
            }),
        ),
    ]
}

/// The service accounts at the simulators of identity registers, which accept any credentials.
fn country_accounts(sandbox: &str) -> [(&'static str, Value); 2] {
    let (key, app_id) = ("tollhouse_service_account", "tollhouse");
    let prembly = json!({
        "prembly_key": key, "prembly_app_id": app_id, "prembly_url": format!("{sandbox}/prembly"),
    });
    let mut both = prembly.clone();
    both["dojah_key"] = json!(key);
    both["dojah_app_id"] = json!(app_id);
    both["dojah_url"] = json!(format!("{sandbox}/dojah"));
    [("nigeria", both), ("ghana", prembly)]
}

fn is_built_in(plugin: &str) -> bool {
    artifacts::BUILT_IN.iter().any(|component| component.name == plugin)
}

pub fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str, Failure> {
    value[name].as_str().ok_or_else(|| format!("the host's response has no {name}").into())
}

/// A client of one interface of the host.
pub struct Caller {
    pub client: Client,
    /// The address of the interface with its version.
    url: String,
    token: String,
}

impl Caller {
    pub async fn json(&self, method: Method, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send(self.client.request(method, self.path(path)).json(body)).await
    }

    async fn install(&self, wasm: &'static [u8]) -> Result<(), Failure> {
        self.send(self.client.post(self.path("/plugins?grant=true")).body(wasm)).await.map(drop)
    }

    fn path(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Value, Failure> {
        let response = request.bearer_auth(&self.token).send().await?;
        let ok = response.status().is_success();
        let mut body: Value = response.json().await?;
        match ok {
            true => Ok(body["data"].take()),
            false => Err(body["message"].as_str().unwrap_or("the host refused the request").into()),
        }
    }
}

impl SandboxInfo {
    pub fn json(&self) -> String {
        let info = json!({
            "api": self.api,
            "internal": self.internal,
            "operator_token": self.operator_token,
            "sandbox": self.sandbox,
            "smtp": self.smtp,
            "company_id": self.company_id,
            "api_key": self.api_key,
            "event_secret": self.event_secret,
            "console": self.console,
            "portal": format!("{}/portal", self.api),
            "owner": OWNER,
        });
        format!("{info:#}\n")
    }

    /// Returns commands that initialize, pay and fetch a payment, and that send, read and verify a
    /// one-time password.
    pub fn hints(&self) -> Vec<Hint> {
        let SandboxInfo { api, api_key, sandbox, .. } = self;
        let initialize = format!(
            "curl -s {api}/api/v1/payment/initialize -H 'Authorization: Bearer {api_key}' \
             -H 'Content-Type: application/json' -d '{{\"email\":\"ada@example.com\",\
             \"amount\":2500.50,\"currency\":\"NGN\",\"reference\":\"first-payment\",\
             \"checkout\":{{\"success_url\":\"{sandbox}/\"}}}}'"
        );
        let complete = format!(
            "curl -s {sandbox}/checkout/ID/complete -H 'Content-Type: application/json' \
             -d '{{\"outcome\":\"success\"}}'"
        );
        let fetch = format!(
            "curl -s {api}/api/v1/payment/fetch/reference/first-payment \
             -H 'Authorization: Bearer {api_key}'"
        );
        let post = |path: &str, body: &str| {
            format!(
                "curl -s {api}/api/v1{path} -H 'Authorization: Bearer {api_key}' \
                 -H 'Content-Type: application/json' -d '{body}'"
            )
        };
        let send = post(
            "/otp/send",
            r#"{"identifier":"ada","channels":["email","sms"],"email":"ada@example.com","phone":"+2348031234567"}"#,
        );
        let read = format!("curl -s '{sandbox}/mailbox?to=ada@example.com'");
        let verify = post("/otp/verify", r#"{"identifier":"ada","token":"CODE"}"#);
        let by_phone = format!(
            r#"{{"email":"ada@example.com","phone":"+254708374149","amount":1000,"currency":"KES","payment_service":"mpesa","reference":"by-phone-1","checkout":{{"success_url":"{sandbox}/"}}}}"#
        );
        let by_phone = post("/payment/initialize", &by_phone);
        let hint = |what: &str, command| Hint { what: what.to_owned(), command };
        let bvn = post("/kyc/nigeria/bvn/lookup", r#"{"bvn":"54651333604","send_otp":true}"#);
        let face =
            format!(r#"{{"bvn":"54651333604","image":"{sandbox}/images/match-54651333604.jpg"}}"#);
        let face = post("/kyc/nigeria/bvn/lookup/with-face", &face);
        let mut hints = vec![
            hint("Initialize a payment; the response has checkout.url", initialize),
            hint(
                "Open checkout.url in a browser and pay, or replace ID with its last segment",
                complete,
            ),
            hint(
                &format!("Check that the payment succeeded; {sandbox}/ shows the signed event"),
                fetch,
            ),
            hint("Send a one-time password by e-mail and SMS", send),
            hint(&format!("Read it, with this command or on {sandbox}/"), read),
            hint("Verify it (replace CODE)", verify),
        ];
        if is_built_in("mpesa") {
            hints.push(hint(
                "Send a push payment to a phone whose payer confirms after 3 seconds",
                by_phone,
            ));
        }
        if is_built_in("nigeria") {
            hints.push(hint(
                "Look up a person; a one-time password is sent to the contact on record",
                bvn,
            ));
            hints.push(hint("Compare a selfie with the photo on record", face));
        }
        hints
    }

    /// Returns links to the API documentation of the host.
    pub fn links(&self) -> Vec<Link> {
        let viewer =
            |what: &str, base: &str| Link { what: what.to_owned(), url: format!("{base}/docs") };
        vec![
            viewer("API documentation for companies", &self.api),
            viewer("Internal API documentation for operators", &self.internal),
            Link { what: "Console: set a password for ada".to_owned(), url: self.console.clone() },
            Link {
                what: format!("Portal: the invitation for {OWNER} is in the mailbox"),
                url: format!("{}/portal", self.api),
            },
        ]
    }

    pub fn text(&self, file: &Path) -> String {
        let tries: String = (1..)
            .zip(self.hints())
            .map(|(n, hint)| format!("  {n}. {}:\n\n     {}\n\n", hint.what, hint.command))
            .collect();
        format!(
            "
Tollhouse is running.

  API          {api}   (documentation: /docs)
  internal API {internal}   (documentation: /docs)
  console      {console}
  portal       {api}/portal   (the invitation for {OWNER} is in the mailbox)
  simulators   {sandbox}/   (open checkouts, received events, mailbox)
  SMTP         {smtp}   (delivers to the mailbox)
  company      {company}
  API key      {key}
  as JSON      {file}

Try a payment, and a one-time password:

{tries}Ctrl-C stops everything.
",
            api = self.api,
            internal = self.internal,
            console = self.console,
            sandbox = self.sandbox,
            smtp = self.smtp,
            company = self.company_id,
            key = self.api_key,
            file = file.display(),
        )
    }
}
