//! Operators: their tokens, passwords, one-time codes and sessions.

use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::Lab;
use crate::sign_in::{PASSWORD, code_at};

/// Creates an operator that signs in and out, with a token and a role of its own.
pub async fn use_all(lab: &Lab) {
    let role = json!({ "permissions": ["wallet.read"] });
    lab.name("role", &json!("teller"));
    lab.call("PUT /internal/v1/roles/{role}", role).await;
    lab.name("list", &json!("payments"));
    lab.name("view", &json!("failed"));
    let filters = json!({ "filters": { "status": "failed" } });
    lab.call("PUT /internal/v1/me/views/{list}/{view}", filters).await;
    lab.call("DELETE /internal/v1/me/views/{list}/{view}", json!({})).await;
    let new = json!({ "name": "ada", "email": "ada@operator.example", "roles": ["support-read"] });
    let operator = lab.call("POST /internal/v1/operators", new).await;
    lab.name("operator", &operator["id"]);
    let edit = json!({ "roles": ["support-read"] });
    lab.call("PATCH /internal/v1/operators/{operator}", edit).await;
    let token = lab.call("POST /internal/v1/operators/{operator}/tokens", json!({})).await;
    lab.name("token", &token["id"]);
    lab.name("an operator's token", &token["operator_token"]);
    let invited = lab.call("POST /internal/v1/operators/{operator}/invite", json!({})).await;
    let invitation = &invited["invitation"];
    lab.name("invitation", invitation);
    let password = json!({ "invitation": invitation, "password": PASSWORD });
    let enrolled = lab.call("POST /internal/v1/sign-in/enrol", password).await;
    lab.name("totp", &enrolled["totp_secret"]);
    let first_code = json!({
        "invitation": invitation, "enrolment": enrolled["enrolment"], "code": code(lab, 0).await,
    });
    let first = lab.call("POST /internal/v1/sign-in/confirm", first_code).await;
    lab.name("first session", &first["session_token"]);
    let sign_in = json!({
        "email": "ada@operator.example", "password": PASSWORD, "code": code(lab, 30).await,
    });
    let second = lab.call("POST /internal/v1/sign-in", sign_in).await;
    lab.name("second session", &second["session_token"]);
    // There is no OpenID provider.
    let response = json!({ "pending": "v1.x", "state": "x", "code": "x" });
    for (step, body) in [("begin", json!({})), ("finish", response)] {
        let route = format!("POST /internal/v1/sign-in/oidc/{step}");
        assert_eq!(lab.send(&route, body.to_string()).await["error"], true);
    }
    lab.call("POST /internal/v1/sign-out", json!({ "everywhere": true })).await;
    lab.call("DELETE /internal/v1/operators/{operator}/tokens/{token}", json!({})).await;
    lab.call("DELETE /internal/v1/roles/{role}", json!({})).await;
    lab.name("approval", &json!("none"));
    for decision in ["approve", "reject"] {
        let route = format!("POST /internal/v1/approvals/{{approval}}/{decision}");
        assert_eq!(lab.send(&route, "{}").await["error"], true);
    }
}

/// The code of the app after the host's clock has advanced.
async fn code(lab: &Lab, seconds: i64) -> String {
    let now = lab.call("POST /internal/v1/clock/advance", json!({ "seconds": seconds })).await;
    let now: Value = now["now"].clone();
    let now = Timestamp::parse(now.as_str().expect("a time")).expect("a time");
    code_at(&lab.named("totp"), now)
}

/// Name and value of each secret of operators, and the only route that may return it.
pub fn secrets(lab: &Lab) -> Vec<(&'static str, String, &'static str)> {
    const TOKENS: &str = "POST /internal/v1/operators/{operator}/tokens";
    const INVITE: &str = "POST /internal/v1/operators/{operator}/invite";
    vec![
        ("an operator's token", lab.named("an operator's token"), TOKENS),
        ("an invitation", lab.named("invitation"), INVITE),
        ("a TOTP secret", lab.named("totp"), "POST /internal/v1/sign-in/enrol"),
        ("the first session", lab.named("first session"), "POST /internal/v1/sign-in/confirm"),
        ("the second session", lab.named("second session"), "POST /internal/v1/sign-in"),
        ("an operator's password", PASSWORD.to_owned(), ""),
    ]
}
