use serde_json::{Value, json};
use tollhouse_plugin::disputes::{
    Dispute, DisputeAction, DisputeAnswer, DisputeFilter, DisputeKey, DisputePage, DisputeStatus,
    Evidence, Guest,
};
use tollhouse_plugin::log::Level;
use tollhouse_plugin::testing::{FakeHost, Sent};
use tollhouse_plugin::types::{Fault, FaultCategory, Money};

use super::{host, naira, success, transaction};
use crate::{MANIFEST, Paystack};

const OF_PAYMENT: &str = "/dispute?transaction=5991760&perPage=100&page=1";
const DISPUTE: &str = "/dispute/358950";
const EVIDENCE: &str = "/dispute/358950/evidence";
const RESOLVE: &str = "/dispute/358950/resolve";

/// A dispute as queried or listed, with some fields replaced.
fn dispute_with(changes: Value) -> Value {
    let mut dispute = json!({
        "id": 358950, "refund_amount": null, "currency": null,
        "status": "awaiting-merchant-feedback", "resolution": null, "domain": "test",
        "transaction": {
            "id": 5991760, "domain": "test", "status": "success", "reference": "T685",
            "amount": 43500, "currency": "NGN", "channel": "card", "customer": null,
        },
        "transaction_reference": null, "category": "chargeback",
        "customer": {"id": 5, "email": "demo@test.com", "phone": "08012345678"},
        "bin": "408408", "last4": "4081", "dueAt": "2017-11-29T18:00:00.000Z", "resolvedAt": null,
        "evidence": null, "attachments": "", "note": null,
        "history": [{"status": "pending", "by": "demo@test.com"}],
        "messages": [{"sender": "demo@test.com", "body": "test this"}],
        "createdAt": "2017-11-21T13:59:07.000Z", "updatedAt": "2017-11-22T02:45:57.000Z",
    });
    for (name, value) in changes.as_object().into_iter().flatten() {
        dispute[name] = value.clone();
    }
    dispute
}

fn open() -> Value {
    dispute_with(json!({}))
}

/// A dispute as the response to an answer returns it.
fn resolved(status: &str, resolution: &str, refund_amount: u64) -> Value {
    dispute_with(json!({
        "status": status, "resolution": resolution, "refund_amount": refund_amount,
        "currency": "NGN", "transaction": 5991760, "customer": null,
    }))
}

fn key() -> DisputeKey {
    DisputeKey { id: "358950".into(), service_ref: "T685".into(), transaction_id: "5991760".into() }
}

fn page(items: Value, number: u64, pages: u64) -> Value {
    let mut page = success(items);
    page["meta"] = json!({
        "total": 1, "skipped": 0, "perPage": 100, "page": number, "pageCount": pages,
    });
    page
}

fn of_payment() -> DisputeFilter {
    DisputeFilter::Payment(("T685".into(), "5991760".into()))
}

fn list(host: FakeHost) -> Result<DisputePage, Fault> {
    let _host = host.install();
    Paystack::list(of_payment(), None)
}

fn fetch(status: u16, response: Value) -> Result<Dispute, Fault> {
    let _host = host().answer("GET", DISPUTE, status, response).install();
    Paystack::fetch(key())
}

fn accept() -> DisputeAnswer {
    DisputeAnswer {
        key: key(),
        amount: naira(43500),
        action: DisputeAction::Accept,
        message: "The order was not delivered".into(),
    }
}

fn contest() -> DisputeAnswer {
    let evidence = Evidence {
        customer_name: "Ada Obi".into(),
        customer_email: "ada@example.com".into(),
        customer_phone: Some("+2348012345678".into()),
        service: "A loan of NGN 435".into(),
        document_url: Some("https://shop.test/receipt.pdf".into()),
    };
    DisputeAnswer { action: DisputeAction::Contest(evidence), ..accept() }
}

/// A host where this dispute is found, evidence is accepted, and an answer has this response.
fn answering(found: Value, status: u16, response: Value) -> FakeHost {
    host()
        .answer("GET", DISPUTE, 200, success(found))
        .answer("POST", EVIDENCE, 200, success(json!({"id": 21, "dispute": 358950})))
        .answer("PUT", RESOLVE, status, response)
}

/// Answers a dispute; returns it and the requests that are not queries.
fn answer(host: FakeHost, answer: DisputeAnswer) -> (Result<Dispute, Fault>, Vec<Sent>) {
    let host = host.install();
    let result = Paystack::answer(answer);
    let sent = host.requests().into_iter().filter(|sent| sent.method != "GET").collect();
    (result, sent)
}

