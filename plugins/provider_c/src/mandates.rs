//! Mandates: Monnify registers one under the merchant's reference, the payer authorizes it, and the
//! bank activates it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::mandates::{
    self, Consent, KnownMandate, Mandate, MandateOrder, MandateSession, MandateStatus,
};
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::{http, loose, normal, repeat, settings};

use crate::{Monnify, api, naira};

const LAGOS_AHEAD_MS: i64 = 3_600_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewMandate<'a> {
    contract_code: String,
    mandate_reference: &'a str,
    auto_renew: bool,
    /// Whether the payer may cancel it at the bank.
    customer_cancellation: bool,
    customer_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_phone_number: Option<&'a str>,
    customer_email_address: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_address: Option<&'a str>,
    customer_account_name: &'a str,
    customer_account_number: &'a str,
    customer_account_bank_code: &'a str,
    mandate_description: &'a str,
    mandate_start_date: String,
    mandate_end_date: String,
    mandate_amount: Major,
    redirect_url: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedMandate {
    #[serde(default)]
    mandate_code: Value,
    #[serde(default)]
    external_mandate_reference: Value,
    #[serde(default)]
    mandate_status: Value,
    #[serde(default)]
    customer_email_address: Value,
    #[serde(default)]
    customer_account_number: Value,
    #[serde(default)]
    authorization_link: Value,
    #[serde(default)]
    authorization_message: Value,
}

impl mandates::Guest for Monnify {
    fn begin(order: MandateOrder) -> Result<MandateSession, Fault> {
        let created = api::post("/api/v1/direct-debit/mandate/create", &new_mandate(&order)?);
        // The response has no link, so the mandate is queried.
        let created =
            created.and_then(|_| find(&order.mandate_ref).map_err(Fault::into_unavailable));
        let mandate =
            repeat::charged(created, api::DUPLICATE_REFERENCE, || find(&order.mandate_ref))?;
        let consent = mandate.consent().ok_or_else(|| {
            Fault::unavailable("Monnify's mandate has no link").with_code("unexpected-answer")
        })?;
        Ok(MandateSession { consent, service_ref: order.mandate_ref, state: Vec::new() })
    }

    fn query(mandate: KnownMandate) -> Result<Mandate, Fault> {
        let found = find(&mandate.service_ref)?;
        let (status, words) = (found.status(), loose::text(&found.mandate_status));
        let token = loose::text(&found.mandate_code);
        if status == MandateStatus::Ready && token.is_empty() {
            return Err(
                Fault::unavailable("Monnify's mandate has no code").with_code("unexpected-answer")
            );
        }
        let number = loose::text(&found.customer_account_number);
        Ok(Mandate {
            status,
            token,
            email: loose::text(&found.customer_email_address),
            bank: String::new(),
            last4: number.get(number.len().saturating_sub(4)..).unwrap_or_default().to_owned(),
            consent: found.consent().filter(|_| status == MandateStatus::Created),
            message: words.to_lowercase(),
        })
    }

    fn cancel(mandate: KnownMandate) -> Result<bool, Fault> {
        let found = match find(&mandate.service_ref) {
            Err(fault) if fault.category == FaultCategory::NotFound => return Ok(true),
            found => found?,
        };
        if found.status() == MandateStatus::Cancelled {
            return Ok(true);
        }
        let code = http::encode(&loose::text(&found.mandate_code));
        api::patch(&format!("/api/v1/direct-debit/mandate/cancel-mandate/{code}"))?;
        Ok(true)
    }
}

fn new_mandate(order: &MandateOrder) -> Result<NewMandate<'_>, Fault> {
    if order.currency != naira::CURRENCY {
        return Err(Fault::invalid("currency", "Monnify supports naira only"));
    }
    let required = |field| Fault::invalid(field, "Monnify requires this field of a mandate");
    let account = order.account.as_ref().ok_or_else(|| required("account"))?;
    let max_amount = order.max_amount.as_ref().ok_or_else(|| required("max_amount"))?;
    let ends_at = order.ends_at.as_ref().ok_or_else(|| required("ends_at"))?;
    Ok(NewMandate {
        contract_code: settings::required("contract_code")?,
        mandate_reference: &order.mandate_ref,
        auto_renew: false,
        customer_cancellation: true,
        customer_name: &order.name,
        customer_phone_number: order.phone.as_deref(),
        customer_email_address: &order.email,
        customer_address: order.address.as_deref(),
        customer_account_name: &order.name,
        customer_account_number: &account.account_number,
        customer_account_bank_code: &account.bank_code,
        mandate_description: &order.narration,
        mandate_start_date: local_time(&order.starts_at)?,
        mandate_end_date: local_time(ends_at)?,
        mandate_amount: naira::from_money(max_amount)?,
        redirect_url: &order.return_url,
    })
}

/// Returns a time as `YYYY-MM-DDThh:mm:ss` in Lagos.
fn local_time(utc: &str) -> Result<String, Fault> {
    let ms = normal::unix_ms(utc).ok_or_else(|| Fault::other("a time is not RFC 3339"))?;
    Ok(normal::utc(ms + LAGOS_AHEAD_MS).trim_end_matches('Z').to_owned())
}

/// Returns a mandate by the merchant's reference.
fn find(mandate_ref: &str) -> Result<ListedMandate, Fault> {
    let reference = http::encode(mandate_ref);
    let path = format!("/api/v1/direct-debit/mandate/?mandateReferences={reference}");
    let listed: Vec<ListedMandate> = api::get(&path)?.read()?;
    let is_named =
        |one: &ListedMandate| loose::text(&one.external_mandate_reference) == mandate_ref;
    let found = listed.into_iter().find(is_named);
    found.ok_or_else(|| Fault::not_found("Monnify has no mandate of this reference"))
}

impl ListedMandate {
    fn status(&self) -> MandateStatus {
        match &*loose::text(&self.mandate_status).to_uppercase().replace('_', " ") {
            "PENDING ACTIVATION" => MandateStatus::Approved,
            "ACTIVATED" | "ACTIVE" => MandateStatus::Ready,
            "AUTHORIZATION EXPIRED" | "EXPIRED" | "CANCELLED" | "FAILED" => {
                MandateStatus::Cancelled
            }
            // Includes SUSPENDED, because such a mandate may be activated again.
            _ => MandateStatus::Created,
        }
    }

    fn consent(&self) -> Option<Consent> {
        let link = loose::text(&self.authorization_link);
        let instruction = loose::text(&self.authorization_message);
        match (link.is_empty(), instruction.is_empty()) {
            (false, _) => Some(Consent::Page(link)),
            (true, false) => Some(Consent::Instruction(instruction)),
            (true, true) => None,
        }
    }
}
