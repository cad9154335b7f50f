use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::world::{KEY, SUCCESS, World};

/// Pays and opens a dispute of the payment; returns the dispute's path.
async fn disputed(world: &World, reference: &str, amount_minor: Option<u64>) -> String {
    world.pay(reference, SUCCESS).await;
    let id = world.simulators.paystack().open_dispute(reference, amount_minor).unwrap();
    format!("/dispute/{id}")
}

fn id(path: &str) -> u64 {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

async fn put(world: &World, path: &str, body: Value) -> (u16, Value) {
    world.call(Method::PUT, &format!("{path}/resolve"), body).await
}

fn accept() -> Value {
    json!({ "resolution": "merchant-accepted", "message": "Sorry", "refund_amount": 500_000 })
}

fn decline(evidence: &Value) -> Value {
    json!({
        "resolution": "declined", "message": "Delivered", "refund_amount": 0, "evidence": evidence,
    })
}

fn evidence() -> Value {
    json!({
        "customer_email": "ada@example.com", "customer_name": "Ada Obi",
        "customer_phone": "08012345678", "service_details": "A loan",
    })
}

/// Returns the status of a dispute, its resolution, and the status of its transaction.
async fn statuses(world: &World, path: &str) -> (String, Value, String) {
    let found = world.get(path).await["data"].clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let transaction = text(&found["transaction"]["status"]);
    (text(&found["status"]), found["resolution"].clone(), transaction)
}

fn expected(status: &str, resolution: Value, transaction: &str) -> (String, Value, String) {
    (status.to_owned(), resolution, transaction.to_owned())
}

#[tokio::test]
async fn a_dispute_has_the_documented_shape_and_sends_a_webhook() {
    let world = World::new().await;
    let path = disputed(&world, "pay", None).await;
    let paid = world.verify("pay").await;
    let found = world.get(&path).await["data"].clone();
    assert_eq!((&found["id"], &found["refund_amount"]), (&json!(id(&path)), &Value::Null));
    assert_eq!(
        (&found["status"], &found["resolution"], &found["currency"]),
        (&json!("awaiting-merchant-feedback"), &Value::Null, &json!("NGN"))
    );
    assert_eq!((&found["transaction"], &found["customer"]), (&paid, &paid["customer"]));
    assert_eq!((&found["bin"], &found["last4"]), (&json!("408408"), &json!("4081")));
    assert_eq!(
        (&found["createdAt"], &found["dueAt"]),
        (&json!("2026-11-21T10:00:00.000Z"), &json!("2026-11-23T10:00:00.000Z"))
    );
    assert_eq!(world.notification_events().await, ["charge.success", "charge.dispute.create"]);
    assert_eq!(world.receiver.bodies()[1]["data"], found);
    let of_transaction = format!("/dispute/transaction/{}", paid["id"]);
    assert_eq!(world.get(&of_transaction).await["data"], found);
}

#[tokio::test]
async fn only_successful_and_undisputed_payments_can_be_disputed() {
    let world = World::new().await;
    world.initialize("open").await;
    let path = disputed(&world, "pay", Some(500_000)).await;
    let paystack = world.simulators.paystack();
    assert_eq!(paystack.unresolved_dispute("pay"), Some(id(&path)));
    world.pay("other", SUCCESS).await;
    for (reference, amount) in [
        ("none", None),
        ("open", None),
        ("pay", None),
        ("other", Some(0)),
        ("other", Some(500_001)),
    ] {
        assert_eq!(paystack.open_dispute(reference, amount), None, "{reference}");
    }
    assert!(paystack.decide_dispute(id(&path), true));
    assert!(!paystack.decide_dispute(id(&path), false));
    assert_eq!(paystack.unresolved_dispute("pay"), None);
    assert!(paystack.open_dispute("pay", None).is_some());
}

#[tokio::test]
async fn an_accepted_dispute_reverses_the_payment_at_once() {
    let world = World::new().await;
    let path = disputed(&world, "pay", None).await;
    let (status, body) = put(&world, &path, accept()).await;
    assert_eq!((status, &body["status"]), (200, &json!(true)), "{body}");
    let transaction = world.verify("pay").await["id"].clone();
    assert_eq!(
        (&body["data"]["status"], &body["data"]["transaction"], &body["data"]["note"]),
        (&json!("resolved"), &transaction, &json!("Sorry"))
    );
    let accepted = expected("resolved", json!("merchant-accepted"), "reversed");
    assert_eq!(statuses(&world, &path).await, accepted);
    let events = ["charge.success", "charge.dispute.create", "charge.dispute.resolve"];
    assert_eq!(world.notification_events().await, events);
    assert_eq!(world.receiver.bodies()[2]["data"]["resolution"], "merchant-accepted");
    // An answered dispute can neither be answered again nor decided.
    assert_eq!(put(&world, &path, accept()).await.0, 400);
    assert!(!world.simulators.paystack().decide_dispute(id(&path), true));
    world.advance(100 * 3_600).await;
    assert_eq!(world.notification_events().await, events);
}

#[tokio::test]
async fn a_contested_dispute_awaits_the_bank() {
    let world = World::new().await;
    for (reference, won, decided) in [
        ("kept", true, expected("resolved", json!("declined"), "success")),
        ("lost", false, expected("resolved", json!("auto-accepted"), "reversed")),
    ] {
        let path = disputed(&world, reference, None).await;
        let added = world.post(&format!("{path}/evidence"), evidence()).await["data"].clone();
        assert_eq!(added["dispute"], json!(id(&path)));
        let (status, body) = put(&world, &path, decline(&added["id"])).await;
        assert_eq!((status, &body["data"]["status"]), (200, &json!("awaiting-bank-feedback")));
        let contested = expected("awaiting-bank-feedback", Value::Null, "success");
        assert_eq!(statuses(&world, &path).await, contested);
        assert_eq!(put(&world, &path, accept()).await.0, 400);
        // A contested dispute has no reminder and does not expire.
        world.advance(100 * 3_600).await;
        assert_eq!(statuses(&world, &path).await, contested);
        assert!(world.simulators.paystack().decide_dispute(id(&path), won));
        assert_eq!(statuses(&world, &path).await, decided);
    }
    let events = world.notification_events().await;
    assert_eq!(events.iter().filter(|event| *event == "charge.dispute.resolve").count(), 2);
    assert!(!events.iter().any(|event| event == "charge.dispute.remind"));
}

#[tokio::test]
async fn a_dispute_without_an_answer_is_reminded_of_and_then_accepted() {
    let world = World::new().await;
    let path = disputed(&world, "pay", None).await;
    world.advance(24 * 3_600 - 1).await;
    assert_eq!(world.notification_events().await.len(), 2);
    world.advance(1).await;
    assert_eq!(world.notification_events().await[2], "charge.dispute.remind");
    world.advance(24 * 3_600).await;
    assert_eq!(world.notification_events().await[3], "charge.dispute.resolve");
    let accepted = expected("resolved", json!("auto-accepted"), "reversed");
    assert_eq!(statuses(&world, &path).await, accepted);
}

#[tokio::test]
async fn partial_disputes_reverse_the_payment_together_with_other_returns() {
    let world = World::new().await;
    let path = disputed(&world, "pay", Some(200_000)).await;
    assert_eq!(world.get(&path).await["data"]["refund_amount"], 200_000);
    assert!(world.simulators.paystack().decide_dispute(id(&path), false));
    assert_eq!(world.verify("pay").await["status"], "success");
    let more = json!({ "transaction": "pay", "amount": 300_001 });
    assert_eq!(world.post_rejected("/refund", more).await.1, "invalid_amount");
    world.post("/refund", json!({ "transaction": "pay" })).await;
    world.advance(10).await;
    assert_eq!(world.verify("pay").await["status"], "reversed");
}

#[tokio::test]
async fn a_dispute_can_be_accepted_in_part() {
    let world = World::new().await;
    let path = disputed(&world, "pay", None).await;
    let mut part = accept();
    part["refund_amount"] = json!("1000");
    assert_eq!(put(&world, &path, part).await.1["data"]["refund_amount"], 1_000);
    let accepted = expected("resolved", json!("merchant-accepted"), "success");
    assert_eq!(statuses(&world, &path).await, accepted);
}

#[tokio::test]
async fn invalid_answers_are_rejected() {
    let world = World::new().await;
    let path = disputed(&world, "pay", None).await;
    let with = |mut body: Value, name: &str, value: Value| {
        body[name] = value;
        body
    };
    for (name, value) in [
        ("resolution", json!("regretted")),
        ("resolution", Value::Null),
        ("message", json!("")),
        ("message", json!({})),
        ("refund_amount", Value::Null),
        ("refund_amount", json!(0)),
        ("refund_amount", json!(-1)),
        ("refund_amount", json!(1.5)),
        ("refund_amount", json!("much")),
        ("refund_amount", json!(500_001)),
        ("evidence", json!(1)),
        ("evidence", json!("x")),
        ("evidence", json!([])),
        ("uploaded_filename", json!(1)),
    ] {
        let (status, body) = put(&world, &path, with(accept(), name, value.clone())).await;
        assert_eq!((status, &body["status"]), (400, &json!(false)), "{name} {value}");
    }
    let add = format!("{path}/evidence");
    for name in ["customer_email", "customer_name", "customer_phone", "service_details"] {
        let refused = world.post_rejected(&add, with(evidence(), name, Value::Null)).await;
        assert_eq!(refused, (400, "missing_params".to_owned()), "{name}");
        assert_eq!(world.post_rejected(&add, with(evidence(), name, json!([]))).await.0, 400);
    }
    let refused = world.post_rejected(&add, with(evidence(), "customer_email", json!("ada"))).await;
    assert_eq!(refused, (400, "invalid_email_address".to_owned()));
    // Nothing changed.
    let open = expected("awaiting-merchant-feedback", Value::Null, "success");
    assert_eq!(statuses(&world, &path).await, open);
    assert_eq!(world.notification_events().await.len(), 2);
    world.simulators.paystack().decide_dispute(id(&path), true);
    assert_eq!(world.post_rejected(&add, evidence()).await.0, 400);
}

#[tokio::test]
async fn unknown_disputes_are_not_found() {
    let world = World::new().await;
    let path = disputed(&world, "pay", None).await;
    for unknown in ["/dispute/1", "/dispute/x", "/dispute/transaction/1"] {
        let (status, body) = world.call(Method::GET, unknown, Value::Null).await;
        assert_eq!((status, &body["code"]), (404, &json!("not_found")), "{unknown}");
    }
    assert_eq!(put(&world, "/dispute/1", accept()).await.0, 404);
    assert_eq!(world.post_rejected("/dispute/1/evidence", evidence()).await.0, 404);
    // Accounts are isolated.
    let request = world.request(Method::GET, &format!("/paystack{path}"));
    assert_eq!(request.bearer_auth("sk_test_other").send().await.unwrap().status(), 404);
    let request = world.request(Method::GET, &format!("/paystack{path}"));
    assert_eq!(request.send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn disputes_are_filtered_and_paged() {
    let world = World::new().await;
    let first = disputed(&world, "one", None).await;
    world.advance(3_600).await;
    disputed(&world, "two", None).await;
    world.simulators.paystack().decide_dispute(id(&first), true);
    let two = world.verify("two").await["id"].clone();
    for (query, count) in [
        (String::new(), 2),
        ("?perPage=1".to_owned(), 1),
        ("?perPage=1&page=2".to_owned(), 1),
        ("?perPage=100&page=2".to_owned(), 0),
        ("?status=resolved".to_owned(), 1),
        ("?status=awaiting-merchant-feedback".to_owned(), 1),
        (format!("?transaction={two}"), 1),
        ("?transaction=1".to_owned(), 0),
        ("?from=2026-11-21T10%3A00%3A01Z".to_owned(), 1),
        ("?from=2026-11-21".to_owned(), 2),
        ("?from=2026-11-22".to_owned(), 0),
        ("?from=2026-11-21T10%3A00%3A00.000Z&to=2026-11-21T10%3A30%3A00Z".to_owned(), 1),
    ] {
        let found = world.get(&format!("/dispute{query}")).await;
        assert_eq!(found["data"].as_array().unwrap().len(), count, "{query}");
    }
    let meta = world.get("/dispute?perPage=1&page=2").await["meta"].clone();
    let expected = json!({ "total": 2, "skipped": 1, "perPage": 1, "page": 2, "pageCount": 2 });
    assert_eq!(meta, expected);
    assert_eq!(world.call(Method::GET, "/dispute?from=soon", Value::Null).await.0, 400);
}

#[tokio::test]
async fn the_control_endpoint_opens_and_decides_disputes() {
    let world = World::new().await;
    world.pay("pay", SUCCESS).await;
    let control = async |body: Value| {
        let request = world.request(Method::POST, "/paystack/chargeback").json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(control(json!({ "reference": "pay", "amount_minor": 1_000 })).await, 204);
    assert_eq!(control(json!({ "reference": "pay" })).await, 404);
    assert_eq!(control(json!({ "reference": "pay", "won": true })).await, 204);
    assert_eq!(control(json!({ "reference": "pay", "won": true })).await, 404);
    assert_eq!(control(json!({ "reference": "pay" })).await, 204);
    assert_eq!(control(json!({ "reference": "pay", "won": false })).await, 204);
    assert_eq!(world.verify("pay").await["status"], "reversed");
    assert_eq!(control(json!({ "reference": "none" })).await, 404);
    assert_eq!(control(json!({ "reference": "pay", "amount_minor": "all" })).await, 400);
    assert_eq!(control(json!({})).await, 400);
    let seen = world.simulators.paystack().requests();
    assert!(seen.iter().all(|(_, path)| path != "/chargeback"));
}

#[tokio::test]
async fn every_operation_of_disputes_can_fail() {
    let world = World::new().await;
    let path = disputed(&world, "pay", None).await;
    let calls = [
        ("dispute_list", Method::GET, "/dispute".to_owned()),
        ("dispute_list", Method::GET, "/dispute/transaction/1".to_owned()),
        ("dispute", Method::GET, path.clone()),
        ("dispute_evidence", Method::POST, format!("{path}/evidence")),
        ("dispute_answer", Method::PUT, format!("{path}/resolve")),
    ];
    for (operation, method, path) in calls {
        world.simulators.faults().push(Fault::new(operation, FaultKind::Error500));
        let mut statuses = Vec::new();
        for _ in 0..2 {
            let request = world.request(method.clone(), &format!("/paystack{path}"));
            let response = request.bearer_auth(KEY).json(&json!({})).send().await.unwrap();
            statuses.push(response.status().as_u16());
        }
        assert!(statuses[0] == 500 && statuses[1] != 500, "{path}: {statuses:?}");
    }
}
