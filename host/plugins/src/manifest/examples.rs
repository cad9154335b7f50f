//! Example calls, the same for all plugins, and the canned upstream responses in a manifest.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    CardOrder, CheckoutOrder, Credentials, DebitOrder, IdentityQuery, IdentityType, Image,
    Manifest, Person, PluginHandle, RefundOrder, TextMessage,
    runtime::{session::Grant, vault::Placeholders},
};
use tollhouse_platform::{
    outbound::egress::{EgressError, EgressRequest, EgressResponse},
    values::money::{Minor, Money},
};

/// Fixed arguments of all example calls, so that authors can write matching responses.
pub const SERVICE_REF: &str = "example-1";
const TRANSACTION_ID: &str = "1001";
const REFUND_ID: &str = "2001";
const AMOUNT: Minor = Minor(500_000);
pub const EMAIL: &str = "ada@example.com";
/// Value of every secret.
pub const SECRET: &str = "example-secret";
/// Value of every setting without a default.
const SETTING: &str = "example";
const URL_SETTING: &str = "https://provider.example";

/// The manifest key `examples`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Examples {
    /// Canned upstream responses. The first match is returned; without a match, 503.
    #[serde(default)]
    answers: Vec<ExampleAnswer>,
    /// A webhook signed with the secret `example-secret`; by default, an unsigned one is sent.
    #[serde(default)]
    notification: ExampleNotification,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct ExampleAnswer {
    /// Method and end of the URL without its query, for example `POST /transaction/initialize`.
    to: String,
    #[serde(default = "ok")]
    status: u16,
    /// A string is sent as it is, any other value as JSON.
    body: Value,
}

fn ok() -> u16 {
    200
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct ExampleNotification {
    /// Names in lower case.
    headers: BTreeMap<String, String>,
    body: String,
}

impl Examples {
    /// Returns the script that replaces the upstream.
    pub fn script(
        &self,
    ) -> impl Fn(&EgressRequest) -> Result<EgressResponse, EgressError> + Send + Sync + 'static
    {
        let matcher = self.matcher();
        let none = EgressResponse { status: 503, headers: Vec::new(), body: Bytes::new() };
        move |request| Ok(matcher(request).unwrap_or_else(|| none.clone()))
    }

    /// Returns a function that finds the response to a request.
    pub fn matcher(
        &self,
    ) -> impl Fn(&EgressRequest) -> Option<EgressResponse> + Send + Sync + 'static {
        let answers = self.answers.iter().filter_map(|example| {
            let (method, end) = example.to.split_once(' ')?;
            let body = match &example.body {
                Value::String(text) => text.clone(),
                json => json.to_string(),
            };
            let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
            let answer = EgressResponse { status: example.status, headers, body: body.into() };
            Some((method.to_owned(), end.to_owned(), answer))
        });
        let answers: Vec<(String, String, EgressResponse)> = answers.collect();
        move |request| {
            let path = request.url.split('?').next().unwrap_or_default();
            let fitting = answers
                .iter()
                .find(|(method, end, _)| *method == request.method && path.ends_with(end.as_str()));
            fitting.map(|(.., answer)| answer.clone())
        }
    }
}

impl Credentials {
    /// Returns example values for all secrets, and for settings without a default.
    #[must_use]
    pub fn example(manifest: &Manifest) -> Credentials {
        let secrets = manifest.secrets.names().map(|name| (name.clone(), SECRET.to_owned()));
        let unset = manifest.settings.iter().filter(|(_, setting)| setting.default.is_none());
        let settings = unset.map(|(name, setting)| {
            let value = if setting.kind == "url" { URL_SETTING } else { SETTING };
            (name.clone(), value.to_owned())
        });
        let values: HashMap<String, String> = secrets.chain(settings).collect();
        Credentials { id: "example".to_owned(), values }
    }
}

