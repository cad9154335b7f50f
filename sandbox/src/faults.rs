//! Scripted faults: failures of an upstream, one call at a time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    extract::{Request, State},
    http::{StatusCode, header::CONTENT_TYPE},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};

use crate::{locked, server::Connection};

/// Operations for which a fault can be scripted.
pub const OPERATIONS: [&str; 39] = [
    "login", "initialize", "verify", "fetch", "list", "charge", "authorize", "token", "deactivate",
    "refund", "refund_status", "refund_list", "refund_retry", "chargeback_list", "dispute",
    "dispute_list", "dispute_evidence", "dispute_answer", "mandate", "mandate_verify",
    "mandate_list", "mandate_activate", "reserve", "reserve_status", "deallocate", "banks",
    "resolve", "bin", "resend", "settlement", "settlement_list", "notification", "events",
    "termii", "africastalking", "twilio", "smtp", "prembly", "dojah",
];

/// The kind of failure. Unless stated otherwise, a kind applies to API calls, and to e-mails at the
/// end of their content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Waits `delay_ms`, then processes the request.
    Slow,
    /// Processes the request, then waits `delay_ms` before the response.
    SlowAfter,
    /// Drops the connection without processing the request. A webhook is lost.
    Cut,
    /// Processes the request and drops the connection without a response.
    CutAfter,
    /// Returns 500 (SMTP: 451) without processing the request.
    Error500,
    /// Returns 401 without processing the request, as if the key had been revoked.
    Error401,
    /// Returns 200 with truncated JSON, without processing the request. A webhook's body is
    /// truncated, with a valid signature. SMTP replies without a code.
    Malformed,
    /// Webhooks: sent twice.
    Duplicate,
    /// Webhooks: held until `release`.
    Hold,
    /// Webhooks: held until `times` of them are queued (or `release`), then sent in reverse order.
    Reorder,
    /// Charges of a saved card or mandate: declined by the bank. Text messages and e-mails: the
    /// recipient is refused.
    Decline,
    /// Charges of a saved card: paused until the customer completes a page.
    Challenge,
    /// Charges of a saved card or mandate: the account has half of the amount, so a whole charge is
    /// declined.
    Partial,
    /// Charges of a saved card: pending until a test resolves them.
    Pending,
}

/// Why a bank declines a charge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeclineReason {
    #[default]
    InsufficientFunds,
    Expired,
    LostOrStolen,
    Blocked,
    Limit,
    TryLater,
    Other,
}

impl DeclineReason {
    /// Returns the bank's words, which the provider passes on.
    pub(crate) fn words(self) -> &'static str {
        match self {
            DeclineReason::InsufficientFunds => "Insufficient Funds",
            DeclineReason::Expired => "Expired Card",
            DeclineReason::LostOrStolen => "Lost Card, Pick-Up",
            DeclineReason::Blocked => "Restricted Card",
            DeclineReason::Limit => "Exceeds Withdrawal Limit",
            DeclineReason::TryLater => "Issuer or Switch Inoperative",
            DeclineReason::Other => "Declined",
        }
    }
}

/// A fault for the next `times` calls of `operation`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// One of [`OPERATIONS`].
    pub operation: String,
    pub kind: FaultKind,
    #[serde(default = "once")]
    pub times: u32,
    /// In real time, not by the simulated clock.
    #[serde(default)]
    pub delay_ms: u64,
    /// Only for charges, and the kinds `decline` and `partial`.
    #[serde(default)]
    pub reason: DeclineReason,
}

fn once() -> u32 {
    1
}

impl Fault {
    #[must_use]
    pub fn new(operation: &str, kind: FaultKind) -> Fault {
        let (operation, reason) = (operation.to_owned(), DeclineReason::default());
        Fault { operation, kind, times: 1, delay_ms: 0, reason }
    }

    /// A charge that the bank declines.
    #[must_use]
    pub fn decline(reason: DeclineReason) -> Fault {
        Fault { reason, ..Fault::new("charge", FaultKind::Decline) }
    }

