//! The payment of these tests: 60 NGN, with a fee of 0.84 NGN.

use serde_json::{Value, json};
use tollhouse_plugin::settlements::{
    Guest, ListedKind, ListedTransaction, Period, Settlement, SettlementPage, SettlementStatus,
    TransactionFilter, TransactionPage,
};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory, Money};

use super::{host, naira, refused, success, transaction, transaction_with};
use crate::{Flutterwave, MANIFEST};

const TRANSACTION: &str = "/transactions/782728102/verify";
const REFUNDS: &str = "/refunds?from=2022-12-11&to=2022-12-12&page=1";
const CHARGEBACKS: &str = "/chargebacks?from=2022-06-14&to=2022-12-12&page=1";
const SETTLEMENT: &str = "/settlements/41497";

fn day() -> Period {
    Period { since: "2022-12-11T00:00:00.000Z".into(), until: "2022-12-12T00:00:00.000Z".into() }
}

/// The URL of a page of payments.
fn payments(page: u64) -> String {
    format!("/transactions?from=2022-12-11&to=2022-12-12&status=successful&page={page}")
}

fn page(items: Value, pages: u64) -> Value {
    let mut page = success(items);
    page["meta"] = json!({"page_info": {"total_pages": pages}});
    page
}

fn with(mut item: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().into_iter().flatten() {
        item[name] = value.clone();
    }
    item
}

/// A refund as listed, with some fields replaced.
fn refund_with(changes: Value) -> Value {
    let refund = json!({
        "id": 75923, "account_id": 73362, "tx_id": 782728102, "flw_ref": "URF_1577867664541",
        "wallet_id": 74639, "amount_refunded": 60, "status": "completed-mpgs",
        "destination": "payment_source", "meta": "{\"source\":\"availablebalance\"}",
        "transaction_id": 782728102, "comment": "late", "settlement_id": "NEW",
        "created_at": "2022-12-11T09:18:37.000Z",
    });
    with(refund, changes)
}

/// A lost chargeback as listed, with some fields replaced.
fn chargeback_with(changes: Value) -> Value {
    let history = json!([
        {"action": "initiated", "stage": "new", "date": "2022-11-22T19:01:28.000Z"},
        {"action": "lost", "stage": "new", "date": "2022-12-11T10:00:00.000Z"},
    ]);
    let chargeback = json!({
        "id": 1390, "amount": 60, "flw_ref": "FLW-MOCK-0a6b", "status": "lost", "stage": "new",
        "comment": "Not received", "meta": {"uploaded_proof": null, "history": history},
        "due_date": "2022-11-23T15:59:59.000Z", "settlement_id": "N/A",
        "created_at": "2022-11-22T19:01:28.000Z", "transaction_id": 782728102,
        "tx_ref": "3456787654",
    });
    with(chargeback, changes)
}

/// A settlement as listed, with some fields replaced.
fn settlement_with(changes: Value) -> Value {
    let settlement = json!({
        "id": 41497, "account_id": 73362, "merchant_name": "Demo", "merchant_email": "d@test.com",
        "settlement_account": "0031318432", "bank_code": "063",
        "transaction_date": "2022-12-11T04:00:00.000Z", "due_date": "2022-12-12T04:00:00.000Z",
        "processed_date": "2022-12-12T05:00:00.000Z", "status": "completed", "is_local": true,
        "currency": "NGN", "gross_amount": 50800, "app_fee": 950, "merchant_fee": 1.5,
        "chargeback": 0, "refund": 100, "stampduty_charge": 50, "net_amount": "49698.50",
        "transaction_count": 5, "meta": "[906256]", "created_at": "2022-12-12T01:30:00.000Z",
    });
    with(settlement, changes)
}

/// A payment in a settlement.
fn settled(id: u64) -> Value {
    json!({
        "customer_email": "demo@test.com", "flw_ref": "FLW-MOCK-0a6b", "tx_ref": "3456787654",
        "id": id, "charged_amount": 10140, "app_fee": 190, "merchant_fee": 0,
        "stampduty_charge": 0, "settlement_amount": 9950, "status": "successful",
        "payment_entity": "card", "transaction_date": "2022-12-11", "currency": "NGN",
        "card_locale": "LOCAL", "rrn": "N/A", "subaccount_settlement": 0,
    })
}

