//! Lists for reconciliation: the search of transactions, and changes by tests. Monnify does not
//! list settlements.

use std::borrow::Cow;

use axum::extract::{Query, State};
use serde::Deserialize;
use tollhouse_platform::clock::Timestamp;

use super::{
    Monnify,
    accounts::Account,
    http::{ApiKey, ApiResult, Reply, is_within},
    refunds::Refund,
    render::Amounts,
    transactions::{Order, Origin, Status, Transaction},
};
use crate::{
    env::Env,
    listing::{Listed, ListedLine, ListingAccount, ListingChange, PAYER},
};

impl Listed for Transaction {
    fn name(&self) -> Cow<'_, str> {
        self.payment_reference.as_str().into()
    }

    fn position(&self) -> (Timestamp, u64) {
        (self.created_at, self.number)
    }

    /// Unless the change sets the fees, they remain those of the original amount.
    fn apply(&mut self, change: &ListingChange) {
        let fee = change.fees_minor.unwrap_or(Amounts::from_transaction(self).fee);
        self.listed_fee_minor = Some(fee);
        if let Some(amount) = change.amount_minor {
            (self.payable, self.paid) = (amount, amount);
            self.reported_charged_minor = None;
            if let Some((reported, _)) = &mut self.reported_amount {
                *reported = amount;
            }
        }
    }
}

impl Listed for Refund {
    fn name(&self) -> Cow<'_, str> {
        self.reference.as_str().into()
    }

    /// Refunds of the same time are in the order of their references.
    fn position(&self) -> (Timestamp, u64) {
        (self.created_at, 0)
    }

    fn apply(&mut self, change: &ListingChange) {
        self.amount = change.amount_minor.unwrap_or(self.amount);
    }
}

impl ListingAccount for Account {
    fn change_listing(&mut self, reference: &str, change: ListingChange) -> bool {
        let recorded = self.by_reference(reference).map(|t| t.payment_reference.clone());
        let added = || self.payment_lines.has_added(reference).then(|| reference.to_owned());
        let Some(own) = recorded.or_else(added) else { return false };
        self.payment_lines.change(&own, change);
        true
    }

    fn change_listed_refund(&mut self, reference: &str, change: ListingChange) -> bool {
        let recorded = self.refunds.contains_key(reference);
        let known = recorded || self.refund_lines.has_added(reference);
        if known {
            self.refund_lines.change(reference, change);
        }
        known
    }

    fn has_payment(&self, reference: &str) -> bool {
        self.by_reference(reference).is_some() || self.payment_lines.has_added(reference)
    }

    fn newest_payment(&self) -> Option<u64> {
        self.transactions.values().map(|transaction| transaction.number).max()
    }

    fn add_listed_payment(&mut self, env: &Env, line: &ListedLine) -> String {
        let order = Order {
            payment_reference: line.reference.clone(),
            amount: line.amount_minor,
            email: PAYER.to_owned(),
        };
        let payment = Transaction {
            paid: line.amount_minor,
            currency: line.currency.clone(),
            status: Status::Paid,
            paid_at: Some(env.clock.now()),
            listed_fee_minor: line.fees_minor,
            ..Transaction::new(order, Origin::Checkout, env)
        };
        let reference = payment.reference.clone();
        self.payment_lines.add(payment);
        reference
    }

    fn add_listed_refund(&mut self, env: &Env, line: &ListedLine) -> Option<String> {
        let refund = Refund::listed(env, self.by_reference(&line.reference)?, line);
        let reference = refund.reference.clone();
        self.refund_lines.add(refund);
        Some(reference)
    }
}

impl Account {
    /// Returns the refunds of the list, newest first.
    pub(super) fn listed_refunds(&self) -> Vec<Cow<'_, Refund>> {
        self.refund_lines.list(self.refunds.values())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SearchQuery {
    page: Option<usize>,
    size: Option<usize>,
    /// Milliseconds since 1970, both inclusive.
    from: Option<i64>,
    to: Option<i64>,
    payment_status: Option<String>,
}

pub(super) async fn search(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    Query(query): Query<SearchQuery>,
) -> ApiResult {
    let fits = |t: &Transaction| {
        is_within(t.paid_at.unwrap_or(t.created_at), query.from, query.to)
            && query.payment_status.as_ref().is_none_or(|wanted| wanted == t.status.name())
    };
    monnify.with_account(&key, |account, _| {
        let listed = account.payment_lines.list(account.transactions.values());
        let found = listed.iter().filter(|transaction| fits(transaction));
        let rows = found.map(|transaction| account.list_item_json(transaction)).collect();
        Ok(Reply::page(rows, [query.page, query.size]))
    })
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use base64::{Engine, prelude::BASE64_STANDARD};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Caller, column};

