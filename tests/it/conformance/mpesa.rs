//! M-Pesa as a subject of the suite for providers that ask payers on the phone.

use serde_json::{Value, json};
use tollhouse_sandbox::{
    Simulators,
    mpesa::{Answer, CERTIFICATE, Credentials},
};

use super::sessions::{PayerAnswer, Push, PushSubject};
use crate::app::TestApp;

pub struct Mpesa;

/// Returns the credentials of the default account.
pub fn credentials(simulators: &Simulators) -> Value {
    let account = Credentials::default();
    json!({
        "consumer_key": account.consumer_key, "consumer_secret": account.consumer_secret,
        "shortcode": account.shortcode, "passkey": account.passkey,
        "initiator_name": account.initiator, "initiator_password": account.initiator_password,
        "certificate": CERTIFICATE, "base_url": format!("{}/mpesa", simulators.url()),
    })
}

impl PushSubject for Mpesa {
    const NAME: &'static str = "mpesa";
    const CURRENCY: &'static str = "KES";
    const PHONE: &'static str = "+254722000000";
    const FOREIGN_PHONE: Option<&'static str> = Some("+2348012345678");
    const IS_FOUND_BY_REFERENCE: bool = false;
    const EXPIRES_S: i64 = 120;

    fn component() -> Option<Vec<u8>> {
        Some(artifacts::MPESA.to_vec())
    }

    fn credentials(app: &TestApp) -> Value {
        credentials(&app.simulators)
    }

    fn pushes(app: &TestApp) -> Vec<Push> {
        let pushes = app.simulators.mpesa().pushes().into_iter();
        pushes
            .map(|push| Push {
                id: push.checkout_request_id,
                reference: push.account_reference,
                notification_url: push.callback_url,
            })
            .collect()
    }

    fn answer(app: &TestApp, push: &str, answer: PayerAnswer) {
        let answer = match answer {
            PayerAnswer::Confirms => Answer::Pay,
            PayerAnswer::Declines => Answer::Cancel,
        };
        app.simulators.mpesa().answer(push, answer).expect("an open prompt");
    }

    fn totals(app: &TestApp) -> (u64, u64) {
        let totals = app.simulators.mpesa().totals();
        (totals.taken, totals.returned)
    }
}
