//! Payments by push at M-Pesa, and their invariants.
//!
//! M-Pesa finds a push only by data of its response or notification. If both are lost, nothing
//! identifies the push, and its payment stays pending even if the payer has paid.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store::Tx;
use tollhouse_sandbox::mpesa::{Answer, Push};

use super::{World, minor, payments::Payment};
use crate::{
    app::TestApp,
    conformance::{
        mpesa::Mpesa,
        sessions::{self, PushSubject},
    },
};

pub const CURRENCY: &str = Mpesa::CURRENCY;

pub async fn set_up(app: &TestApp) {
    sessions::set_up::<Mpesa>(app).await.expect("a built-in plugin");
}

impl World<'_> {
    pub async fn begin_push(&mut self) {
        let n = self.payments.len();
        let reference = format!("push-{}-{n}", self.seed);
        // Each payer has one push, so that the number identifies its payment.
        let number = 20_000_000 + self.seed % 79_000 * 1_000 + n as u64;
        let phone = format!("+2547{number:08}");
        let order = json!({
            "email": "ada@example.com", "phone": phone, "currency": CURRENCY,
            "amount": 1 + self.random.up_to(5_000), "reference": reference,
            "payment_service": Mpesa::NAME,
            "checkout": { "success_url": "https://lender.example/paid" },
        });
        self.begin(Payment::push(reference, order)).await;
    }

    /// A payer answers a prompt.
    pub async fn answer_push(&mut self) {
        let simulator = self.app.simulators.mpesa();
        let open: Vec<Push> = simulator.pushes().into_iter().filter(Push::is_open).collect();
        if open.is_empty() {
            return;
        }
        let push = &open[self.pick(open.len())];
        let answer = [Answer::Pay, Answer::Pay, Answer::Cancel][self.pick(3)];
        simulator.answer(&push.checkout_request_id, answer).expect("an open prompt");
        if answer == Answer::Pay {
            let known = self.payments.iter_mut().find(|known| is_of(push, known));
            known.expect("the payment of a push").paid = true;
        }
    }

    /// Returns the pushes that this simulation requested.
    fn pushes(&self) -> Vec<Push> {
        let pushes = self.app.simulators.mpesa().pushes().into_iter();
        pushes.filter(|push| self.payments.iter().any(|known| is_of(push, known))).collect()
    }

    /// Returns the references of pushes of which the host has data of the response or of a
    /// notification.
    pub async fn identified_pushes(&self) -> BTreeSet<String> {
        let company = &self.companies[0].id;
        let read = async |tx: &mut Tx| {
            tx.sql(
                "SELECT c.service_ref FROM charges c
                 JOIN charge_sessions s ON s.company_id = c.company_id AND s.id = c.id
                 WHERE c.company_id = $1 AND (s.state IS NOT NULL OR s.notified IS NOT NULL)",
            )
            .bind(company)
            .values::<String>()
            .await
        };
        self.app.app.store.read(read).await.expect("references").into_iter().collect()
    }

    /// Returns whether the payer has confirmed an identified push of this payment.
    pub fn is_paid_by(&self, known: &Payment, identified: &BTreeSet<String>) -> bool {
        let pushes = self.pushes();
        let mut own = pushes.iter().filter(|push| is_of(push, known));
        own.any(|push| push.is_paid() && identified.contains(&push.account_reference))
    }

    // ---- what must hold ------------------------------------------------------------------------

    /// Checks that the money that M-Pesa holds is that of successful payments, of exceptions, and of
    /// pushes that nothing identifies.
    pub async fn check_pushes(&self) {
        let (identified, mut held, mut booked) = (self.identified_pushes().await, 0, 0);
        // The host records the state of a push before its client gets the prompt.
        for known in self.payments.iter().filter(|known| known.prompted) {
            let pushes = self.pushes();
            let mut own = pushes.iter().filter(|push| is_of(push, known));
            let is_known = own.any(|push| identified.contains(&push.account_reference));
            assert!(is_known, "{}: the state of its push is lost", known.reference);
        }
        for push in self.pushes().iter().filter(|push| push.is_paid() && !push.reversed) {
            let amount = i64::try_from(push.amount).expect("a small amount") * 100;
            held += amount;
            if !identified.contains(&push.account_reference) {
                booked += amount;
            }
        }
        let successes = self.payments.iter().filter(|known| known.is_push);
        for known in successes.filter(|known| known.status == "success") {
            booked += minor(&known.order["amount"]);
        }
        let path = "/exceptions?state=open&limit=1000";
        let listed = self.app.operator(Method::GET, path, Value::Null).await.data().clone();
        let exceptions = listed["exceptions"].as_array().expect("a list").iter();
        let own = |one: &&Value| {
            one["company"] == self.companies[0].id.as_str() && one["currency"] == CURRENCY
        };
        booked += exceptions.filter(own).map(|one| minor(&one["seen"])).sum::<i64>();
        assert_eq!(held, booked, "money at M-Pesa, and in the books");
    }
}

fn is_of(push: &Push, known: &Payment) -> bool {
    known.is_push && known.order["phone"] == format!("+{}", push.phone)
}
