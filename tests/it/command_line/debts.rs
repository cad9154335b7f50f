//! Loans, direct debits, and refunds of card verification charges.

use serde_json::json;

use super::{field, file, input::run_with_stdin, json_of, rows, run};
use crate::lending::{
    SUCCESS_CARD, create_loan, create_recollection, create_user, date_in_days, direct_debit_body,
    fail_card_refund, get_loan, policy_body, saved_card,
};

both! {
    async fn a_loan_is_saved_and_shown_and_its_repayments_are_listed(app: TestApp) {
        let id = &*app.company.id;
        create_user(app, "ada").await;
        let loan = json!({
            "user_id": "ada", "amount": 300.5, "currency": "NGN", "disbursed": true,
            "schedule": [{ "due_date": date_in_days(10), "amount": 100.5 }, { "due_date": date_in_days(40), "amount": 200 }],
        });
        let loan_file = file(app, "loan.json", loan.to_string().as_bytes());
        let put = run(app, &["loan", "put", id, "loan-1", "--file", &loan_file]).await;
        assert_eq!((field(put.success_output(), "loan"), field(&put.out, "amount")), ("loan-1", "300.50 NGN"));
        create_recollection(app, json!({ "loan": "loan-1", "with_provider": false, "amount": 150 })).await.data();
        let shown = run(app, &["loan", "show", id, "loan-1"]).await;
        for (name, value) in [("user", "ada"), ("repaid", "150.00 NGN"), ("remaining", "150.50 NGN"), ("paid", "no")] {
            assert_eq!(field(shown.success_output(), name), value);
        }
        let (_, schedule) = shown.out.split_once("\n\n").expect("a schedule");
        let schedule: Vec<String> = rows(schedule).into_iter().map(|row| row[1..].join(" ")).collect();
        assert_eq!(schedule, ["100.50 NGN 0.00 NGN", "200.00 NGN 150.50 NGN"]);
        let again = run(app, &["loan", "put", id, "loan-1", "--file", &loan_file, "--json"]).await.json();
        assert_eq!(again, get_loan(app, "loan-1").await, "resending a loan keeps its repayments");
        let unknown = run(app, &["loan", "show", id, "loan-2"]).await;
        assert_eq!(unknown.failure(), (1, "tollhouse: loan not found"));

        app.advance(1).await;
        create_recollection(app, json!({ "loan": "loan-1", "with_provider": false })).await.data();
        app.advance(120).await;
        let read = run(app, &["loan", "transactions", "--company", id]).await;
        let amounts: Vec<String> = rows(read.success_output())[..2].iter().map(|row| row[4..].join(" ")).collect();
        assert_eq!(amounts, ["cash 150.00 NGN 150.00 NGN", "cash 150.50 NGN 150.50 NGN"]);
        let first = json_of(app, &["loan", "credit-events", "--limit", "1"]).await;
        assert_eq!(first["entries"][0]["data"]["paid"], false);
        let next = first["next"].as_str().expect("a cursor");
        let rest = run(app, &["loan", "credit-events", "--after", next]).await;
        assert_eq!(rows(rest.success_output())[0][1..], [id, "loan-1", "ada", "150.50", "NGN", "0", "yes"]);
        let next = rest.out.trim_end().rsplit(' ').next().expect("a cursor");
        assert!(run(app, &["loan", "credit-events", "--after", next]).await.success_output().starts_with("none\n"));
    }

    async fn a_direct_debit_is_saved_and_its_token_is_never_printed(app: TestApp) {
        let id = &*app.company.id;
        create_user(app, "ada").await;
        let token = "AUTH_a_very_secret_token";
        let put = ["direct-debit", "put", id, "dd-1", "--file", "-"];
        let saved = run_with_stdin(app, &put, &direct_debit_body("ada", token).to_string()).await;
        assert_eq!((field(saved.success_output(), "direct debit"), field(&saved.out, "active")), ("dd-1", "yes"));
        let shown = run(app, &["direct-debit", "show", id, "dd-1"]).await;
        assert_eq!(shown.success_output(), saved.out);
        let broken = run_with_stdin(app, &put, &format!("{{\"token\": \"{token}")).await;
        assert!(broken.failure().0 == 2 && broken.err.starts_with("tollhouse: standard input: it must be a JSON object"), "{}", broken.err);
        let refused = run_with_stdin(app, &put, &json!({ "user_id": "ada", "token": token }).to_string()).await;
        assert_eq!(refused.failure().0, 1);
        for output in [saved, shown, broken, refused] {
            assert!(!output.out.contains(token) && !output.err.contains(token));
        }
        let missing = run(app, &["loan", "put", id, "loan-1", "--file", "/no/such.json"]).await;
        assert!(missing.failure().0 == 2 && missing.err.starts_with("tollhouse: /no/such.json: "), "{}", missing.err);
    }

    async fn a_collection_policy_is_set_shown_and_simulated(app: TestApp) {
        let id = &*app.company.id;
        let none = run(app, &["collections", "show", id]).await;
        assert_eq!(none.success_output().trim(), "no policy: each installment is collected once");
        let policy = file(app, "policy.json", policy_body().to_string().as_bytes());
        let set = run(app, &["collections", "set", id, "--file", &policy]).await;
        assert_eq!((field(set.success_output(), "version"), field(&set.out, "UTC offset")), ("1", "+01:00"));
        let shown = run(app, &["collections", "show", id]).await;
        assert_eq!(shown.success_output(), set.out);
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        app.advance(5 * 86_400).await;
        let simulated = run(app, &["collections", "simulate", id, "--policy", &policy]).await;
        let text = simulated.success_output();
        let results: Vec<String> = rows(text)[..2].iter().map(|row| row.join(" ")).collect();
        assert_eq!(results, [
            "actual 1 100.00 NGN 0 0 0.00 NGN 0.00 NGN",
            "with the policy 1 100.00 NGN 0 0 0.00 NGN 0.00 NGN",
        ]);
        assert!(text.contains("Of 0 attempts with the policy, 0 match a real attempt"), "{text}");
        let refused = run(app, &["collections", "simulate", id, "--policy", &policy, "--days", "91"]).await;
        assert_eq!(refused.failure(), (1, "tollhouse: the days field must be a whole number from 1 to 90"));
    }

    async fn a_failed_refund_is_listed_and_retried(app: TestApp) {
        let id = &*app.company.id;
        create_user(app, "ada").await;
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        let refund = fail_card_refund(app, id, &card["id"]).await;
        let list = ["card-refund", "list", "--status", "failed"];
        let failed = run(app, &list).await;
        let expected = [&*refund, id, card["id"].as_str().unwrap(), "failed", "100.00", "NGN", "provider_a"];
        assert_eq!(rows(failed.success_output())[0][..7], expected);
        assert_eq!(run(app, &["card-refund", "list", "--status", "done"]).await.success_output(), "none\n");
        assert_eq!(run(app, &["card-refund", "list", "--status", "lost"]).await.failure().0, 2);
        let retry = ["card-refund", "retry", id, &refund];
        let unconfirmed = run(app, &retry).await;
        assert!(unconfirmed.failure().0 == 2 && unconfirmed.err.contains("--yes"), "{}", unconfirmed.err);
        let retry = [&retry[..], &["--yes"]].concat();
        let retried = run(app, &retry).await;
        assert_eq!(retried.success_output(), "a refund of 100.00 NGN is requested from provider_a\n");
        assert_eq!(run(app, &list).await.success_output(), "none\n");
        let again = run(app, &retry).await;
        assert_eq!(again.failure(), (1, "tollhouse: only a failed refund can be retried"));
        let part = run(app, &["card-refund", "list", "--limit", "1"]).await;
        let end = run(app, &["card-refund", "list", "--after", part.success_output().trim_end().rsplit(' ').next().unwrap()]).await;
        assert_eq!(end.success_output(), "none\n", "the last page has no cursor");
        app.run_until_idle().await;
    }
}
