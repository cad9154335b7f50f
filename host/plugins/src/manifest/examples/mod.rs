//! Example calls, with the arguments and the canned upstream responses of a manifest.

mod calls;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::prelude::*;
use crate::{PluginData, Webhook};

/// Arguments of example calls, unless the manifest has others, so that authors can write matching
/// responses.
pub const SERVICE_REF: &str = "example-1";
pub const EMAIL: &str = "ada@example.com";
const PHONE: &str = "+2348012345678";
/// Value of every secret, unless the manifest has another one.
pub const SECRET: &str = "example-secret";

/// The manifest key `examples`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Examples {
    /// Canned upstream responses. The first match is returned; without a match, 503.
    #[serde(default)]
    answers: Vec<ExampleResponse>,
    /// Values of secrets and settings that the usual example values do not fit, for example keys.
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
    /// Further calls with their expected results.
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

/// The data that the host keeps for a payment. Objects are sent as JSON.
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

/// The data that the host keeps for a refund.
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
    /// Returns the values of secrets and settings that replace the usual example values.
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
