//! Unfinished recollections at a provider: repeated requests for a checkout, and abandoned charges.

use futures::future::join;
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{PAYSTACK_KEY, Reply, TestApp, reply},
    codes::{balance, credit, merged},
    lending::{
        SUCCESS_CARD, charge_instrument, create_loan, create_recollection, create_user,
        direct_debit, feed_entries, fetch_card, get_loan, saved_card,
    },
    references::open_checkouts,
    telemetry::{metric_value, scrape},
};

const DAY: i64 = 86_400;

async fn set_up(app: &TestApp) {
    create_user(app, "ada").await;
    create_loan(app, "loan-1", "ada", &[(10, 1_000.0)]).await;
}

fn charge_by(channel: &str, more: Value) -> Value {
    merged(json!({ "loan": "loan-1", "with_provider": true, "payment_channel": channel }), more)
}

fn checkout(reference: &str) -> Value {
    let pages = json!({ "success_url": "https://a.example/" });
    charge_by("checkout", json!({ "reference": reference, "checkout": pages }))
}

async fn fetch(app: &TestApp, reference: &str) -> Value {
    app.get(&format!("/recollection/fetch/reference/{reference}")).await.data().clone()
}

async fn complete(app: &TestApp, begun: &Reply) {
    let url = begun.data()["checkout"]["url"].as_str().expect("a page");
    let done = app.client.post(format!("{url}/complete")).json(&json!({ "outcome": "success" }));
    assert!(done.send().await.expect("a response").status().is_success());
    app.run_until_idle().await;
}

