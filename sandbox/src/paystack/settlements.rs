//! Lists for reconciliation: changes by tests, settlements, and their payments.

use std::borrow::Cow;

use axum::{
    extract::{Path, Query, State},
    http::StatusCode,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Paystack,
    accounts::Account,
    http::{ApiError, ApiKey, ApiResult, Period, Reply},
    refunds::Refund,
    transactions::{Order, Status, Transaction, fees},
};
use crate::{
    env::Env,
    listing::{Listed, ListedLine, ListingAccount, ListingChange, PAYER},
    settlements::{Movement, Movements, Settlement, Settlements, SettlingAccount},
};

/// Every settlement has arrived at the merchant's bank.
const STATUS: &str = "success";

impl Listed for Transaction {
    fn name(&self) -> Cow<'_, str> {
        self.reference.as_str().into()
    }

    fn position(&self) -> (Timestamp, u64) {
        (self.created_at, self.id)
    }

    fn apply(&mut self, change: &ListingChange) {
        if let Some(amount) = change.amount_minor {
            self.amount = amount;
            self.reported_charged_minor = None;
            if let Some((reported, _)) = &mut self.reported_amount {
                *reported = amount;
            }
        }
        self.fees = change.fees_minor.or(self.fees);
    }
}

impl Listed for Refund {
    fn name(&self) -> Cow<'_, str> {
        self.id.to_string().into()
    }

    fn position(&self) -> (Timestamp, u64) {
        (self.created_at, self.id)
    }

    fn apply(&mut self, change: &ListingChange) {
        self.amount = change.amount_minor.unwrap_or(self.amount);
    }
}

impl ListingAccount for Account {
    fn change_listing(&mut self, reference: &str, change: ListingChange) -> bool {
        let known = self.has_payment(reference);
        if known {
            self.payment_lines.change(reference, change);
        }
        known
    }

    fn change_listed_refund(&mut self, id: &str, change: ListingChange) -> bool {
        let recorded = id.parse().is_ok_and(|id: u64| self.refunds.contains_key(&id));
        let known = recorded || self.refund_lines.has_added(id);
        if known {
            self.refund_lines.change(id, change);
        }
        known
    }

    fn has_payment(&self, reference: &str) -> bool {
        self.references.contains_key(reference) || self.payment_lines.has_added(reference)
    }

    fn newest_payment(&self) -> Option<u64> {
        self.transactions.keys().next_back().copied()
    }

    fn add_listed_payment(&mut self, env: &Env, line: &ListedLine) -> String {
        let order = Order {
            reference: line.reference.clone(),
            amount: line.amount_minor,
            currency: line.currency.clone(),
            email: PAYER.to_owned(),
        };
        let usual_fees = || fees(line.amount_minor, &line.currency);
        let payment = Transaction {
            status: Status::Success,
            gateway_response: "Successful".to_owned(),
            paid_at: Some(env.clock.now()),
            fees: Some(line.fees_minor.unwrap_or_else(usual_fees)),
            ..Transaction::unpaid(env, order)
        };
        let id = payment.id.to_string();
        self.payment_lines.add(payment);
        id
    }

    fn add_listed_refund(&mut self, env: &Env, line: &ListedLine) -> Option<String> {
        let transaction = self.by_reference(&line.reference)?;
        let refund = Refund::listed(env, transaction, line);
        let id = refund.id.to_string();
        self.refund_lines.add(refund);
        Some(id)
    }
}

impl SettlingAccount for Account {
    fn movements(&self) -> Movements {
        let payments = self.listed_payments();
        let payments = payments.iter().filter(|payment| payment.status.is_paid());
        let payments = payments.map(|payment| Movement {
            id: payment.id,
            currency: payment.reported().1.to_owned(),
            amount: payment.charged(),
            fees: payment.fees.unwrap_or_default(),
        });
        let refunds = self.listed_refunds();
        let refunds = refunds.iter().filter(|refund| !refund.has_failed());
        let refunds = refunds.map(|refund| Movement {
            id: refund.id,
            currency: refund.currency.clone(),
            amount: refund.amount,
            fees: 0,
        });
        Movements {
            payments: payments.collect(),
            refunds: refunds.collect(),
            disputes: self.lost_disputes(),
        }
    }

