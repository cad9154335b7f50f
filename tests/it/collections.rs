//! Automatic collection of installments on their due dates.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::state::App;
use tollhouse_platform::{background::jobs, clock::Clock, random::Random};
use tollhouse_sandbox::{Fault, FaultKind, Outcome};

use crate::{
    app::{Database, Engine, MASTER_KEY, NOW, TestApp, config, postgres},
    codes::{balance, credit},
    lending::{
        SUCCESS_CARD, create_loan, create_recollection, create_user, direct_debit, get_loan,
        saved_card,
    },
    master_key::Host,
};

const DAY: i64 = 86_400;

async fn set_prices(app: &TestApp) {
    let path = format!("/companies/{}/prices", app.company.id);
    let prices = json!({ "recollection.card": 20, "recollection.direct_debit": 10 });
    app.operator(Method::PATCH, &path, prices).await.data();
    credit(app, 100, "fees").await;
}

async fn recollections(app: &TestApp) -> Vec<Value> {
    let listed = app.get("/recollection/list?sort-created_at=asc").await;
    listed.data()["docs"].as_array().expect("a list").clone()
}

fn summarize(recollections: &[Value]) -> Vec<(&str, &str, f64)> {
    recollections
        .iter()
        .map(|r| {
            let field = |name: &str| r[name].as_str().expect("a text");
            (field("payment_channel"), field("status"), r["amount"].as_f64().expect("a number"))
        })
        .collect()
}

both! {
    async fn each_installment_is_collected_once_when_it_is_due(app: TestApp) {
        create_user(app, "ada").await;
        set_prices(app).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        direct_debit(app, "dd-1", "ada").await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0), (4, 50.0)]).await;
        app.advance(DAY).await;
        assert_eq!(recollections(app).await.len(), 0);
        app.advance(DAY).await;
        assert_eq!(summarize(&recollections(app).await), [("card", "success", 100.0)]);
        // The credit minus the fee, plus the charge minus the provider fee of 1.5 %.
        assert_eq!(balance(app).await, json!(100.0 - 20.0 + 98.5));
        // Resending the loan makes nothing else due.
        create_loan(app, "loan-1", "ada", &[(2, 100.0), (4, 50.0)]).await;
        app.advance(DAY).await;
        assert_eq!(recollections(app).await.len(), 1);
        app.advance(DAY).await;
        assert_eq!(summarize(&recollections(app).await), [("card", "success", 100.0), ("card", "success", 50.0)]);
        assert_eq!(get_loan(app, "loan-1").await["paid"], true);
        app.run_until_idle().await;
        let events = app.events();
        assert_eq!(events.iter().filter(|event| *event == "recollection.success").count(), 2);
    }

    async fn a_failed_collection_costs_nothing_and_emits_an_event(app: TestApp) {
        create_user(app, "ada").await;
        set_prices(app).await;
        direct_debit(app, "dd-1", "ada").await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Decline));
        app.advance(2 * DAY).await;
        app.advance(60).await;
        assert_eq!(summarize(&recollections(app).await), [("direct_debit", "failed", 100.0)]);
        assert_eq!(balance(app).await, json!(100));
        app.run_until_idle().await;
        assert_eq!(app.events(), ["recollection.failed"]);
        app.advance(10 * DAY).await;
        assert_eq!(recollections(app).await.len(), 1);
        assert_eq!(get_loan(app, "loan-1").await["amount_paid"], 0);
    }

    async fn an_uncovered_fee_prevents_the_charge_and_is_reported_to_operators(app: TestApp) {
        create_user(app, "ada").await;
        set_prices(app).await;
        let path = format!("/companies/{}/prices", app.company.id);
        app.operator(Method::PATCH, &path, json!({ "recollection.card": 101 })).await.data();
        saved_card(app, "ada", SUCCESS_CARD).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0), (3, 100.0)]).await;
        app.advance(2 * DAY).await;
        assert_eq!((recollections(app).await.len(), balance(app).await), (0, json!(100)));
        app.advance(120).await;
        let events = app.operator(Method::GET, "/events?kind=loan.not_collected", Value::Null).await.data().clone();
        assert_eq!(events["events"][0]["data"], json!({ "loan": "loan-1", "amount": 100, "reason": "insufficient balance, please top up your wallet." }));
        credit(app, 1_000, "more").await;
        app.advance(DAY).await;
        assert_eq!(summarize(&recollections(app).await), [("card", "success", 100.0)]);
    }

    async fn an_inactive_provider_prevents_the_charge_and_is_reported_to_operators(app: TestApp) {
        create_user(app, "ada").await;
        set_prices(app).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        let off = json!({ "active": false });
        app.operator(Method::PUT, "/providers/provider_a", off).await.data();
        app.advance(2 * DAY).await;
        assert_eq!((recollections(app).await.len(), balance(app).await), (0, json!(100)));
        app.advance(120).await;
        let events = app.operator(Method::GET, "/events?kind=loan.not_collected", Value::Null).await.data().clone();
        assert_eq!(events["events"][0]["data"]["reason"], "provider_a has been deactivated");
    }

    async fn installments_that_need_no_charge_are_not_collected(app: TestApp) {
        create_user(app, "ada").await;
        set_prices(app).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        // Installments due before the loan was received, repaid, of a user without a card, and of a
        // loan that is not disbursed.
        create_loan(app, "late", "ada", &[(-5, 100.0), (0, 10.0), (5, 1.0)]).await;
        create_loan(app, "repaid", "ada", &[(2, 100.0)]).await;
        create_recollection(app, json!({ "loan": "repaid", "with_provider": false })).await.data();
        create_user(app, "bola").await;
        create_loan(app, "cardless", "bola", &[(2, 100.0)]).await;
        let held = json!({
            "user_id": "ada", "amount": 7, "currency": "NGN", "disbursed": false,
            "schedule": [{ "due_date": crate::lending::date_in_days(2), "amount": 7 }],
        });
        crate::lending::put_loan(app, "held", held.clone()).await;
        app.advance(3 * DAY).await;
        let mut made_so_far = recollections(app).await;
        made_so_far.sort_by_key(|one| one["payment_channel"].to_string());
        assert_eq!(summarize(&made_so_far), [("card", "success", 10.0), ("cash", "success", 100.0)]);
        // The amount is applied to the older installment.
        assert_eq!(get_loan(app, "late").await["schedule"][0]["amount_remaining"], 90);
        crate::lending::put_loan(app, "held", crate::codes::merged(held, json!({ "disbursed": true }))).await;
        app.run_until_idle().await;
        assert_eq!(recollections(app).await.last().unwrap()["amount"], 7);
    }

    async fn two_hosts_collect_each_installment_once(app: TestApp) {
        const LOANS: usize = 40;
        create_user(app, "ada").await;
        set_prices(app).await;
        credit(app, 10_000, "more").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        for n in 0..LOANS {
            create_loan(app, &format!("loan-{n}"), "ada", &[(2, 100.0), (2, 50.0)]).await;
        }
        let other = Host::start_with(app, MASTER_KEY, app.app.clock.clone(), &[]).await;
        app.app.clock.advance_to(NOW.plus_seconds(2 * DAY));
        let ours = async { jobs::run_due(&app.app).await.expect("jobs that run") };
        tokio::join!(ours, other.run_due());
        app.run_until_idle().await;
        let listed = app.get("/recollection/list?limit=1000").await.data()["docs"].clone();
        let mut of_loans = std::collections::BTreeMap::<String, Vec<f64>>::new();
        for one in listed.as_array().expect("a list") {
            assert_eq!(one["status"], "success", "{one}");
            let loan = one["loan"].as_str().expect("an id").to_owned();
            of_loans.entry(loan).or_default().push(one["amount"].as_f64().expect("a number"));
        }
        assert_eq!(of_loans.len(), LOANS);
        assert!(of_loans.values().all(|amounts| amounts.len() == 2), "{of_loans:?}");
        let requests = app.simulators.paystack().requests().into_iter();
        let charges = requests.filter(|(_, path)| path == "/transaction/charge_authorization");
        assert_eq!(charges.count(), 2 * LOANS);
    }

    async fn an_amount_covered_by_a_pending_charge_is_not_charged_again(app: TestApp) {
        create_user(app, "ada").await;
        set_prices(app).await;
        direct_debit(app, "dd-1", "ada").await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0), (3, 100.0)]).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Pending));
        create_recollection(app, json!({
            "loan": "loan-1", "with_provider": true, "payment_channel": "direct_debit", "amount": 130,
        })).await.data();
        app.advance(3 * DAY).await;
        // The rest waits until the bank has reported the result of the first debit.
        assert_eq!(summarize(&recollections(app).await), [("direct_debit", "pending", 130.0), ("direct_debit", "pending", 70.0)]);
        let first = recollections(app).await[0]["id"].as_str().unwrap().to_owned();
        assert!(app.simulators.paystack().resolve(&format!("rec-{first}"), Outcome::Success));
        app.run_until_idle().await;
        app.advance(60).await;
        assert_eq!(summarize(&recollections(app).await), [("direct_debit", "success", 130.0), ("direct_debit", "success", 70.0)]);
    }
}

