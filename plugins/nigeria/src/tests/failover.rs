use serde_json::{Value, json};
use tollhouse_plugin::identity_lookup::Guest;
use tollhouse_plugin::log::Level;
use tollhouse_plugin::testing::{FakeHost, Installed};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::types::FaultCategory::{
    Invalid, Misconfigured, NotFound, Refused, Unavailable,
};

use super::{DOJAH, PREMBLY, dojah_first, entity, found, host, question};
use crate::Nigeria;

fn prembly() -> String {
    format!("{PREMBLY}/vnin")
}

fn dojah() -> String {
    format!("{DOJAH}/kyc/nin")
}

fn ada_at_dojah(host: FakeHost) -> FakeHost {
    host.answer("GET", &dojah(), 200, entity(json!({"first_name": "Ada"})))
}

fn ada_at_prembly(host: FakeHost) -> FakeHost {
    host.answer("POST", &prembly(), 200, found("nin_data", json!({"firstname": "Ada"})))
}

/// Looks up; returns the fault's category, if any, and the queried upstreams.
fn look_up(host: &Installed) -> (Result<(), Fault>, String) {
    let result = Nigeria::lookup(question("nin", "12345678909")).map(|_| ());
    let who = |url: &str| if url.starts_with(PREMBLY) { 'p' } else { 'd' };
    (result, host.requests().iter().map(|sent| who(&sent.url)).collect())
}

/// Failures that make Prembly unavailable, and the level of the log line: `error` if the account
/// has no credit.
fn prembly_out_of_order() -> Vec<(FakeHost, Level)> {
    let url = prembly();
    let host_with = |status: u16, response: Value| host().answer("POST", &url, status, response);
    let no = |code: &str| json!({"status": false, "response_code": code});
    vec![
        (host().timeout("POST", &url), Level::Warn),
        (host().no_connection("POST", &url), Level::Warn),
        (host().cut("POST", &url), Level::Warn),
        (host_with(500, no("01")), Level::Warn),
        (host_with(503, json!({})), Level::Warn),
        (host_with(408, json!({})), Level::Warn),
        (host_with(429, json!({})), Level::Warn),
        (host_with(401, json!({"detail": "Invalid key"})), Level::Warn),
        (host_with(403, json!({"detail": "Invalid key"})), Level::Warn),
        (host_with(200, no("02")), Level::Warn),
        (host_with(200, no("03")), Level::Error),
        (host_with(402, no("03")), Level::Error),
        (host_with(200, json!({"status": true, "response_code": "00", "data": {}})), Level::Warn),
        (host().answer_text("POST", &url, 200, "<html>"), Level::Warn),
    ]
}

#[test]
fn dojah_is_queried_if_prembly_is_unavailable() {
    for (n, (host, level)) in prembly_out_of_order().into_iter().enumerate() {
        let host = ada_at_dojah(host).install();
        let (result, who) = look_up(&host);
        assert!(result.is_ok(), "{n}: {result:?}");
        assert_eq!(who, "pd", "{n}");
        let logs = host.logs();
        assert_eq!((logs.len(), logs[0].0), (1, level), "{n}");
        assert!(logs[0].1.starts_with("Prembly is unavailable: "), "{n}");
    }
}

#[test]
fn prembly_is_queried_if_dojah_is_unavailable() {
    let url = dojah();
    let host_with = |status: u16| {
        dojah_first().answer("GET", &url, status, json!({"error": "Result Not Found"}))
    };
    for (host, level) in [
        (dojah_first().timeout("GET", &url), Level::Warn),
        (dojah_first().no_connection("GET", &url), Level::Warn),
        (dojah_first().cut("GET", &url), Level::Warn),
        (host_with(500), Level::Warn),
        (host_with(408), Level::Warn),
        (host_with(429), Level::Warn),
        (host_with(401), Level::Warn),
        (host_with(403), Level::Warn),
        (host_with(402), Level::Error),
        (host_with(424), Level::Error),
        (dojah_first().answer_text("GET", &url, 200, "<html>"), Level::Warn),
        (dojah_first().answer_text("GET", &url, 404, "<html>"), Level::Warn),
        (dojah_first().answer("GET", &url, 200, json!({})), Level::Warn),
        (dojah_first().answer("GET", &url, 200, json!({"entity": {}})), Level::Warn),
        (dojah_first().answer("GET", &url, 200, json!({"entity": null})), Level::Warn),
    ] {
        let host = ada_at_prembly(host).install();
        let (result, who) = look_up(&host);
        assert_eq!((result, &*who), (Ok(()), "dp"));
        assert_eq!((host.logs().len(), host.logs()[0].0), (1, level));
    }
}