    fn settlements(&mut self) -> &mut Settlements {
        &mut self.settlements
    }
}

impl Account {
    /// Returns the payments of the lists, newest first.
    pub(super) fn listed_payments(&self) -> Vec<Cow<'_, Transaction>> {
        self.payment_lines.list(self.transactions.values())
    }

    /// Returns the refunds of the lists, newest first.
    pub(super) fn listed_refunds(&self) -> Vec<Cow<'_, Refund>> {
        self.refund_lines.list(self.refunds.values())
    }

    fn settlement_json(&self, settlement: &Settlement) -> Value {
        let deductions = settlement.refunds + settlement.disputes;
        json!({
            "id": settlement.id,
            "domain": self.domain(),
            "status": STATUS,
            "currency": settlement.currency,
            "integration": self.integration,
            "total_amount": settlement.gross.saturating_sub(settlement.fees),
            "effective_amount": settlement.paid,
            "total_fees": settlement.fees,
            "total_processed": settlement.gross,
            "deductions": (deductions > 0).then_some(deductions),
            // A date, as a time.
            "settlement_date": midnight(settlement.created_at),
            "settled_by": null,
            "createdAt": settlement.created_at,
            "updatedAt": settlement.created_at,
        })
    }
}

/// Returns the beginning of the day in UTC.
fn midnight(at: Timestamp) -> String {
    at.to_datetime().format("%Y-%m-%dT00:00:00.000Z").to_string()
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    #[serde(rename = "perPage")]
    per_page: Option<usize>,
    page: Option<usize>,
    status: Option<String>,
    /// Times or days.
    from: Option<String>,
    to: Option<String>,
}

pub(super) async fn list(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Query(query): Query<ListQuery>,
) -> ApiResult {
    let period = Period::parse(query.from.as_deref(), query.to.as_deref())?;
    let fits = |settlement: &&Settlement| {
        query.status.as_ref().is_none_or(|status| status == STATUS)
            && period.contains(settlement.created_at)
    };
    paystack.with_account(&key, |account, _| {
        let all = account.settlements.newest_first().filter(fits);
        let all = all.map(|settlement| account.settlement_json(settlement)).collect();
        Ok(Reply::numbered_page("Settlements retrieved", all, [query.per_page, query.page]))
    })
}

#[derive(Deserialize)]
pub(super) struct PageQuery {
    #[serde(rename = "perPage")]
    per_page: Option<usize>,
    page: Option<usize>,
}

