//! Mandates: the payer authorizes one on Paystack's page, and the bank activates it.
//!
//! Paystack generates the references, so a mandate whose response was lost cannot be found. It has
//! no effect: no payer has the URL of its page.

use serde_json::{Value, json};
use tollhouse_plugin::http;
use tollhouse_plugin::mandates::{
    self, Consent, KnownMandate, Mandate, MandateOrder, MandateSession, MandateStatus,
};
use tollhouse_plugin::types::{Fault, FaultCategory};

use crate::{Paystack, api, loose};

/// The only currency of direct debits.
const CURRENCY: &str = "NGN";
/// The state of a mandate for which Paystack created a page.
const OPENED: &[u8] = b"opened";

impl mandates::Guest for Paystack {
    fn begin(order: MandateOrder) -> Result<MandateSession, Fault> {
        if order.currency != CURRENCY {
            return Err(Fault::invalid("currency", "Paystack debits naira accounts only"));
        }
        let mut body = json!({
            "email": order.email,
            "channel": "direct_debit",
            "callback_url": order.return_url,
        });
        if let Some(account) = &order.account {
            body["account"] =
                json!({ "number": account.account_number, "bank_code": account.bank_code });
        }
        let data = api::post("/customer/authorization/initialize", &body)?;
        let (page, service_ref) =
            (loose::text(&data["redirect_url"]), loose::text(&data["reference"]));
        if page.is_empty() || service_ref.is_empty() {
            return Err(Fault::unavailable("Paystack's page of a mandate has no URL or reference")
                .with_code("unexpected-answer"));
        }
        Ok(MandateSession { consent: Consent::Page(page), service_ref, state: OPENED.to_vec() })
    }

    fn query(mandate: KnownMandate) -> Result<Mandate, Fault> {
        let Some(data) = find(&mandate)? else {
            return Ok(blank(MandateStatus::Created));
        };
        let token = loose::text(&data["authorization_code"]);
        let status = match (&data["active"], mandate.status) {
            (Value::Bool(true), _) if !token.is_empty() => MandateStatus::Ready,
            // Paystack gives no other sign that a mandate was revoked.
            (Value::Bool(false), MandateStatus::Ready) => MandateStatus::Cancelled,
            (Value::Bool(false), _) => MandateStatus::Approved,
            _ => {
                let fault = Fault::unavailable("Paystack's mandate cannot be read");
                return Err(fault.with_code("unexpected-answer"));
            }
        };
        Ok(Mandate {
            token,
            email: loose::text(&data["customer"]["email"]),
            bank: loose::text(&data["bank"]),
            ..blank(status)
        })
    }

    fn cancel(mandate: KnownMandate) -> Result<bool, Fault> {
        let data = match find(&mandate) {
            Ok(Some(data)) => data,
            // The payer may still authorize it on its page.
            Ok(None) => return Ok(false),
            Err(fault) if fault.category == FaultCategory::NotFound => return Ok(true),
            Err(fault) => return Err(fault),
        };
        let body = json!({ "authorization_code": loose::text(&data["authorization_code"]) });
        match api::post("/customer/authorization/deactivate", &body) {
            Ok(_) => Ok(true),
            Err(fault) if is_missing(&fault) => Ok(true),
            Err(fault) => Err(fault),
        }
    }
}

fn blank(status: MandateStatus) -> Mandate {
    Mandate {
        status,
        token: String::new(),
        email: String::new(),
        bank: String::new(),
        last4: String::new(),
        consent: None,
        message: String::new(),
    }
}

/// Returns the authorization of a mandate; `None` if the payer has not given it yet. The fault is
/// `not-found` if the mandate has no known page.
fn find(mandate: &KnownMandate) -> Result<Option<Value>, Fault> {
    let path = format!("/customer/authorization/verify/{}", http::encode(&mandate.service_ref));
    match api::get(&path) {
        Ok(data) => Ok(Some(data)),
        Err(fault) if is_missing(&fault) => match mandate.state {
            Some(_) => Ok(None),
            None => Err(Fault::not_found(fault.message).with_code(&fault.code)),
        },
        Err(fault) => Err(fault),
    }
}

/// Returns whether Paystack does not know the authorization. This error has no code of its own.
fn is_missing(fault: &Fault) -> bool {
    fault.category == FaultCategory::NotFound
        || fault.message.to_lowercase().contains("authorization does not exist")
}
