//! Personal data from registers.

use serde_json::{Value, json};

use super::{Lab, PREMBLY_KEY};

const LOOKUP: &str = "POST /api/v1/kyc/{country}/{*path}";
const NUMBER: &str = "22345678904";
/// Personal fields of a response whose values are not in a plugin.
const PERSONAL: [&str; 6] =
    ["last_name", "residential_address", "name_on_card", "image", "email", "phone_number"];
/// Length of the part of a photo that identifies it.
const PHOTO: usize = 80;

/// Runs lookups that succeed, with and without a face and with a code, and lookups that fail.
pub async fn look_up(lab: &Lab) {
    assert_eq!(lab.send("POST /internal/v1/plugins", artifacts::NIGERIA).await["error"], false);
    let sandbox = lab.simulators.url();
    let account = json!({ "credentials": {
        "prembly_key": PREMBLY_KEY, "prembly_app_id": "app", "prembly_url": format!("{sandbox}/prembly"),
        "dojah_key": PREMBLY_KEY, "dojah_app_id": "app", "dojah_url": format!("{sandbox}/dojah"),
    } });
    lab.name("provider", &json!("nigeria"));
    lab.call("PUT /internal/v1/providers/{provider}", account).await;
    look_up_at_leaking_register(lab).await;
    lab.name("provider", &json!("provider_a"));
    let free = json!({ "identity.nigeria.bvn": 0, "identity.nigeria.bvn.face": 0 });
    lab.call("PATCH /internal/v1/prices", free).await;
    lab.name("country", &json!("nigeria"));
    lab.name("identity", &json!("bvn"));
    for scope in ["", "/companies/{company}"] {
        let switch = format!("PUT /internal/v1{scope}/identities/{{country}}/{{identity}}");
        lab.call(&switch, json!({ "active": true })).await;
    }
    lab.name("*path", &json!("bvn/lookup/with-face"));
    for picture in ["match", "noface"] {
        let image = format!("{sandbox}/images/{picture}-{NUMBER}.jpg");
        let body = json!({ "bvn": NUMBER, "user_id": "ada", "image": image });
        let response = lab.send(LOOKUP, body.to_string()).await;
        assert_eq!(response["error"], picture == "noface", "{response}");
    }
    lab.name("*path", &json!("bvn/lookup"));
    for number in ["22345670000", "22345699999", "2234567890x"] {
        let response = lab.send(LOOKUP, json!({ "bvn": number }).to_string()).await;
        assert_eq!(response["error"], true, "{response}");
        lab.personal.lock().unwrap().push(number.to_owned());
    }
    let body = json!({ "bvn": NUMBER, "send_otp": true });
    let found = lab.call(LOOKUP, body).await;
    lab.name("uid_id", &found["id"]);
    lab.settle().await;
    lab.send("POST /api/v1/kyc/uid/verify/{uid_id}", r#"{"token":"none"}"#).await;
    keep_personal_data(lab, &found);
}

/// Runs lookups at a register that puts personal data into faults.
async fn look_up_at_leaking_register(lab: &Lab) {
    assert_eq!(lab.send("POST /internal/v1/plugins", artifacts::ATLANTIS).await["error"], false);
    lab.name("provider", &json!("atlantis"));
    let account = json!({ "credentials": {}, "active": true });
    lab.call("PUT /internal/v1/providers/{provider}", account).await;
    lab.call("PATCH /internal/v1/prices", json!({ "identity.atlantis.citizen": 0 })).await;
    lab.name("country", &json!("atlantis"));
    lab.name("*path", &json!("citizen/lookup"));
    for number in ["gossip", "unavailable", "refused", "broken", "well"] {
        lab.send(LOOKUP, json!({ "number": number }).to_string()).await;
    }
    lab.personal
        .lock()
        .unwrap()
        .extend(["Critias".to_owned(), "critias@people.example".to_owned()]);
}

fn keep_personal_data(lab: &Lab, found: &Value) {
    let mut personal = lab.personal.lock().unwrap();
    personal.push(NUMBER.to_owned());
    for field in PERSONAL {
        let value = found["details"][field].as_str().expect(field);
        personal.push(value.chars().take(PHOTO).collect());
    }
}
