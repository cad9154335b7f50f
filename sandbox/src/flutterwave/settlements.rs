//! Lists for reconciliation: changes by tests, settlements, and their transactions.

use std::borrow::Cow;

use axum::{
    extract::{Path, Query, State},
    http::StatusCode,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Flutterwave,
    accounts::Account,
    http::{ApiError, ApiKey, ApiResult, Page, Reply, is_within},
    refunds::Refund,
    transactions::{Order, Status, Transaction, fee},
};
use crate::{
    env::Env,
    listing::{Listed, ListedLine, ListingAccount, ListingChange, PAYER},
    money::major,
    settlements::{Movement, Movements, Settlement, Settlements, SettlingAccount},
};

const PER_PAGE: usize = 20;

impl Listed for Transaction {
    fn name(&self) -> Cow<'_, str> {
        self.tx_ref.as_str().into()
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
        self.fee = change.fees_minor.or(self.fee);
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
    fn change_listing(&mut self, tx_ref: &str, change: ListingChange) -> bool {
        let known = self.has_payment(tx_ref);
        if known {
            self.payment_lines.change(tx_ref, change);
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

    fn has_payment(&self, tx_ref: &str) -> bool {
        self.references.contains_key(tx_ref) || self.payment_lines.has_added(tx_ref)
    }

    fn newest_payment(&self) -> Option<u64> {
        self.transactions.keys().next_back().copied()
    }

    fn add_listed_payment(&mut self, env: &Env, line: &ListedLine) -> String {
        let order = Order {
            tx_ref: line.reference.clone(),
            amount: line.amount_minor,
            currency: line.currency.clone(),
            email: PAYER.to_owned(),
        };
        let usual_fee = || fee(line.amount_minor, &line.currency);
        let payment = Transaction {
            status: Status::Successful,
            processor_response: Some("Approved by Financial Institution".to_owned()),
            fee: Some(line.fees_minor.unwrap_or_else(usual_fee)),
            ..Transaction::new(order, self, env)
        };
        let id = payment.id.to_string();
        self.payment_lines.add(payment);
        id
    }

    fn add_listed_refund(&mut self, env: &Env, line: &ListedLine) -> Option<String> {
        let refund = self.listed_refund(env, line)?;
        let id = refund.id.to_string();
        self.refund_lines.add(refund);
        Some(id)
    }
}

impl SettlingAccount for Account {
    fn movements(&self) -> Movements {
        let payments = self.listed_payments();
        let payments = payments.iter().filter(|payment| payment.status == Status::Successful);
        let payments = payments.map(|payment| Movement {
            id: payment.id,
            currency: payment.reported().1.to_owned(),
            amount: payment.charged(),
            fees: payment.fee.unwrap_or_default(),
        });
        let refunds = self.listed_refunds();
        let refunds = refunds.iter().filter(|refund| !refund.has_failed());
        let refunds = refunds.map(|refund| Movement {
            id: refund.id,
            currency: self.transactions[&refund.transaction].currency.clone(),
            amount: refund.amount,
            fees: 0,
        });
        Movements {
            payments: payments.collect(),
            refunds: refunds.collect(),
            disputes: self.lost_chargebacks(),
        }
    }

    fn settlements(&mut self) -> &mut Settlements {
        &mut self.settlements
    }
}

impl Account {
    /// Returns the transactions of the lists, newest first.
    pub(super) fn listed_payments(&self) -> Vec<Cow<'_, Transaction>> {
        self.payment_lines.list(self.transactions.values())
    }

    /// Returns the refunds of the lists, newest first.
    pub(super) fn listed_refunds(&self) -> Vec<Cow<'_, Refund>> {
        self.refund_lines.list(self.refunds.values())
    }

    /// A settlement as in lists.
    fn settlement_json(&self, settlement: &Settlement) -> Value {
        json!({
            "id": settlement.id,
            "account_id": self.id,
            "merchant_name": format!("Merchant {}", self.id),
            "merchant_email": "merchant@example.com",
            "settlement_account": "0123456789",
            "bank_code": "058",
            "transaction_date": settlement.created_at,
            "due_date": settlement.created_at,
            "processed_date": settlement.created_at,
            "status": "completed",
            "is_local": true,
            "currency": settlement.currency,
            "gross_amount": major(settlement.gross),
            "app_fee": major(settlement.fees),
            "merchant_fee": 0,
            "chargeback": major(settlement.disputes),
            "refund": major(settlement.refunds),
            "stampduty_charge": 0,
            "net_amount": major(settlement.paid),
            "transaction_count": settlement.payments.len(),
            "processor_ref": null,
            "disburse_ref": format!("FLW{}", settlement.id),
            "disburse_message": null,
            "channel": "web",
            "destination": "bank",
            "fx_data": null,
            "flag_message": null,
            "meta": settlement.payments,
            "refund_meta": null,
            "chargeback_meta": null,
            "source_bankcode": null,
            "created_at": settlement.created_at,
        })
    }