/// Adds the response to a query of the transaction that refunds and chargebacks name.
fn with_transaction(host: FakeHost) -> FakeHost {
    host.answer("GET", TRANSACTION, 200, success(transaction()))
}

/// Returns the transactions of the day from this cursor.
fn list(host: FakeHost, cursor: &str) -> Result<TransactionPage, Fault> {
    let _host = host.install();
    Flutterwave::transactions(TransactionFilter::Period(day()), Some(cursor.into()))
}

/// Returns the only line of a list with this item.
fn line(url: &str, cursor: &str, item: Value) -> Result<Option<ListedTransaction>, Fault> {
    let host = with_transaction(host().answer("GET", url, 200, page(json!([item]), 1)));
    let found = list(host, cursor)?;
    assert!(found.transactions.len() <= 1);
    Ok(found.transactions.into_iter().next())
}

fn payment(changes: Value) -> Result<ListedTransaction, Fault> {
    Ok(line(&payments(1), "payments", transaction_with(changes))?.unwrap())
}

fn refund(changes: Value) -> Result<Option<ListedTransaction>, Fault> {
    line(REFUNDS, "refunds", refund_with(changes))
}

fn chargeback(changes: Value) -> Result<Option<ListedTransaction>, Fault> {
    line(CHARGEBACKS, "disputes", chargeback_with(changes))
}

fn settlements(host: FakeHost, cursor: Option<&str>) -> Result<SettlementPage, Fault> {
    let _host = host.install();
    Flutterwave::list(day(), cursor.map(str::to_owned))
}

fn settlement(changes: Value) -> Result<Settlement, Fault> {
    let list = page(json!([settlement_with(changes)]), 1);
    let mut found = settlements(host().answer("GET", "/settlements", 200, list), None)?;
    assert_eq!((found.settlements.len(), &found.next), (1, &None));
    Ok(found.settlements.remove(0))
}

fn contents(host: FakeHost, cursor: Option<&str>) -> Result<TransactionPage, Fault> {
    let _host = host.install();
    let filter = TransactionFilter::Settlement("41497".into());
    Flutterwave::transactions(filter, cursor.map(str::to_owned))
}

fn is_unreadable(fault: &Fault) -> bool {
    fault.category == FaultCategory::Unavailable && fault.code == "unexpected-answer"
}

#[test]
fn a_period_has_three_lists_with_several_pages() {
    let refunds: Vec<Value> = (1..=12).map(|id| refund_with(json!({"id": id}))).collect();
    let second = page(json!([transaction_with(json!({"id": "2"}))]), 2);
    let host = with_transaction(host())
        .answer("GET", &payments(1), 200, page(json!([transaction()]), 2))
        .answer("GET", &payments(2), 200, second)
        .answer("GET", REFUNDS, 200, page(json!(refunds), 1))
        .answer("GET", CHARGEBACKS, 200, page(json!([chargeback_with(json!({}))]), 1))
        .install();
    let (mut found, mut cursors) = (Vec::new(), Vec::new());
    loop {
        let sent = host.requests().len();
        let filter = TransactionFilter::Period(day());
        let page = Flutterwave::transactions(filter, cursors.last().cloned()).unwrap();
        assert!(host.requests().len() - sent <= 11);
        found.extend(page.transactions);
        let Some(next) = page.next else { break };
        cursors.push(next);
    }
    assert_eq!(cursors, ["payments:2.0", "refunds", "refunds:1.10", "disputes"]);
    let lines: Vec<_> = found.iter().map(|line| (line.kind, line.id.as_str())).collect();
    assert_eq!(lines.len(), 15);
    assert_eq!(lines[..2], [(ListedKind::Payment, "782728102"), (ListedKind::Payment, "2")]);
    assert_eq!(
        lines[12..],
        [(ListedKind::Refund, "11"), (ListedKind::Refund, "12"), (ListedKind::Dispute, "1390")]
    );
}

