//! Chargebacks have no currency, so the transaction is queried, too.

use serde_json::{Value, json};
use tollhouse_plugin::disputes::{
    Dispute, DisputeAction, DisputeAnswer, DisputeFilter, DisputeKey, DisputePage, DisputeStatus,
    Evidence, Guest,
};
use tollhouse_plugin::log::Level;
use tollhouse_plugin::testing::{FakeHost, Sent};
use tollhouse_plugin::types::{Fault, FaultCategory, Money};

use super::{VERIFY, host, naira, refused, success, transaction, transaction_with};
use crate::{Flutterwave, MANIFEST};

const LIST: &str = "/chargebacks?id=782728102&page=1";
const TRANSACTION: &str = "/transactions/782728102/verify";
const ANSWER: &str = "/chargebacks/1390";

/// A chargeback as listed, with some fields replaced.
fn chargeback_with(changes: Value) -> Value {
    let mut chargeback = json!({
        "id": 1390, "amount": 60, "flw_ref": "FLW-MOCK-0a6b", "status": "initiated",
        "stage": "new", "comment": "Not received", "meta": {"uploaded_proof": null, "history": []},
        "due_date": "2023-01-23T15:59:59.000Z", "settlement_id": "N/A",
        "created_at": "2023-01-22T19:01:28.000Z", "transaction_id": 782728102,
        "tx_ref": "3456787654",
    });
    for (name, value) in changes.as_object().into_iter().flatten() {
        chargeback[name] = value.clone();
    }
    chargeback
}

fn open() -> Value {
    chargeback_with(json!({}))
}

fn key() -> DisputeKey {
    DisputeKey {
        id: "1390".into(),
        service_ref: "3456787654".into(),
        transaction_id: "782728102".into(),
    }
}

fn of_payment() -> DisputeFilter {
    DisputeFilter::Payment(("3456787654".into(), "782728102".into()))
}

fn page(items: &[Value], pages: u64) -> Value {
    let mut page = success(json!(items));
    page["meta"] = json!({"page_info": {"total_pages": pages}});
    page
}

fn listing(items: &[Value]) -> FakeHost {
    host().answer("GET", LIST, 200, page(items, 1)).answer(
        "GET",
        TRANSACTION,
        200,
        success(transaction()),
    )
}

fn fetch(chargeback: Value) -> Result<Dispute, Fault> {
    let _host = listing(&[chargeback]).install();
    Flutterwave::fetch(key())
}

fn list(host: FakeHost) -> Result<DisputePage, Fault> {
    let _host = host.install();
    Flutterwave::list(of_payment(), None)
}

fn ids(page: &DisputePage) -> Vec<&str> {
    page.disputes.iter().map(|found| found.key.id.as_str()).collect()
}

fn accept() -> DisputeAnswer {
    DisputeAnswer {
        key: key(),
        amount: naira(6000),
        action: DisputeAction::Accept,
        message: "The order was not delivered".into(),
    }
}

fn contest() -> DisputeAnswer {
    let evidence = Evidence {
        customer_name: "Ada Obi".into(),
        customer_email: "ada@example.com".into(),
        customer_phone: Some("+2348012345678".into()),
        service: "A loan of NGN 60".into(),
        document_url: Some("https://shop.test/receipt.pdf".into()),
    };
    let message = "The loan was paid out".into();
    DisputeAnswer { action: DisputeAction::Contest(evidence), message, ..accept() }
}

/// Answers a dispute; returns it and the requests that are not queries.
fn answer(host: FakeHost, answer: DisputeAnswer) -> (Result<Dispute, Fault>, Vec<Sent>) {
    let host = host.install();
    let result = Flutterwave::answer(answer);
    let sent = host.requests().into_iter().filter(|sent| sent.method != "GET").collect();
    (result, sent)
}

fn updated() -> Value {
    success(json!(null))
}

#[test]
fn a_chargeback_is_read() {
    let expected = Dispute {
        key: key(),
        status: DisputeStatus::Open,
        amount: naira(6000),
        reason: "Not received".into(),
        due_at: Some("2023-01-23T15:59:59.000Z".into()),
        opened_at: Some("2023-01-22T19:01:28.000Z".into()),
    };
    assert_eq!(fetch(open()).unwrap(), expected);
}

