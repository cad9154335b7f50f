//! Example calls, with the arguments and the canned upstream responses of a manifest.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::prelude::*;
use crate::{
    AccountOrder, CardOrder, CheckoutOrder, DebitOrder, DisputeAnswer, DisputeFilter, DisputeKey,
    Evidence, IdentityQuery, IdentityType, Image, KnownRefund, KnownSession, PartialRefundOrder,
    Person, PluginData, RefundOrder, SessionRefundOrder, TextMessage, Webhook,
};
use tollhouse_platform::values::money::{Currency, Minor, Money};

/// Arguments of example calls, unless the manifest has others, so that authors can write matching
/// responses.
pub const SERVICE_REF: &str = "example-1";
const TRANSACTION_ID: &str = "1001";
const REFUND_ID: &str = "2001";
const EARLIER_REFUND_ID: &str = "2000";
const REFUND_REF: &str = "example-refund-1";
const AMOUNT: Minor = Minor(500_000);
const ACCOUNT_ID: &str = "3001";
const DISPUTE_ID: &str = "4001";
const BANK_CODE: &str = "058";
const ACCOUNT_NUMBER: &str = "0123456789";
const NAME: &str = "Ada Obi";
pub const EMAIL: &str = "ada@example.com";
const PHONE: &str = "+2348012345678";
const NOTIFICATION_URL: &str = "https://tollhouse.example/api/v1/notifications/example";
const STARTED_AT: &str = "2026-01-01T09:00:00Z";
/// Value of every secret, unless the manifest has another one.
pub const SECRET: &str = "example-secret";
/// Value of every setting without a default.
const SETTING: &str = "example";
const URL_SETTING: &str = "https://provider.example";

/// The manifest key `examples`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Examples {
    /// Canned upstream responses. The first match is returned; without a match, 503.
    #[serde(default)]
    answers: Vec<ExampleResponse>,
    /// Values of secrets and settings, if the usual example values do not fit: keys, for example.
    #[serde(default)]
    credentials: BTreeMap<String, String>,
    /// The reference of all calls. Default: `example-1`, or one derived from it that obeys the
    /// manifest's rules.
    #[serde(default)]
    reference: Option<String>,
    /// The order's metadata. Default: `{"order": "1"}`.
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    /// The payer's phone number, or the recipient's, in E.164. Default: `+2348012345678`.
    #[serde(default)]
    phone: Option<String>,
    /// The order's amount in the currency's minor unit. Default: 5,000 of the major unit.
    #[serde(default)]
    amount: Option<u64>,
    /// The payment of the calls of `sessions` and `session-refunds`.
    #[serde(default)]
    session: ExampleSession,
    /// The refund of the calls of `session-refunds`.
    #[serde(default)]
    refund: ExampleRefund,
    /// Further results of functions.
    #[serde(default)]
    cases: Vec<ExampleCase>,
    /// A webhook, signed with the secret `example-secret` if the provider signs. Required by the
    /// check.
    #[serde(default)]
    notification: ExampleNotification,
}

/// A call with other responses or arguments, and its expected result.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct ExampleCase {
    /// A name for reports, for example `declined`.
    pub name: String,
    /// A function, for example `verification.verify`.
    pub function: String,
    /// The status of the result, for example `pending`, or the category of the fault, for example
    /// `not-found`.
    pub expect: String,
    /// Responses that take precedence over `examples.answers`.
    #[serde(default)]
    answers: Vec<ExampleResponse>,
    #[serde(default)]
    notification: Option<ExampleNotification>,
    #[serde(default)]
    session: Option<ExampleSession>,
    #[serde(default)]
    refund: Option<ExampleRefund>,
    #[serde(default)]
    amount: Option<u64>,
    #[serde(default)]
    phone: Option<String>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct ExampleResponse {
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

/// The data that the host keeps of a payment. Objects are sent as JSON.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct ExampleSession {
    /// The state that `sessions.start` returned.
    #[serde(default)]
    state: Option<Value>,
    /// The result of `sessions.receive`.
    #[serde(default)]
    notified: Option<Value>,
    /// The transaction id that `sessions.verify` returned. Default: `1001`.
    #[serde(default)]
    transaction_id: Option<String>,
}

