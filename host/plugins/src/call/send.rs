//! Sends a plugin's requests to granted origins only: inserts secrets, and redacts the responses.

use std::time::Duration;

use bytes::Bytes;
use url::Url;

use super::executor::CallExecutor;
use crate::{
    Fault, FaultCategory, Plugin,
    limits::bulkhead::{MemoryBudget, ReservedMemory},
    manifest::bindings::RequestPart,
    runtime::{
        progress::Progress,
        session::{Grant, HttpRequest, MAX_REQUEST_BYTES, Session, response_bytes},
        transcript::{RecordedResponse, TransportError},
        vault::Placeholders,
    },
};
use tollhouse_platform::outbound::egress::{EgressError, EgressRequest, EgressResponse};

/// Time reserved after a request's timeout, so that the request times out before the call.
const TIMEOUT_MARGIN: Duration = Duration::from_millis(20);

impl CallExecutor {
    /// Sends a plugin's request if its origin is granted. `Err`, for operators: it was not sent,
    /// because it has a secret where its binding forbids it.
    pub(crate) async fn send(
        &self,
        plugin: &Plugin,
        request: &HttpRequest,
        session: &Session,
        left: Duration,
        progress: &mut Progress,
    ) -> Result<Result<EgressResponse, Fault>, String> {
        let origin = match check_grant(&session.grant, &request.url) {
            Ok(origin) => origin,
            Err(fault) => return Ok(Err(fault)),
        };
        match misplaced_secret(request, session, &origin) {
            None => Ok(self.send_to(&origin, plugin, request, session, left, progress).await),
            Some(reason) => Err(reason),
        }
    }

    /// Inserts secrets, sends the request, and redacts secrets from the response.
    async fn send_to(
        &self,
        origin: &str,
        plugin: &Plugin,
        request: &HttpRequest,
        session: &Session,
        left: Duration,
        progress: &mut Progress,
    ) -> Result<EgressResponse, Fault> {
        let Some((headers, body)) = insert_secrets(request, &session.placeholders) else {
            return Err(HttpRequest::too_large_fault());
        };
        // Per account, so that one company's wrong address does not affect others.
        let key = format!("{} {origin}", session.grant.scope);
        self.check_breaker(&key, progress)?;
        let wanted = request.timeout_ms.map(|ms| Duration::from_millis(u64::from(ms)));
        let outgoing = EgressRequest {
            sender: plugin.name.clone(),
            method: request.method.clone(),
            url: request.url.clone(),
            headers,
            body,
            identity: session.grant.secrets.client_identity(origin),
            timeout: wanted.unwrap_or(left).min(left.saturating_sub(TIMEOUT_MARGIN)),
            max_response_bytes: self.limits.response_bytes,
        };
        // Until the response arrives, an abort of the call must assume that the request was sent.
        let sent_before = std::mem::replace(&mut progress.sent, true);
        let response = self.egress.send(outgoing).await;
        if let Some(breakers) = &self.breakers {
            breakers.record(&key, has_response(&response), self.clock.now());
        }
        progress.timed_out = matches!(response, Err(EgressError::Timeout(_)));
        match &response {
            Err(error) if !error.may_have_reached_upstream() => progress.sent = sent_before,
            Err(_) => progress.unanswered |= request.may_have_side_effects(),
            Ok(_) => {}
        }
        let response = response.map_err(|error| {
            progress.record_response(|| TransportError::from_egress(&error).map(Err));
            egress_fault(error)
        })?;
        let response = redact_response(response, session);
        progress.record_response(|| Some(Ok(RecordedResponse::from(&response))));
        Ok(response)
    }

    fn check_breaker(&self, key: &str, progress: &mut Progress) -> Result<(), Fault> {
        let Some(breakers) = &self.breakers else { return Ok(()) };
        breakers.admit(key, self.clock.now()).map(drop).map_err(|seconds| {
            progress.retry_after_s = Some(seconds);
            progress.record_response(|| Some(Err(TransportError::NoConnection)));
            let message = "the upstream failed repeatedly: its circuit is open";
            Fault::new(FaultCategory::Unavailable, "circuit-open", message)
        })
    }
}

/// Reserves memory for request and response. A response beyond the budget becomes a fault.
pub(crate) fn reserve_memory(
    budget: &MemoryBudget,
    reserved: &mut Vec<ReservedMemory>,
    request: &HttpRequest,
    response: Result<EgressResponse, Fault>,
    progress: &mut Progress,
) -> Result<EgressResponse, Fault> {
    let received = response.as_ref().map_or(0, response_bytes);
    if let Some(permit) = budget.try_reserve_response(request.bytes() + received) {
        reserved.push(permit);
        return response;
    }
    progress.unanswered |= request.may_have_side_effects();
    Err(Fault::new(FaultCategory::Unavailable, "busy", "the plugin's calls use too much memory"))
}

