//! Channels: the contract's names, and Monnify's payment methods.

use tollhouse_plugin::checkout::CheckoutOrder;
use tollhouse_plugin::types::Fault;

/// The method closest to the contract's `bank` is direct debit.
const METHODS: [(&str, &str); 4] = [
    ("card", "CARD"),
    ("bank", "DIRECT_DEBIT"),
    ("ussd", "USSD"),
    ("bank_transfer", "ACCOUNT_TRANSFER"),
];

/// Returns the page's `paymentMethods` for the order; `None` if the order restricts nothing. Only
/// cards can be charged again.
pub(crate) fn payment_methods(order: &CheckoutOrder) -> Result<Option<Vec<&'static str>>, Fault> {
    if order.channels.is_empty() && !order.save_instrument {
        return Ok(None);
    }
    let wanted = |channel: &str| {
        let named = order.channels.is_empty() || order.channels.iter().any(|name| name == channel);
        named && (!order.save_instrument || channel == "card")
    };
    let methods = METHODS.iter().filter(|(ours, _)| wanted(ours)).map(|(_, theirs)| *theirs);
    let methods: Vec<&str> = methods.collect();
    match methods.is_empty() {
        true => Err(Fault::invalid("channels", "Monnify offers none of these channels")),
        false => Ok(Some(methods)),
    }
}

/// Returns the contract's channel for a transaction's `paymentMethod`, or Monnify's own name.
pub(crate) fn channel_name(method: &str) -> String {
    let known = METHODS.iter().find(|(_, theirs)| *theirs == method);
    known.map_or_else(|| method.to_lowercase(), |(ours, _)| (*ours).to_owned())
}