#[test]
fn a_dispute_is_read() {
    let found = fetch(200, success(open())).unwrap();
    let expected = Dispute {
        key: key(),
        status: DisputeStatus::Open,
        amount: naira(43500),
        reason: "chargeback".into(),
        due_at: Some("2017-11-29T18:00:00.000Z".into()),
        opened_at: Some("2017-11-21T13:59:07.000Z".into()),
    };
    assert_eq!(found, expected);
}

#[test]
fn statuses_are_mapped() {
    use DisputeStatus::{Answered, Lost, Open, Won};
    for (status, resolution, expected, warnings) in [
        ("awaiting-merchant-feedback", json!(null), Open, 0),
        ("awaiting-bank-feedback", json!(null), Answered, 0),
        ("awaiting-bank-feedback", json!("declined"), Answered, 0),
        ("pending", json!(null), Answered, 0),
        ("resolved", json!("merchant-accepted"), Lost, 0),
        ("resolved", json!("auto-accepted"), Lost, 0),
        ("resolved", json!("declined"), Won, 0),
        ("archived", json!("declined"), Won, 0),
        ("archived", json!("auto-accepted"), Lost, 0),
        ("resolved", json!(null), Open, 1),
        ("resolved", json!("something new"), Open, 1),
        ("something new", json!("declined"), Open, 1),
    ] {
        let dispute = dispute_with(json!({"status": status, "resolution": resolution}));
        let host = host().answer("GET", DISPUTE, 200, success(dispute)).install();
        let found = Paystack::fetch(key()).unwrap().status;
        assert_eq!((found, host.logs().len()), (expected, warnings), "{status} {resolution}");
        assert!(host.logs().iter().all(|(level, _)| *level == Level::Warn));
    }
}

#[test]
fn the_amount_is_that_of_the_claim_or_of_the_transaction() {
    for (refund, currency, expected) in [
        (json!(null), json!(null), naira(43500)),
        (json!(0), json!("NGN"), naira(43500)),
        (json!(1002), json!(null), naira(1002)),
        (json!("1002"), json!("NGN"), naira(1002)),
        (json!(1002.0), json!("USD"), Money { minor: 1002, currency: "USD".into() }),
    ] {
        let dispute = dispute_with(json!({"refund_amount": refund, "currency": currency}));
        assert_eq!(fetch(200, success(dispute)).unwrap().amount, expected, "{refund}");
    }
}

#[test]
fn absent_texts_and_times_stay_absent() {
    let changes = json!({"category": null, "dueAt": null, "createdAt": "soon"});
    let found = fetch(200, success(dispute_with(changes))).unwrap();
    assert_eq!((found.reason.as_str(), found.due_at, found.opened_at), ("", None, None));
    let changes = json!({"createdAt": null, "created_at": "2017-11-21T14:59:07+01:00"});
    let found = fetch(200, success(dispute_with(changes))).unwrap();
    assert_eq!(found.opened_at.as_deref(), Some("2017-11-21T13:59:07Z"));
}

#[test]
fn unknown_and_unreadable_disputes_are_faults() {
    let unknown = json!({"status": false, "message": "Dispute not found"});
    assert_eq!(fetch(404, unknown).unwrap_err().category, FaultCategory::NotFound);
    let of_nobody = json!({"id": 1, "amount": 100, "currency": "NGN"});
    for changes in [
        json!({"id": null}),
        json!({"status": null}),
        json!({"status": 1}),
        json!({"transaction": {"id": 1, "reference": "T685", "currency": "NGN"}}),
        json!({"transaction": {"id": 1, "reference": "T685", "amount": 1}}),
        json!({"refund_amount": 5, "transaction": null}),
    ] {
        let fault = fetch(200, success(dispute_with(changes.clone()))).unwrap_err();
        assert_eq!(
            (fault.category, fault.code.as_str()),
            (FaultCategory::Unavailable, "unexpected-answer"),
            "{changes}"
        );
    }
    // In a list of all disputes, only the dispute itself names the payment.
    let list = page(json!([dispute_with(json!({"transaction": of_nobody}))]), 1, 1);
    let _host = host().answer("GET", "/dispute", 200, list).install();
    assert!(Paystack::list(DisputeFilter::Since(String::new()), None).unwrap_err().retryable);
}

