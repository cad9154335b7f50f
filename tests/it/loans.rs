//! Loans that internal consumers put, and put again.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    codes::merged,
    lending::{
        create_loan, create_recollection, create_user, date_in_days, direct_debit_body, get_loan,
        put_loan,
    },
};

fn order(change: Value) -> Value {
    let order = json!({
        "user_id": "ada", "amount": 300, "currency": "NGN", "disbursed": true,
        "schedule": [{ "due_date": "2026-12-01", "amount": 100 }, { "due_date": "2027-01-01T10:30:00+01:00", "amount": 200 }],
    });
    merged(order, change)
}

both! {
    async fn a_loan_is_returned_as_it_was_put(app: TestApp) {
        let ada = create_user(app, "ada").await;
        let put = put_loan(app, "loan-1", order(json!({}))).await;
        assert_eq!(put, get_loan(app, "loan-1").await);
        for (field, value) in [
            ("id", json!("loan-1")),
            ("user", ada["id"].clone()),
            ("user_id", json!("ada")),
            ("amount", json!(300)),
            ("amount_paid", json!(0)),
            ("amount_remaining_to_pay", json!(300)),
            ("last_pay_date", Value::Null),
            ("next_pay_date", json!("2026-12-01T00:00:00.000Z")),
            ("paid", json!(false)),
            ("disbursed", json!(true)),
        ] {
            assert_eq!(put[field], value, "{field}");
        }
        assert_eq!(put["schedule"][1], json!({ "due_date": "2027-01-01T09:30:00.000Z", "amount": 200, "amount_remaining": 200 }));
        let other = app.new_company("Beta Lending").await;
        let theirs = format!("/companies/{}/loans/loan-1", other.id);
        assert_eq!(app.operator(Method::GET, &theirs, Value::Null).await.failure(), (404, "loan not found"));
        let debit = direct_debit_body("ada", "AUTH_1");
        let path = format!("/companies/{}/direct-debits/dd-1", app.company.id);
        let saved = app.operator(Method::PUT, &path, debit).await.data().clone();
        assert_eq!(app.operator(Method::GET, &path, Value::Null).await.data(), &saved);
        assert_eq!((&saved["active"], &saved["default"], saved.get("token")), (&json!(true), &json!(false), None));
        let theirs = format!("/companies/{}/direct-debits/dd-1", other.id);
        assert_eq!(app.operator(Method::GET, &theirs, Value::Null).await.failure(), (404, "direct debit not found"));
        let path = format!("/companies/{}/loans/none", app.company.id);
        assert_eq!(app.operator(Method::GET, &path, Value::Null).await.failure(), (404, "loan not found"));
    }

    async fn an_invalid_loan_is_rejected_with_the_wrong_field(app: TestApp) {
        create_user(app, "ada").await;
        let path = format!("/companies/{}/loans/loan-1", app.company.id);
        for (change, status, message) in [
            (json!({ "user_id": "nobody" }), 404, "user not found"),
            (json!({ "amount": 299.99 }), 400, "the amount field must be the sum of the schedule"),
            (json!({ "amount": 0 }), 400, "the amount field must be greater than 0"),
            (json!({ "currency": "EUR" }), 400, "the currency field must be one of NGN, USD"),
            (json!({ "disbursed": null }), 400, "the disbursed field is required"),
            (json!({ "schedule": [] }), 400, "the schedule field is required"),
            (json!({ "schedule": [{ "due_date": "2026-02-30", "amount": 300 }] }), 400, "row 1: the due_date field must be a day (YYYY-MM-DD) or an RFC 3339 timestamp"),
            (json!({ "schedule": [{ "due_date": "2026-12-01" }] }), 400, "row 1: the amount field is required"),
        ] {
            let refused = app.operator(Method::PUT, &path, order(change.clone())).await;
            assert_eq!(refused.failure(), (status, message), "{change}");
        }
        assert_eq!(app.operator(Method::GET, &path, Value::Null).await.failure().0, 404);
        let elsewhere = app.operator(Method::PUT, "/companies/none/loans/loan-1", order(json!({}))).await;
        assert_eq!(elsewhere.failure(), (404, "company not found"));
    }

    async fn resending_a_loan_keeps_its_repayments(app: TestApp) {
        create_user(app, "ada").await;
        create_user(app, "bola").await;
        create_loan(app, "loan-1", "ada", &[(10, 100.0), (20, 100.0)]).await;
        create_recollection(app, json!({ "loan": "loan-1", "with_provider": false, "amount": 150 })).await.data();
        app.run_until_idle().await;
        let again = create_loan(app, "loan-1", "ada", &[(10, 100.0), (20, 100.0)]).await;
        assert_eq!((&again["amount_paid"], &again["schedule"][1]["amount_remaining"]), (&json!(150), &json!(50)));
        // The repaid amount is allocated to a new schedule by the same rule.
        let moved = create_loan(app, "loan-1", "ada", &[(40, 60.0), (15, 120.0), (50, 60.0)]).await;
        let remaining: Vec<&Value> = moved["schedule"].as_array().unwrap().iter().map(|entry| &entry["amount_remaining"]).collect();
        assert_eq!(remaining, [&json!(30), &json!(0), &json!(60)]);
        assert_eq!((&moved["amount_remaining_to_pay"], &moved["next_pay_date"]), (&json!(90), &json!(format!("{}T00:00:00.000Z", date_in_days(40)))));
        assert_eq!(moved["created_at"], again["created_at"]);
        let path = format!("/companies/{}/loans/loan-1", app.company.id);
        for (change, message) in [
            (json!({ "user_id": "bola" }), "the user_id field must be unchanged"),
            (json!({ "currency": "USD" }), "the currency field must be unchanged"),
            (json!({ "amount": 149, "schedule": [{ "due_date": "2027-01-01", "amount": 149 }] }), "the amount field must be at least the amount already repaid"),
        ] {
            let refused = app.operator(Method::PUT, &path, order(change)).await;
            assert_eq!(refused.failure(), (400, message));
        }
        assert_eq!(get_loan(app, "loan-1").await, moved);
        let exact = put_loan(app, "loan-1", order(json!({ "amount": 150, "schedule": [{ "due_date": "2027-01-01", "amount": 150 }] }))).await;
        assert_eq!((&exact["paid"], &exact["next_pay_date"]), (&json!(true), &Value::Null));
    }
}