#[test]
fn statuses_are_mapped() {
    use DisputeStatus::{Answered, Lost, Open, Won};
    for (status, expected, warnings) in [
        ("initiated", Open, 0),
        ("declined", Answered, 0),
        ("won", Won, 0),
        ("lost", Lost, 0),
        ("accepted", Lost, 0),
        ("ACCEPTED", Lost, 0),
        ("something new", Open, 1),
    ] {
        let host = listing(&[chargeback_with(json!({"status": status}))]).install();
        let found = Flutterwave::fetch(key()).unwrap().status;
        assert_eq!((found, host.logs().len()), (expected, warnings), "{status}");
        assert!(host.logs().iter().all(|(level, _)| *level == Level::Warn));
    }
}

/// Response bodies here are text, because a `Value` would hold floats.
#[test]
fn amounts_are_exact_and_in_the_currency_of_the_transaction() {
    for (amount, currency, minor) in [
        ("60", "NGN", 6_000),
        ("\"60.50\"", "NGN", 6_050),
        ("90071992547409.93", "USD", 9_007_199_254_740_993),
        ("2500", "XOF", 2_500),
    ] {
        let list = format!(
            r#"{{"status":"success","data":[{{"id":1390,"status":"initiated","amount":{amount},
            "transaction_id":782728102}}]}}"#
        );
        let found = transaction_with(json!({"currency": currency}));
        let _host = host()
            .answer_text("GET", LIST, 200, &list)
            .answer("GET", TRANSACTION, 200, success(found))
            .install();
        let found = Flutterwave::fetch(key()).unwrap();
        assert_eq!(found.amount, Money { minor, currency: currency.into() }, "{amount}");
        assert_eq!(found.key, key());
    }
}

#[test]
fn the_transaction_is_queried_once_and_only_if_needed() {
    for (changes, requests) in [
        (json!({"currency": "NGN"}), 1),
        (json!({}), 2),
        (json!({"currency": "NGN", "tx_ref": null}), 1),
        (json!({"tx_ref": null}), 2),
    ] {
        let items = [chargeback_with(changes.clone()), chargeback_with(changes.clone())];
        let host = listing(&items).install();
        let found = Flutterwave::list(of_payment(), None).unwrap();
        assert_eq!((found.disputes.len(), host.requests().len()), (2, requests), "{changes}");
        assert!(found.disputes.iter().all(|dispute| dispute.key == key()));
    }
}

#[test]
fn reasons_have_no_personal_data_and_absent_fields_stay_absent() {
    let comment = "Not received by ada@example.com (+2348012345678)";
    let changes = json!({"comment": comment, "due_date": "N/A", "created_at": null});
    let found = fetch(chargeback_with(changes)).unwrap();
    assert_eq!(found.reason, "Not received by [...] [...]");
    assert_eq!((found.due_at, found.opened_at), (None, None));
    assert_eq!(fetch(chargeback_with(json!({"comment": null}))).unwrap().reason, "");
}

#[test]
fn only_chargebacks_of_the_payment_are_listed() {
    let items = [
        open(),
        chargeback_with(json!({"id": 2, "transaction_id": 5})),
        chargeback_with(json!({"id": 3, "transaction_id": null})),
        chargeback_with(json!({"id": 4, "transaction_id": null, "tx_ref": "other"})),
    ];
    let found = list(listing(&items)).unwrap();
    assert_eq!((ids(&found), &found.next), (vec!["1390", "3"], &None));
    assert!(found.disputes.iter().all(|dispute| dispute.key.transaction_id == "782728102"));
}

#[test]
fn a_missing_transaction_id_is_looked_up() {
    let named = || listing(&[open()]).answer("GET", VERIFY, 200, success(transaction()));
    let filter = || DisputeFilter::Payment(("3456787654".into(), String::new()));
    let _host = named().install();
    assert_eq!(ids(&Flutterwave::list(filter(), None).unwrap()), ["1390"]);
    let found = Flutterwave::fetch(DisputeKey { transaction_id: String::new(), ..key() });
    assert_eq!(found.unwrap().key, key());
    let nameless = transaction_with(json!({"id": null}));
    let _host = host().answer("GET", VERIFY, 200, success(nameless)).install();
    assert!(Flutterwave::list(filter(), None).unwrap_err().retryable);
}