pub(super) async fn transactions(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
    Query(query): Query<PageQuery>,
) -> ApiResult {
    paystack.with_account(&key, |account, _| {
        let settlement = account.settlements.get(&id).ok_or_else(|| {
            let message = "Settlement not found";
            ApiError::new(StatusCode::NOT_FOUND, "not_found", message, "Check the id")
        })?;
        let listed = account.listed_payments();
        let all = listed.iter().filter(|payment| settlement.payments.contains(&payment.id));
        let all = all.map(|payment| account.transaction_json(payment)).collect();
        Ok(Reply::numbered_page("Transactions retrieved", all, [query.per_page, query.page]))
    })
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;
    use crate::{
        Fault, FaultKind,
        testing::{Caller, column},
    };

    const PAYMENTS: &str = "/transaction";
    const REFUNDS: &str = "/refund";

    async fn merchant() -> Caller {
        Caller::new("/paystack", "Bearer sk_test_abc123").await
    }

    /// Initializes a payment of NGN 5,000, whose fees are NGN 175, and returns the URL of its page.
    async fn initialize(merchant: &Caller, reference: &str) -> Value {
        let body = json!({ "email": "ada@example.com", "amount": 500_000, "reference": reference });
        let body = merchant.post("/transaction/initialize", body).await;
        body["data"]["authorization_url"].clone()
    }

    async fn pay(merchant: &Caller, references: &[&str]) {
        for reference in references {
            let page = initialize(merchant, reference).await;
            merchant.pay(&page).await;
        }
    }

    /// Returns a field of all rows of a list.
    async fn listed(merchant: &Caller, path: &str, name: &str) -> Vec<Value> {
        column(&merchant.get(path).await["data"], name)
    }

    #[tokio::test]
    async fn payments_are_paged_and_filtered() {
        let merchant = merchant().await;
        let early = initialize(&merchant, "early").await;
        merchant.advance(3_600).await;
        merchant.pay(&early).await;
        pay(&merchant, &["late"]).await;
        initialize(&merchant, "open").await;
        let page = merchant.get("/transaction?perPage=2&page=2").await;
        assert_eq!(column(&page["data"], "reference"), ["early"]);
        let meta = json!({ "total": 3, "skipped": 2, "perPage": 2, "page": 2, "pageCount": 2 });
        assert_eq!(page["meta"], meta);
        for (query, references) in [
            ("?from=2026-11-21T11:00:00Z", vec!["open", "late", "early"]),
            ("?from=2026-11-21T11:00:00Z&status=success", vec!["late", "early"]),
            // The time of a payment is when it was paid.
            ("?to=2026-11-21T10:59:59.999Z", vec![]),
            ("?from=2026-11-21&to=2026-11-22&status=abandoned", vec!["open"]),
        ] {
            let found = listed(&merchant, &format!("{PAYMENTS}{query}"), "reference").await;
            assert_eq!(found, references, "{query}");
        }
        let (status, _) = merchant.call(Method::GET, "/transaction?from=soon", Value::Null).await;
        assert_eq!(status, 400);
    }

    #[tokio::test]
    async fn refunds_are_paged_and_filtered() {
        let merchant = merchant().await;
        pay(&merchant, &["one", "two"]).await;
        merchant.post(REFUNDS, json!({ "transaction": "one", "amount": 1_000 })).await;
        merchant.advance(3_600).await;
        merchant.post(REFUNDS, json!({ "transaction": "two", "amount": 2_000 })).await;
        let page = merchant.get("/refund?perPage=1&page=2").await;
        assert_eq!(column(&page["data"], "amount"), [1_000]);
        assert_eq!((&page["meta"]["total"], &page["meta"]["pageCount"]), (&json!(2), &json!(2)));
        for (query, amounts) in [
            ("?from=2026-11-21T11:00:00Z", vec![2_000]),
            ("?to=2026-11-21T10:30:00Z", vec![1_000]),
            ("?transaction=one&from=2026-11-21T11:00:00Z", vec![]),
        ] {
            let found = listed(&merchant, &format!("{REFUNDS}{query}"), "amount").await;
            assert_eq!(found, amounts, "{query}");
        }
    }

    #[tokio::test]
    async fn lists_show_changes_and_verification_does_not() {
        let merchant = merchant().await;
        pay(&merchant, &["one", "two", "three"]).await;
        assert_eq!(
            merchant.put("/listing", json!({ "reference": "one", "hidden": true })).await,
            204
        );
        let change = json!({ "reference": "two", "amount_minor": 400_000, "fees_minor": 7 });
        assert_eq!(merchant.put("/listing", change).await, 204);
        assert_eq!(listed(&merchant, PAYMENTS, "reference").await, ["three", "two"]);
        assert_eq!(listed(&merchant, PAYMENTS, "amount").await, [500_000, 400_000]);
        assert_eq!(listed(&merchant, PAYMENTS, "requested_amount").await, [500_000, 400_000]);
        assert_eq!(listed(&merchant, PAYMENTS, "fees").await, [17_500, 7]);
        for reference in ["one", "two"] {
            let verified = merchant.get(&format!("/transaction/verify/{reference}")).await;
            assert_eq!(verified["data"]["amount"], 500_000, "{reference}");
        }
        // A later change replaces the earlier one.
        assert_eq!(merchant.put("/listing", json!({ "reference": "one" })).await, 204);
        assert_eq!(listed(&merchant, PAYMENTS, "reference").await, ["three", "two", "one"]);
        assert_eq!(merchant.put("/listing", json!({ "reference": "none" })).await, 404);
        assert_eq!(merchant.put("/listing", json!({ "hidden": true })).await, 400);
    }

    #[tokio::test]
    async fn added_lines_are_only_in_lists() {
        let merchant = merchant().await;
        let payment = json!({
            "kind": "payment", "reference": "added", "amount_minor": 100_000, "currency": "NGN",
        });
        let unused = merchant.call(Method::POST, "/listing", payment.clone()).await;
        assert_eq!(unused.0, 409);
        pay(&merchant, &["one"]).await;
        let id = merchant.post("/listing", payment.clone()).await["id"].clone();
        assert_eq!(merchant.call(Method::POST, "/listing", payment).await.0, 409);
        let path = "/transaction?status=success";
        assert_eq!(listed(&merchant, path, "reference").await, ["added", "one"]);
        assert_eq!(listed(&merchant, path, "fees").await, [1_500, 17_500]);
        assert_eq!(json!(listed(&merchant, path, "id").await[0].to_string()), id);
        for path in ["/transaction/verify/added", &format!("/transaction/{}", text(&id))] {
            assert_eq!(merchant.call(Method::GET, path, Value::Null).await.0, 404, "{path}");
        }

        let mut refund = json!({
            "kind": "refund", "reference": "one", "amount_minor": 2_000, "currency": "NGN",
        });
        let id = merchant.post("/listing", refund.clone()).await["id"].clone();
        assert_eq!(listed(&merchant, REFUNDS, "amount").await, [2_000]);
        assert_eq!(merchant.get("/refund?transaction=one").await["data"], json!([]));
        let path = format!("/refund/{}", text(&id));
        assert_eq!(merchant.call(Method::GET, &path, Value::Null).await.0, 404);
        refund["reference"] = json!("none");
        assert_eq!(merchant.call(Method::POST, "/listing", refund).await.0, 404);
        assert_eq!(merchant.call(Method::POST, "/listing", json!({})).await.0, 400);

        let change = json!({ "id": id, "amount_minor": 3_000 });
        assert_eq!(merchant.put("/listing/refund", change).await, 204);
        assert_eq!(listed(&merchant, REFUNDS, "amount").await, [3_000]);
        let number = text(&id).parse::<u64>().unwrap();
        let hidden = json!({ "id": number, "hidden": true });
        assert_eq!(merchant.put("/listing/refund", hidden).await, 204);
        assert_eq!(merchant.get(REFUNDS).await["data"], json!([]));
        assert_eq!(merchant.put("/listing/refund", json!({ "id": 1 })).await, 404);
        assert_eq!(merchant.put("/listing/refund", json!({ "hidden": true })).await, 400);
    }

    fn text(id: &Value) -> &str {
        id.as_str().unwrap()
    }

    #[tokio::test]
    async fn a_settlement_pays_out_the_listed_payments() {
        let merchant = merchant().await;
        let (status, body) = merchant.call(Method::POST, "/settle", json!({})).await;
        assert_eq!((status, &body["error"]), (400, &json!("no successful payment is unsettled")));
        pay(&merchant, &["one", "two", "three"]).await;
        initialize(&merchant, "open").await;
        merchant.put("/listing", json!({ "reference": "three", "hidden": true })).await;
        let id = merchant.post("/settle", Value::Null).await["id"].clone();
        let found = merchant.get("/settlement").await["data"][0].clone();
        let expected = json!({
            "domain": "test", "status": "success", "currency": "NGN", "total_amount": 965_000,
            "effective_amount": 965_000, "total_fees": 35_000, "total_processed": 1_000_000,
            "deductions": null, "settlement_date": "2026-11-21T00:00:00.000Z", "settled_by": null,
            "createdAt": "2026-11-21T10:00:00.000Z", "updatedAt": "2026-11-21T10:00:00.000Z",
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&found[name], value, "{name}");
        }
        assert_eq!(json!(found["id"].to_string()), id);
        assert!(found["integration"].is_u64());
        let contents = format!("/settlement/{}/transactions", text(&id));
        let page = merchant.get(&format!("{contents}?perPage=1&page=2")).await;
        assert_eq!(column(&page["data"], "reference"), ["one"]);
        assert_eq!(column(&page["data"], "fees"), [17_500]);
        assert_eq!(page["meta"]["total"], 2);
        // A change of the list changes the contents, too, and not the totals.
        merchant.put("/listing", json!({ "reference": "two", "hidden": true })).await;
        assert_eq!(listed(&merchant, &contents, "reference").await, ["one"]);
        assert_eq!(merchant.get("/settlement").await["data"][0], found);
        assert_eq!(merchant.call(Method::POST, "/settle", json!({})).await.0, 400);
        let (status, _) =
            merchant.call(Method::GET, "/settlement/1/transactions", Value::Null).await;
        assert_eq!(status, 404);
    }

    #[tokio::test]
    async fn settlements_deduct_refunds_and_lost_disputes() {
        let merchant = merchant().await;
        pay(&merchant, &["one", "two"]).await;
        merchant.post(REFUNDS, json!({ "transaction": "one" })).await;
        merchant.advance(10).await;
        let paystack = merchant.simulators.paystack();
        for (won, amount) in [(true, 1_000), (false, 2_000)] {
            let dispute = paystack.open_dispute("two", Some(amount)).unwrap();
            assert!(paystack.decide_dispute(dispute, won));
        }
        assert!(paystack.settle(None).is_some());
        let found = merchant.get("/settlement").await["data"][0].clone();
        assert_eq!(
            (&found["total_processed"], &found["deductions"], &found["effective_amount"]),
            (&json!(1_000_000), &json!(502_000), &json!(463_000))
        );
        merchant.advance(24 * 3_600).await;
        pay(&merchant, &["three"]).await;
        merchant.post("/settle", json!({ "paid_minor": 480_000 })).await;
        let paths = ["/settlement", "/settlement?from=2026-11-22", "/settlement?to=2026-11-22"];
        for (path, paid) in paths.iter().zip([vec![480_000, 463_000], vec![480_000], vec![463_000]])
        {
            assert_eq!(listed(&merchant, path, "effective_amount").await, paid, "{path}");
        }
        let deductions = listed(&merchant, "/settlement", "deductions").await;
        assert_eq!(deductions, [Value::Null, json!(502_000)]);
        assert_eq!(
            merchant.call(Method::POST, "/settle", json!({ "paid_minor": "x" })).await.0,
            400
        );
    }

    #[tokio::test]
    async fn settlements_require_a_key_and_can_fail() {
        let mut merchant = merchant().await;
        for (operation, path) in
            [("settlement_list", "/settlement"), ("settlement", "/settlement/1/transactions")]
        {
            merchant.simulators.faults().push(Fault::new(operation, FaultKind::Error500));
            assert_eq!(merchant.call(Method::GET, path, Value::Null).await.0, 500, "{path}");
        }
        merchant.authorization = "Bearer pk_test_x".to_owned();
        for path in ["/settlement", "/settlement/1/transactions"] {
            assert_eq!(merchant.call(Method::GET, path, Value::Null).await.0, 401, "{path}");
        }
    }
}
