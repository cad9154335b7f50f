//! Allowed destinations of a company's text messages, and the status of its messages.

use serde_json::{Value, json};

use super::{field, json_of, rows, run};
use crate::codes::{email_request, send, set_prices};

both! {
    async fn countries_and_prefixes_are_set(app: TestApp) {
        let made = ["company", "create", "Beta", "--server", "live", "--countries", "NG,GH"];
        let made = run(app, &made).await;
        let id = field(made.success_output(), "company").to_owned();
        assert_eq!(json_of(app, &["company", "show", &id]).await["countries"], json!(["NG", "GH"]));
        for (flag, text, name, value) in [
            ("--countries", "KE", "countries", json!(["KE"])),
            ("--countries", "", "countries", Value::Null),
            ("--sms-prefixes", "+234, +233", "sms_prefixes", json!(["+234", "+233"])),
            ("--sms-prefixes", "all", "sms_prefixes", json!(["+"])),
            ("--sms-prefixes", "", "sms_prefixes", Value::Null),
        ] {
            let edited = json_of(app, &["company", "edit", &id, flag, text]).await;
            assert_eq!(edited[name], value, "{flag} {text:?}");
        }
        let refused = run(app, &["company", "edit", &id, "--countries", "Kenya"]).await;
        assert!(refused.failure().0 == 1 && refused.err.contains("countries"), "{}", refused.err);
    }

    async fn a_refused_message_is_listed_with_its_reason(app: TestApp) {
        set_prices(app).await;
        assert_eq!(send(app, email_request(json!({}))).await.status, 400);
        let id = &*app.company.id;
        let listed = run(app, &["message", "list", id, "--state", "failed"]).await;
        let row = rows(listed.success_output()).remove(0).join(" ");
        assert!(row.contains(" email otp a***@example.com failed 0 ") && row.contains("insufficient balance"), "{row}");
    }
}
