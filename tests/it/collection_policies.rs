//! Collection policies: versions, and attempts by instrument, day and hour.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::background::jobs;
use tollhouse_sandbox::{DeclineReason, Fault, FaultKind, Outcome};

use crate::{
    app::{MASTER_KEY, NOW, TestApp},
    codes::{balance, credit, merged},
    lending::{
        OTHER_CARD, SUCCESS_CARD, create_loan, create_recollection, create_user, direct_debit,
        get_loan, policy_body, put_policy, saved_card,
    },
    master_key::Host,
};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// From the start of the tests, at 9:00, to the day after the next, at 0:00.
const TWO_DAYS: i64 = 39 * HOUR;

async fn attempts(app: &TestApp, loan: &str) -> Vec<Value> {
    let path = format!("/companies/{}/loans/{loan}/attempts", app.company.id);
    let listed = app.operator(Method::GET, &path, Value::Null).await.data().clone();
    let mut attempts = listed.as_array().expect("a list").clone();
    attempts.reverse();
    attempts
}

/// Channel, day of the policy, reason and status of attempts.
fn summarize(attempts: &[Value]) -> Vec<(&str, i64, &str, &str)> {
    let summary = attempts.iter().map(|one| {
        let text = |name: &str| one[name].as_str().expect("a text");
        let day = one["day"].as_i64().expect("a number");
        (text("payment_channel"), day, text("reason"), text("status"))
    });
    summary.collect()
}

/// A borrower with two cards and a mandate, of which the last saved card is not the default.
async fn set_up(app: &TestApp) {
    create_user(app, "ada").await;
    let path = format!("/companies/{}/prices", app.company.id);
    let prices = json!({ "recollection.card": 20, "recollection.direct_debit": 10 });
    app.operator(Method::PATCH, &path, prices).await.data();
    credit(app, 1_000, "fees").await;
    saved_card(app, "ada", SUCCESS_CARD).await;
    saved_card(app, "ada", OTHER_CARD).await;
    direct_debit(app, "dd-1", "ada").await;
}

fn decline(app: &TestApp, times: u32) {
    app.simulators.faults().push(Fault::new("charge", FaultKind::Decline).times(times));
}