#[test]
fn lines_have_no_more_than_the_contract_wants() {
    let expected = ListedTransaction {
        kind: ListedKind::Payment,
        id: "782728102".into(),
        service_ref: "3456787654".into(),
        transaction_id: "782728102".into(),
        amount: naira(6000),
        fees_minor: Some(84),
        at: "2022-12-11T07:06:45.000Z".into(),
    };
    assert_eq!(payment(json!({})), Ok(expected));
    let expected = ListedTransaction {
        kind: ListedKind::Refund,
        id: "75923".into(),
        service_ref: "3456787654".into(),
        transaction_id: "782728102".into(),
        amount: naira(6000),
        fees_minor: None,
        at: "2022-12-11T09:18:37.000Z".into(),
    };
    assert_eq!(refund(json!({})), Ok(Some(expected)));
    let expected = ListedTransaction {
        kind: ListedKind::Dispute,
        id: "1390".into(),
        service_ref: "3456787654".into(),
        transaction_id: "782728102".into(),
        amount: naira(6000),
        fees_minor: None,
        at: "2022-12-11T10:00:00.000Z".into(),
    };
    assert_eq!(chargeback(json!({})), Ok(Some(expected)));
}

#[test]
fn fees_that_the_payer_bears_are_not_the_companys() {
    for (amount, charged, fee, expected) in [
        (json!(60), json!(60), json!(0.84), (6000, Some(84))),
        (json!(60), json!(60.84), json!(0.84), (6000, Some(0))),
        (json!(60), json!("60.84"), json!("1.00"), (6000, Some(16))),
        (json!(60), json!(61), json!(0.84), (6000, Some(0))),
        (json!(null), json!(60), json!(0.84), (6000, Some(84))),
        (json!(60), json!(null), json!(0.84), (6000, Some(84))),
        (json!(60), json!(40), json!(0.84), (4000, Some(84))),
        // Fractions of a kobo.
        (json!(60), json!(60.008), json!(0.841), (6000, Some(85))),
        (json!(60), json!(60), json!(null), (6000, None)),
    ] {
        let changes = json!({"amount": amount, "charged_amount": charged, "app_fee": fee});
        let found = payment(changes.clone()).unwrap();
        assert_eq!((found.amount.minor, found.fees_minor), expected, "{changes}");
    }
    let francs = json!({"currency": "XOF", "amount": 2500, "charged_amount": 2500, "app_fee": 35});
    let found = payment(francs).unwrap();
    assert_eq!(found.amount, Money { minor: 2500, currency: "XOF".into() });
    assert_eq!(found.fees_minor, Some(35));
}

#[test]
fn failed_refunds_are_skipped() {
    for (status, is_listed) in [
        ("completed-bank-transfer", true),
        ("completed", true),
        ("pending", true),
        ("processing", true),
        ("something new", true),
        ("failed", false),
        ("Failed", false),
    ] {
        let found = refund(json!({"status": status})).unwrap();
        assert_eq!(found.is_some(), is_listed, "{status}");
    }
    let as_notified = refund_with(json!({
        "amount_refunded": null, "AmountRefunded": "59.50", "tx_id": null,
        "transaction_id": null, "TransactionId": 782728102, "created_at": null,
        "createdAt": "2022-12-11T09:18:37.000Z",
    }));
    let found = line(REFUNDS, "refunds", as_notified).unwrap().unwrap();
    assert_eq!((found.amount, &*found.at), (naira(5950), "2022-12-11T09:18:37.000Z"));
}

#[test]
fn only_lost_chargebacks_are_listed() {
    for (status, is_listed) in [
        ("lost", true),
        ("accepted", true),
        ("won", false),
        ("declined", false),
        ("initiated", false),
        ("something new", false),
    ] {
        let found = chargeback(json!({"status": status})).unwrap();
        assert_eq!(found.is_some(), is_listed, "{status}");
    }
    for meta in [json!(null), json!("{}"), json!({"history": []}), json!({"history": [{}]})] {
        let found = chargeback(json!({"meta": meta})).unwrap().unwrap();
        assert_eq!(found.at, "2022-11-22T19:01:28.000Z", "{meta}");
    }
}