    /// A settlement as shown alone: with its transactions, a number for `is_local`, and `meta` as a
    /// string.
    fn settlement_details_json(&self, settlement: &Settlement) -> Value {
        let listed = self.listed_payments();
        let settled = listed.iter().filter(|payment| settlement.payments.contains(&payment.id));
        let rows: Vec<Value> = settled.map(|payment| settled_json(payment)).collect();
        let mut data = self.settlement_json(settlement);
        data["is_local"] = json!(1);
        data["meta"] = json!(data["meta"].to_string());
        data["transactions"] = rows.into();
        data
    }
}

/// A transaction as in settlements, with a day as its date.
fn settled_json(transaction: &Transaction) -> Value {
    let (charged, fee) = (transaction.charged(), transaction.fee.unwrap_or_default());
    json!({
        "customer_email": transaction.email,
        "flw_ref": transaction.flw_ref,
        "tx_ref": transaction.tx_ref,
        "id": transaction.id,
        "charged_amount": major(charged),
        "app_fee": major(fee),
        "merchant_fee": 0,
        "stampduty_charge": 0,
        "settlement_amount": major(charged.saturating_sub(fee)),
        "status": transaction.status.name(),
        "payment_entity": transaction.payment_type,
        "transaction_date": transaction.created_at.to_datetime().format("%Y-%m-%d").to_string(),
        "currency": transaction.reported().1,
        "card_locale": "LOCAL",
        "rrn": "N/A",
        "subaccount_settlement": 0,
    })
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    /// First and last day: `YYYY-MM-DD`.
    from: Option<String>,
    to: Option<String>,
    page: Option<usize>,
}

pub(super) async fn list(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Query(query): Query<ListQuery>,
) -> ApiResult {
    let fits = |settlement: &&Settlement| {
        is_within(settlement.created_at, query.from.as_deref(), query.to.as_deref())
    };
    flutterwave.with_account(&key, |account, _| {
        let found = account.settlements.newest_first().filter(fits);
        let rows = found.map(|settlement| account.settlement_json(settlement)).collect();
        Ok(Reply::page("Settlements fetched", rows, Page::numbered(query.page, PER_PAGE)))
    })
}

