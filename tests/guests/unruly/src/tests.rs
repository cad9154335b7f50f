use serde_json::{Value, json};
use tollhouse_plugin::checkout::{CheckoutOrder, CheckoutSession, Guest};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::types::{Fault, Money};

use super::Unruly;

fn start(narration: &str) -> Result<CheckoutSession, Fault> {
    Unruly::start(CheckoutOrder {
        service_ref: "U-1".into(),
        amount: Money { minor: 100, currency: "NGN".into() },
        email: "ada@example.com".into(),
        customer_name: None,
        narration: narration.into(),
        channels: vec![],
        success_url: "https://shop.test".into(),
        cancel_url: None,
        metadata: "{}".into(),
        save_instrument: false,
    })
}

fn host() -> FakeHost {
    FakeHost::new().secret("secret_key", "sk_1").setting("base_url", "https://u.test")
}

#[test]
fn an_unknown_word_starts_a_valid_payment() {
    let host = host().install();
    assert_eq!(start("").unwrap().url, "https://u.test/ok");
    assert!(host.requests().is_empty());
}

#[test]
fn many_and_fetch_send_the_given_requests() {
    let host = host().answer("GET", "/ping", 200, json!({})).answer("GET", "/z", 418, json!(1));
    let host = host.install();
    assert_eq!(start("many 3").unwrap().raw, "3");
    assert_eq!(host.requests().len(), 3);
    let fetched: Value =
        serde_json::from_str(&start("fetch https://v.test/z").unwrap().raw).unwrap();
    assert_eq!(fetched, json!({"status": 418, "body": "1"}));
}

#[test]
fn secrets_are_sent_as_placeholders_and_texts_verbatim() {
    let host = host().answer("POST", "/echo", 200, json!({})).install();
    let url = start("echo-secret").unwrap().url;
    start(&format!("say {}", "{{secret:secret_key}}")).unwrap();
    let sent = host.requests();
    assert!(!url.contains("sk_1"));
    assert_eq!(sent[0].header("x-secret"), Some("sk_1"));
    assert_eq!(sent[0].text(), "secret=sk_1");
    assert_eq!(sent[1].text(), "{{secret:secret_key}}");
}

#[test]
fn the_secret_is_sent_in_the_given_place() {
    let host = host().setting("other_url", "https://o.test");
    let host = ["GET", "POST"].into_iter().fold(host, |host, method| {
        let host = host.answer(method, "/x", 200, json!({}));
        host.answer(method, "/orders", 200, json!({}))
    });
    let host = host.install();
    for place in ["x-key", "elsewhere", "success_url", "metadata", "form", "body", "basic-body"] {
        start(&format!("send-secret {place}")).unwrap();
        let sent = host.requests().pop().unwrap();
        let there = sent.header("x-key").map_or_else(|| sent.text(), str::to_owned);
        let expected = if place == "basic-body" { "c2tfMTpza18x" } else { "sk_1" };
        assert!(there.contains(expected), "{place}: {there}");
        assert_eq!(sent.url.starts_with("https://o.test"), place == "elsewhere");
    }
}

#[test]
fn the_mood_overrides_the_narration() {
    let host = host().setting("mood", "concatenate").answer("POST", "/orders", 200, json!({}));
    let host = host.install();
    start("say \"it\"").unwrap();
    assert_eq!(host.requests()[0].text(), r#"{"narration":"say "it""}"#);
}

#[test]
fn big_and_cached_return_the_given_values() {
    let _host = host().install();
    assert_eq!(start("big 1000").unwrap().raw.len(), 1000);
    assert_eq!(start("cached").unwrap().raw, "null");
    assert_eq!(start("cached").unwrap().raw, "\"put earlier\"");
}

#[test]
fn the_mood_rename_changes_the_session_reference() {
    let _host = host().setting("mood", "rename").install();
    assert_eq!(start("").unwrap().service_ref, "renamed-U-1");
}