#[test]
fn unreadable_lines_are_unavailable() {
    for changes in [
        json!({"id": null}),
        json!({"currency": null}),
        json!({"amount": null, "charged_amount": null}),
        json!({"amount": -60}),
        json!({"charged_amount": "much"}),
        json!({"app_fee": "much"}),
        json!({"created_at": null}),
        json!({"created_at": "soon"}),
    ] {
        assert!(is_unreadable(&payment(changes.clone()).unwrap_err()), "{changes}");
    }
    for changes in [
        json!({"id": null}),
        json!({"status": null}),
        json!({"amount_refunded": null}),
        json!({"amount_refunded": "much"}),
        json!({"tx_id": null, "transaction_id": null}),
        json!({"created_at": null}),
    ] {
        assert!(is_unreadable(&refund(changes.clone()).unwrap_err()), "{changes}");
    }
    for changes in [
        json!({"id": null}),
        json!({"status": null}),
        json!({"amount": null}),
        json!({"transaction_id": null}),
        json!({"meta": null, "created_at": null}),
    ] {
        assert!(is_unreadable(&chargeback(changes.clone()).unwrap_err()), "{changes}");
    }
}

/// A refusal of the transaction does not mean that the refund does not exist.
#[test]
fn without_its_transaction_a_refund_is_unavailable() {
    let unknown = refused("No transaction was found for this id");
    let nameless = success(json!({"id": 782728102, "tx_ref": "3456787654"}));
    for (status, response) in [(404, unknown), (500, json!({})), (200, nameless)] {
        let host = host()
            .answer("GET", REFUNDS, 200, page(json!([refund_with(json!({}))]), 1))
            .answer("GET", TRANSACTION, status, response);
        let fault = list(host, "refunds").unwrap_err();
        assert_eq!(fault.category, FaultCategory::Unavailable, "{status}");
    }
}

#[test]
fn lists_that_cannot_be_read_are_faults() {
    let fault = |status: u16, response: Value| {
        list(host().answer("GET", &payments(1), status, response), "payments").unwrap_err().category
    };
    assert_eq!(fault(200, success(json!({"odd": true}))), FaultCategory::Unavailable);
    assert_eq!(fault(200, success(json!([1]))), FaultCategory::Unavailable);
    assert_eq!(fault(500, json!({})), FaultCategory::Unavailable);
    assert_eq!(fault(401, json!({})), FaultCategory::Misconfigured);
    assert_eq!(fault(404, refused("Not found")), FaultCategory::NotFound);
    for cursor in ["", "2.0", "transfers", "payments:2", "payments:x.0", "refunds:-1.0"] {
        assert_eq!(list(host(), cursor).unwrap_err().field(), Some("cursor"), "{cursor}");
    }
    for (field, period) in [
        ("since", Period { since: "soon".into(), ..day() }),
        ("until", Period { until: "2022-12-12".into(), ..day() }),
    ] {
        assert_eq!(Flutterwave::list(period, None).unwrap_err().field(), Some(field));
    }
}

#[test]
fn missing_lists_of_refunds_and_chargebacks_are_empty() {
    for (url, cursor, next) in
        [(REFUNDS, "refunds", Some("disputes")), (CHARGEBACKS, "disputes", None)]
    {
        let missing = refused("No refunds found");
        let found = list(host().answer("GET", url, 404, missing), cursor).unwrap();
        assert_eq!((found.transactions.len(), found.next.as_deref()), (0, next));
    }
    // A list whose first page exists is not missing.
    let second = "/refunds?from=2022-12-11&to=2022-12-12&page=2";
    let host = host().answer("GET", second, 404, refused("Not found"));
    assert_eq!(list(host, "refunds:2.0").unwrap_err().category, FaultCategory::Unavailable);
}

/// Without the permission, an empty list would be wrong.
#[test]
fn forbidden_lists_are_misconfigured() {
    let host = host().answer("GET", REFUNDS, 403, refused("Not permitted"));
    assert_eq!(list(host, "refunds").unwrap_err().category, FaultCategory::Misconfigured);
}

#[test]
fn the_payments_of_a_settlement_are_listed_in_parts_of_a_hundred() {
    let host = || {
        let payments: Vec<Value> = (1..=101).map(settled).collect();
        let details = settlement_with(json!({"transactions": payments}));
        host().answer("GET", SETTLEMENT, 200, success(details))
    };
    let found = contents(host(), None).unwrap();
    let expected = ListedTransaction {
        kind: ListedKind::Payment,
        id: "1".into(),
        service_ref: "3456787654".into(),
        transaction_id: "1".into(),
        amount: naira(1_014_000),
        fees_minor: Some(19_000),
        at: "2022-12-11T00:00:00Z".into(),
    };
    assert_eq!((found.transactions.len(), found.next.as_deref()), (100, Some("1.100")));
    assert_eq!(found.transactions[0], expected);
    let found = contents(host(), Some("1.100")).unwrap();
    assert_eq!((found.transactions.len(), found.next), (1, None));
    assert_eq!(found.transactions[0].id, "101");
}