/// A call with its arguments, serialized by function; register calls are personal and skipped.
#[derive(Clone, Serialize, Deserialize)]
pub enum Call {
    #[serde(rename = "checkout.start")]
    StartCheckout(CheckoutOrder),
    #[serde(rename = "verification.verify")]
    Verify(String),
    #[serde(rename = "saved-card.charge")]
    ChargeCard(CardOrder),
    #[serde(rename = "saved-card.deauthorize")]
    Deauthorize(String),
    #[serde(rename = "direct-debit.debit")]
    Debit(DebitOrder),
    #[serde(rename = "refunds.start")]
    StartRefund(RefundOrder),
    #[serde(rename = "refunds.check")]
    CheckRefund(String),
    #[serde(rename = "notifications.parse")]
    ParseNotification {
        headers: Vec<(String, String)>,
        #[serde(with = "text")]
        body: Vec<u8>,
    },
    #[serde(rename = "sms.send")]
    SendText(TextMessage),
    #[serde(skip)]
    LookUp(IdentityQuery),
    #[serde(skip)]
    Compare(IdentityQuery, Image),
    #[serde(skip)]
    Read(String, Image),
}

/// Serializes bytes as text. Invalid UTF-8 is replaced.
mod text {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        String::deserialize(deserializer).map(String::into_bytes)
    }
}

impl Call {
    /// Removes the account's secrets: some providers send one with each webhook.
    pub(crate) fn without_secrets(self, grant: &Grant) -> Call {
        let Call::ParseNotification { headers, body } = self else { return self };
        let secrets = grant.secrets.redactor(&Placeholders::default());
        let clean = |(name, value): (String, String)| (name, secrets.redact_text(&value));
        let headers = headers.into_iter().map(clean).collect();
        Call::ParseNotification { headers, body: secrets.redact(&body) }
    }

    /// Returns the function's name, for example `checkout.start`.
    #[must_use]
    pub fn function(&self) -> &'static str {
        match self {
            Call::StartCheckout(_) => "checkout.start",
            Call::Verify(_) => "verification.verify",
            Call::ChargeCard(_) => "saved-card.charge",
            Call::Deauthorize(_) => "saved-card.deauthorize",
            Call::Debit(_) => "direct-debit.debit",
            Call::StartRefund(_) => "refunds.start",
            Call::CheckRefund(_) => "refunds.check",
            Call::ParseNotification { .. } => "notifications.parse",
            Call::SendText(_) => "sms.send",
            Call::LookUp(_) => "identity-lookup.lookup",
            Call::Compare(..) => "identity-face.compare",
            Call::Read(..) => "identity-document.read",
        }
    }

    /// Returns one call of each function that the plugin exports.
    #[must_use]
    pub fn examples(plugin: &PluginHandle) -> Vec<Call> {
        let manifest = plugin.manifest();
        let calls = [
            Call::StartCheckout(checkout_order(manifest)),
            Call::Verify(SERVICE_REF.to_owned()),
            Call::ChargeCard(card_order(manifest)),
            Call::Deauthorize("example-token".to_owned()),
            Call::Debit(debit_order(manifest)),
            Call::StartRefund(refund_order(manifest)),
            Call::CheckRefund(REFUND_ID.to_owned()),
            notification(&manifest.examples.notification),
            Call::SendText(text_message()),
        ];
        let calls = calls.into_iter().chain(lookups(manifest));
        let interface = |call: &Call| call.function().split('.').next().unwrap_or_default();
        calls.filter(|call| plugin.exports(interface(call))).collect()
    }
}

fn amount(manifest: &Manifest) -> Money {
    let currency = manifest.currencies.first().map_or("NGN", String::as_str);
    Money { minor: AMOUNT, currency: currency.into() }
}

fn checkout_order(manifest: &Manifest) -> CheckoutOrder {
    CheckoutOrder {
        service_ref: SERVICE_REF.to_owned(),
        amount: amount(manifest),
        email: EMAIL.to_owned(),
        customer_name: Some("Ada Obi".to_owned()),
        narration: "Example".to_owned(),
        channels: Vec::new(),
        success_url: "https://shop.example/done".to_owned(),
        cancel_url: None,
        metadata: r#"{"order":"1"}"#.to_owned(),
        save_instrument: false,
    }
}

