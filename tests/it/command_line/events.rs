//! Event endpoints, and commands for developers of receivers.

use serde_json::json;

use super::{field, json_of, rows, run};

both! {
    async fn event_endpoints_are_managed_by_commands(app: TestApp) {
        let id = &*app.company.id;
        let url = "https://books.example/events";
        let none = run(app, &["event-endpoint", "list", id]).await;
        assert_eq!(none.success_output(), "none\n");
        let made = ["event-endpoint", "create", id, url, "--types", "payment.success, payment.failed"];
        let made = run(app, &made).await;
        assert!(field(made.success_output(), "secret").starts_with("whsec_"));
        assert!(made.out.ends_with("\n\nThe secret is not shown again.\n"), "{}", made.out);
        assert_eq!((field(&made.out, "types"), field(&made.out, "active")), ("payment.success, payment.failed", "yes"));
        let endpoint = field(&made.out, "endpoint");
        let edit = ["event-endpoint", "edit", id, endpoint];
        let edited = run(app, &[&edit[..], &["--types", "", "--description", "books"]].concat()).await;
        assert_eq!((field(edited.success_output(), "types"), field(&edited.out, "description")), ("all", "books"));
        let edited = json_of(app, &[&edit[..], &["--active", "false", "--url", "https://b.example/"]].concat()).await;
        assert_eq!((&edited["active"], &edited["url"], &edited["types"]), (&json!(false), &json!("https://b.example/"), &json!([])));
        assert_eq!(run(app, &edit).await.failure().0, 2);
        let unknown = run(app, &[&edit[..], &["--types", "payment.sucess"]].concat()).await;
        assert!(unknown.failure().0 == 1 && unknown.err.contains("the types field must be any of card."), "{}", unknown.err);

        let rotated = run(app, &["event-endpoint", "rotate-secret", id, endpoint, "--yes"]).await;
        assert!(field(rotated.success_output(), "secret").starts_with("whsec_"));
        let list = run(app, &["event-endpoint", "list", id]).await;
        assert_eq!(rows(list.success_output()), [[endpoint, "https://b.example/", "all", "no", "books"]]);
        assert_eq!(run(app, &["event-endpoint", "delete", id, endpoint]).await.failure().0, 2);
        let deleted = run(app, &["event-endpoint", "delete", id, endpoint, "--yes"]).await;
        assert_eq!(deleted.success_output(), "deleted\n");
        let again = run(app, &["event-endpoint", "delete", id, endpoint, "--yes"]).await;
        assert_eq!(again.failure(), (1, "tollhouse: event endpoint not found"));
    }
}
