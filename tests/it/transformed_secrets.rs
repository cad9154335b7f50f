//! Secrets that a plugin sends encoded, hashed or signed.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64URL},
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::jenga;

use crate::{
    sprout::repack,
    unruly::{SECRET, initialize_with_narration, install_unruly},
};

both! {
    async fn a_plugin_sends_a_secret_in_another_form_without_seeing_it(app: TestApp) {
        let upstream = install_unruly(app).await;
        let payment = initialize_with_narration(app, "order-1", "transform").await.data().clone();
        let sent = upstream.received().remove(0);
        let encoded = BASE64.encode(format!("1{SECRET}2"));
        assert_eq!(sent.headers["x-secret"], encoded);
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length");
        mac.update(b"text");
        assert_eq!(sent.headers["x-signature"], hex::encode(mac.finalize().into_bytes()));
        let placeholder = payment["checkout"]["url"].as_str().expect("what the plugin saw");
        assert!(placeholder.starts_with("vault-"), "{placeholder}");
        let echoed = payment["payment_response"].as_str().expect("a text");
        assert!(echoed.contains("[secret]") && !echoed.contains(&encoded), "{echoed}");
    }

    async fn a_private_key_signs_a_jwt(app: TestApp) {
        let upstream = install_unruly(app).await;
        let credentials = json!({ "secret_key": jenga::PRIVATE_KEY, "base_url": upstream.url });
        let set = json!({ "credentials": credentials });
        app.operator(Method::PUT, "/providers/unruly", set).await.data();
        initialize_with_narration(app, "order-1", "jwt").await.data();
        let sent = upstream.received().remove(0);
        let sent = sent.headers["authorization"].to_str().expect("a text");
        let token = sent.strip_prefix("Bearer ").expect("a token");
        let (signed, signature) = token.rsplit_once('.').expect("a signature");
        let decode = |part: &str| BASE64URL.decode(part).expect("base64url without padding");
        let parts: Vec<Value> =
            signed.split('.').map(|part| serde_json::from_slice(&decode(part)).expect("JSON")).collect();
        assert_eq!(parts, [
            json!({ "alg": "RS256", "typ": "JWT" }),
            json!({ "iss": "tollhouse", "aud": "https://bank.example" }),
        ]);
        assert_eq!(BASE64.encode(decode(signature)), jenga::sign(signed));
    }

    async fn a_transformed_secret_is_sent_only_where_the_secret_may_be(app: TestApp) {
        let upstream = install_unruly(app).await;
        let elsewhere = repack(artifacts::UNRULY, |manifest| {
            manifest["version"] = json!("1.1.0");
            manifest["secrets"]["secret_key"]["in"] = json!(["header:authorization", "header:x-signature"]);
        });
        app.install(&elsewhere).await;
        let refused = initialize_with_narration(app, "order-1", "transform").await;
        assert_eq!(refused.failure(), (502, "unruly is unavailable, please try again later"));
        assert_eq!(upstream.received().len(), 0);
    }
}