/// The data that the host keeps of a refund.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct ExampleRefund {
    /// The state that `session-refunds.start` returned.
    #[serde(default)]
    state: Option<Value>,
    /// The result of `session-refunds.receive`.
    #[serde(default)]
    notified: Option<Value>,
    /// A notification of the refund.
    #[serde(default)]
    notification: ExampleNotification,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct ExampleNotification {
    /// Names in lower case.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// A string is sent as it is, any other value as JSON.
    body: Value,
}

impl ExampleNotification {
    fn to_webhook(&self) -> Webhook {
        let headers = self.headers.clone().into_iter().collect();
        Webhook { headers, body: to_bytes(&self.body) }
    }
}

/// Returns a string as it is, any other value as JSON; `null` is empty.
fn to_bytes(value: &Value) -> Bytes {
    match value {
        Value::Null => Bytes::new(),
        Value::String(text) => text.clone().into(),
        json => json.to_string().into(),
    }
}

fn to_data(value: Option<&Value>) -> Option<PluginData> {
    value.map(|value| PluginData(to_bytes(value)))
}

impl Examples {
    /// Returns the values of secrets and settings that have one of their own.
    pub fn credentials(&self) -> &BTreeMap<String, String> {
        &self.credentials
    }

    /// Returns the payer's phone number, or the recipient's.
    pub fn phone(&self) -> &str {
        self.phone.as_deref().unwrap_or(PHONE)
    }

    /// Returns the order's metadata. `None`: the default.
    #[must_use]
    pub fn metadata(&self) -> Option<&Map<String, Value>> {
        self.metadata.as_ref()
    }

    #[must_use]
    pub fn cases(&self) -> &[ExampleCase] {
        &self.cases
    }

    /// Returns the examples of a case.
    #[must_use]
    pub fn with_case(&self, case: &ExampleCase) -> Examples {
        let ExampleCase { answers, notification, session, refund, amount, phone, metadata, .. } =
            case.clone();
        let own = self.clone();
        Examples {
            answers: answers.into_iter().chain(own.answers).collect(),
            notification: notification.unwrap_or(own.notification),
            session: session.unwrap_or(own.session),
            refund: refund.unwrap_or(own.refund),
            amount: amount.or(own.amount),
            phone: phone.or(own.phone),
            metadata: metadata.or(own.metadata),
            ..own
        }
    }

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
        let examples = self.answers.clone();
        move |request| {
            let path = request.url.split('?').next().unwrap_or_default();
            let matches =
                |(method, end): (&str, &str)| method == request.method && path.ends_with(end);
            let example =
                examples.iter().find(|example| example.to.split_once(' ').is_some_and(matches))?;
            let body = to_bytes(&example.body);
            let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
            Some(EgressResponse { status: example.status, headers, body })
        }
    }
}

impl Credentials {
    /// Returns example values for all secrets, and for settings without a default.
    pub fn example(manifest: &Manifest) -> Credentials {
        let secrets = manifest.secrets.names().map(|name| (name.clone(), SECRET.to_owned()));
        let unset = manifest.settings.iter().filter(|(_, setting)| setting.default.is_none());
        let settings = unset.map(|(name, setting)| {
            let value = if setting.kind == "url" { URL_SETTING } else { SETTING };
            (name.clone(), value.to_owned())
        });
        let own = manifest.examples.credentials.clone();
        let values: HashMap<String, String> = secrets.chain(settings).chain(own).collect();
        Credentials { id: "example".to_owned(), values }
    }
}

impl CheckoutOrder {
    /// Returns an order that obeys the manifest.
    pub fn example(manifest: &Manifest) -> CheckoutOrder {
        CheckoutOrder {
            service_ref: reference(manifest),
            amount: amount(manifest),
            email: EMAIL.to_owned(),
            phone: Some(phone(manifest)),
            customer_name: Some(NAME.to_owned()),
            narration: "Example".to_owned(),
            channels: Vec::new(),
            success_url: "https://shop.example/done".to_owned(),
            cancel_url: None,
            notification_url: NOTIFICATION_URL.to_owned(),
            metadata: metadata(manifest),
            save_instrument: false,
        }
    }
}

