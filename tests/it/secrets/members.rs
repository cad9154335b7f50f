//! A member of a company, who is invited by e-mail.

use serde_json::json;

use super::Lab;

pub async fn invite(lab: &Lab) {
    let new = json!({ "email": "ben@acme.example", "role": "company-support" });
    let all = "/internal/v1/companies/{company}/members";
    let member = lab.call(&format!("POST {all}"), new).await;
    lab.name("member", &member["id"]);
    let edit = json!({ "role": "company-developer" });
    lab.call(&format!("PATCH {all}/{{member}}"), edit).await;
    lab.call(&format!("POST {all}/{{member}}/invite"), json!({})).await;
    lab.settle().await;
    let sent = lab.simulators.mailbox().list(Some("ben@acme.example"));
    let (_, rest) = sent.first().expect("an e-mail").text.split_once("/welcome/").expect("a link");
    let invitation = rest.split_whitespace().next().expect("an invitation");
    lab.name("invitation of a member", &json!(invitation));
    let trigger = "POST /internal/v1/companies/{company}/events/trigger";
    lab.call(trigger, json!({ "type": "payment.success" })).await;
}
