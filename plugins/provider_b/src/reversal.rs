//! Reversals. Flutterwave keeps reporting a transaction as successful after its money was returned:
//! refunds and chargebacks are only in lists of their own.

use tollhouse_plugin::disputes::DisputeStatus;
use tollhouse_plugin::log;
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::types::{Fault, FaultCategory};

use crate::disputes::Chargeback;
use crate::refunds::RefundRecord;
use crate::{api, list};

/// Changes a success to `reversed` if its refunds and chargebacks, including those that the host
/// requested, return the whole amount. Other statuses need no request.
pub(crate) fn apply(payment: Payment) -> Result<Payment, Fault> {
    if payment.status != PaymentStatus::Success {
        return Ok(payment);
    }
    if payment.transaction_id.is_empty() {
        return Err(unreadable("transaction"));
    }
    let refunded = refunded(&payment)?;
    if is_whole(&payment, refunded) {
        return Ok(reversed(payment, "Refunded at Flutterwave"));
    }
    let charged_back = charged_back(&payment)?;
    if is_whole(&payment, refunded.saturating_add(charged_back)) {
        return Ok(reversed(payment, "Charged back at Flutterwave"));
    }
    Ok(payment)
}

fn reversed(payment: Payment, message: &str) -> Payment {
    Payment { status: PaymentStatus::Reversed, message: message.to_owned(), ..payment }
}

/// Returns whether the whole amount was returned. Fees that the payer bears are charged in addition
/// to the requested amount, and may stay with Flutterwave.
fn is_whole(payment: &Payment, returned_minor: u64) -> bool {
    let requested = payment.requested.as_ref().unwrap_or(&payment.amount);
    returned_minor > 0 && returned_minor >= requested.minor.min(payment.amount.minor)
}

/// Returns the refunded amount in minor units. Flutterwave deducts it as soon as it initiates the
/// refund.
fn refunded(payment: &Payment) -> Result<u64, Fault> {
    let mut sum: u64 = 0;
    for item in list_or_none("refunds", &payment.transaction_id)? {
        let refund: RefundRecord = item.read()?;
        let status = refund.status()?;
        let is_made = status == "completed" || status.starts_with("completed-");
        if is_made && refund.is_for_transaction(&payment.transaction_id)? {
            let amount = refund.amount().ok_or_else(|| unreadable("refund"))?;
            sum = sum.saturating_add(amount.money(&payment.amount.currency).minor);
        }
    }
    Ok(sum)
}

/// Returns the amount of lost disputes in minor units.
fn charged_back(payment: &Payment) -> Result<u64, Fault> {
    let mut sum: u64 = 0;
    for item in list_or_none("chargebacks", &payment.transaction_id)? {
        let chargeback: Chargeback = item.read()?;
        let is_for_payment =
            chargeback.is_for_payment(&payment.transaction_id, &payment.service_ref)?;
        if is_for_payment && chargeback.status()? == DisputeStatus::Lost {
            sum = sum.saturating_add(chargeback.amount()?.money(&payment.amount.currency).minor);
        }
    }
    Ok(sum)
}

/// Returns the items of a list; none if Flutterwave refuses to show it, because the permissions of
/// a key may exclude it.
fn list_or_none(name: &str, transaction: &str) -> Result<Vec<RawJson>, Fault> {
    match list::fetch(name, transaction) {
        Err(fault) if fault.category == FaultCategory::NotFound || fault.code == api::FORBIDDEN => {
            log::warn(&format!("{name} at Flutterwave cannot be listed: {}", fault.message));
            Ok(Vec::new())
        }
        listed => listed,
    }
}

fn unreadable(what: &str) -> Fault {
    Fault::unavailable(format!("Flutterwave's {what} cannot be read"))
        .with_code("unexpected-answer")
}
