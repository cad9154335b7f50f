//! Channels: the contract's names, the options of the hosted page, and the payment types of
//! transactions.

use tollhouse_plugin::checkout::CheckoutOrder;
use tollhouse_plugin::types::Fault;

/// Returns the page's `payment_options` for the order; `None` if the order restricts nothing. Only
/// cards can be charged again.
pub(crate) fn payment_options(order: &CheckoutOrder) -> Result<Option<String>, Fault> {
    let wanted: Vec<&str> = match (order.channels.is_empty(), order.save_instrument) {
        (true, false) => return Ok(None),
        (true, true) => vec!["card"],
        (false, only_card) => {
            let channels = order.channels.iter().map(String::as_str);
            channels.filter(|channel| !only_card || *channel == "card").collect()
        }
    };
    let currency = &order.amount.currency;
    let options: Vec<&str> =
        wanted.iter().filter_map(|name| payment_option(name, currency)).collect();
    match options.is_empty() {
        true => Err(Fault::invalid("channels", "Flutterwave offers none of these channels")),
        false => Ok(Some(options.join(","))),
    }
}

/// Mobile money is a different option in each currency, and not available in naira and dollars.
fn payment_option(channel: &str, currency: &str) -> Option<&'static str> {
    match (channel, currency) {
        ("card", _) => Some("card"),
        ("bank", _) => Some("account"),
        ("ussd", _) => Some("ussd"),
        ("qr", _) => Some("nqr"),
        ("bank_transfer", _) => Some("banktransfer"),
        ("mobile_money", "GHS") => Some("mobilemoneyghana"),
        ("mobile_money", "RWF") => Some("mobilemoneyrwanda"),
        ("mobile_money", "TZS") => Some("mobilemoneytanzania"),
        ("mobile_money", "UGX") => Some("mobilemoneyuganda"),
        ("mobile_money", "ZMW") => Some("mobilemoneyzambia"),
        ("mobile_money", "XAF" | "XOF") => Some("mobilemoneyfranco"),
        ("mobile_money", "KES") => Some("mpesa"),
        _ => None,
    }
}

/// Returns the contract's channel for a transaction's `payment_type`, or Flutterwave's own name.
pub(crate) fn channel_name(payment_type: &str) -> String {
    let value = payment_type.to_lowercase();
    let ours = match value.as_str() {
        "account" | "debit_ng_account" => "bank",
        "nqr" => "qr",
        "banktransfer" => "bank_transfer",
        "mpesa" => "mobile_money",
        other if other.starts_with("mobilemoney") => "mobile_money",
        _ => return value,
    };
    ours.to_owned()
}
