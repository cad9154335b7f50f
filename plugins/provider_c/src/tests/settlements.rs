use serde_json::{Value, json};
use tollhouse_plugin::settlements::{
    Guest, ListedKind, ListedTransaction, Period, TransactionFilter, TransactionPage,
};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::verification;

use super::{QUERY, host, naira, refused, success, transaction, transaction_with};
use crate::{MANIFEST, Monnify};

const CONTENTS: &str =
    "/api/v1/transactions/find-by-settlement-reference?reference=S%2F1&page=0&size=100";

fn day() -> Period {
    Period { since: "2022-01-21T00:00:00.000Z".into(), until: "2022-01-22T00:00:00.000Z".into() }
}

/// The URL of a page of payments with this status.
fn payments(status: &str, page: u64) -> String {
    let period = "from=1642636800000&to=1642809600000";
    format!("/api/v1/transactions/search?{period}&paymentStatus={status}&page={page}&size=100")
}

fn refunds(page: u64) -> String {
    let period = "from=1642723200000&to=1642809600000";
    format!("/api/v1/refunds?{period}&page={page}&size=100")
}

fn page(content: Value, last: bool) -> Value {
    success(json!({"content": content, "last": last, "number": 0, "size": 100}))
}

fn with(mut item: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().into_iter().flatten() {
        item[name] = value.clone();
    }
    item
}

/// A payment as a search returns it, with some fields replaced.
fn payment_with(changes: Value) -> Value {
    let payment = json!({
        "customerDTO": {"email": "demo@test.com", "name": "Demo", "merchantCode": "ALJKHDALASD"},
        "providerAmount": 0.21, "paymentMethod": "ACCOUNT_TRANSFER",
        "createdOn": "2022-01-21T14:12:27.000+0000", "amount": 403.33, "flagged": false,
        "providerCode": "98271", "fee": 10.1, "currencyCode": "NGN",
        "completedOn": "2022-01-21T14:49:28.000+0000", "paymentDescription": "Loan",
        "paymentStatus": "PAID", "transactionReference": "MNFY|20220121154928|000001",
        "paymentReference": "pay-1", "merchantCode": "ALJKHDALASD", "merchantName": "Demo",
        "payableAmount": 403.33, "amountPaid": 403.33, "completed": true,
    });
    with(payment, changes)
}

/// A refund as listed, with some fields replaced.
fn refund_with(changes: Value) -> Value {
    let refund = json!({
        "refundReference": "R-1", "transactionReference": "MNFY|20220121154928|000001",
        "refundReason": "Returned", "customerNote": "Refund", "refundAmount": 403.33,
        "refundType": "FULL_REFUND", "refundStatus": "COMPLETED", "comment": "x",
        "completedOn": "22/01/2022 03:49:28 PM", "createdOn": "21/01/2022 03:49:28 PM",
    });
    with(refund, changes)
}

/// Returns the transactions of the day from this cursor.
fn list(host: FakeHost, cursor: &str) -> Result<TransactionPage, Fault> {
    let _host = host.install();
    Monnify::transactions(TransactionFilter::Period(day()), Some(cursor.into()))
}

fn payment(changes: Value) -> Result<ListedTransaction, Fault> {
    let items = page(json!([payment_with(changes)]), true);
    let found = list(host().answer("GET", &payments("PAID", 0), 200, items), "payments")?;
    Ok(found.transactions.into_iter().next().unwrap())
}

fn refund(changes: Value) -> Result<Option<ListedTransaction>, Fault> {
    let items = page(json!([refund_with(changes)]), true);
    let found = list(host().answer("GET", &refunds(0), 200, items), "refunds")?;
    Ok(found.transactions.into_iter().next())
}

/// Returns the payments of a settlement with these items.
fn contents(items: Value) -> Result<TransactionPage, Fault> {
    let _host = host().answer("GET", CONTENTS, 200, page(items, true)).install();
    Monnify::transactions(TransactionFilter::Settlement("S/1".into()), None)
}

fn expected_payment() -> ListedTransaction {
    ListedTransaction {
        kind: ListedKind::Payment,
        id: "MNFY|20220121154928|000001".into(),
        service_ref: "pay-1".into(),
        transaction_id: "MNFY|20220121154928|000001".into(),
        amount: naira(40333),
        fees_minor: Some(1010),
        at: "2022-01-21T14:49:28.000Z".into(),
    }
}

fn is_unreadable(fault: &Fault) -> bool {
    fault.category == FaultCategory::Unavailable && fault.code == "unexpected-answer"
}