    /// Returns the bank's words, if this fault makes it decline.
    pub(crate) fn decline_words(&self) -> Option<&'static str> {
        let declines = matches!(self.kind, FaultKind::Decline | FaultKind::Partial);
        declines.then(|| self.reason.words())
    }

    #[must_use]
    pub fn times(self, times: u32) -> Fault {
        Fault { times, ..self }
    }

    #[must_use]
    pub fn delay_ms(self, delay_ms: u64) -> Fault {
        Fault { delay_ms, ..self }
    }

    /// # Errors
    /// Returns a message if this fault could never occur.
    pub fn validate(&self) -> Result<(), String> {
        use FaultKind::{Cut, Decline, Error401, Malformed, Slow};
        let operation = self.operation.as_str();
        if !OPERATIONS.contains(&operation) {
            return Err(format!("unknown operation; must be one of: {}", OPERATIONS.join(", ")));
        }
        let fits = match operation {
            "notification" => {
                self.kind.is_delivery() || matches!(self.kind, Slow | Cut | Malformed)
            }
            "charge" => !self.kind.is_delivery(),
            "smtp" if self.kind == Error401 => false,
            "termii" | "africastalking" | "twilio" | "smtp" => {
                self.kind.is_transport() || self.kind == Decline
            }
            _ => !self.kind.is_delivery() && !self.kind.is_outcome(),
        };
        if fits { Ok(()) } else { Err(format!("this kind does not apply to {operation}")) }
    }
}

impl FaultKind {
    fn is_delivery(self) -> bool {
        matches!(self, FaultKind::Duplicate | FaultKind::Hold | FaultKind::Reorder)
    }

    /// Returns whether the bank or the recipient decides this, not the connection. Handlers take
    /// these faults themselves.
    pub(crate) fn is_outcome(self) -> bool {
        matches!(
            self,
            FaultKind::Decline | FaultKind::Challenge | FaultKind::Partial | FaultKind::Pending
        )
    }

    pub(crate) fn is_transport(self) -> bool {
        !self.is_delivery() && !self.is_outcome()
    }
}

/// The script. Faults of one operation occur in the order in which they were pushed.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<Vec<Fault>>>);

impl Faults {
    /// # Panics
    /// If the fault could never occur (see [`Fault::validate`]), because a test that scripts it would
    /// test nothing.
    pub fn push(&self, fault: Fault) {
        if let Err(reason) = fault.validate() {
            panic!("{fault:?}: {reason}");
        }
        self.push_unchecked(fault);
    }

    pub(crate) fn push_unchecked(&self, fault: Fault) {
        if fault.times > 0 {
            locked(&self.0).push(fault);
        }
    }

    /// Removes all pending faults. Held webhooks stay held.
    pub fn clear(&self) {
        locked(&self.0).clear();
    }

    /// Returns the pending faults.
    #[must_use]
    pub fn list(&self) -> Vec<Fault> {
        locked(&self.0).clone()
    }

    /// Removes and returns the next fault of this operation, with the `times` that remain after
    /// this one.
    pub(crate) fn take(&self, operation: &str, kinds: fn(FaultKind) -> bool) -> Option<Fault> {
        let mut script = locked(&self.0);
        let at = script.iter().position(|f| f.operation == operation && kinds(f.kind))?;
        script[at].times -= 1;
        let fault = script[at].clone();
        if fault.times == 0 {
            script.remove(at);
        }
        Some(fault)
    }
}

/// Middleware of an operation's route.
pub(crate) async fn inject(
    State((faults, operation)): State<(Faults, &'static str)>,
    request: Request,
    next: Next,
) -> Response {
    let Some(fault) = faults.take(operation, FaultKind::is_transport) else {
        return next.run(request).await;
    };
    let connection = request.extensions().get::<Connection>().cloned();
    let delay = Duration::from_millis(fault.delay_ms);
    match fault.kind {
        FaultKind::Slow => {
            tokio::time::sleep(delay).await;
            next.run(request).await
        }
        FaultKind::SlowAfter => {
            let response = next.run(request).await;
            tokio::time::sleep(delay).await;
            response
        }
        FaultKind::Malformed => {
            ([(CONTENT_TYPE, "application/json")], "{\"status\":true,\"data\":{\"id\":")
                .into_response()
        }
        FaultKind::Cut | FaultKind::CutAfter => {
            tokio::time::sleep(delay).await;
            if fault.kind == FaultKind::CutAfter {
                next.run(request).await;
            }
            match connection {
                Some(connection) => connection.abort().await,
                None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        }
        FaultKind::Error401 => (StatusCode::UNAUTHORIZED, "Unauthorized").into_response(),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error").into_response(),
    }
}