impl Call {
    /// Returns one call of each function that the plugin exports.
    pub fn examples(plugin: &PluginHandle) -> Vec<Call> {
        let calls = Call::all_examples(plugin.manifest());
        calls.filter(|call| plugin.exports(call.interface())).collect()
    }

    /// Returns the call of a case. `None`: the plugin has no such function.
    #[must_use]
    pub fn of_case(plugin: &PluginHandle, case: &ExampleCase) -> Option<Call> {
        let mut manifest = plugin.manifest().clone();
        manifest.examples = manifest.examples.with_case(case);
        let mut calls = Call::all_examples(&manifest);
        calls.find(|call| call.function() == case.function && plugin.exports(call.interface()))
    }

    /// Returns one call of each function; for registers, of those with a fitting identity type.
    pub(crate) fn all_examples(manifest: &Manifest) -> impl Iterator<Item = Call> {
        let Examples {
            notification, refund: ExampleRefund { notification: of_refund, .. }, ..
        } = &manifest.examples;
        let calls = [
            Call::StartCheckout(CheckoutOrder::example(manifest)),
            Call::Verify(reference(manifest)),
            Call::StartSession(CheckoutOrder::example(manifest)),
            Call::VerifySession(known_session(manifest)),
            Call::ReceiveForSession(known_session(manifest), notification.to_webhook()),
            Call::StartSessionRefund(session_refund_order(manifest)),
            Call::CheckSessionRefund(known_refund(manifest)),
            Call::ReceiveForRefund(known_refund(manifest), of_refund.to_webhook()),
            Call::ChargeCard(card_order(manifest)),
            Call::Deauthorize("example-token".to_owned()),
            Call::Debit(debit_order(manifest)),
            Call::StartRefund(refund_order(manifest)),
            Call::CheckRefund(REFUND_ID.to_owned()),
            Call::StartPartialRefund(partial_refund_order(manifest)),
            Call::OpenAccount(account_order(manifest)),
            Call::CloseAccount(ACCOUNT_ID.to_owned()),
            Call::FindTransfer(reference(manifest)),
            Call::ListBanks(currency(manifest).to_string()),
            Call::ResolveAccount(BANK_CODE.to_owned(), ACCOUNT_NUMBER.to_owned()),
            Call::ListDisputes(of_payment(manifest), None),
            Call::FetchDispute(dispute_key(manifest)),
            Call::AnswerDispute(dispute_answer(manifest)),
            Call::ParseNotification(notification.to_webhook()),
            Call::SendText(text_message(manifest)),
        ];
        calls.into_iter().chain(lookups(manifest))
    }
}

fn of_payment(manifest: &Manifest) -> DisputeFilter {
    DisputeFilter::Payment(reference(manifest), TRANSACTION_ID.to_owned())
}

fn dispute_key(manifest: &Manifest) -> DisputeKey {
    DisputeKey {
        id: DISPUTE_ID.to_owned(),
        service_ref: reference(manifest),
        transaction_id: TRANSACTION_ID.to_owned(),
    }
}

fn dispute_answer(manifest: &Manifest) -> DisputeAnswer {
    DisputeAnswer {
        key: dispute_key(manifest),
        amount: amount(manifest),
        evidence: Some(Evidence {
            customer_name: NAME.to_owned(),
            customer_email: EMAIL.to_owned(),
            customer_phone: Some(phone(manifest)),
            service: "Example".to_owned(),
            document_url: None,
        }),
        message: "Example".to_owned(),
    }
}

fn reference(manifest: &Manifest) -> String {
    let own = manifest.examples.reference.clone();
    own.unwrap_or_else(|| manifest.reference.conform(SERVICE_REF))
}

fn currency(manifest: &Manifest) -> Currency {
    manifest.currencies.first().map_or("NGN", String::as_str).into()
}

fn amount(manifest: &Manifest) -> Money {
    let currency = currency(manifest);
    let own = manifest.examples.amount;
    own.and_then(|minor| Money::from_iso_minor(minor, currency.clone()))
        .unwrap_or(Money { minor: AMOUNT, currency })
}