/// Each chargeback may need a query of its transaction, and a call is limited to 16 requests.
#[test]
fn chargebacks_since_a_day_are_listed_in_parts_of_ten() {
    let chargeback = |n: u64| {
        let tx_ref = format!("order-{n}");
        chargeback_with(json!({"id": n, "transaction_id": 1000 + n, "tx_ref": tx_ref}))
    };
    let first: Vec<Value> = (1..=20).map(chargeback).collect();
    let second: Vec<Value> = (21..=25).map(chargeback).collect();
    let mut host = host()
        .answer("GET", "/chargebacks?from=2023-01-22&page=1", 200, page(&first, 2))
        .answer("GET", "/chargebacks?from=2023-01-22&page=2", 200, page(&second, 2));
    for n in 1..=25 {
        let path = format!("/transactions/{}/verify", 1000 + n);
        host = host.answer("GET", &path, 200, success(transaction()));
    }
    let host = host.install();
    let (mut found, mut cursors, mut cursor) = (Vec::new(), Vec::new(), None);
    loop {
        let sent = host.requests().len();
        let filter = DisputeFilter::Since("2023-01-22T19:00:00Z".into());
        let part = Flutterwave::list(filter, cursor).unwrap();
        assert!(host.requests().len() - sent <= 11);
        found.extend(part.disputes);
        let Some(next) = part.next else { break };
        cursors.push(next.clone());
        cursor = Some(next);
    }
    assert_eq!(cursors, ["1.10", "2.0"]);
    assert_eq!(found.len(), 25);
    let last = DisputeKey {
        id: "25".into(),
        service_ref: "order-25".into(),
        transaction_id: "1025".into(),
    };
    assert_eq!(found.last().map(|dispute| &dispute.key), Some(&last));
}

#[test]
fn invalid_cursors_are_invalid() {
    for cursor in ["", "2", "x.1", "1.x", "-1.0"] {
        let fault = Flutterwave::list(of_payment(), Some(cursor.into())).unwrap_err();
        assert_eq!(fault.field(), Some("cursor"), "{cursor}");
    }
}

#[test]
fn unlisted_chargebacks_are_not_found() {
    for items in [vec![], vec![chargeback_with(json!({"id": 2}))]] {
        let _host = listing(&items).install();
        assert_eq!(Flutterwave::fetch(key()).unwrap_err().category, FaultCategory::NotFound);
    }
    let _host = host().answer("GET", LIST, 404, refused("Cannot find the resource")).install();
    assert_eq!(Flutterwave::fetch(key()).unwrap_err().category, FaultCategory::NotFound);
}

#[test]
fn a_chargeback_on_a_later_page_is_found() {
    let second = "/chargebacks?id=782728102&page=2";
    let _host = host()
        .answer("GET", LIST, 200, page(&[chargeback_with(json!({"id": 2}))], 2))
        .answer("GET", second, 200, page(&[open()], 2))
        .answer("GET", TRANSACTION, 200, success(transaction()))
        .install();
    assert_eq!(Flutterwave::fetch(key()).unwrap().key, key());
}

#[test]
fn unreadable_chargebacks_are_unavailable() {
    for changes in [
        json!({"amount": null}),
        json!({"amount": -60}),
        json!({"amount": "much"}),
        json!({"status": null}),
        json!({"status": 1}),
    ] {
        let fault = fetch(chargeback_with(changes.clone())).unwrap_err();
        assert_eq!(
            (fault.category, fault.code.as_str()),
            (FaultCategory::Unavailable, "unexpected-answer"),
            "{changes}"
        );
    }
    for changes in [json!({"id": null}), json!({"transaction_id": null, "tx_ref": null})] {
        assert!(list(listing(&[chargeback_with(changes)])).unwrap_err().retryable);
    }
    for response in [success(json!({"odd": true})), success(json!(null)), json!({})] {
        let host = host().answer("GET", LIST, 200, response);
        assert_eq!(list(host).unwrap_err().category, FaultCategory::Unavailable);
    }
    // In a list of all chargebacks, nothing else names the payment.
    let nameless = chargeback_with(json!({"transaction_id": null, "tx_ref": null}));
    let _host = host().answer("GET", "/chargebacks", 200, page(&[nameless], 1)).install();
    assert!(Flutterwave::list(DisputeFilter::Since("x".into()), None).unwrap_err().retryable);
}

