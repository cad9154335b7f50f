//! Lists of an operator, and what they must show at the end: the provider's transactions are
//! exactly those recorded.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::{
    clock::Timestamp,
    store::{Tx, params},
};

use super::{Caller, World};
use crate::reconciliation::account;

impl World<'_> {
    /// An operator lists the transactions of the service account.
    pub async fn list_transactions(&mut self) {
        let path = format!("/accounts/{}/reconcile", account(self.app, "provider_a").await);
        self.send(Caller::Operator, Method::POST, &path, Some(json!({}))).await;
        self.app.run_until_idle().await;
    }

    // ---- what must hold ------------------------------------------------------------------------

    /// Lists the transactions of both providers without faults, and checks that all match.
    pub async fn check_lists(&self) {
        let accounts =
            [account(self.app, "provider_a").await, account(self.app, "provider_b").await];
        for _ in 0..2 {
            for account in &accounts {
                let path = format!("/accounts/{account}/reconcile");
                self.app.operator(Method::POST, &path, json!({})).await;
            }
            self.app.run_until_idle().await;
            self.app.advance(60).await;
        }
        let [one, other] = [0, 1].map(|n| &self.companies[n].id);
        let read = async |tx: &mut Tx| {
            let differing = "SELECT t.kind, t.provider_id, t.result FROM provider_transactions t
                 WHERE t.company_id IN ($1, $2, '') AND t.result <> 'matched'";
            tx.sql(differing).params(params![one, other]).all::<(String, String, String)>().await
        };
        let differing = self.app.app.store.read(read).await.expect("the transactions");
        assert!(differing.is_empty(), "{differing:?}");
        let now = self.app.app.clock.now();
        let today = now.to_datetime().format("%Y-%m-%d");
        for account in &accounts {
            let path = format!("/accounts/{account}/days/{today}");
            let report = self.app.operator(Method::GET, &path, Value::Null).await;
            let until = report.data()["listed_until"].as_str().and_then(Timestamp::parse);
            assert!(until > Some(now.plus_seconds(-600)), "the list is not complete: {until:?}");
        }
        let open =
            self.app.operator(Method::GET, "/exceptions?state=open&limit=1000", Value::Null).await;
        let open = open.data()["exceptions"].as_array().expect("a list").clone();
        let of_lists: Vec<&Value> = open.iter().filter(|one| !one["day"].is_null()).collect();
        assert!(of_lists.is_empty(), "{of_lists:?}");
    }
}