both! {
    async fn each_change_of_a_policy_is_a_version(app: TestApp) {
        let path = format!("/companies/{}/collection-policy", app.company.id);
        assert_eq!(app.operator(Method::GET, &path, Value::Null).await.data(), &Value::Null);
        let first = put_policy(app, json!({})).await;
        assert_eq!((&first["version"], &first["policy"]["active"]), (&json!(1), &json!(true)));
        assert_eq!(first["policy"]["hours"], json!({ "from": 8, "to": 20 }));
        assert_eq!(first["policy"]["max_fees"], Value::Null);
        let second = put_policy(app, json!({ "active": false, "max_fees": 49.5 })).await;
        assert_eq!((&second["version"], &second["policy"]["max_fees"]), (&json!(2), &json!(49.5)));
        assert_eq!(app.operator(Method::GET, &path, Value::Null).await.data(), &second);
        let versions = app.operator(Method::GET, &format!("{path}/versions"), Value::Null).await;
        assert_eq!(versions.data(), &json!([second, first]));
        let log = format!("/companies/{}/audit", app.company.id);
        let log = app.operator(Method::GET, &log, Value::Null).await.data().clone();
        let entry = &log["docs"][0];
        assert_eq!((&entry["action"], &entry["detail"]["version"]), (&json!("collection_policy.put"), &json!(2)), "{log}");
        app.run_until_idle().await;
    }

    async fn an_invalid_policy_is_rejected_with_the_wrong_field(app: TestApp) {
        let path = format!("/companies/{}/collection-policy", app.company.id);
        for (change, message) in [
            (json!({ "instruments": ["cash"] }), "the instruments field must be any of default_card, other_cards, mandates"),
            (json!({ "instruments": [] }), "the instruments field is required"),
            (json!({ "days": [] }), "the days field must be a list of 1 to 100 whole numbers from 0 to 90"),
            (json!({ "days": [3, 1] }), "the days field must be in ascending order without duplicates"),
            (json!({ "days": [1, 1] }), "the days field must be in ascending order without duplicates"),
            (json!({ "days": [91] }), "the days field must be a list of 1 to 100 whole numbers from 0 to 90"),
            (json!({ "hours": { "from": 20, "to": 8 } }), "the hours.to field must be later than from"),
            (json!({ "hours": { "from": 24, "to": 24 } }), "the hours.from field must be a whole number from 0 to 23"),
            (json!({ "utc_offset": "Lagos" }), "the utc_offset field must be an offset from UTC like +01:00, of at most 14 hours"),
            (json!({ "utc_offsets": { "Kenya": "+03:00" } }), "the utc_offsets field must be an object of at most 100 offsets by country, as a code of two capital letters"),
            (json!({ "utc_offsets": { "KE": "+3" } }), "the utc_offsets.KE field must be an offset from UTC like +01:00, of at most 14 hours"),
            (json!({ "max_attempts": 0 }), "the max_attempts field must be a whole number from 1 to 50"),
            (json!({ "max_fees": -1 }), "the max_fees field must be 0 or more"),
        ] {
            let refused = app.operator(Method::PUT, &path, merged(policy_body(), change.clone())).await;
            assert_eq!(refused.failure(), (400, message), "{change}");
        }
        assert_eq!(app.operator(Method::GET, &path, Value::Null).await.data(), &Value::Null);
        let elsewhere = app.operator(Method::PUT, "/companies/none/collection-policy", policy_body()).await;
        assert_eq!(elsewhere.failure(), (404, "company not found"));
    }

    async fn instruments_are_charged_in_order_until_one_succeeds(app: TestApp) {
        set_up(app).await;
        put_policy(app, json!({})).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        decline(app, 2);
        // 8:00 in a country at +01:00.
        app.advance(TWO_DAYS + 7 * HOUR - 60).await;
        assert_eq!(attempts(app, "loan-1").await.len(), 0);
        app.advance(120).await;
        let made = attempts(app, "loan-1").await;
        assert_eq!(summarize(&made), [
            ("card", 0, "first", "failed"),
            ("card", 0, "next_instrument", "failed"),
            ("direct_debit", 0, "next_instrument", "success"),
        ]);
        assert_eq!((&made[0]["policy_version"], &made[0]["attempt"], &made[2]["attempt"]), (&json!(1), &json!(1), &json!(3)));
        assert_eq!(get_loan(app, "loan-1").await["paid"], true);
        // Only the successful attempt costs a fee, and Paystack keeps 1.5 %.
        assert_eq!(balance(app).await, json!(1_000.0 - 10.0 + 98.5));
        app.advance(10 * DAY).await;
        assert_eq!(attempts(app, "loan-1").await.len(), 3);
    }

    async fn later_days_are_other_chances_within_the_maximum(app: TestApp) {
        set_up(app).await;
        put_policy(app, json!({ "instruments": ["default_card"], "days": [0, 1, 3, 7], "max_attempts": 3 })).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        decline(app, 5);
        app.advance(TWO_DAYS + 20 * DAY).await;
        let made = attempts(app, "loan-1").await;
        assert_eq!(summarize(&made), [
            ("card", 0, "first", "failed"),
            ("card", 1, "retry", "failed"),
            ("card", 3, "retry", "failed"),
        ]);
        assert_eq!((balance(app).await, &get_loan(app, "loan-1").await["amount_paid"]), (json!(1_000), &json!(0)));
    }

    async fn an_attempt_without_an_outcome_is_not_followed_by_another(app: TestApp) {
        set_up(app).await;
        put_policy(app, json!({ "instruments": ["mandates", "default_card"] })).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Pending));
        app.advance(TWO_DAYS + 5 * DAY).await;
        let made = attempts(app, "loan-1").await;
        assert_eq!(summarize(&made), [("direct_debit", 0, "first", "pending")]);
        let reference = format!("rec-{}", made[0]["recollection"].as_str().expect("an id"));
        assert!(app.simulators.paystack().resolve(&reference, Outcome::Failed));
        // The debit has failed, and one day of the policy is left.
        app.advance(3 * DAY).await;
        let made = attempts(app, "loan-1").await;
        assert_eq!(summarize(&made), [("direct_debit", 0, "first", "failed"), ("direct_debit", 7, "retry", "success")]);
        app.run_until_idle().await;
    }

    async fn an_instrument_that_was_declined_for_good_is_not_charged_again(app: TestApp) {
        set_up(app).await;
        put_policy(app, json!({ "instruments": ["default_card", "mandates"], "days": [0, 1, 2] })).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        for reason in [DeclineReason::LostOrStolen, DeclineReason::InsufficientFunds] {
            app.simulators.faults().push(Fault::decline(reason));
        }
        app.advance(TWO_DAYS + 4 * DAY).await;
        let made = attempts(app, "loan-1").await;
        assert_eq!(summarize(&made), [
            ("card", 0, "first", "failed"),
            ("direct_debit", 0, "next_instrument", "failed"),
            ("direct_debit", 1, "retry", "success"),
        ]);
        let declines: Vec<&Value> = made.iter().map(|one| &one["decline"]).collect();
        assert_eq!(declines, [&json!("lost_or_stolen"), &json!("insufficient_funds"), &Value::Null]);
        let path = format!("/recollection/fetch/{}", made[0]["recollection"].as_str().expect("an id"));
        let first = app.get(&path).await.data().clone();
        assert_eq!((&first["decline"], &first["message"]), (&json!("lost_or_stolen"), &json!("Lost Card, Pick-Up")));
    }

    async fn a_partial_debit_repays_what_was_taken_and_the_rest_stays_due(app: TestApp) {
        set_up(app).await;
        let change = json!({ "instruments": ["default_card", "mandates"], "days": [0, 1], "min_partial_debit": 30 });
        put_policy(app, change.clone()).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        // The card has 50, then the bank account 25 of the other 50, which is too little.
        app.simulators.faults().push(Fault::new("charge", FaultKind::Partial).times(2));
        app.advance(TWO_DAYS + 12 * HOUR).await;
        let made = attempts(app, "loan-1").await;
        assert_eq!(summarize(&made), [("card", 0, "first", "success"), ("direct_debit", 0, "next_instrument", "failed")]);
        assert_eq!((&made[0]["amount"], &made[1]["amount"]), (&json!(50), &json!(50)));
        let loan = get_loan(app, "loan-1").await;
        assert_eq!((&loan["amount_paid"], &loan["schedule"][0]["amount_remaining"]), (&json!(50), &json!(50)));
        assert_eq!(balance(app).await, json!(1_000.0 - 20.0 + 49.25));
        let path = format!("/recollection/fetch/{}", made[0]["recollection"].as_str().expect("an id"));
        assert_eq!(app.get(&path).await.data()["amount"], 50);
        app.advance(DAY).await;
        let made = attempts(app, "loan-1").await;
        assert_eq!((summarize(&made)[2], &made[2]["amount"]), (("card", 1, "retry", "success"), &json!(50)));
        assert_eq!(get_loan(app, "loan-1").await["paid"], true);
        let path = format!("/companies/{}/collection-policy/simulate", app.company.id);
        let body = json!({ "policy": merged(policy_body(), change), "days": 30 });
        let same = app.operator(Method::POST, &path, body).await.data().clone();
        let of_naira = &same["results"][0];
        let made = json!({ "collected": 1, "attempts": 3, "recovered": 100, "fees": 40 });
        assert_eq!((&of_naira["actual"], &of_naira["simulated"]), (&made, &made), "{same}");
        assert_eq!(same["rates"][0]["partial"], 1);
        // Another verification changes nothing.
        app.advance(40 * DAY).await;
        assert_eq!(attempts(app, "loan-1").await.len(), 3);
    }

    async fn a_policy_collects_what_was_not_collected_before_it(app: TestApp) {
        set_up(app).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        decline(app, 1);
        app.advance(TWO_DAYS + HOUR).await;
        assert_eq!(attempts(app, "loan-1").await.len(), 0);
        put_policy(app, json!({ "instruments": ["default_card", "mandates"] })).await;
        // The default card was charged on this day already.
        app.advance(7 * HOUR).await;
        assert_eq!(summarize(&attempts(app, "loan-1").await), [("direct_debit", 0, "next_instrument", "success")]);
        put_policy(app, json!({ "active": false })).await;
        create_loan(app, "loan-2", "ada", &[(4, 50.0)]).await;
        app.advance(3 * DAY).await;
        assert_eq!(get_loan(app, "loan-2").await["paid"], true);
        assert_eq!(attempts(app, "loan-2").await.len(), 0);
    }

    async fn a_repayment_before_the_charge_leaves_nothing_to_debit(app: TestApp) {
        set_up(app).await;
        put_policy(app, json!({ "days": [0, 1] })).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0), (30, 100.0)]).await;
        decline(app, 3);
        app.advance(TWO_DAYS + 10 * HOUR).await;
        assert_eq!(attempts(app, "loan-1").await.len(), 3);
        create_recollection(app, json!({ "loan": "loan-1", "with_provider": false, "amount": 100 })).await.data();
        app.advance(5 * DAY).await;
        assert_eq!(attempts(app, "loan-1").await.len(), 3);
        assert_eq!(get_loan(app, "loan-1").await["amount_paid"], 100);
    }

    async fn an_obstacle_is_reported_once_a_day(app: TestApp) {
        set_up(app).await;
        put_policy(app, json!({ "days": [0, 1] })).await;
        let off = json!({ "active": false });
        app.operator(Method::PUT, "/providers/provider_a", off).await.data();
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        app.advance(TWO_DAYS + 8 * HOUR).await;
        app.operator(Method::PUT, "/providers/provider_a", json!({ "active": true })).await.data();
        app.advance(120).await;
        let events = app.operator(Method::GET, "/events?kind=loan.not_collected", Value::Null).await.data().clone();
        assert_eq!(events["events"].as_array().map(Vec::len), Some(1), "{events}");
        assert_eq!(events["events"][0]["data"]["reason"], "provider_a has been deactivated");
        app.advance(DAY).await;
        assert_eq!(summarize(&attempts(app, "loan-1").await), [("card", 1, "first", "success")]);
    }

    async fn events_about_installments_are_sent_once_if_the_policy_asks_for_them(app: TestApp) {
        create_user(app, "ada").await;
        let events = json!({ "upcoming_days": 2, "due": true, "overdue_days": 1 });
        put_policy(app, json!({ "active": false, "events": events })).await;
        create_loan(app, "loan-1", "ada", &[(5, 100.0), (40, 50.0)]).await;
        app.advance(2 * DAY).await;
        assert_eq!(app.events(), [""; 0]);
        app.advance(DAY).await;
        assert_eq!(app.events(), ["installment.upcoming"]);
        put_policy(app, json!({ "events": events })).await;
        create_loan(app, "loan-1", "ada", &[(5, 100.0), (40, 50.0)]).await;
        app.advance(DAY).await;
        assert_eq!(app.events().len(), 1);
        create_recollection(app, json!({ "loan": "loan-1", "with_provider": false, "amount": 40 })).await.data();
        app.advance(2 * DAY).await;
        let sent = app.events();
        let sent: Vec<&String> = sent.iter().filter(|kind| kind.starts_with("installment.")).collect();
        assert_eq!(sent, ["installment.upcoming", "installment.due", "installment.overdue"]);
        let path = format!("/companies/{}/events", app.company.id);
        let listed = app.operator(Method::GET, &path, Value::Null).await.data().clone();
        let overdue = listed["docs"].as_array().expect("a list").iter().find(|one| one["event"] == "installment.overdue");
        let overdue = overdue.expect("an event");
        assert_eq!((&overdue["subject"], &overdue["body"]["data"]["amount_remaining"]), (&json!("loan-1"), &json!(60)), "{overdue}");
        app.advance(10 * DAY).await;
        assert_eq!(app.events().len(), 4);
        // The rest is paid before it is due, and a policy may ask for nothing.
        create_recollection(app, json!({ "loan": "loan-1", "with_provider": false })).await.data();
        app.advance(60 * DAY).await;
        assert_eq!(app.events().len(), 5);
        put_policy(app, json!({})).await;
        create_loan(app, "loan-2", "ada", &[(110, 100.0)]).await;
        app.advance(60 * DAY).await;
        assert_eq!(app.events().len(), 5);
    }

    async fn a_simulation_replays_outcomes_and_estimates_the_rest(app: TestApp) {
        set_up(app).await;
        put_policy(app, json!({ "instruments": ["default_card"], "days": [0, 1], "max_attempts": 2 })).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        create_loan(app, "loan-2", "ada", &[(4, 50.0)]).await;
        // The first loan fails twice, the second succeeds.
        decline(app, 1);
        app.advance(TWO_DAYS + 12 * HOUR).await;
        decline(app, 1);
        app.advance(3 * DAY).await;
        let path = format!("/companies/{}/collection-policy/simulate", app.company.id);
        let simulate = async |change| {
            let body = json!({ "policy": merged(policy_body(), change), "days": 30 });
            app.operator(Method::POST, &path, body).await.data().clone()
        };
        // A simulation of the same policy has the actual results.
        let made = json!({ "collected": 1, "attempts": 3, "recovered": 50, "fees": 20 });
        let same = simulate(json!({ "instruments": ["default_card"], "days": [0, 1], "max_attempts": 2 })).await;
        let of_naira = &same["results"][0];
        assert_eq!((&of_naira["currency"], &of_naira["installments"], &of_naira["amount"]), (&json!("NGN"), &json!(2), &json!(150)));
        assert_eq!((&of_naira["actual"], &of_naira["simulated"], &of_naira["estimated_attempts"]), (&made, &made, &json!(0)), "{same}");
        assert_eq!(same["rates"][0], json!({ "payment_channel": "card", "retry": false, "attempts": 2, "succeeded": 1, "partial": 0 }));
        // The other card has not been charged: a first charge of a card succeeds in one of two.
        let other = simulate(json!({ "days": [0], "instruments": ["default_card", "other_cards"] })).await;
        let of_naira = &other["results"][0];
        assert_eq!(of_naira["simulated"], json!({ "collected": 2, "attempts": 3, "recovered": 100, "fees": 30 }), "{other}");
        assert_eq!((&of_naira["estimated_attempts"], &other["truncated"]), (&json!(1), &json!(false)));
        let refused = app.operator(Method::POST, &path, json!({ "policy": policy_body(), "days": 91 })).await;
        assert_eq!(refused.failure(), (400, "the days field must be a whole number from 1 to 90"));
        let refused = app.operator(Method::POST, &path, json!({ "policy": merged(policy_body(), json!({ "max_attempts": 0 })) })).await;
        assert_eq!(refused.failure(), (400, "the policy.max_attempts field must be a whole number from 1 to 50"));
    }

    async fn two_hosts_make_one_attempt_at_a_time(app: TestApp) {
        const LOANS: usize = 10;
        set_up(app).await;
        put_policy(app, json!({})).await;
        for n in 0..LOANS {
            create_loan(app, &format!("loan-{n}"), "ada", &[(2, 100.0), (2, 50.0)]).await;
        }
        app.run_until_idle().await;
        let other = Host::start_with(app, MASTER_KEY, app.app.clock.clone(), &[]).await;
        app.app.clock.advance_to(NOW.plus_seconds(TWO_DAYS + 8 * HOUR));
        let ours = async { jobs::run_due(&app.app).await.expect("jobs that run") };
        tokio::join!(ours, other.run_due());
        app.run_until_idle().await;
        for n in 0..LOANS {
            let loan = format!("loan-{n}");
            assert_eq!(get_loan(app, &loan).await["amount_paid"], 150, "{loan}");
            let made = attempts(app, &loan).await;
            assert!(made.len() == 2 && made.iter().all(|one| one["status"] == "success"), "{made:?}");
        }
        let requests = app.simulators.paystack().requests().into_iter();
        let charges = requests.filter(|(_, path)| path == "/transaction/charge_authorization");
        assert_eq!(charges.count(), 2 * LOANS);
    }
}