pub(super) async fn fetch(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
) -> ApiResult {
    flutterwave.with_account(&key, |account, _| {
        let found = account.settlements.get(&id);
        let settlement =
            found.ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "Settlement not found"))?;
        Ok(Reply::new("Settlement fetched", account.settlement_details_json(settlement)))
    })
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;
    use crate::{
        Fault, FaultKind,
        flutterwave::ChargebackStatus,
        testing::{Caller, column},
    };

    const PAYMENTS: &str = "/v3/transactions";
    const REFUNDS: &str = "/v3/refunds";
    const SETTLEMENTS: &str = "/v3/settlements";

    async fn merchant() -> Caller {
        Caller::new("/flutterwave", "Bearer FLWSECK_TEST-abc123-X").await
    }

    /// Pays NGN 5,000 each, whose fee is NGN 70.
    async fn pay(merchant: &Caller, references: &[&str]) {
        for tx_ref in references {
            let order = json!({
                "tx_ref": tx_ref, "amount": 5_000, "redirect_url": "https://shop.test/",
                "customer": { "email": "ada@example.com" },
            });
            let body = merchant.post("/v3/payments", order).await;
            merchant.pay(&body["data"]["link"]).await;
        }
    }

    /// Returns a field of all rows of a list.
    async fn listed(merchant: &Caller, path: &str, name: &str) -> Vec<Value> {
        column(&merchant.get(path).await["data"], name)
    }

    #[tokio::test]
    async fn payments_are_paged_and_filtered() {
        let merchant = merchant().await;
        let references: Vec<String> = (0..11).map(|n| format!("early-{n}")).collect();
        pay(&merchant, &references.iter().map(String::as_str).collect::<Vec<_>>()).await;
        merchant.advance(24 * 3_600).await;
        pay(&merchant, &["late"]).await;
        let page = merchant.get("/v3/transactions?page=2&status=successful").await;
        assert_eq!(column(&page["data"], "tx_ref"), ["early-1", "early-0"]);
        let info = json!({ "total": 12, "current_page": 2, "total_pages": 2, "page_size": 10 });
        assert_eq!(page["meta"]["page_info"], info);
        for (query, total) in [
            ("?from=2026-11-22", 1),
            ("?from=2026-11-21&to=2026-11-21", 11),
            ("?to=2026-11-20", 0),
            ("?from=2026-11-21&status=failed", 0),
            ("?tx_ref=late&to=2026-11-21", 0),
        ] {
            let page = merchant.get(&format!("{PAYMENTS}{query}")).await;
            assert_eq!(page["meta"]["page_info"]["total"], total, "{query}");
        }
    }

    #[tokio::test]
    async fn refunds_are_paged_and_filtered() {
        let merchant = merchant().await;
        pay(&merchant, &["one"]).await;
        let flutterwave = merchant.simulators.flutterwave();
        for _ in 0..20 {
            assert!(flutterwave.refund("one", Some(100)));
        }
        merchant.advance(24 * 3_600).await;
        assert!(flutterwave.refund("one", Some(200)));
        assert_eq!(listed(&merchant, "/v3/refunds?page=2", "amount_refunded").await, [1]);
        for (query, total) in
            [("?from=2026-11-22", 1), ("?from=2026-11-20&to=2026-11-21", 20), ("?to=2026-11-20", 0)]
        {
            let page = merchant.get(&format!("{REFUNDS}{query}")).await;
            assert_eq!(page["meta"]["page_info"]["total"], total, "{query}");
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
        let change = json!({ "reference": "two", "amount_minor": 400_050, "fees_minor": 7 });
        assert_eq!(merchant.put("/listing", change).await, 204);
        assert_eq!(listed(&merchant, PAYMENTS, "tx_ref").await, ["three", "two"]);
        assert_eq!(listed(&merchant, PAYMENTS, "amount").await, [json!(5_000), json!(4_000.5)]);
        assert_eq!(listed(&merchant, PAYMENTS, "app_fee").await, [json!(70), json!(0.07)]);
        let settled = listed(&merchant, PAYMENTS, "amount_settled").await;
        assert_eq!(settled, [json!(4_930), json!(4_000.43)]);
        for tx_ref in ["one", "two"] {
            let path = format!("/v3/transactions/verify_by_reference?tx_ref={tx_ref}");
            assert_eq!(merchant.get(&path).await["data"]["amount"], 5_000, "{tx_ref}");
            let path = format!("{PAYMENTS}?tx_ref={tx_ref}");
            assert_eq!(listed(&merchant, &path, "amount").await, [5_000], "{tx_ref}");
        }
        assert_eq!(merchant.put("/listing", json!({ "reference": "one" })).await, 204);
        assert_eq!(listed(&merchant, PAYMENTS, "tx_ref").await, ["three", "two", "one"]);
        assert_eq!(merchant.put("/listing", json!({ "reference": "none" })).await, 404);
    }

    fn line(kind: &str, reference: &str) -> Value {
        json!({
            "kind": kind, "reference": reference, "amount_minor": 2_000, "currency": "NGN",
        })
    }

    #[tokio::test]
    async fn added_lines_are_only_in_lists() {
        let merchant = merchant().await;
        pay(&merchant, &["one"]).await;
        let id = merchant.post("/listing", line("payment", "added")).await["id"].clone();
        assert_eq!(merchant.call(Method::POST, "/listing", line("payment", "one")).await.0, 409);
        assert_eq!(listed(&merchant, PAYMENTS, "tx_ref").await, ["added", "one"]);
        // Ids are strings in lists.
        assert_eq!(listed(&merchant, PAYMENTS, "id").await[0], id);
        let path = "/v3/transactions/verify_by_reference?tx_ref=added";
        assert_eq!(merchant.call(Method::GET, path, Value::Null).await.0, 404);
        assert_eq!(merchant.get("/v3/transactions?tx_ref=added").await["data"], json!([]));

        let id = merchant.post("/listing", line("refund", "one")).await["id"].clone();
        assert_eq!(merchant.call(Method::POST, "/listing", line("refund", "none")).await.0, 404);
        assert_eq!(listed(&merchant, REFUNDS, "amount_refunded").await, [20]);
        let transaction = listed(&merchant, REFUNDS, "tx_id").await[0].clone();
        assert_eq!(merchant.get(&format!("{REFUNDS}?id={transaction}")).await["data"], json!([]));
        let change = json!({ "id": id, "amount_minor": 3_050 });
        assert_eq!(merchant.put("/listing/refund", change).await, 204);
        assert_eq!(listed(&merchant, REFUNDS, "amount_refunded").await, [json!(30.5)]);
        assert_eq!(merchant.put("/listing/refund", json!({ "id": id, "hidden": true })).await, 204);
        assert_eq!(merchant.get(REFUNDS).await["data"], json!([]));
        assert_eq!(merchant.put("/listing/refund", json!({ "id": "1" })).await, 404);
    }

    #[tokio::test]
    async fn a_settlement_pays_out_the_listed_payments() {
        let merchant = merchant().await;
        assert_eq!(merchant.call(Method::POST, "/settle", json!({})).await.0, 400);
        pay(&merchant, &["one", "two", "three"]).await;
        merchant.put("/listing", json!({ "reference": "three", "hidden": true })).await;
        let id = merchant.post("/settle", json!({})).await["id"].clone();
        let found = merchant.get(SETTLEMENTS).await["data"][0].clone();
        let expected = json!({
            "status": "completed", "currency": "NGN", "gross_amount": 10_000, "app_fee": 140,
            "merchant_fee": 0, "chargeback": 0, "refund": 0, "stampduty_charge": 0,
            "net_amount": 9_860, "transaction_count": 2, "is_local": true,
            "transaction_date": "2026-11-21T10:00:00.000Z", "due_date": "2026-11-21T10:00:00.000Z",
            "processed_date": "2026-11-21T10:00:00.000Z",
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&found[name], value, "{name}");
        }
        assert_eq!(json!(found["id"].to_string()), id);
        let path = format!("{SETTLEMENTS}/{}", id.as_str().unwrap());
        let details = merchant.get(&path).await["data"].clone();
        assert_eq!((&details["net_amount"], &details["is_local"]), (&json!(9_860), &json!(1)));
        assert_eq!(column(&details["transactions"], "tx_ref"), ["two", "one"]);
        let expected = json!({
            "charged_amount": 5_000, "app_fee": 70, "merchant_fee": 0, "stampduty_charge": 0,
            "settlement_amount": 4_930, "status": "successful", "currency": "NGN",
            "transaction_date": "2026-11-21",
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&details["transactions"][0][name], value, "{name}");
        }
        // A change of the list changes the contents, too, and not the totals.
        merchant.put("/listing", json!({ "reference": "two", "hidden": true })).await;
        let details = merchant.get(&path).await["data"].clone();
        assert_eq!(column(&details["transactions"], "tx_ref"), ["one"]);
        assert_eq!(details["net_amount"], 9_860);
        assert_eq!(merchant.call(Method::POST, "/settle", json!({})).await.0, 400);
    }

    #[tokio::test]
    async fn settlements_deduct_refunds_and_lost_chargebacks() {
        let merchant = merchant().await;
        pay(&merchant, &["one", "two"]).await;
        let flutterwave = merchant.simulators.flutterwave();
        assert!(flutterwave.refund("one", Some(100_000)));
        assert!(flutterwave.charge_back("two", Some(50_000), ChargebackStatus::Won));
        assert!(flutterwave.charge_back("two", Some(50_050), ChargebackStatus::Lost));
        assert!(flutterwave.settle(None).is_some());
        let found = merchant.get(SETTLEMENTS).await["data"][0].clone();
        assert_eq!(
            (&found["refund"], &found["chargeback"], &found["net_amount"]),
            (&json!(1_000), &json!(500.5), &json!(8_359.5))
        );
        merchant.advance(24 * 3_600).await;
        pay(&merchant, &["three"]).await;
        merchant.post("/settle", json!({ "paid_minor": 480_000 })).await;
        for (query, paid) in [
            ("", vec![json!(4_800), json!(8_359.5)]),
            ("?from=2026-11-22", vec![json!(4_800)]),
            ("?to=2026-11-21&page=1", vec![json!(8_359.5)]),
        ] {
            let found = listed(&merchant, &format!("{SETTLEMENTS}{query}"), "net_amount").await;
            assert_eq!(found, paid, "{query}");
        }
        assert_eq!(listed(&merchant, SETTLEMENTS, "refund").await, [0, 1_000]);
    }

    #[tokio::test]
    async fn settlements_require_a_key_and_can_fail() {
        let mut merchant = merchant().await;
        let unknown = merchant.call(Method::GET, "/v3/settlements/1", Value::Null).await;
        assert_eq!(unknown.0, 404);
        for (operation, path) in
            [("settlement_list", SETTLEMENTS), ("settlement", "/v3/settlements/1")]
        {
            merchant.simulators.faults().push(Fault::new(operation, FaultKind::Error500));
            assert_eq!(merchant.call(Method::GET, path, Value::Null).await.0, 500, "{path}");
        }
        merchant.authorization = "Bearer sk_test_x".to_owned();
        for path in [SETTLEMENTS, "/v3/settlements/1"] {
            assert_eq!(merchant.call(Method::GET, path, Value::Null).await.0, 401, "{path}");
        }
    }
}