fn phone(manifest: &Manifest) -> String {
    manifest.examples.phone().to_owned()
}

fn metadata(manifest: &Manifest) -> String {
    let own = manifest.examples.metadata.clone();
    own.map_or_else(|| r#"{"order":"1"}"#.to_owned(), |own| Value::Object(own).to_string())
}

fn known_session(manifest: &Manifest) -> KnownSession {
    let ExampleSession { state, notified, transaction_id } = &manifest.examples.session;
    KnownSession {
        service_ref: reference(manifest),
        transaction_id: transaction_id.clone().unwrap_or_else(|| TRANSACTION_ID.to_owned()),
        amount: amount(manifest),
        started_at: STARTED_AT.to_owned(),
        state: to_data(state.as_ref()),
        notified: to_data(notified.as_ref()),
    }
}

fn session_refund_order(manifest: &Manifest) -> SessionRefundOrder {
    let RefundOrder { refund_ref, amount, reason, .. } = refund_order(manifest);
    let (session, notification_url) = (known_session(manifest), NOTIFICATION_URL.to_owned());
    SessionRefundOrder { session, refund_ref, amount, reason, notification_url }
}

fn known_refund(manifest: &Manifest) -> KnownRefund {
    let SessionRefundOrder { session, refund_ref, amount, .. } = session_refund_order(manifest);
    let ExampleRefund { state, notified, .. } = &manifest.examples.refund;
    KnownRefund {
        session,
        refund_ref,
        amount,
        provider_id: REFUND_ID.to_owned(),
        state: to_data(state.as_ref()),
        notified: to_data(notified.as_ref()),
    }
}

fn account_order(manifest: &Manifest) -> AccountOrder {
    AccountOrder {
        account_ref: reference(manifest),
        currency: currency(manifest).to_string(),
        email: EMAIL.to_owned(),
        name: NAME.to_owned(),
        phone: Some(phone(manifest)),
        identity: Some(("bvn".to_owned(), "22222222222".to_owned())),
    }
}

fn card_order(manifest: &Manifest) -> CardOrder {
    CardOrder {
        token: "example-token".to_owned(),
        email: EMAIL.to_owned(),
        amount: amount(manifest),
        service_ref: reference(manifest),
        narration: "Example".to_owned(),
        metadata: metadata(manifest),
    }
}

fn debit_order(manifest: &Manifest) -> DebitOrder {
    let CardOrder { token, email, amount, service_ref, narration, metadata } = card_order(manifest);
    DebitOrder { mandate: token, email, amount, service_ref, narration, metadata }
}

/// The refund of a part, after another one.
fn partial_refund_order(manifest: &Manifest) -> PartialRefundOrder {
    let earlier = vec![EARLIER_REFUND_ID.to_owned()];
    PartialRefundOrder { order: refund_order(manifest), earlier }
}

fn refund_order(manifest: &Manifest) -> RefundOrder {
    RefundOrder {
        service_ref: reference(manifest),
        transaction_id: TRANSACTION_ID.to_owned(),
        refund_ref: manifest.reference.conform(REFUND_REF),
        amount: amount(manifest),
        reason: "Example".to_owned(),
    }
}

fn text_message(manifest: &Manifest) -> TextMessage {
    TextMessage {
        to: phone(manifest),
        sender: String::new(),
        text: "Example".to_owned(),
        reference: reference(manifest),
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
        let respond = |method: &str, url: &str| {
            let request = EgressRequest {
                sender: std::sync::Arc::default(),
                method: method.to_owned(),
                url: url.to_owned(),
                headers: vec![],
                body: None,
                identity: None,
                timeout: std::time::Duration::ZERO,
                max_response_bytes: 0,
            };
            let EgressResponse { status, body, .. } = script(&request).unwrap();
            (status, String::from_utf8_lossy(&body).into_owned())
        };
        let to = |status, body: &str| (status, body.to_owned());
        assert_eq!(respond("POST", "https://a.example/pages"), to(201, r#"{"id":1}"#));
        assert_eq!(respond("GET", "https://a.example/pages/example-1?x=/y"), to(200, "as it is"));
        assert_eq!(respond("GET", "https://a.example/pages"), to(503, ""));
    }
}
