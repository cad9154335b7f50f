//! MTN MoMo, a plugin in JavaScript, as a subject of the suite for providers that ask payers on the
//! phone.

use serde_json::{Value, json};
use tollhouse_sandbox::momo::{Answer, Credentials};

use super::sessions::{PayerAnswer, Push, PushSubject};
use crate::{app::TestApp, javascript};

pub struct Momo;

impl PushSubject for Momo {
    const NAME: &'static str = "momo";
    const CURRENCY: &'static str = "UGX";
    const PHONE: &'static str = "+256772123456";
    const FOREIGN_PHONE: Option<&'static str> = None;
    const IS_FOUND_BY_REFERENCE: bool = true;
    const EXPIRES_S: i64 = 300;

    fn component() -> Option<Vec<u8>> {
        javascript::component("momo-js")
    }

    fn credentials(app: &TestApp) -> Value {
        let own = Credentials::default();
        json!({
            "api_user": own.api_user, "api_key": own.api_key,
            "subscription_key": own.subscription_key,
            "disbursement_subscription_key": own.disbursement_subscription_key,
            "target_environment": own.target_environment,
            "base_url": format!("{}/momo", app.simulators.url()),
        })
    }

    fn pushes(app: &TestApp) -> Vec<Push> {
        let requests = app.simulators.momo().payments().into_iter();
        requests
            .map(|request| Push {
                id: request.reference.clone(),
                reference: request.reference,
                notification_url: request.callback_url.expect("a callback URL"),
            })
            .collect()
    }

    fn answer(app: &TestApp, push: &str, answer: PayerAnswer) {
        let answer = match answer {
            PayerAnswer::Confirms => Answer::Approve,
            PayerAnswer::Declines => Answer::Reject,
        };
        app.simulators.momo().answer(push, answer).expect("an open request");
    }

    fn totals(app: &TestApp) -> (u64, u64) {
        let totals = app.simulators.momo().totals();
        (totals.taken / 100, totals.returned / 100)
    }
}