    const SEARCH: &str = "/api/v1/transactions/search";
    const REFUNDS: &str = "/api/v1/refunds";
    /// The time at which every test begins.
    const START: &str = "2026-11-21T10:00:00Z";

    async fn merchant() -> Caller {
        let credentials = BASE64_STANDARD.encode("MK_TEST_ABC123:secret");
        let mut merchant = Caller::new("/monnify", &format!("Basic {credentials}")).await;
        let body = merchant.post("/api/v1/auth/login", Value::Null).await;
        let token = body["responseBody"]["accessToken"].as_str().unwrap();
        merchant.authorization = format!("Bearer {token}");
        merchant
    }

    /// Initializes a payment of NGN 5,000, whose fee is NGN 75.
    async fn initialize(merchant: &Caller, reference: &str) -> Value {
        let body = json!({
            "amount": 5_000, "customerName": "Ada Obi", "customerEmail": "ada@example.com",
            "paymentReference": reference, "currencyCode": "NGN", "contractCode": "4934121686",
        });
        let path = "/api/v1/merchant/transactions/init-transaction";
        merchant.post(path, body).await["responseBody"].clone()
    }

    async fn pay(merchant: &Caller, references: &[&str]) {
        for reference in references {
            let payment = initialize(merchant, reference).await;
            merchant.pay(&payment["checkoutUrl"]).await;
        }
    }

    async fn refund(merchant: &Caller, payment: &str, reference: &str) {
        let body = json!({
            "transactionReference": payment, "refundReference": reference, "refundAmount": 100,
            "refundReason": "Cancelled", "customerNote": "Refund",
        });
        merchant.post("/api/v1/refunds/initiate-refund", body).await;
    }

    /// Returns a field of all rows of a list.
    async fn listed(merchant: &Caller, path: &str, name: &str) -> Vec<Value> {
        column(&merchant.get(path).await["responseBody"]["content"], name)
    }

    async fn status(merchant: &Caller, reference: &str) -> (u16, Value) {
        let path = format!("/api/v2/merchant/transactions/query?paymentReference={reference}");
        let (status, body) = merchant.call(Method::GET, &path, Value::Null).await;
        (status, body["responseBody"].clone())
    }

    fn after_start(seconds: i64) -> i64 {
        Timestamp::parse(START).unwrap().plus_seconds(seconds).0
    }

    #[tokio::test]
    async fn a_listed_payment_has_the_documented_shape() {
        let merchant = merchant().await;
        let payment = initialize(&merchant, "one").await;
        merchant.advance(60).await;
        merchant.pay(&payment["checkoutUrl"]).await;
        let found = merchant.get(SEARCH).await["responseBody"]["content"][0].clone();
        let expected = json!({
            "paymentReference": "one", "amount": 5_000, "payableAmount": 5_000, "amountPaid": 5_000,
            "fee": 75, "currencyCode": "NGN", "paymentStatus": "PAID", "paymentMethod": "CARD",
            "createdOn": "2026-11-21T10:00:00.000+0000",
            "completedOn": "2026-11-21T10:01:00.000+0000", "completed": true,
            "transactionReference": payment["transactionReference"],
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&found[name], value, "{name}");
        }
        assert_eq!(found["customerDTO"]["email"], "ada@example.com");
    }

    #[tokio::test]
    async fn payments_are_paged_and_filtered() {
        let merchant = merchant().await;
        let early = initialize(&merchant, "early").await;
        merchant.advance(600).await;
        merchant.pay(&early["checkoutUrl"]).await;
        pay(&merchant, &["late"]).await;
        initialize(&merchant, "open").await;
        let page = merchant.get(&format!("{SEARCH}?page=1&size=2")).await["responseBody"].clone();
        assert_eq!(column(&page["content"], "paymentReference"), ["early"]);
        let expected = json!({
            "totalElements": 3, "totalPages": 2, "size": 2, "number": 1, "first": false,
            "last": true, "numberOfElements": 1, "empty": false,
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&page[name], value, "{name}");
        }
        let paid = after_start(600);
        for (query, references) in [
            ("?paymentStatus=PAID".to_owned(), vec!["late", "early"]),
            (format!("?from={paid}&paymentStatus=PAID"), vec!["late", "early"]),
            // The time of a payment is when it was paid.
            (format!("?to={}", paid - 1), vec![]),
            (format!("?from={paid}&to={paid}&paymentStatus=PENDING"), vec!["open"]),
        ] {
            let found = listed(&merchant, &format!("{SEARCH}{query}"), "paymentReference").await;
            assert_eq!(found, references, "{query}");
        }
        let first = merchant.get(&format!("{SEARCH}?size=2")).await["responseBody"].clone();
        assert_eq!((&first["last"], &first["number"]), (&json!(false), &json!(0)));
    }