fn card_order(manifest: &Manifest) -> CardOrder {
    CardOrder {
        token: "example-token".to_owned(),
        email: EMAIL.to_owned(),
        amount: amount(manifest),
        service_ref: SERVICE_REF.to_owned(),
        narration: "Example".to_owned(),
        metadata: r#"{"order":"1"}"#.to_owned(),
    }
}

fn debit_order(manifest: &Manifest) -> DebitOrder {
    let CardOrder { token, email, amount, service_ref, narration, metadata } = card_order(manifest);
    DebitOrder { mandate: token, email, amount, service_ref, narration, metadata }
}

fn refund_order(manifest: &Manifest) -> RefundOrder {
    RefundOrder {
        service_ref: SERVICE_REF.to_owned(),
        transaction_id: TRANSACTION_ID.to_owned(),
        refund_ref: "example-refund-1".to_owned(),
        amount: amount(manifest),
        reason: "Example".to_owned(),
    }
}

fn notification(ExampleNotification { headers, body }: &ExampleNotification) -> Call {
    Call::ParseNotification {
        headers: headers.clone().into_iter().collect(),
        body: body.clone().into_bytes(),
    }
}

fn text_message() -> TextMessage {
    TextMessage {
        to: "+2348012345678".to_owned(),
        sender: String::new(),
        text: "Example".to_owned(),
        reference: SERVICE_REF.to_owned(),
    }
}

/// Returns one call per lookup method: by number, face and document.
fn lookups(manifest: &Manifest) -> Vec<Call> {
    let types = manifest.country.iter().flat_map(|country| &country.identities);
    let first = |fits: fn(&IdentityType) -> bool| types.clone().find(|identity| fits(identity));
    let question = |identity: &IdentityType| IdentityQuery {
        identity: identity.name.clone(),
        identifier: identity.example.clone(),
        person: Some(Person {
            first_name: "Ada".to_owned(),
            last_name: "Obi".to_owned(),
            date_of_birth: Some("1990-12-10".to_owned()),
        }),
    };
    let image =
        || Image { media_type: "image/jpeg", bytes: Bytes::from_static(&[0xff, 0xd8, 0xff]) };
    let lookup = first(|_| true).map(|identity| Call::LookUp(question(identity)));
    let face =
        first(|identity| identity.face).map(|identity| Call::Compare(question(identity), image()));
    let document = first(|identity| identity.document);
    let document = document.map(|identity| Call::Read(identity.name.clone(), image()));
    [lookup, face, document].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_matching_example_is_returned() {
        let examples: Examples = serde_json::from_value(json!({"answers": [
            {"to": "POST /pages", "status": 201, "body": {"id": 1}},
            {"to": "GET /pages/example-1", "body": "as it is"},
            {"to": "GET /example-1", "body": {}},
        ]}))
        .unwrap();
        let script = examples.script();
        let answer = |method: &str, url: &str| {
            let request = EgressRequest {
                sender: std::sync::Arc::default(),
                method: method.to_owned(),
                url: url.to_owned(),
                headers: vec![],
                body: None,
                timeout: std::time::Duration::ZERO,
                max_response_bytes: 0,
            };
            let EgressResponse { status, body, .. } = script(&request).unwrap();
            (status, String::from_utf8_lossy(&body).into_owned())
        };
        let to = |status, body: &str| (status, body.to_owned());
        assert_eq!(answer("POST", "https://a.example/pages"), to(201, r#"{"id":1}"#));
        assert_eq!(answer("GET", "https://a.example/pages/example-1?x=/y"), to(200, "as it is"));
        assert_eq!(answer("GET", "https://a.example/pages"), to(503, ""));
    }
}
