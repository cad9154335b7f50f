//! Jenga as a subject of the suite for providers that ask payers on the phone.

use serde_json::{Value, json};
use tollhouse_sandbox::jenga::{Answer, Credentials, PRIVATE_KEY};

use super::sessions::{PayerAnswer, Push, PushSubject};
use crate::app::TestApp;

pub struct Jenga;

impl PushSubject for Jenga {
    const NAME: &'static str = "jenga";
    const CURRENCY: &'static str = "KES";
    const PHONE: &'static str = "+254764555291";
    const FOREIGN_PHONE: Option<&'static str> = Some("+2348012345678");
    const IS_FOUND_BY_REFERENCE: bool = true;
    const EXPIRES_S: i64 = 180;
    const HAS_REFUNDS: bool = false;

    fn component() -> Option<Vec<u8>> {
        Some(artifacts::JENGA.to_vec())
    }

    fn credentials(app: &TestApp) -> Value {
        let account = Credentials::default();
        json!({
            "merchant_code": account.merchant_code, "api_key": account.api_key,
            "consumer_secret": account.consumer_secret, "account_number": account.account_number,
            "merchant_name": account.merchant_name, "private_key": PRIVATE_KEY,
            "base_url": format!("{}/jenga", app.simulators.url()),
        })
    }

    fn pushes(app: &TestApp) -> Vec<Push> {
        let pushes = app.simulators.jenga().pushes().into_iter();
        pushes
            .map(|push| Push {
                id: push.reference.clone(),
                reference: push.reference,
                notification_url: push.callback_url,
            })
            .collect()
    }

    fn answer(app: &TestApp, push: &str, answer: PayerAnswer) {
        let answer = match answer {
            PayerAnswer::Confirms => Answer::Pay,
            PayerAnswer::Declines => Answer::Cancel,
        };
        app.simulators.jenga().answer(push, answer).expect("an open push");
    }

    fn totals(app: &TestApp) -> (u64, u64) {
        (app.simulators.jenga().taken() / 100, 0)
    }
}