    #[tokio::test]
    async fn refunds_are_paged_and_filtered() {
        let merchant = merchant().await;
        pay(&merchant, &["one", "two"]).await;
        refund(&merchant, "one", "first").await;
        merchant.advance(600).await;
        refund(&merchant, "two", "second").await;
        let page = merchant.get("/api/v1/refunds?page=1&size=1").await["responseBody"].clone();
        assert_eq!(column(&page["content"], "refundReference"), ["first"]);
        assert_eq!((&page["totalElements"], &page["last"]), (&json!(2), &json!(true)));
        let row = merchant.get("/api/v1/refunds/first").await["responseBody"].clone();
        assert_eq!(page["content"][0], row);
        for (query, references) in [
            (String::new(), vec!["second", "first"]),
            (format!("?from={}", after_start(600)), vec!["second"]),
            (format!("?to={}", after_start(0)), vec!["first"]),
            ("?refundStatus=IN_PROGRESS".to_owned(), vec!["second"]),
        ] {
            let found = listed(&merchant, &format!("{REFUNDS}{query}"), "refundReference").await;
            assert_eq!(found, references, "{query}");
        }
    }

    #[tokio::test]
    async fn lists_show_changes_and_the_status_does_not() {
        let merchant = merchant().await;
        pay(&merchant, &["one", "two", "three"]).await;
        assert_eq!(
            merchant.put("/listing", json!({ "reference": "one", "hidden": true })).await,
            204
        );
        let change = json!({ "reference": "two", "amount_minor": 400_050 });
        assert_eq!(merchant.put("/listing", change).await, 204);
        let change = json!({ "reference": "three", "fees_minor": 7 });
        assert_eq!(merchant.put("/listing", change).await, 204);
        assert_eq!(listed(&merchant, SEARCH, "paymentReference").await, ["three", "two"]);
        for name in ["amount", "payableAmount", "amountPaid"] {
            let amounts = listed(&merchant, SEARCH, name).await;
            assert_eq!(amounts, [json!(5_000), json!(4_000.5)], "{name}");
        }
        assert_eq!(listed(&merchant, SEARCH, "fee").await, [json!(0.07), json!(75)]);
        for reference in ["one", "two", "three"] {
            let (_, status) = status(&merchant, reference).await;
            assert_eq!(status["amountPaid"], "5000.00", "{reference}");
            assert_eq!(status["settlementAmount"], "4925.00", "{reference}");
        }
        assert_eq!(merchant.put("/listing", json!({ "reference": "none" })).await, 404);
    }

    fn line(kind: &str, reference: &str) -> Value {
        json!({
            "kind": kind, "reference": reference, "amount_minor": 20_000, "currency": "NGN",
        })
    }

    #[tokio::test]
    async fn added_lines_are_only_in_lists() {
        let merchant = merchant().await;
        pay(&merchant, &["one"]).await;
        let id = merchant.post("/listing", line("payment", "added")).await["id"].clone();
        assert_eq!(merchant.call(Method::POST, "/listing", line("payment", "one")).await.0, 409);
        let paid = format!("{SEARCH}?paymentStatus=PAID");
        assert_eq!(listed(&merchant, &paid, "paymentReference").await, ["added", "one"]);
        assert_eq!(listed(&merchant, &paid, "transactionReference").await[0], id);
        assert_eq!(listed(&merchant, &paid, "fee").await, [3, 75]);
        assert_eq!(status(&merchant, "added").await.0, 404);

        let id = merchant.post("/listing", line("refund", "one")).await["id"].clone();
        assert_eq!(merchant.call(Method::POST, "/listing", line("refund", "none")).await.0, 404);
        assert_eq!(listed(&merchant, REFUNDS, "refundReference").await, std::slice::from_ref(&id));
        assert_eq!(listed(&merchant, REFUNDS, "refundStatus").await, ["COMPLETED"]);
        let path = format!("{REFUNDS}/{}", id.as_str().unwrap());
        assert_eq!(merchant.call(Method::GET, &path, Value::Null).await.0, 404);
        let change = json!({ "id": id, "amount_minor": 30_050 });
        assert_eq!(merchant.put("/listing/refund", change).await, 204);
        assert_eq!(listed(&merchant, REFUNDS, "refundAmount").await, [json!(300.5)]);
        assert_eq!(merchant.put("/listing/refund", json!({ "id": id, "hidden": true })).await, 204);
        assert_eq!(listed(&merchant, REFUNDS, "refundReference").await, Vec::<Value>::new());
        assert_eq!(merchant.put("/listing/refund", json!({ "id": "none" })).await, 404);
        // Monnify has no settlements.
        assert_eq!(merchant.call(Method::POST, "/settle", json!({})).await.0, 404);
    }
}
