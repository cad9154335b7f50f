//! Totals, statements of wallets, and what needs attention, compared with payments and the ledger.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    app::TestApp,
    codes::credit,
    console::Browser,
    lending::{SUCCESS_CARD, create_loan, create_recollection, create_user, saved_card},
};

async fn get(app: &TestApp, path: &str) -> Value {
    app.operator(Method::GET, path, Value::Null).await.data().clone()
}

fn own(app: &TestApp, path: &str) -> String {
    format!("/companies/{}{path}", app.company.id)
}

/// Returns these fields of each row.
fn fields<const N: usize>(rows: &Value, names: [&str; N]) -> Vec<[Value; N]> {
    let rows = rows.as_array().expect("a list");
    rows.iter().map(|row| names.map(|name| row[name].clone())).collect()
}

/// Creates payments of each outcome and a repayment. One of the paid ones is refunded.
async fn create_payments(app: &TestApp) {
    let refunded = app.paid_payment("order-1").await;
    app.paid_payment("order-2").await;
    let failed = app.initialize("order-3").await;
    app.complete(&failed, "failed").await;
    app.post("/payment/verify/order-3", json!({})).await.data();
    app.initialize("order-4").await;
    let path = own(app, &format!("/payments/{}/refund", refunded["id"].as_str().expect("an id")));
    app.operator(Method::POST, &path, json!({})).await.data();
    app.run_until_idle().await;
}