#[test]
fn a_refusal_is_final_and_no_other_upstream_is_queried() {
    let no = |status: u16, response: Value| host().answer("POST", &prembly(), status, response);
    let dojahs =
        |status: u16, response: Value| dojah_first().answer("GET", &dojah(), status, response);
    let found = json!({"status": true, "response_code": "01", "nin_data": {"firstname": "Ada"}});
    for (host, category, who) in [
        (no(200, found), NotFound, "p"),
        (no(404, json!({"status": false, "response_code": "01"})), NotFound, "p"),
        (no(400, json!({"status": false, "detail": "Invalid NIN"})), Invalid, "p"),
        (no(200, json!({"status": false, "response_code": "07"})), Refused, "p"),
        (no(200, json!({"status": false, "response_code": "09"})), Refused, "p"),
        (dojahs(404, json!({"error": "Result Not Found"})), NotFound, "d"),
        (dojahs(400, json!({"error": "NIN not found"})), NotFound, "d"),
        (dojahs(400, json!({"error": "Wrong input"})), Invalid, "d"),
        (dojahs(409, json!({"error": "Not today"})), Refused, "d"),
    ] {
        let host = host.install();
        let (result, upstreams) = look_up(&host);
        let fault = result.unwrap_err();
        assert_eq!((fault.category, &*upstreams), (category, who));
        assert_eq!(fault.field(), (category == Invalid).then_some("identifier"));
        assert!(host.logs().is_empty());
    }
}

#[test]
fn if_all_upstreams_are_unavailable_the_last_fault_is_returned() {
    let down = |host: FakeHost| host.timeout("POST", &prembly());
    let key = |host: FakeHost| host.answer("POST", &prembly(), 401, json!({}));
    let get = |host: FakeHost, status: u16| host.answer("GET", &dojah(), status, json!({}));
    for (host, category, code, levels) in [
        (get(down(host()), 500), Unavailable, "http-500", [Level::Warn; 2]),
        (get(key(host()), 500), Unavailable, "http-500", [Level::Warn; 2]),
        (get(down(host()), 401), Misconfigured, "http-401", [Level::Warn; 2]),
        (get(down(host()), 402), Unavailable, "no-credit", [Level::Warn, Level::Error]),
        (key(get(dojah_first(), 500)), Misconfigured, "http-401", [Level::Warn; 2]),
    ] {
        let host = host.install();
        let fault = look_up(&host).0.unwrap_err();
        assert_eq!((fault.category, &*fault.code), (category, code));
        assert_eq!(host.logs().iter().map(|log| log.0).collect::<Vec<_>>(), levels);
    }
}

#[test]
fn upstreams_without_credentials_are_skipped() {
    let bare = || FakeHost::new().manifest(crate::MANIFEST);
    let only_prembly = || bare().secret("prembly_key", "k");
    let only_dojah = || bare().secret("dojah_key", "k").setting("dojah_app_id", "a");
    for (host, who) in [
        (only_prembly(), "p"),
        (only_prembly().setting("order", "dojah,prembly"), "p"),
        (only_prembly().secret("dojah_key", "k"), "p"),
        (only_prembly().setting("dojah_app_id", "a"), "p"),
        (only_dojah(), "d"),
        (host().setting("order", "prembly,prembly"), "p"),
        (host().setting("order", " DOJAH ,"), "d"),
    ] {
        let host = host.timeout("POST", &prembly()).timeout("GET", &dojah()).install();
        let (result, upstreams) = look_up(&host);
        assert_eq!((result.unwrap_err().category, &*upstreams), (Unavailable, who));
    }
}

#[test]
fn invalid_settings_are_misconfigured() {
    let bare = || FakeHost::new().manifest(crate::MANIFEST);
    for host in [
        bare(),
        bare().secret("dojah_key", "k"),
        host().setting("order", ""),
        host().setting("order", ","),
        host().setting("order", "prembly,smile"),
        host().setting("patience_ms", "soon"),
        host().setting("patience_ms", "0"),
        host().setting("patience_ms", "29000"),
        host().setting("prembly_url", "").setting("order", "prembly"),
    ] {
        let host = host.install();
        let (result, upstreams) = look_up(&host);
        assert_eq!((result.unwrap_err().category, &*upstreams), (Misconfigured, ""));
    }
}

#[test]
fn the_second_upstream_gets_the_remaining_time() {
    let timeouts = |host: FakeHost| {
        let host = ada_at_dojah(host).install();
        let _ = look_up(&host);
        host.requests().iter().map(|sent| sent.timeout_ms.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(timeouts(host().timeout("POST", &prembly())), [24_000, 5_000]);
    let short = host().setting("patience_ms", "9000").timeout("POST", &prembly());
    assert_eq!(timeouts(short), [9_000, 20_000]);
    // The host caps the timeout at the remaining time.
    assert_eq!(timeouts(host().no_connection("POST", &prembly())), [24_000, 29_000]);
    assert_eq!(timeouts(host().setting("order", "dojah")), [29_000]);
}
