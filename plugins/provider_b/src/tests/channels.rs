use tollhouse_plugin::checkout::CheckoutOrder;
use tollhouse_plugin::types::{Fault, FaultCategory};

use super::checkout::order;
use super::naira;
use crate::channels::{channel_name, payment_options};

fn options_for(
    channels: &[&str],
    save_instrument: bool,
    currency: &str,
) -> Result<Option<String>, Fault> {
    let mut amount = naira(100);
    amount.currency = currency.into();
    let channels = channels.iter().map(|name| (*name).to_owned()).collect();
    payment_options(&CheckoutOrder { channels, save_instrument, amount, ..order() })
}

#[test]
fn channels_become_payment_options() {
    let all = ["card", "bank", "ussd", "qr", "mobile_money", "bank_transfer"];
    for (channels, save, currency, options) in [
        (&all[..0], false, "NGN", None),
        (&all[..], false, "NGN", Some("card,account,ussd,nqr,banktransfer")),
        (&all[..], false, "GHS", Some("card,account,ussd,nqr,mobilemoneyghana,banktransfer")),
        (&["bank_transfer", "carrier_pigeon"], false, "NGN", Some("banktransfer")),
        (&all[..0], true, "NGN", Some("card")),
        (&all[..], true, "NGN", Some("card")),
    ] {
        let found = options_for(channels, save, currency).unwrap();
        assert_eq!(found.as_deref(), options, "{channels:?} {save} {currency}");
    }
}

#[test]
fn mobile_money_has_an_option_per_currency() {
    for (currency, option) in [
        ("GHS", "mobilemoneyghana"),
        ("RWF", "mobilemoneyrwanda"),
        ("TZS", "mobilemoneytanzania"),
        ("UGX", "mobilemoneyuganda"),
        ("ZMW", "mobilemoneyzambia"),
        ("XAF", "mobilemoneyfranco"),
        ("XOF", "mobilemoneyfranco"),
        ("KES", "mpesa"),
    ] {
        assert_eq!(
            options_for(&["mobile_money"], false, currency).unwrap().as_deref(),
            Some(option)
        );
    }
}

#[test]
fn channels_that_are_not_offered_are_invalid() {
    for (channels, save, currency) in [
        (&["mobile_money"][..], false, "NGN"),
        (&["mobile_money"], false, "USD"),
        (&["carrier_pigeon"], false, "NGN"),
        (&["ussd"], true, "NGN"),
    ] {
        let fault = options_for(channels, save, currency).unwrap_err();
        assert_eq!((fault.category, fault.field()), (FaultCategory::Invalid, Some("channels")));
    }
}

#[test]
fn payment_types_map_to_the_contracts_channels() {
    for (value, ours) in [
        ("card", "card"),
        ("account", "bank"),
        ("debit_ng_account", "bank"),
        ("ussd", "ussd"),
        ("nqr", "qr"),
        ("qr", "qr"),
        ("mobilemoneygh", "mobile_money"),
        ("mobilemoneyrw", "mobile_money"),
        ("mpesa", "mobile_money"),
        ("bank_transfer", "bank_transfer"),
        ("banktransfer", "bank_transfer"),
        ("OPay", "opay"),
        ("", ""),
    ] {
        assert_eq!(channel_name(value), ours);
    }
}