both! {
    async fn totals_are_those_of_the_payments(app: TestApp) {
        create_payments(app).await;
        let totals = get(app, "/totals").await;
        let day = app.app.clock.now().to_datetime();
        assert_eq!(totals["last_day"], json!(day.format("%d-%m-%Y").to_string()));
        let fees: f64 = [app.fetch("order-1").await, app.fetch("order-2").await]
            .iter().map(|payment| payment["fees"].as_f64().expect("fees")).sum();
        assert_eq!(
            fields(&totals["taken"], ["day", "provider", "kind", "currency", "number", "amount", "refunded", "reversed"]),
            [[json!(day.format("%Y-%m-%dT00:00:00.000Z").to_string()), Value::Null, json!("payment"), json!("NGN"),
              json!(2), json!(5001), json!(2500.5), json!(0)]],
        );
        assert_eq!(totals["taken"][0]["fees"].as_f64(), Some(fees));
        let counts = ["pending", "failed", "succeeded", "refunded"];
        assert_eq!(fields(&totals["payments"], counts), [[1, 1, 2, 1].map(|n| json!(n))]);

        let by_provider = get(app, &own(app, "/totals?by=provider")).await;
        assert_eq!(fields(&by_provider["taken"], ["day", "provider", "company"]), [[Value::Null, json!("provider_a"), Value::Null]]);
        let rows = fields(&by_provider["payments"], ["channel", "succeeded", "failed", "pending"]);
        // Of a failed payment, only operators see the channel.
        assert_eq!(rows, [[json!(""), json!(0), json!(0), json!(1)], [json!("card"), json!(2), json!(1), json!(0)]]);
        assert_eq!(app.fetch("order-3").await["payment_channel"], "");
        assert_eq!(app.get("/payment/list?payment_channel=card").await.data()["total"], 2);
        let by_company = get(app, "/totals?by=company").await;
        assert_eq!(by_company["taken"][0]["company"], json!(app.company.id));
        let other = app.new_company("Beta Lending").await;
        let others = get(app, &format!("/companies/{}/totals", other.id)).await;
        assert_eq!((&others["taken"], &others["payments"]), (&json!([]), &json!([])));
        let yesterday = get(app, "/totals?days=01-01-2020").await;
        assert_eq!((&yesterday["taken"], &yesterday["payments"]), (&json!([]), &json!([])));
        for (query, message) in [
            ("days=01-01-2026/03-04-2026", "the days field must be at most 92 days"),
            ("days=2026-01-01", "the days field must be DD-MM-YYYY or DD-MM-YYYY/DD-MM-YYYY"),
            ("by=week", "the by field must be one of day, provider, company"),
        ] {
            let refused = app.operator(Method::GET, &format!("/totals?{query}"), Value::Null).await;
            assert_eq!(refused.failure(), (400, message));
        }
    }

    async fn repayments_are_totals_of_their_own(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(30, 100.0)]).await;
        let checkout = json!({
            "loan": "loan-1", "with_provider": true, "amount": 60, "payment_channel": "checkout", "reference": "repaid-1",
            "checkout": { "success_url": "https://lender.example/done" },
        });
        let begun = create_recollection(app, checkout).await.data().clone();
        crate::lending::complete_page(app, &begun, "success", crate::lending::SUCCESS_CARD).await;
        app.run_until_idle().await;
        let totals = get(app, "/totals?by=provider").await;
        assert_eq!(
            fields(&totals["taken"], ["kind", "number", "amount"]),
            [[json!("recollection"), json!(1), json!(60)]],
        );
        let (fees, balance) = (&totals["taken"][0]["fees"], &app.wallet().await["balance"]);
        let sum = fees.as_f64().expect("fees") + balance.as_f64().expect("a balance");
        assert!(fees != &json!(0) && (sum - 60.0).abs() < 0.001, "{fees} {balance}");
    }

    async fn a_statement_equals_the_ledger_and_months_follow_each_other(app: TestApp) {
        credit(app, 100, "first").await;
        create_payments(app).await;
        let month = |app: &TestApp| app.app.clock.now().to_datetime().format("%Y-%m").to_string();
        let first = month(app);
        let now = get(app, &own(app, "/statement")).await;
        assert_eq!(now["month"], json!(first));
        assert_eq!((&now["opening_balance"], &now["closing_balance"]), (&json!(0), &app.wallet().await["balance"]));
        app.advance(31 * 86_400).await;
        app.run_until_idle().await;
        credit(app, 7, "second").await;
        let mut balance = 0.0;
        for month in [&*first, &month(app)] {
            let statement = get(app, &own(app, &format!("/statement?month={month}"))).await;
            assert_eq!(statement["opening_balance"].as_f64(), Some(balance), "{statement}");
            let lines = statement["lines"].as_array().expect("lines");
            let amounts = lines.iter().map(|line| (line["amount"].as_f64().expect("an amount") * 100.0).round());
            balance = (balance * 100.0 + amounts.sum::<f64>()) / 100.0;
            assert_eq!(statement["closing_balance"].as_f64(), Some(balance), "{statement}");
        }
        assert_eq!(app.wallet().await["balance"].as_f64(), Some(balance));
        let entries = get(app, &own(app, "/wallet/entries?account=wallet&limit=100")).await;
        let entries = entries["docs"].as_array().expect("entries").len();
        let numbers = async |month: &str| {
            let statement = get(app, &own(app, &format!("/statement?month={month}"))).await;
            let numbers = statement["lines"].as_array().expect("lines").iter().map(|line| line["number"].as_u64());
            numbers.map(|number| number.expect("a number") as usize).sum::<usize>()
        };
        assert_eq!(numbers(&first).await + numbers(&month(app)).await, entries);
        let empty = get(app, &own(app, "/statement?month=2020-01&currency=USD")).await;
        assert_eq!((&empty["closing_balance"], &empty["lines"]), (&json!(0), &json!([])));
        let refused = app.operator(Method::GET, &own(app, "/statement?month=2026-13"), Value::Null).await;
        assert_eq!(refused.failure(), (400, "the month field must be a month like 2026-11"));
    }

    async fn the_overview_counts_pending_payments_by_age_and_lists_low_wallets(app: TestApp) {
        app.initialize("order-1").await;
        app.advance(2 * 3_600).await;
        app.initialize("order-2").await;
        let overview = get(app, "/overview").await;
        assert_eq!(
            fields(&overview["pending_payments"], ["from_hours", "before_hours", "number"]),
            [[json!(0), json!(1), json!(1)], [json!(1), json!(6), json!(1)], [json!(6), json!(24), json!(0)], [json!(24), Value::Null, json!(0)]],
        );
        let low = json!({ "low_balance": 50 });
        app.operator(Method::PATCH, &own(app, ""), low).await.data();
        credit(app, 49.99, "first").await;
        let wallets = async || get(app, "/overview").await["low_wallets"].clone();
        assert_eq!(
            fields(&wallets().await, ["company", "company_name", "balance", "threshold", "currency"]),
            [[json!(app.company.id), json!("Acme Lending"), json!(49.99), json!(50), json!("NGN")]],
        );
        credit(app, 0.01, "second").await;
        assert_eq!(wallets().await, json!([]));
    }

    async fn the_overview_shows_collections_of_today_and_queues(app: TestApp) {
        create_user(app, "ada").await;
        credit(app, 100.0, "fees").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        create_user(app, "ben").await;
        create_loan(app, "loan-2", "ben", &[(2, 50.0)]).await;
        assert_eq!(get(app, "/overview").await["collections"], json!([]));
        app.advance(2 * 86_400).await;
        let columns = ["currency", "due", "recovered", "pending", "not_charged", "charged_amount", "recovered_amount"];
        let overview = get(app, "/overview").await;
        let expected = [json!("NGN"), json!(2), json!(1), json!(0), json!(1), json!(100), json!(100)];
        assert_eq!(fields(&overview["collections"], columns), [expected]);
        let idle = [[json!("jobs"), json!(0), Value::Null], [json!("deliveries"), json!(0), Value::Null]];
        assert_eq!(fields(&overview["queues"], ["name", "number", "oldest"]), idle);
        app.post("/payment/initialize", app.order("order-1")).await.data();
        let browser = Browser::signed_in(app, "ada", "finance-read").await;
        browser.get("/console/today").await.shows(&["Today's collections", "100.00", "Queues", "deliveries"]);
        app.advance(86_400).await;
        assert_eq!(get(app, "/overview").await["collections"], json!([]));
    }

    async fn finance_sees_totals_statements_and_today(app: TestApp) {
        create_payments(app).await;
        let browser = Browser::signed_in(app, "ada", "finance-read").await;
        let today = browser.get("/console/today").await;
        today.shows(&["5\u{202F}001.00", "provider_a", "<svg", "2 succeeded, 1 pending, 1 failed", "0 to 1 h", "Low wallet balances", "66 %", "unknown"]);
        browser.get("/console/totals?by=company").await.shows(&[&app.company.id, "5\u{202F}001.00"]);
        let file = browser.get("/console/totals?format=csv").await;
        assert!(file.html.starts_with("Day,Provider,Company,Kind,Count,Taken,Taken currency,"), "{}", file.html);
        let company = format!("/console{}", own(app, ""));
        browser.get(&format!("{company}/totals")).await.shows(&["5\u{202F}001.00"]);
        let statement = browser.get(&format!("{company}/statement")).await;
        statement.shows(&["Opening balance", "payment.success", "Download as CSV"]);
        let file = browser.get(&format!("{company}/statement?format=csv")).await;
        assert!(file.html.contains("payment.success,2,"), "{}", file.html);
        let support = Browser::signed_in(app, "eve", "support-read").await;
        let today = support.get("/console/today").await;
        today.shows(&["Open exceptions"]);
        assert!(!today.html.contains("Money today"), "{}", today.html);
    }
}