/// A refusal of the transaction does not mean that the chargeback does not exist.
#[test]
fn without_its_transaction_a_chargeback_is_unavailable() {
    let unknown = refused("No transaction was found for this id");
    for (status, response) in [
        (404, unknown.clone()),
        (400, unknown),
        (500, json!({})),
        (200, success(json!({"id": 782728102}))),
    ] {
        let host = host()
            .answer("GET", LIST, 200, page(&[open()], 1))
            .answer("GET", TRANSACTION, status, response);
        assert_eq!(list(host).unwrap_err().category, FaultCategory::Unavailable, "{status}");
    }
}

#[test]
fn an_accepted_chargeback_is_lost() {
    let (found, sent) = answer(listing(&[open()]).answer("PUT", ANSWER, 200, updated()), accept());
    let found = found.unwrap();
    assert_eq!((found.status, found.amount), (DisputeStatus::Lost, naira(6000)));
    let expected = json!({"action": "accept", "comment": "The order was not delivered"});
    assert_eq!((sent.len(), sent[0].json()), (1, expected));
}

#[test]
fn a_contested_chargeback_has_the_evidence_in_its_comment() {
    let (found, sent) = answer(listing(&[open()]).answer("PUT", ANSWER, 200, updated()), contest());
    assert_eq!(found.unwrap().status, DisputeStatus::Answered);
    let expected = json!({
        "action": "decline",
        "comment": "The loan was paid out\nService: A loan of NGN 60\n\
            Customer: Ada Obi, ada@example.com, +2348012345678",
        "uploaded_proof": "https://shop.test/receipt.pdf",
    });
    assert_eq!((sent.len(), sent[0].json()), (1, expected));
}

#[test]
fn a_chargeback_is_answered_once() {
    for (status, expected) in [
        ("declined", DisputeStatus::Answered),
        ("won", DisputeStatus::Won),
        ("accepted", DisputeStatus::Lost),
        ("lost", DisputeStatus::Lost),
    ] {
        for order in [accept(), contest()] {
            let host = listing(&[chargeback_with(json!({"status": status}))]);
            let (found, sent) = answer(host, order);
            assert_eq!((found.unwrap().status, sent.len()), (expected, 0), "{status}");
        }
    }
}

#[test]
fn a_refused_answer_is_refused_unless_the_chargeback_was_answered() {
    let refusal = || refused("This chargeback can no longer be updated");
    let host = listing(&[open()]).answer("PUT", ANSWER, 400, refusal());
    assert_eq!(answer(host, accept()).0.unwrap_err().category, FaultCategory::Refused);
    // An earlier attempt took effect in between.
    let answered = chargeback_with(json!({"status": "declined"}));
    let host = listing(&[open()]).answer("GET", LIST, 200, page(&[answered], 1)).answer(
        "PUT",
        ANSWER,
        400,
        refusal(),
    );
    assert_eq!(answer(host, contest()).0.unwrap().status, DisputeStatus::Answered);
    // Without the second list, it is unknown whether the chargeback was answered.
    for (status, response) in [(404, refused("gone")), (500, json!({})), (200, page(&[], 1))] {
        let host = listing(&[open()]).answer("GET", LIST, status, response).answer(
            "PUT",
            ANSWER,
            400,
            refusal(),
        );
        assert_eq!(answer(host, accept()).0.unwrap_err().category, FaultCategory::Unavailable);
    }
}

#[test]
fn without_a_response_the_outcome_is_unknown() {
    for host in [
        listing(&[open()]).timeout("PUT", ANSWER),
        listing(&[open()]).cut("PUT", ANSWER),
        listing(&[open()]).answer("PUT", ANSWER, 503, json!({})),
        listing(&[open()]).answer_text("PUT", ANSWER, 200, "{\"status\":"),
    ] {
        assert_eq!(answer(host, accept()).0.unwrap_err().category, FaultCategory::Unavailable);
    }
    let (found, sent) = answer(listing(&[]), accept());
    assert_eq!((found.unwrap_err().category, sent.len()), (FaultCategory::NotFound, 0));
}

#[test]
fn every_call_succeeds_with_the_examples() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    let key = DisputeKey {
        id: "4001".into(),
        service_ref: "example-1".into(),
        transaction_id: "1001".into(),
    };
    let filter = DisputeFilter::Payment(("example-1".into(), "1001".into()));
    assert_eq!(Flutterwave::list(filter, None).unwrap().disputes[0].key, key);
    assert_eq!(Flutterwave::fetch(key.clone()).unwrap().amount, naira(500_000));
    let order = DisputeAnswer { key, ..contest() };
    assert_eq!(Flutterwave::answer(order).unwrap().status, DisputeStatus::Answered);
}