#[test]
fn a_settlement_without_readable_contents_is_a_fault() {
    for details in [
        settlement_with(json!({})),
        settlement_with(json!({"transactions": null})),
        settlement_with(json!({"transactions": [{"id": 1}]})),
    ] {
        let host = host().answer("GET", SETTLEMENT, 200, success(details.clone()));
        assert!(is_unreadable(&contents(host, None).unwrap_err()), "{details}");
    }
    let unknown = host().answer("GET", SETTLEMENT, 404, refused("Settlement not found"));
    assert_eq!(contents(unknown, None).unwrap_err().category, FaultCategory::NotFound);
    assert_eq!(contents(host(), Some("x")).unwrap_err().field(), Some("cursor"));
}

#[test]
fn settlements_are_listed_page_by_page() {
    let url = |page: u64| format!("/settlements?from=2022-12-11&to=2022-12-12&page={page}");
    let host = || {
        host().answer("GET", &url(1), 200, page(json!([settlement_with(json!({}))]), 2)).answer(
            "GET",
            &url(2),
            200,
            page(json!([settlement_with(json!({"id": 2}))]), 2),
        )
    };
    let first = settlements(host(), None).unwrap();
    let expected = Settlement {
        id: "41497".into(),
        status: SettlementStatus::Paid,
        amount: naira(4_969_850),
        gross_minor: 5_080_000,
        fees_minor: 100_150,
        deductions_minor: 10_000,
        at: "2022-12-12T05:00:00.000Z".into(),
    };
    assert_eq!((first.settlements, first.next.as_deref()), (vec![expected], Some("2.0")));
    let second = settlements(host(), Some("2.0")).unwrap();
    assert_eq!((second.settlements[0].id.as_str(), second.next), ("2", None));
}

#[test]
fn settlement_statuses_and_dates_are_mapped() {
    for (status, expected) in [
        ("completed", SettlementStatus::Paid),
        ("Completed", SettlementStatus::Paid),
        ("failed", SettlementStatus::Failed),
        ("cancelled", SettlementStatus::Failed),
        ("pending", SettlementStatus::Pending),
        ("something new", SettlementStatus::Pending),
    ] {
        assert_eq!(settlement(json!({"status": status})).unwrap().status, expected, "{status}");
    }
    for (changes, at) in [
        (json!({"processed_date": null}), "2022-12-12T04:00:00.000Z"),
        (json!({"processed_date": null, "due_date": "N/A"}), "2022-12-12T01:30:00.000Z"),
        (json!({"processed_date": "2022-12-13"}), "2022-12-13T00:00:00Z"),
    ] {
        assert_eq!(settlement(changes.clone()).unwrap().at, at, "{changes}");
    }
}

#[test]
fn unreadable_settlements_are_unavailable() {
    let without_fees = json!({"app_fee": 0, "merchant_fee": null, "stampduty_charge": null});
    assert_eq!(settlement(without_fees).unwrap().fees_minor, 0);
    for changes in [
        json!({"id": null}),
        json!({"status": null}),
        json!({"currency": null}),
        json!({"gross_amount": null}),
        json!({"net_amount": -1}),
        json!({"app_fee": "much"}),
        json!({"processed_date": null, "due_date": null, "created_at": null}),
    ] {
        assert!(is_unreadable(&settlement(changes.clone()).unwrap_err()), "{changes}");
    }
}

#[test]
fn every_call_succeeds_with_the_examples() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    for (cursor, lines) in [("payments", 1), ("refunds", 0), ("disputes", 0)] {
        let filter = TransactionFilter::Period(day());
        let found = Flutterwave::transactions(filter, Some(cursor.into())).unwrap();
        assert_eq!(found.transactions.len(), lines, "{cursor}");
    }
    let settlement = Flutterwave::list(day(), None).unwrap().settlements.remove(0);
    assert_eq!((settlement.id.as_str(), settlement.gross_minor), ("6001", 500_000));
    let filter = TransactionFilter::Settlement(settlement.id);
    let found = Flutterwave::transactions(filter, None).unwrap();
    assert_eq!(found.transactions[0].service_ref, "example-1");
}