/// Returns why a request to this origin must not be sent: it has a secret where its binding forbids
/// it.
fn misplaced_secret(request: &HttpRequest, session: &Session, origin: &str) -> Option<String> {
    let HttpRequest { method, url, headers, body, .. } = request;
    let find = |text: &[u8], part: RequestPart<'_>| {
        let name = session.placeholders.find_misplaced(text, part, origin)?;
        Some(format!(
            "a request to {origin} was not sent: the secret {name} is in {part}, where the manifest does not bind it to"
        ))
    };
    // Methods and header names may change case in transit.
    let found = find(method.to_ascii_lowercase().as_bytes(), RequestPart::Method);
    let found = found.or_else(|| find(url.as_bytes(), RequestPart::Url));
    let in_header = |(name, value): &(String, String)| {
        let found = find(name.to_ascii_lowercase().as_bytes(), RequestPart::HeaderName);
        found.or_else(|| find(value.as_bytes(), RequestPart::Header(name)))
    };
    let found = found.or_else(|| headers.iter().find_map(in_header));
    found.or_else(|| find(body.as_deref().unwrap_or_default(), RequestPart::Body))
}

type FilledRequest = (Vec<(String, String)>, Option<Bytes>);

/// Inserts secrets into headers and body. `None`: the result is too large.
fn insert_secrets(request: &HttpRequest, placeholders: &Placeholders) -> Option<FilledRequest> {
    let mut left = MAX_REQUEST_BYTES;
    let mut fill = |text: &[u8]| {
        let filled = placeholders.fill(text, left)?;
        left -= filled.len();
        Some(filled)
    };
    let mut headers = Vec::with_capacity(request.headers.len());
    for (name, value) in &request.headers {
        let value = fill(value.as_bytes())?;
        headers.push((name.clone(), String::from_utf8_lossy(&value).into_owned()));
    }
    let body = match &request.body {
        Some(body) => Some(Bytes::from(fill(body)?)),
        None => None,
    };
    Some((headers, body))
}

/// Redacts secrets from a response.
fn redact_response(response: EgressResponse, session: &Session) -> EgressResponse {
    let secrets = session.grant.secrets.redactor(Some(&session.placeholders));
    let headers = response.headers.into_iter();
    let headers = headers.map(|(name, value)| (name, secrets.redact_text(&value)));
    EgressResponse {
        status: response.status,
        headers: headers.collect(),
        body: secrets.redact(&response.body).into(),
    }
}

/// Returns the URL's origin if the operator has granted it.
fn check_grant(grant: &Grant, url: &str) -> Result<String, Fault> {
    let message = match Url::parse(url).map(|url| url.origin().ascii_serialization()) {
        Ok(origin) if grant.origins.contains(&origin) => return Ok(origin),
        Ok(origin) => format!(
            "no grant for requests to {origin}: the manifest's hosts and url settings determine the permitted origins"
        ),
        Err(_) => "the URL of the request is invalid".to_owned(),
    };
    Err(Fault::new(FaultCategory::Misconfigured, "not-granted", message))
}

fn egress_fault(error: EgressError) -> Fault {
    let (category, code) = match &error {
        EgressError::Forbidden(_) => (FaultCategory::Misconfigured, "forbidden"),
        EgressError::Connect(_) => (FaultCategory::Unavailable, "connect"),
        EgressError::Timeout(_) => (FaultCategory::Unavailable, "timeout"),
        EgressError::ConnectionLost(_) | EgressError::TooLarge(_) => {
            (FaultCategory::Unavailable, "cut")
        }
    };
    Fault::new(category, code, error.to_string())
}

/// Returns whether the upstream responded. 502, 503 and 504 are a gateway's responses.
fn has_response(response: &Result<EgressResponse, EgressError>) -> bool {
    match response {
        Ok(response) => ![502, 503, 504].contains(&response.status),
        Err(EgressError::Forbidden(_) | EgressError::TooLarge(_)) => true,
        Err(EgressError::Connect(_) | EgressError::Timeout(_) | EgressError::ConnectionLost(_)) => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::runtime::{session::Journal, vault::Secrets};
    use tollhouse_platform::clock::Timestamp;

    #[test]
    fn a_request_with_a_misplaced_secret_is_not_sent() {
        let key = ("key".to_owned(), "a secret".to_owned());
        let secrets = Secrets::new([key].into());
        let grant = Arc::new(Grant { secrets, ..Grant::default() });
        let journal = Journal::new(0, [0; 32], Timestamp::default());
        let mut session = Session::new(journal, grant, "p".into(), Arc::default());
        let placeholder = session.secret("key").unwrap();
        for (url, place) in [
            ("https://a.example/".to_owned(), None),
            (format!("https://a.example/?key={placeholder}"), Some("the secret key is in the URL")),
        ] {
            let request = HttpRequest {
                method: "POST".to_owned(),
                url,
                headers: vec![("x-key".to_owned(), placeholder.clone())],
                body: Some("vault-%20".repeat(10_000).into_bytes()),
                timeout_ms: None,
            };
            let reason = misplaced_secret(&request, &session, "https://a.example");
            assert_eq!(reason.is_some(), place.is_some(), "{reason:?}");
            assert!(reason.unwrap_or_default().contains(place.unwrap_or_default()));
        }
    }
}