#[test]
fn a_period_has_payments_by_status_and_refunds() {
    let of = |reference: &str| json!([payment_with(json!({"transactionReference": reference}))]);
    let second = json!([refund_with(json!({"refundReference": "R-2"}))]);
    let _host = host()
        .answer("GET", &payments("PAID", 0), 200, page(of("1"), false))
        .answer("GET", &payments("PAID", 1), 200, page(of("2"), true))
        .answer("GET", &payments("OVERPAID", 0), 200, page(of("3"), true))
        .answer("GET", &payments("REVERSED", 0), 200, page(of("4"), true))
        .answer("GET", &refunds(0), 200, page(json!([refund_with(json!({}))]), false))
        .answer("GET", &refunds(1), 200, page(second, true))
        .install();
    let (mut found, mut cursors) = (Vec::new(), Vec::new());
    loop {
        let filter = TransactionFilter::Period(day());
        let page = Monnify::transactions(filter, cursors.last().cloned()).unwrap();
        found.extend(page.transactions);
        let Some(next) = page.next else { break };
        cursors.push(next);
    }
    assert_eq!(cursors, ["payments:1", "overpaid", "reversed", "refunds", "refunds:1"]);
    let lines: Vec<_> = found.iter().map(|line| (line.kind, line.id.as_str())).collect();
    let expected = [
        (ListedKind::Payment, "1"),
        (ListedKind::Payment, "2"),
        (ListedKind::Payment, "3"),
        (ListedKind::Payment, "4"),
        (ListedKind::Refund, "R-1"),
        (ListedKind::Refund, "R-2"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn lines_have_no_more_than_the_contract_wants() {
    assert_eq!(payment(json!({})), Ok(expected_payment()));
    let expected = ListedTransaction {
        kind: ListedKind::Refund,
        id: "R-1".into(),
        service_ref: String::new(),
        transaction_id: "MNFY|20220121154928|000001".into(),
        amount: naira(40333),
        fees_minor: None,
        at: "2022-01-21T14:49:28Z".into(),
    };
    assert_eq!(refund(json!({})), Ok(Some(expected)));
}

#[test]
fn names_and_amounts_are_those_of_verification() {
    let _host = host().answer("GET", QUERY, 200, success(transaction())).install();
    let verified = <Monnify as verification::Guest>::verify("pay-1".into()).unwrap();
    let listed = payment(json!({})).unwrap();
    assert_eq!(listed.id, verified.transaction_id);
    assert_eq!(listed.service_ref, verified.service_ref);
    assert_eq!(Some(listed.amount), verified.requested);
    assert_eq!(listed.fees_minor, verified.fees_minor);
}

#[test]
fn amounts_above_the_payable_amount_are_not_part_of_the_payment() {
    for (paid, payable, fee, expected) in [
        (json!(403.33), json!(403.33), json!(10.1), (40333, Some(1010))),
        (json!("500.00"), json!("403.33"), json!("10.10"), (40333, Some(0))),
        (json!(413.33), json!(403.33), json!(10.1), (40333, Some(10))),
        (json!(300), json!(403.33), json!(10.1), (30000, Some(1010))),
        (json!(403.33), json!(null), json!(10.1), (40333, Some(1010))),
        // A fraction of a kobo.
        (json!(403.33), json!(403.33), json!(10.101), (40333, Some(1011))),
        (json!(403.33), json!(403.33), json!(null), (40333, None)),
    ] {
        let changes = json!({"amountPaid": paid, "payableAmount": payable, "fee": fee});
        let found = payment(changes.clone()).unwrap();
        assert_eq!((found.amount.minor, found.fees_minor), expected, "{changes}");
    }
}

#[test]
fn failed_refunds_are_skipped() {
    for (status, is_listed) in [
        ("COMPLETED", true),
        ("IN_PROGRESS", true),
        ("PENDING", true),
        ("SOMETHING_NEW", true),
        ("FAILED", false),
        ("failed", false),
    ] {
        assert_eq!(refund(json!({"refundStatus": status})).unwrap().is_some(), is_listed);
    }
    let found = refund(json!({"paymentReference": "pay-1", "createdOn": ""})).unwrap().unwrap();
    assert_eq!((&*found.service_ref, &*found.at), ("pay-1", "2022-01-22T14:49:28Z"));
}

#[test]
fn unreadable_lines_are_unavailable() {
    for changes in [
        json!({"transactionReference": null}),
        json!({"amountPaid": null}),
        json!({"amountPaid": -1}),
        json!({"payableAmount": "much"}),
        json!({"fee": "much"}),
        json!({"settlementAmount": 500}),
        json!({"completedOn": null}),
        json!({"completedOn": "soon"}),
    ] {
        assert!(is_unreadable(&payment(changes.clone()).unwrap_err()), "{changes}");
    }
    for changes in [
        json!({"refundReference": null}),
        json!({"refundStatus": null}),
        json!({"refundAmount": null}),
        json!({"createdOn": null, "completedOn": ""}),
    ] {
        assert!(is_unreadable(&refund(changes.clone()).unwrap_err()), "{changes}");
    }
}

#[test]
fn lists_that_cannot_be_read_are_faults() {
    let fault = |status: u16, response: Value| {
        list(host().answer("GET", &refunds(0), status, response), "refunds").unwrap_err().category
    };
    assert_eq!(fault(200, success(json!({"odd": true}))), FaultCategory::Unavailable);
    assert_eq!(fault(200, success(json!([]))), FaultCategory::Unavailable);
    assert_eq!(fault(200, page(json!([1]), true)), FaultCategory::Unavailable);
    assert_eq!(fault(500, json!({})), FaultCategory::Unavailable);
    assert_eq!(fault(403, refused("99", "Not permitted")), FaultCategory::Refused);
    for cursor in ["", "1", "transfers", "payments:x", "refunds:-1"] {
        assert_eq!(list(host(), cursor).unwrap_err().field(), Some("cursor"), "{cursor}");
    }
    for (field, period) in [
        ("since", Period { since: "soon".into(), ..day() }),
        ("until", Period { until: "2022-01-22".into(), ..day() }),
    ] {
        let fault = Monnify::transactions(TransactionFilter::Period(period), None).unwrap_err();
        assert_eq!(fault.field(), Some(field));
    }
}

#[test]
fn a_list_ends_with_its_last_page() {
    for (items, last, next) in [
        (1, json!(false), "payments:1"),
        (100, json!(true), "overpaid"),
        (99, json!(null), "overpaid"),
        (100, json!(null), "payments:1"),
        (0, json!(false), "overpaid"),
    ] {
        let content = vec![payment_with(json!({})); items];
        let body = success(json!({"content": content, "last": last}));
        let found = list(host().answer("GET", &payments("PAID", 0), 200, body), "payments");
        assert_eq!(found.unwrap().next.as_deref(), Some(next), "{items} {last}");
    }
}

/// In a settlement, payments have the format of verification.
#[test]
fn the_payments_of_a_settlement_are_listed() {
    let found = contents(json!([transaction()])).unwrap();
    let expected = ListedTransaction { at: "2022-01-21T14:49:28Z".into(), ..expected_payment() };
    assert_eq!((found.transactions, found.next), (vec![expected], None));
    let without_settled = transaction_with(json!({"settlementAmount": null}));
    let found = contents(json!([without_settled])).unwrap();
    assert_eq!(found.transactions[0].fees_minor, None);
    let unpaid = transaction_with(json!({"paidOn": null}));
    assert!(is_unreadable(&contents(json!([unpaid])).unwrap_err()));
}

#[test]
fn a_settlement_can_have_several_pages() {
    let second = CONTENTS.replace("page=0", "page=1");
    let _host = host()
        .answer("GET", CONTENTS, 200, page(json!([transaction()]), false))
        .answer("GET", &second, 200, page(json!([transaction(), transaction()]), true))
        .install();
    let list = |cursor| {
        let filter = TransactionFilter::Settlement("S/1".into());
        let TransactionPage { transactions, next } = Monnify::transactions(filter, cursor).unwrap();
        (transactions.len(), next)
    };
    let (lines, next) = list(None);
    assert_eq!((lines, next.as_deref()), (1, Some("1")));
    assert_eq!(list(next), (2, None));
}

#[test]
fn settlements_are_not_listed() {
    let host = host().install();
    let found = Monnify::list(day(), None).unwrap();
    assert_eq!((found.settlements.len(), found.next, host.requests().len()), (0, None, 0));
}

#[test]
fn every_call_succeeds_with_the_examples() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    for (cursor, lines) in [("payments", 1), ("overpaid", 1), ("reversed", 1), ("refunds", 1)] {
        let filter = TransactionFilter::Period(day());
        let found = Monnify::transactions(filter, Some(cursor.into())).unwrap();
        assert_eq!(found.transactions.len(), lines, "{cursor}");
    }
    let filter = TransactionFilter::Settlement("example-settlement-1".into());
    let found = Monnify::transactions(filter, None).unwrap();
    assert_eq!(found.transactions[0].service_ref, "example-1");
}
