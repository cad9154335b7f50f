//! Lists of an operator, and what they must show at the end: the provider's transactions are exactly
//! those recorded.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store::{Tx, params};

use super::{Caller, World};
use crate::reconciliation::account;

impl World<'_> {
    /// An operator lists the transactions of the service account.
    pub async fn list_transactions(&mut self) {
        let path = format!("/accounts/{}/reconcile", account(self.app).await);
        self.send(Caller::Operator, Method::POST, &path, Some(json!({}))).await;
        self.app.run_until_idle().await;
    }

    // ---- what must hold ------------------------------------------------------------------------

    /// Lists the transactions without faults, and checks that all match.
    pub async fn check_lists(&self) {
        let days = format!("/accounts/{}", account(self.app).await);
        let path = format!("{days}/reconcile");
        for _ in 0..2 {
            self.app.operator(Method::POST, &path, json!({})).await;
            self.app.run_until_idle().await;
            self.app.advance(60).await;
        }
        let company = &self.companies[0].id;
        let read = async |tx: &mut Tx| {
            let differing = "SELECT t.kind, t.provider_id, t.result FROM provider_transactions t
                 WHERE t.company_id IN ($1, '') AND t.result <> 'matched'";
            tx.sql(differing).params(params![company]).all::<(String, String, String)>().await
        };
        let differing = self.app.app.store.read(read).await.expect("the transactions");
        assert!(differing.is_empty(), "{differing:?}");
        let listed = self.app.operator(Method::GET, &format!("{days}/days"), Value::Null).await;
        let listed: Vec<i64> = listed
            .data()
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|day| day["listed"].as_i64())
            .collect();
        assert!(listed.iter().sum::<i64>() > 0, "nothing was listed");
        let open =
            self.app.operator(Method::GET, "/exceptions?state=open&limit=1000", Value::Null).await;
        let open = open.data()["exceptions"].as_array().expect("a list").clone();
        let of_lists: Vec<&Value> = open.iter().filter(|one| !one["day"].is_null()).collect();
        assert!(of_lists.is_empty(), "{of_lists:?}");
    }
}
