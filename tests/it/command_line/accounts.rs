//! Provider accounts, and members of companies.

use serde_json::json;
use tollhouse_sandbox::ListingChange;

use super::{field, file, rows, run};
use crate::sprout::{SproutUpstream, TOKEN};

const DAY: i64 = 86_400;

both! {
    async fn accounts_are_set_up_and_listed_by_mode(app: TestApp) {
        let base_url = format!("{}/paystack", app.simulators.url());
        let key = json!({ "secret_key": "sk_live_own", "base_url": base_url }).to_string();
        let key = file(app, "paystack.json", key.as_bytes());
        let set = ["provider", "set", "provider_a", "--mode", "live", "--credentials-file", &key];
        let set = run(app, &set).await;
        assert_eq!((field(set.success_output(), "mode"), field(&set.out, "has credentials")), ("live", "yes"));
        assert!(!set.out.contains("sk_live_own"));
        let listed = run(app, &["provider", "list"]).await;
        let listed: Vec<&str> = rows(listed.success_output()).iter().map(|row| row[1]).collect();
        assert_eq!(listed, ["live", "test"]);
        let listed = run(app, &["provider", "list", "--mode", "test"]).await;
        assert_eq!(rows(listed.success_output())[0][..2], ["provider_a", "test"]);
        let own = ["provider", "set", "provider_a", "--company", &app.company.id, "--mode", "live", "--active", "true"];
        let refused = run(app, &own).await;
        assert_eq!(refused.failure(), (1, "tollhouse: the mode field must be test, the mode of the company"));
        let wrong = json!({ "secret": "x", "base_url": "http://api.paystack.co" }).to_string();
        let wrong = file(app, "wrong.json", wrong.as_bytes());
        let refused = run(app, &["provider", "set", "provider_a", "--credentials-file", &wrong]).await;
        let message = "tollhouse: the credentials.secret_key field is required; the credentials.secret field must be one that \
            provider_a uses; the credentials.base_url field must be an absolute https URL";
        assert_eq!(refused.failure(), (1, message));
    }

    async fn a_provider_test_reports_whether_the_credentials_are_accepted(app: TestApp) {
        let tested = run(app, &["provider", "test", "provider_a"]).await;
        let result = (field(tested.success_output(), "mode"), field(&tested.out, "outcome"), field(&tested.out, "detail"));
        assert_eq!(result, ("test", "accepted", "provider_a was reached and accepted the credentials"));
        let none = run(app, &["provider", "test", "provider_a", "--mode", "live"]).await;
        assert_eq!(none.failure(), (1, "tollhouse: payment service key not found"));

        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        let account = json!({ "token": format!("{TOKEN}_wrong"), "base_url": upstream.url });
        let account = file(app, "sprout.json", account.to_string().as_bytes());
        let id = &*app.company.id;
        run(app, &["provider", "set", "sprout", "--company", id, "--credentials-file", &account]).await.success_output();
        let refused = run(app, &["provider", "test", "sprout", "--company", id]).await;
        assert_eq!((refused.code, field(&refused.out, "outcome")), (1, "credentials_refused"));
        assert_eq!(refused.err.trim_end(), "tollhouse: sprout was reached and refused the credentials");
        let refused = run(app, &["provider", "test", "sprout", "--company", id, "--json"]).await;
        let result: serde_json::Value = serde_json::from_str(&refused.out).expect("JSON");
        assert_eq!((refused.code, &result["outcome"]), (1, &json!("credentials_refused")));
    }
}

both! {
    async fn a_day_is_reconciled_and_closed(app: TestApp) {
        app.paid_payment("order-1").await;
        let change = ListingChange { fees_minor: Some(1), ..ListingChange::default() };
        assert!(app.simulators.paystack().change_listing("order-1", change));
        let now = run(app, &["reconcile", "provider_a", "--now"]).await;
        assert_eq!(now.success_output(), "the transactions are being listed\n");
        app.run_until_idle().await;
        app.advance(30).await;
        let today = app.app.clock.now().to_datetime().format("%Y-%m-%d").to_string();
        let shown = run(app, &["reconcile", "provider_a", "--day", &today]).await;
        assert_eq!((field(shown.success_output(), "provider"), field(&shown.out, "closed")), ("provider_a", "-"));
        let line = |word: &str| shown.out.lines().find(|line| line.contains(word)).unwrap_or_default().split_whitespace().collect::<Vec<_>>();
        assert_eq!(line("payment "), ["payment", "1", "0", "2500.50", "NGN", "0.01", "NGN"], "{}", shown.out);
        assert!(line("fee_differs").contains(&"137.50") && shown.out.contains("settlements: none"), "{}", shown.out);
        let days = run(app, &["reconcile", "provider_a", "--days"]).await;
        assert_eq!(rows(days.success_output())[0], [&*today, "1", "0", "1", "-"]);
        let refused = run(app, &["reconcile", "provider_a", "--day", &today, "--close", "--yes"]).await;
        assert_eq!(refused.failure(), (1, "tollhouse: the transactions of the day have not been listed: a day can be closed one day after it ends"));
        assert!(app.simulators.paystack().change_listing("order-1", ListingChange::default()));
        app.advance(2 * DAY).await;
        run(app, &["reconcile", "provider_a", "--now"]).await.success_output();
        app.run_until_idle().await;
        app.advance(30).await;
        let closed = run(app, &["reconcile", "provider_a", "--day", &today, "--close", "--yes"]).await;
        assert_eq!(field(closed.success_output(), "closed by"), "operator");
        let unknown = run(app, &["reconcile", "provider_z"]).await;
        assert_eq!(unknown.failure(), (1, "tollhouse: no account at provider_z"));
        let conflict = run(app, &["reconcile", "provider_a", "--close"]).await;
        assert_eq!(conflict.failure().0, 2);
    }
}

both! {
    async fn members_are_managed_by_commands(app: TestApp) {
        let id = &*app.company.id;
        assert_eq!(run(app, &["member", "list", id]).await.success_output(), "none\n");
        let invite = ["member", "invite", id, "ada@acme.example", "--role", "company-owner"];
        let ada = run(app, &invite).await;
        assert_eq!((field(ada.success_output(), "email"), field(&ada.out, "state")), ("ada@acme.example", "invited"));
        let member = field(&ada.out, "member");
        assert_eq!(run(app, &invite).await.failure(), (1, "tollhouse: another account has this e-mail address"));
        let last = run(app, &["member", "deactivate", id, member]).await;
        assert!(last.failure().1.contains("needs another active owner"), "{}", last.err);
        let second = ["member", "invite", id, "ben@acme.example", "--role", "company-support"];
        let second = run(app, &second).await;
        let member = field(second.success_output(), "member");
        let edited = run(app, &["member", "edit", id, member, "--role", "company-finance"]).await;
        assert_eq!(field(edited.success_output(), "role"), "company-finance");
        for (action, state) in [("deactivate", "inactive"), ("activate", "invited"), ("reinvite", "invited")] {
            let done = run(app, &["member", action, id, member]).await;
            assert_eq!(field(done.success_output(), "state"), state, "{action}");
        }
        let list = run(app, &["member", "list", id]).await;
        let rows = rows(list.success_output());
        assert_eq!(rows.iter().map(|row| row[1]).collect::<Vec<_>>(), ["ada@acme.example", "ben@acme.example"]);
        app.run_until_idle().await;
        let ben = app.simulators.mailbox().list(Some("ben@acme.example"));
        assert!(!ben.is_empty(), "no invitation was sent");
    }
}
