//! One-time passwords and queued messages.

use serde_json::json;
use tollhouse_sandbox::{Fault, FaultKind};

use super::{Lab, TERMII_KEY, places::database_contents};

/// Sends codes by e-mail and SMS. The last code has eight digits: a shorter one may occur in
/// another number by chance.
pub async fn send(lab: &Lab) {
    assert_eq!(lab.send("POST /internal/v1/plugins", artifacts::TERMII).await["error"], false);
    let base_url = format!("{}/termii/api", lab.simulators.url());
    let account =
        json!({ "credentials": { "api_key": TERMII_KEY, "sender": "Acme", "base_url": base_url } });
    lab.name("provider", &json!("termii"));
    lab.call("PUT /internal/v1/providers/{provider}", account).await;
    lab.name("provider", &json!("provider_a"));
    lab.simulators.faults().push(Fault::new("smtp", FaultKind::Decline));
    for length in [7, 8] {
        lab.simulators.faults().push(Fault::new("termii", FaultKind::Error500));
        let send = json!({
            "identifier": "ada.obi@example.com", "channels": ["email", "sms"], "length": length,
            "email": "ada.obi@example.com", "phone": "+2348031234567",
            "metadata": { "name": "Adaeze", "body": "For you only:" },
        });
        lab.call("POST /api/v1/otp/send", send).await;
        let waiting = database_contents(&lab.database).await;
        lab.at_rest.lock().unwrap().push(waiting);
        lab.settle().await;
    }
    let mailbox = lab.simulators.mailbox().list(Some("+2348031234567"));
    let text = &mailbox.first().expect("a text message").text;
    let code = text.split(|c: char| !c.is_ascii_digit()).find(|run| run.len() == 8);
    lab.name("code", &json!(code));
    let wrong = json!({ "identifier": "ada.obi@example.com", "token": "none" });
    lab.send("POST /api/v1/otp/verify", wrong.to_string()).await;
    let right = json!({ "identifier": "ada.obi@example.com", "token": code });
    lab.call("POST /api/v1/otp/verify", right).await;
}