both! {
    async fn concurrent_requests_create_one_checkout_session(app: TestApp) {
        set_up(app).await;
        let slow = Fault::new("initialize", FaultKind::Slow).delay_ms(700);
        app.simulators.faults().push(slow);
        let second = async {
            while !app.simulators.faults().list().is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            create_recollection(app, checkout("r-1")).await
        };
        let (first, second) = join(create_recollection(app, checkout("r-1")), second).await;
        assert_eq!(second.data(), first.data());
        complete(app, &first).await;
        assert_eq!(fetch(app, "r-1").await["status"], "success");
    }

    async fn a_lost_checkout_session_is_created_again_for_the_amount_outstanding_then(app: TestApp) {
        set_up(app).await;
        for reference in ["r-1", "r-2"] {
            app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter));
            assert_eq!(create_recollection(app, checkout(reference)).await.failure().0, 502);
        }
        // The reference belongs to a checkout: no manual recollection can use it.
        let cash = json!({ "loan": "loan-1", "with_provider": false, "reference": "r-1" });
        assert_eq!(create_recollection(app, cash).await.failure(), (400, "reference already exists"));
        create_recollection(app, json!({ "loan": "loan-1", "with_provider": false, "amount": 400 })).await.data();
        // Four days later, it is verified as often as a new one.
        app.advance(4 * DAY).await;
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut));
        let begun = create_recollection(app, checkout("r-1")).await;
        assert_eq!(begun.data()["amount"], 600);
        complete(app, &begun).await;
        app.advance(300).await;
        assert_eq!(fetch(app, "r-1").await["status"], "success");
        let late = create_recollection(app, checkout("r-2")).await;
        assert_eq!(late.failure(), (400, "loan already been paid completely"));
    }

    async fn a_repayment_paid_in_two_checkout_sessions_counts_once_and_raises_an_alarm(app: TestApp) {
        set_up(app).await;
        app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter));
        assert_eq!(create_recollection(app, checkout("r-1")).await.failure().0, 502);
        let lost = open_checkouts(app).await;
        let begun = create_recollection(app, checkout("r-1")).await;
        assert_ne!(begun.data()["service_ref"], "r-1");
        complete(app, &begun).await;
        assert_eq!(fetch(app, "r-1").await["status"], "success");
        let url = format!("{}{}/complete", app.simulators.url(), lost[0]);
        let paid = app.client.post(url).json(&json!({ "outcome": "success" })).send().await;
        assert_eq!(paid.expect("a response").status(), 200);
        app.run_until_idle().await;
        assert_eq!(get_loan(app, "loan-1").await["amount_paid"], 1_000);
        assert_eq!(app.events(), ["recollection.success"]);
        let page = scrape(app).await;
        assert_eq!(metric_value(&page, r#"tollhouse_alarms_total{alarm="repaid twice"}"#), Some(1.0));
    }

    async fn the_borrower_is_not_mistaken_for_a_user_whose_user_id_is_the_borrowers_id(app: TestApp) {
        set_up(app).await;
        let ada = app.get("/user/fetch/ada").await.data().clone();
        let eve = json!({ "user_id": ada["id"], "first_name": "Eve", "last_name": "Obi", "email": "eve@example.com" });
        let eve = app.post("/user/create", eve).await.data().clone();
        assert_ne!(eve["id"], ada["id"]);
        let begun = create_recollection(app, checkout("r-1")).await;
        assert_eq!(begun.data()["user"]["id"], ada["id"]);
        assert_eq!(fetch(app, "r-1").await["user"]["id"], ada["id"]);
        let request = app.client.get(format!("{}/paystack/transaction", app.simulators.url()));
        let known = reply(request.bearer_auth(PAYSTACK_KEY)).await.body["data"].clone();
        assert_eq!(known[0]["customer"]["email"], "ada@example.com", "{known}");
        complete(app, &begun).await;
        let received = app.simulators.events();
        let received = received.iter().find(|event| event.event == "recollection.success").expect("an event");
        let received: Value = serde_json::from_str(&received.body).expect("JSON");
        assert_eq!(received["data"]["user"]["id"], ada["id"]);
    }

    async fn a_checkout_for_a_user_without_an_email_address_is_rejected(app: TestApp) {
        set_up(app).await;
        let edit = json!({ "email": "" });
        app.request(&app.company, Method::PUT, "/user/edit/ada", Some(edit)).await.data();
        let refused = create_recollection(app, checkout("r-1")).await;
        assert_eq!(refused.failure(), (400, "email address not found for this user"));
        assert_eq!(app.get("/recollection/list").await.data()["total"], 0);
    }

    async fn an_abandoned_charge_blocks_others_for_three_days(app: TestApp) {
        set_up(app).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Challenge));
        charge_instrument(app, charge_by("card", json!({}))).await;
        let more = charge_instrument(app, charge_by("card", json!({ "reference": "r-2" }))).await;
        assert_eq!(more["status"], "pending");
        app.advance(2 * DAY).await;
        assert_eq!(fetch(app, "r-2").await["status"], "pending");
        app.advance(DAY).await;
        assert_eq!(fetch(app, "r-2").await["status"], "success");
        assert_eq!(get_loan(app, "loan-1").await["paid"], true);
        app.run_until_idle().await;
    }

    async fn the_fee_of_an_abandoned_automatic_collection_is_refunded_after_three_days(app: TestApp) {
        set_up(app).await;
        let path = format!("/companies/{}/prices", app.company.id);
        app.operator(Method::PATCH, &path, json!({ "recollection.card": 20 })).await.data();
        credit(app, 100, "fees").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Challenge));
        app.advance(10 * DAY).await;
        assert_eq!(balance(app).await, json!(80));
        app.advance(3 * DAY).await;
        assert_eq!(balance(app).await, json!(100));
    }

    async fn deleting_the_card_does_not_fail_a_charge_with_unknown_outcome_early(app: TestApp) {
        set_up(app).await;
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Cut));
        charge_instrument(app, charge_by("card", json!({ "reference": "r-1" }))).await;
        let delete = format!("/card/delete/{}?delete_default=true", card["id"].as_str().unwrap());
        app.request(&app.company, Method::DELETE, &delete, None).await.data();
        app.advance(900).await;
        assert_eq!(fetch(app, "r-1").await["status"], "pending");
        app.advance(3_600).await;
        assert_eq!(fetch(app, "r-1").await["status"], "failed");
    }

    async fn a_deactivated_provider_makes_no_charges(app: TestApp) {
        set_up(app).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        direct_debit(app, "dd-1", "ada").await;
        let path = format!("/companies/{}/providers/provider_a", app.company.id);
        app.operator(Method::PUT, &path, json!({ "active": false })).await.data();
        for channel in ["card", "direct_debit"] {
            let refused = create_recollection(app, charge_by(channel, json!({}))).await;
            assert_eq!(refused.failure(), (400, "provider_a has been deactivated"), "{channel}");
        }
    }

    async fn an_installment_in_a_resent_schedule_is_not_collected_again(app: TestApp) {
        create_user(app, "ada").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0), (2, 50.0)]).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Decline).times(2));
        app.advance(2 * DAY).await;
        let failed = || async { app.get("/recollection/list").await.data()["total"].clone() };
        assert_eq!(failed().await, 2);
        create_loan(app, "loan-1", "ada", &[(9, 10.0), (2, 100.0), (8, 10.0), (2, 50.0)]).await;
        app.advance(DAY).await;
        assert_eq!(failed().await, 2);
    }

    async fn records_show_the_current_user_id_and_are_found_by_it(app: TestApp) {
        set_up(app).await;
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        direct_debit(app, "dd-1", "ada").await;
        create_recollection(app, json!({ "loan": "loan-1", "with_provider": false, "amount": 1, "reference": "r-1" })).await.data();
        let mut order = app.order("order-1");
        order["user_id"] = json!("ada");
        app.post("/payment/initialize", order.clone()).await.data();
        let ada = app.get("/user/fetch/ada").await.data().clone();
        let check = async |user_id: &str, former: &[&str]| {
            let debit = format!("/companies/{}/direct-debits/dd-1", app.company.id);
            let listed = format!("/payment/list?user_id={user_id}");
            for (what, shown) in [
                ("card", fetch_card(app, &card["id"]).await),
                ("listed card", app.get(&format!("/card/list/{user_id}")).await.data()[0].clone()),
                ("loan", get_loan(app, "loan-1").await),
                ("direct debit", app.operator(Method::GET, &debit, Value::Null).await.data().clone()),
                ("recollection", fetch(app, "r-1").await),
                ("loan of a recollection", fetch(app, "r-1").await["loan"].clone()),
                ("payment", app.fetch("order-1").await),
                ("payment begun again", app.post("/payment/initialize", order.clone()).await.data().clone()),
                ("listed payment", app.get(&listed).await.data()["docs"][0].clone()),
            ] {
                assert_eq!(shown["user_id"], user_id, "{what}: {shown}");
            }
            let found = async |list: &str, user_id: &str| {
                app.get(&format!("/{list}/list?user_id={user_id}")).await.data()["total"].clone()
            };
            for list in ["payment", "recollection"] {
                assert_eq!(found(list, user_id).await, 1, "{list}");
                assert_eq!(found(list, ada["id"].as_str().unwrap()).await, 1, "{list}");
                for former in former {
                    assert_eq!(found(list, former).await, 0, "{list} {former}");
                }
            }
        };
        check("ada", &[]).await;
        let edit = json!({ "user_id": "ada-2" });
        app.request(&app.company, Method::PUT, "/user/edit/ada", Some(edit)).await.data();
        check("ada-2", &["ada"]).await;
        // Creating the user again under a free `user_id` changes it, too.
        let again = json!({ "user_id": "ada-3", "first_name": "Ada", "last_name": "Obi", "email": "ada@example.com" });
        app.post("/user/create", again).await.data();
        check("ada-3", &["ada", "ada-2"]).await;
        // The former `user_id` may belong to another user by now.
        let other = json!({ "user_id": "ada", "first_name": "Bo", "last_name": "Eze", "email": "bo@example.com" });
        app.post("/user/create", other).await.data();
        check("ada-3", &["ada", "ada-2"]).await;
        app.run_until_idle().await;
        let received = app.simulators.events();
        let received: Vec<&str> = received.iter().map(|event| &*event.body).filter(|body| body.contains("recollection.success")).collect();
        let received: Value = serde_json::from_str(received[0]).unwrap();
        assert_eq!(received["data"]["user_id"], "ada"); // as it was then
        // Entries of the same second have no order.
        app.advance(1).await;
        create_recollection(app, json!({ "loan": "loan-1", "with_provider": false, "amount": 1 })).await.data();
        assert_eq!(feed_entries(app, "transactions").await[1]["user_id"], "ada-3");
    }
}