/// The host has not loaded the plugin yet, or could not load it.
async fn a_host_without_the_plugin_leaves_collections_to_other_hosts(engine: Engine) {
    let database = Database::create(engine).await;
    let settings = config(&database, &[]);
    let bare = App::open(&settings, Clock::frozen_at(NOW), Random::system(), None).await;
    let bare = bare.expect("a host that starts");
    let app = TestApp::start_on(database, &[]).await;
    create_user(&app, "ada").await;
    set_prices(&app).await;
    saved_card(&app, "ada", SUCCESS_CARD).await;
    create_loan(&app, "loan-1", "ada", &[(2, 100.0)]).await;
    bare.clock.advance_to(NOW.plus_seconds(2 * DAY));
    assert!(jobs::run_due(&bare).await.expect("jobs that run") > 0);
    assert_eq!((recollections(&app).await.len(), balance(&app).await), (0, json!(100)));
    app.advance(2 * DAY).await;
    app.advance(60).await;
    assert_eq!(summarize(&recollections(&app).await), [("card", "success", 100.0)]);
    app.finish().await;
}

#[tokio::test]
async fn a_host_without_the_plugin_leaves_collections_to_other_hosts_on_sqlite() {
    a_host_without_the_plugin_leaves_collections_to_other_hosts(Engine::Sqlite).await;
}

#[tokio::test]
async fn a_host_without_the_plugin_leaves_collections_to_other_hosts_on_postgres() {
    let Some(server) = postgres() else { return };
    a_host_without_the_plugin_leaves_collections_to_other_hosts(Engine::Postgres(server)).await;
}
