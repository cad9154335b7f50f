//! The payment of these tests: 300.50 NGN requested, and 102.83 NGN of fees on top.

use serde_json::{Value, json};
use tollhouse_plugin::settlements::{
    Guest, ListedKind, ListedTransaction, Period, Settlement, SettlementPage, SettlementStatus,
    TransactionFilter, TransactionPage,
};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory, Money};

use super::{host, naira, success, transaction, transaction_with};
use crate::{MANIFEST, Paystack};

const UNTIL: &str = "to=2024-08-23T00%3A00%3A00.000Z";

fn day() -> Period {
    Period { since: "2024-08-22T00:00:00.000Z".into(), until: "2024-08-23T00:00:00.000Z".into() }
}

/// The URL of a page of payments with this status.
fn payments(status: &str, page: u64) -> String {
    let period = format!("from=2024-08-21T00%3A00%3A00Z&{UNTIL}");
    format!("/transaction?status={status}&{period}&perPage=100&page={page}")
}

fn refunds(page: u64) -> String {
    format!("/refund?from=2024-08-22T00%3A00%3A00Z&{UNTIL}&perPage=100&page={page}")
}

fn disputes(page: u64) -> String {
    let period = format!("from=2024-02-24T00%3A00%3A00Z&{UNTIL}");
    format!("/dispute?status=resolved&{period}&perPage=100&page={page}")
}

fn page(items: Value, number: u64, pages: u64) -> Value {
    let mut page = success(items);
    page["meta"] = json!({"total": 1, "skipped": 0, "page": number, "pageCount": pages});
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
        "integration": 412829, "transaction": 4099260516_u64, "dispute": null, "settlement": null,
        "id": 3018284, "domain": "test", "currency": "NGN", "amount": 10000,
        "status": "processed", "refunded_at": "2024-08-24T10:00:00.000Z",
        "refunded_by": "test@me.com", "customer_note": "Returned", "merchant_note": "Returned",
        "deducted_amount": 10000, "createdAt": "2024-08-22T10:00:00.000Z",
    });
    with(refund, changes)
}

/// A lost dispute as listed, with some fields replaced.
fn dispute_with(changes: Value) -> Value {
    let dispute = json!({
        "id": 358950, "refund_amount": 1002, "currency": "NGN", "status": "resolved",
        "resolution": "merchant-accepted",
        "transaction": {"id": 5991760, "reference": "T685", "amount": 43500, "currency": "NGN"},
        "customer": {"email": "demo@test.com", "phone": "08012345678"},
        "resolvedAt": "2024-08-22T12:00:00.000Z", "createdAt": "2024-08-01T13:59:07.000Z",
        "updatedAt": "2024-08-22T13:00:00.000Z",
    });
    with(dispute, changes)
}

/// A settlement as listed, with some fields replaced.
fn settlement_with(changes: Value) -> Value {
    let settlement = json!({
        "id": 3090024, "domain": "live", "status": "success", "currency": "NGN",
        "integration": 463433, "total_amount": 995, "effective_amount": 900, "total_fees": 5,
        "total_processed": 1000, "deductions": 95,
        "settlement_date": "2024-08-22T00:00:00.000Z", "settled_by": null,
        "createdAt": "2024-08-22T00:00:07.000Z", "updatedAt": "2024-08-22T00:10:00.000Z",
    });
    with(settlement, changes)
}

/// A host where each list of the day is empty, unless it was added before.
fn listing(host: FakeHost) -> FakeHost {
    [payments("success", 1), payments("reversed", 1), refunds(1), disputes(1)]
        .into_iter()
        .fold(host, |host, url| host.answer("GET", &url, 200, page(json!([]), 1, 0)))
}

/// Returns all transactions of the day, and the cursors of its pages.
fn all(host: FakeHost) -> (Vec<ListedTransaction>, Vec<String>) {
    let _host = listing(host).install();
    let (mut found, mut cursors) = (Vec::new(), Vec::new());
    loop {
        let filter = TransactionFilter::Period(day());
        let page = Paystack::transactions(filter, cursors.last().cloned()).unwrap();
        found.extend(page.transactions);
        let Some(next) = page.next else { return (found, cursors) };
        cursors.push(next);
    }
}

/// Returns the transactions of the day from this cursor.
fn list(host: FakeHost, cursor: &str) -> Result<TransactionPage, Fault> {
    let _host = host.install();
    Paystack::transactions(TransactionFilter::Period(day()), Some(cursor.into()))
}

/// Returns the only line of a list with this item.
fn line(url: &str, cursor: &str, item: Value) -> Result<Option<ListedTransaction>, Fault> {
    let found = list(host().answer("GET", url, 200, page(json!([item]), 1, 1)), cursor)?;
    assert!(found.transactions.len() <= 1);
    Ok(found.transactions.into_iter().next())
}