#[test]
fn the_disputes_of_a_payment_are_listed() {
    let others = json!({"id": 7, "reference": "T999", "amount": 1, "currency": "NGN"});
    let items = json!([
        open(),
        dispute_with(
            json!({"id": 2, "transaction": 5991760, "refund_amount": 5, "currency": "NGN"})
        ),
        dispute_with(json!({"id": 3, "transaction": others})),
        dispute_with(json!({
            "id": 4, "transaction": {"reference": "T685", "amount": 5, "currency": "NGN"},
        })),
        dispute_with(json!({"id": 5, "transaction": null, "refund_amount": 5, "currency": "NGN"})),
    ]);
    let found = list(host().answer("GET", OF_PAYMENT, 200, page(items, 1, 1))).unwrap();
    let ids: Vec<&str> = found.disputes.iter().map(|found| found.key.id.as_str()).collect();
    assert_eq!((ids, found.next), (vec!["358950", "2", "4", "5"], None));
    for Dispute { key: DisputeKey { service_ref, transaction_id, .. }, .. } in &found.disputes {
        assert_eq!((service_ref.as_str(), transaction_id.as_str()), ("T685", "5991760"));
    }
}

#[test]
fn a_missing_transaction_id_is_looked_up() {
    let filter = || DisputeFilter::Payment(("T685".into(), String::new()));
    let listed = |found: Value| {
        let host = host()
            .answer("GET", "/transaction/verify/T685", 200, success(found))
            .answer(
                "GET",
                "/dispute?transaction=4099260516&perPage=100&page=1",
                200,
                page(json!([]), 1, 0),
            )
            .install();
        (Paystack::list(filter(), None), host.requests().len())
    };
    let (found, requests) = listed(transaction());
    assert_eq!((found.unwrap().disputes.len(), requests), (0, 2));
    // Without an id, Paystack would list the disputes of all payments.
    let (found, requests) = listed(json!({"id": null}));
    assert_eq!((found.unwrap_err().category, requests), (FaultCategory::Unavailable, 1));
}

#[test]
fn disputes_since_a_time_are_listed_page_by_page() {
    let path =
        |page: u64| format!("/dispute?from=2017-11-21T00%3A00%3A00Z&perPage=100&page={page}");
    let second = page(json!([dispute_with(json!({"id": 2}))]), 2, 2);
    let _host = host()
        .answer("GET", &path(1), 200, page(json!([open()]), 1, 2))
        .answer("GET", &path(2), 200, second)
        .install();
    let list = |cursor| {
        let found = Paystack::list(DisputeFilter::Since("2017-11-21T00:00:00Z".into()), cursor);
        let DisputePage { disputes, next } = found.unwrap();
        (disputes.into_iter().map(|found| found.key.id).collect::<Vec<_>>(), next)
    };
    let (ids, next) = list(None);
    assert_eq!((ids, next.as_deref()), (vec!["358950".to_owned()], Some("2")));
    assert_eq!(list(next), (vec!["2".to_owned()], None));
}

#[test]
fn a_list_that_cannot_be_read_is_a_fault() {
    let fault = |status: u16, response: Value| {
        list(host().answer("GET", OF_PAYMENT, status, response)).unwrap_err().category
    };
    assert_eq!(fault(200, success(json!({"odd": true}))), FaultCategory::Unavailable);
    assert_eq!(fault(200, success(json!(null))), FaultCategory::Unavailable);
    assert_eq!(fault(200, success(json!([1]))), FaultCategory::Unavailable);
    assert_eq!(fault(500, json!({})), FaultCategory::Unavailable);
    assert_eq!(fault(401, json!({})), FaultCategory::Misconfigured);
    // Without the number of pages, the list is taken to be complete.
    let found = list(host().answer("GET", OF_PAYMENT, 200, success(json!([open()])))).unwrap();
    assert_eq!((found.disputes.len(), found.next), (1, None));
    let invalid = Paystack::list(of_payment(), Some("x".into())).unwrap_err();
    assert_eq!(invalid.field(), Some("cursor"));
}

#[test]
fn an_accepted_dispute_is_lost() {
    let response = success(resolved("resolved", "merchant-accepted", 1000));
    let order = DisputeAnswer { amount: naira(1000), ..accept() };
    let (found, sent) = answer(answering(open(), 200, response), order);
    let found = found.unwrap();
    assert_eq!((found.status, found.amount), (DisputeStatus::Lost, naira(1000)));
    assert_eq!(found.key, key());
    let expected = json!({
        "resolution": "merchant-accepted", "message": "The order was not delivered",
        "refund_amount": 1000,
    });
    assert_eq!((sent.len(), sent[0].method.as_str(), sent[0].json()), (1, "PUT", expected));
}

