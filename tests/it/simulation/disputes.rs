//! Actions of payers, banks and operators on disputes, and invariants of these.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store::Tx;

use super::{Caller, World, payments::Payment};

impl World<'_> {
    /// A payer disputes a payment of the company that uses the service account, or a part of it.
    pub async fn open_dispute(&mut self) {
        let of_service = |known: &Payment| known.company == 0 && !known.is_push && known.paid;
        let Some(n) = self.payment_where(of_service) else { return };
        let known = &self.payments[n];
        let amount = known.order["amount"].as_u64().expect("an amount");
        let part = (self.pick(2) == 0).then_some(amount * 100 / 3).filter(|part| *part > 0);
        // `None`: the payment is at another provider, or disputed already.
        let _ = self.app.simulators.paystack().open_dispute(&known.reference, part);
        self.app.run_until_idle().await;
    }

    /// An operator answers an open dispute.
    pub async fn answer_dispute(&mut self) {
        let disputes = self.disputes().await;
        let open: Vec<&Value> = disputes.iter().filter(|one| one["state"] == "open").collect();
        if open.is_empty() {
            return;
        }
        let id = open[self.pick(open.len())]["id"].as_str().expect("an id");
        let path = format!("/companies/{}/disputes/{id}/answer", self.companies[0].id);
        let answer = match self.pick(2) {
            0 => json!({ "action": "accept", "message": "Sorry" }),
            _ => json!({
                "action": "contest", "message": "Delivered", "customer_name": "Ada Obi",
                "customer_email": "ada@example.com", "service": "Order 1",
            }),
        };
        self.send(Caller::Operator, Method::POST, &path, Some(answer)).await;
    }

    /// A bank decides a dispute.
    pub async fn decide_dispute(&mut self) {
        let paystack = self.app.simulators.paystack();
        let dispute = |known: &Payment| paystack.unresolved_dispute(&known.reference);
        let Some(n) = self.payment_where(|known| dispute(known).is_some()) else { return };
        if let Some(id) = dispute(&self.payments[n]) {
            paystack.decide_dispute(id, self.pick(2) == 0);
            self.app.run_until_idle().await;
        }
    }

    async fn disputes(&self) -> Vec<Value> {
        let path = format!("/companies/{}/disputes?limit=1000", self.companies[0].id);
        let listed = self.app.operator(Method::GET, &path, Value::Null).await;
        listed.data()["disputes"].as_array().expect("a list").clone()
    }

    // ---- what must hold ------------------------------------------------------------------------

    /// Checks that the host has recorded the provider's disputes with their outcomes.
    pub async fn check_disputes(&self) {
        let company = &self.companies[0].id;
        let read = async |tx: &mut Tx| {
            let disputes = "SELECT c.transaction_id, d.provider_id, d.state FROM charges c
                 LEFT JOIN disputes d ON d.company_id = c.company_id AND d.charge_id = c.id
                 WHERE c.company_id = $1 AND c.owner_kind = 'payment' AND c.provider = 'provider_a'
                     AND c.transaction_id <> ''";
            tx.sql(disputes).bind(company).all::<(String, Option<String>, Option<String>)>().await
        };
        let mut recorded: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (transaction, id, state) in self.app.app.store.read(read).await.expect("the disputes") {
            recorded.entry(transaction).or_default().extend(id.zip(state));
        }
        for (transaction, mut recorded) in recorded {
            let made = self.ask_provider(&format!("dispute?transaction={transaction}")).await;
            for dispute in made.as_array().expect("a list") {
                let expected = match (&dispute["resolution"], &dispute["status"]) {
                    (Value::Null, status) if status == "awaiting-merchant-feedback" => "open",
                    (Value::Null, _) => "answered",
                    (resolution, _) if resolution == "declined" => "won",
                    _ => "lost",
                };
                let state = recorded.remove(&dispute["id"].to_string());
                assert_eq!(state.as_deref(), Some(expected), "{dispute}");
            }
            assert!(recorded.is_empty(), "the provider lacks {recorded:?}");
        }
    }
}