fn payment(changes: Value) -> Result<ListedTransaction, Fault> {
    let found = line(&payments("success", 1), "payments", transaction_with(changes))?;
    Ok(found.unwrap())
}

fn refund(changes: Value) -> Result<Option<ListedTransaction>, Fault> {
    line(&refunds(1), "refunds", refund_with(changes))
}

fn dispute(changes: Value) -> Result<Option<ListedTransaction>, Fault> {
    line(&disputes(1), "disputes", dispute_with(changes))
}

fn settlements(host: FakeHost, cursor: Option<&str>) -> Result<SettlementPage, Fault> {
    let _host = host.install();
    Paystack::list(day(), cursor.map(str::to_owned))
}

fn settlement(changes: Value) -> Result<Settlement, Fault> {
    let list = page(json!([settlement_with(changes)]), 1, 1);
    let mut found = settlements(host().answer("GET", "/settlement", 200, list), None)?;
    assert_eq!((found.settlements.len(), &found.next), (1, &None));
    Ok(found.settlements.remove(0))
}

fn is_unreadable(fault: &Fault) -> bool {
    fault.category == FaultCategory::Unavailable && fault.code == "unexpected-answer"
}

#[test]
fn a_period_has_four_lists_with_several_pages() {
    let host = host()
        .answer("GET", &payments("success", 1), 200, page(json!([transaction()]), 1, 2))
        .answer("GET", &payments("success", 2), 200, {
            page(json!([transaction_with(json!({"id": 2}))]), 2, 2)
        })
        .answer("GET", &payments("reversed", 1), 200, {
            page(json!([transaction_with(json!({"id": 3, "status": "reversed"}))]), 1, 1)
        })
        .answer("GET", &refunds(1), 200, page(json!([refund_with(json!({}))]), 1, 2))
        .answer("GET", &refunds(2), 200, page(json!([refund_with(json!({"id": 4}))]), 2, 2))
        .answer("GET", &disputes(1), 200, page(json!([dispute_with(json!({}))]), 1, 1));
    let (found, cursors) = all(host);
    assert_eq!(cursors, ["payments:2", "reversed", "refunds", "refunds:2", "disputes"]);
    let lines: Vec<_> = found.iter().map(|line| (line.kind, line.id.as_str())).collect();
    let expected = [
        (ListedKind::Payment, "4099260516"),
        (ListedKind::Payment, "2"),
        (ListedKind::Payment, "3"),
        (ListedKind::Refund, "3018284"),
        (ListedKind::Refund, "4"),
        (ListedKind::Dispute, "358950"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn an_empty_period_has_no_transactions() {
    let (found, cursors) = all(host());
    assert_eq!((found.len(), cursors.len()), (0, 3));
}

#[test]
fn lines_have_no_more_than_the_contract_wants() {
    let expected = ListedTransaction {
        kind: ListedKind::Payment,
        id: "4099260516".into(),
        service_ref: "re4lyvq3s3".into(),
        transaction_id: "4099260516".into(),
        amount: naira(30050),
        fees_minor: Some(0),
        at: "2024-08-22T09:15:02.000Z".into(),
    };
    assert_eq!(payment(json!({})), Ok(expected));
    let expected = ListedTransaction {
        kind: ListedKind::Refund,
        id: "3018284".into(),
        service_ref: String::new(),
        transaction_id: "4099260516".into(),
        amount: naira(10000),
        fees_minor: None,
        at: "2024-08-22T10:00:00.000Z".into(),
    };
    assert_eq!(refund(json!({})), Ok(Some(expected)));
    let expected = ListedTransaction {
        kind: ListedKind::Dispute,
        id: "358950".into(),
        service_ref: "T685".into(),
        transaction_id: "5991760".into(),
        amount: naira(1002),
        fees_minor: None,
        at: "2024-08-22T12:00:00.000Z".into(),
    };
    assert_eq!(dispute(json!({})), Ok(Some(expected)));
}

#[test]
fn fees_that_the_payer_bears_are_not_the_companys() {
    for (amount, requested, fees, expected) in [
        (json!(40333), json!(30050), json!(10283), (30050, Some(0))),
        (json!(40333), json!(30050), json!(10383), (30050, Some(100))),
        (json!(40333), json!(30050), json!(9000), (30050, Some(0))),
        (json!(40333), json!(40333), json!(605), (40333, Some(605))),
        (json!("40333"), json!(null), json!("605"), (40333, Some(605))),
        (json!(40333), json!(0), json!(605), (40333, Some(605))),
        // A partial payment.
        (json!(20000), json!(30050), json!(300), (20000, Some(300))),
        (json!(40333), json!(40333), json!(null), (40333, None)),
    ] {
        let changes = json!({"amount": amount, "requested_amount": requested, "fees": fees});
        let found = payment(changes.clone()).unwrap();
        assert_eq!((found.amount.minor, found.fees_minor), expected, "{changes}");
    }
}

#[test]
fn refunds_that_failed_or_return_the_money_of_a_dispute_are_skipped() {
    for (changes, is_listed) in [
        (json!({"status": "processed"}), true),
        (json!({"status": "pending"}), true),
        (json!({"status": "processing"}), true),
        (json!({"status": "needs-attention"}), true),
        (json!({"status": "failed"}), false),
        (json!({"dispute": 20}), false),
        (json!({"dispute": {"id": 20}}), false),
    ] {
        assert_eq!(refund(changes.clone()).unwrap().is_some(), is_listed, "{changes}");
    }
}

#[test]
fn a_refund_has_the_reference_of_its_payment_if_the_list_does() {
    for (changes, service_ref) in [
        (json!({"transaction": {"id": 1, "reference": "T685"}}), "T685"),
        (json!({"transaction_reference": "T685"}), "T685"),
        (json!({"transaction": null}), ""),
    ] {
        assert_eq!(refund(changes.clone()).unwrap().unwrap().service_ref, service_ref, "{changes}");
    }
    let of_transaction = json!({"currency": null, "transaction": {"id": 1, "currency": "USD"}});
    let found = refund(of_transaction).unwrap().unwrap();
    assert_eq!(found.amount, Money { minor: 10000, currency: "USD".into() });
    let without_creation = refund(json!({"createdAt": null})).unwrap().unwrap();
    assert_eq!(without_creation.at, "2024-08-24T10:00:00.000Z");
}

#[test]
fn only_lost_disputes_are_listed() {
    for (resolution, is_listed) in [
        (json!("merchant-accepted"), true),
        (json!("auto-accepted"), true),
        (json!("declined"), false),
        (json!("something new"), false),
        (json!(null), false),
    ] {
        let found = dispute(json!({"resolution": resolution})).unwrap();
        assert_eq!(found.is_some(), is_listed, "{resolution}");
    }
    let whole = dispute(json!({"refund_amount": null, "resolvedAt": null})).unwrap().unwrap();
    assert_eq!((whole.amount, &*whole.at), (naira(43500), "2024-08-22T13:00:00.000Z"));
}

#[test]
fn unreadable_lines_are_unavailable() {
    for changes in [
        json!({"id": null}),
        json!({"amount": null}),
        json!({"amount": -1}),
        json!({"requested_amount": "much"}),
        json!({"currency": null}),
        json!({"fees": 1.5}),
        json!({"paid_at": null, "paidAt": null}),
        json!({"paid_at": "soon", "paidAt": "soon"}),
    ] {
        assert!(is_unreadable(&payment(changes.clone()).unwrap_err()), "{changes}");
    }
    for changes in [
        json!({"id": null}),
        json!({"status": null}),
        json!({"amount": null}),
        json!({"currency": null}),
        json!({"createdAt": null, "refunded_at": null}),
    ] {
        assert!(is_unreadable(&refund(changes.clone()).unwrap_err()), "{changes}");
    }
    for changes in [
        json!({"id": null}),
        json!({"status": null}),
        json!({"refund_amount": null, "transaction": 5991760}),
        json!({"resolvedAt": null, "updatedAt": null}),
    ] {
        assert!(is_unreadable(&dispute(changes.clone()).unwrap_err()), "{changes}");
    }
}

#[test]
fn lists_that_cannot_be_read_are_faults() {
    let fault = |status: u16, response: Value| {
        list(host().answer("GET", "/refund", status, response), "refunds").unwrap_err().category
    };
    assert_eq!(fault(200, success(json!({"odd": true}))), FaultCategory::Unavailable);
    assert_eq!(fault(200, success(json!([1]))), FaultCategory::Unavailable);
    assert_eq!(fault(500, json!({})), FaultCategory::Unavailable);
    assert_eq!(fault(401, json!({})), FaultCategory::Misconfigured);
    for cursor in ["", "2", "transfers", "payments:x", "payments:-1"] {
        assert_eq!(list(host(), cursor).unwrap_err().field(), Some("cursor"), "{cursor}");
    }
    let soon = Period { since: "soon".into(), ..day() };
    let fault = Paystack::transactions(TransactionFilter::Period(soon.clone()), None).unwrap_err();
    assert_eq!(fault.field(), Some("since"));
    assert_eq!(Paystack::list(soon, None).unwrap_err().field(), Some("since"));
}

#[test]
fn without_the_number_of_pages_a_full_page_has_a_next_one() {
    for (items, next) in [(99, "reversed"), (100, "payments:2")] {
        let list_of = success(json!(vec![transaction(); items]));
        let found = list(host().answer("GET", &payments("success", 1), 200, list_of), "payments");
        assert_eq!(found.unwrap().next.as_deref(), Some(next));
    }
}

#[test]
fn the_payments_of_a_settlement_are_listed() {
    let url = |page: u64| format!("/settlement/3090024/transactions?perPage=100&page={page}");
    let second = page(json!([transaction_with(json!({"id": 2}))]), 2, 2);
    let _host = host()
        .answer("GET", &url(1), 200, page(json!([transaction()]), 1, 2))
        .answer("GET", &url(2), 200, second)
        .answer("GET", "/settlement/9%2F9/transactions", 404, {
            json!({"status": false, "message": "Settlement not found"})
        })
        .install();
    let list = |cursor| {
        let filter = TransactionFilter::Settlement("3090024".into());
        let TransactionPage { transactions, next } =
            Paystack::transactions(filter, cursor).unwrap();
        (transactions.into_iter().map(|line| line.id).collect::<Vec<_>>(), next)
    };
    let (ids, next) = list(None);
    assert_eq!((ids, next.as_deref()), (vec!["4099260516".to_owned()], Some("2")));
    assert_eq!(list(next), (vec!["2".to_owned()], None));
    let unknown = Paystack::transactions(TransactionFilter::Settlement("9/9".into()), None);
    assert_eq!(unknown.unwrap_err().category, FaultCategory::NotFound);
}

#[test]
fn settlements_are_listed_page_by_page() {
    let url = |page: u64| {
        format!("/settlement?from=2024-08-22T00%3A00%3A00Z&{UNTIL}&perPage=100&page={page}")
    };
    let host =
        || {
            host()
                .answer("GET", &url(1), 200, page(json!([settlement_with(json!({}))]), 1, 2))
                .answer("GET", &url(2), 200, page(json!([settlement_with(json!({"id": 2}))]), 2, 2))
        };
    let first = settlements(host(), None).unwrap();
    let expected = Settlement {
        id: "3090024".into(),
        status: SettlementStatus::Paid,
        amount: naira(900),
        gross_minor: 1000,
        fees_minor: 5,
        deductions_minor: 95,
        at: "2024-08-22T00:00:00.000Z".into(),
    };
    assert_eq!((first.settlements, first.next.as_deref()), (vec![expected], Some("2")));
    let second = settlements(host(), Some("2")).unwrap();
    assert_eq!((second.settlements[0].id.as_str(), second.next), ("2", None));
    assert_eq!(settlements(host(), Some("x")).unwrap_err().field(), Some("cursor"));
}

#[test]
fn settlement_statuses_are_mapped() {
    for (status, expected) in [
        ("success", SettlementStatus::Paid),
        ("failed", SettlementStatus::Failed),
        ("pending", SettlementStatus::Pending),
        ("processing", SettlementStatus::Pending),
        ("something new", SettlementStatus::Pending),
    ] {
        assert_eq!(settlement(json!({"status": status})).unwrap().status, expected, "{status}");
    }
}

#[test]
fn the_total_replaces_a_missing_effective_amount() {
    assert_eq!(settlement(json!({"effective_amount": null})).unwrap().amount, naira(995));
    for changes in [
        json!({"id": null}),
        json!({"status": null}),
        json!({"currency": null}),
        json!({"effective_amount": -1}),
        json!({"effective_amount": null, "total_amount": null}),
        json!({"total_processed": null}),
        json!({"total_fees": "much"}),
        json!({"settlement_date": null}),
    ] {
        assert!(is_unreadable(&settlement(changes.clone()).unwrap_err()), "{changes}");
    }
}

#[test]
fn every_call_succeeds_with_the_examples() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    let found = Paystack::transactions(TransactionFilter::Period(day()), None).unwrap();
    assert_eq!(
        (found.transactions[0].id.as_str(), found.next.as_deref()),
        ("1001", Some("reversed"))
    );
    for cursor in ["reversed", "refunds", "disputes"] {
        let filter = TransactionFilter::Period(day());
        Paystack::transactions(filter, Some(cursor.into())).unwrap();
    }
    let settlement = Paystack::list(day(), None).unwrap().settlements.remove(0);
    assert_eq!((settlement.id.as_str(), settlement.gross_minor), ("6001", 500_000));
    let found = Paystack::transactions(TransactionFilter::Settlement(settlement.id), None).unwrap();
    assert_eq!(found.transactions[0].service_ref, "example-1");
}