#[test]
fn a_contested_dispute_has_evidence() {
    let response = success(resolved("awaiting-bank-feedback", "declined", 0));
    let (found, sent) = answer(answering(open(), 200, response), contest());
    let found = found.unwrap();
    assert_eq!((found.status, found.amount), (DisputeStatus::Answered, naira(43500)));
    let evidence = json!({
        "customer_name": "Ada Obi", "customer_email": "ada@example.com",
        "customer_phone": "+2348012345678",
        "service_details": "A loan of NGN 435 https://shop.test/receipt.pdf",
    });
    let resolution = json!({
        "resolution": "declined", "message": "The order was not delivered", "refund_amount": 0,
        "evidence": 21,
    });
    let bodies: Vec<Value> = sent.iter().map(Sent::json).collect();
    assert_eq!(bodies, [evidence, resolution]);
}

#[test]
fn paystacks_phone_number_replaces_a_missing_one() {
    let order = || {
        let mut answer = contest();
        if let DisputeAction::Contest(evidence) = &mut answer.action {
            (evidence.customer_phone, evidence.document_url) = (None, None);
        }
        answer
    };
    let host = || answering(open(), 200, success(resolved("pending", "declined", 0)));
    let (_, sent) = answer(host(), order());
    let body = sent[0].json();
    assert_eq!(body["customer_phone"], "08012345678");
    assert_eq!(body["service_details"], "A loan of NGN 435");
    let unknown = dispute_with(json!({"customer": {"phone": null}}));
    let (found, sent) = answer(answering(unknown, 200, json!({})), order());
    assert_eq!((found.unwrap_err().field(), sent.len()), (Some("phone"), 0));
}

#[test]
fn a_dispute_is_answered_once() {
    for (status, resolution, expected) in [
        ("awaiting-bank-feedback", "declined", DisputeStatus::Answered),
        ("resolved", "declined", DisputeStatus::Won),
        ("resolved", "merchant-accepted", DisputeStatus::Lost),
    ] {
        let found = dispute_with(json!({"status": status, "resolution": resolution}));
        for order in [accept(), contest()] {
            let (found, sent) = answer(answering(found.clone(), 200, json!({})), order);
            assert_eq!((found.unwrap().status, sent.len()), (expected, 0), "{status}");
        }
    }
}

#[test]
fn a_refused_answer_is_refused_unless_the_dispute_was_answered() {
    let refusal = || {
        json!({
            "status": false, "message": "Dispute has been resolved", "type": "validation_error",
            "code": "invalid_params",
        })
    };
    let (found, _) = answer(answering(open(), 400, refusal()), accept());
    assert_eq!(found.unwrap_err().category, FaultCategory::Refused);
    // An earlier attempt took effect in between.
    let answered = dispute_with(json!({"status": "pending"}));
    let host = answering(open(), 400, refusal()).answer("GET", DISPUTE, 200, success(answered));
    assert_eq!(answer(host, contest()).0.unwrap().status, DisputeStatus::Answered);
    // Without the second query, it is unknown whether the dispute was answered.
    for (status, response) in [(404, json!({"status": false, "message": "gone"})), (500, json!({}))]
    {
        let host = answering(open(), 400, refusal()).answer("GET", DISPUTE, status, response);
        assert_eq!(answer(host, accept()).0.unwrap_err().category, FaultCategory::Unavailable);
    }
}

#[test]
fn invalid_evidence_names_the_field() {
    let invalid = json!({
        "status": false, "message": "Invalid Email Address Passed", "type": "validation_error",
        "code": "invalid_params",
    });
    let host =
        host().answer("GET", DISPUTE, 200, success(open())).answer("POST", EVIDENCE, 400, invalid);
    let (found, sent) = answer(host, contest());
    assert_eq!((found.unwrap_err().field(), sent.len()), (Some("email"), 1));
}

#[test]
fn without_a_readable_response_the_outcome_is_unknown() {
    let unavailable = |host: FakeHost, order: DisputeAnswer| {
        assert_eq!(answer(host, order).0.unwrap_err().category, FaultCategory::Unavailable);
    };
    let found = || host().answer("GET", DISPUTE, 200, success(open()));
    unavailable(found().timeout("PUT", RESOLVE), accept());
    unavailable(answering(open(), 500, json!({})), accept());
    unavailable(answering(open(), 200, success(json!(null))), accept());
    unavailable(found().cut("POST", EVIDENCE), contest());
    unavailable(found().answer("POST", EVIDENCE, 200, success(json!({}))), contest());
    let unknown = json!({"status": false, "message": "Dispute not found"});
    let (found, sent) = answer(host().answer("GET", DISPUTE, 404, unknown), accept());
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
    assert_eq!(Paystack::list(filter, None).unwrap().disputes[0].key, key);
    assert_eq!(Paystack::fetch(key.clone()).unwrap().amount, naira(500_000));
    let order = DisputeAnswer { key, amount: naira(500_000), ..contest() };
    assert_eq!(Paystack::answer(order).unwrap().status, DisputeStatus::Answered);
}
