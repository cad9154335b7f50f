use serde_json::{Value, json};
use tollhouse_plugin::testing::{FakeHost, Installed};
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::verification::Guest;

use super::{QUERY, host, refused, stranger, success, transaction};
use crate::Monnify;

const LOGIN: &str = "https://api.monnify.com/api/v1/auth/login";

fn token(text: &str, expires_in: Value) -> Value {
    success(json!({"accessToken": text, "expiresIn": expires_in}))
}

fn verify(host: FakeHost) -> (Result<(), Fault>, Installed) {
    let host = host.install();
    (Monnify::verify("pay-1".into()).map(drop), host)
}

/// Returns the end of the URL and the credentials of each request.
fn sent(host: &Installed) -> Vec<(String, String)> {
    let describe = |sent: &tollhouse_plugin::testing::Sent| {
        let end = sent.url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
        (end, sent.header("authorization").unwrap().to_owned())
    };
    host.requests().iter().map(describe).collect()
}

fn request(end: &str, credentials: &str) -> (String, String) {
    (end.to_owned(), credentials.to_owned())
}

#[test]
fn a_token_is_cached_until_a_minute_before_it_expires() {
    let host = stranger().answer("POST", LOGIN, 200, token("new", json!(3567))).answer(
        "GET",
        QUERY,
        200,
        success(transaction()),
    );
    let (verified, host) = verify(host);
    assert_eq!(verified, Ok(()));
    // Base64 of "MK_TEST_SAF7HR5F3F:91MUDL9N6U3BQRXBQ2PJ9M0PW4J22M1Y".
    let basic = "Basic TUtfVEVTVF9TQUY3SFI1RjNGOjkxTVVETDlONlUzQlFSWEJRMlBKOU0wUFc0SjIyTTFZ";
    assert_eq!(sent(&host), [request("login", basic), request("query", "Bearer new")]);
    assert!(host.requests()[0].body.is_empty());
    assert_eq!(host.cached("access_token"), Some(("new".into(), 3507)));
    assert!(Monnify::verify("pay-1".into()).is_ok());
    assert_eq!(host.requests().len(), 3);
}

#[test]
fn a_token_that_expires_at_once_is_not_cached() {
    for expires_in in [json!(60), json!(1), json!(0), json!(null), json!("soon"), json!(-5)] {
        let host = stranger().answer("POST", LOGIN, 200, token("new", expires_in)).answer(
            "GET",
            QUERY,
            200,
            success(transaction()),
        );
        let (verified, host) = verify(host);
        assert_eq!((verified, host.cached("access_token")), (Ok(()), None));
    }
    let host = stranger().answer("POST", LOGIN, 200, token("new", json!("3600"))).answer(
        "GET",
        QUERY,
        200,
        success(transaction()),
    );
    assert_eq!(verify(host).1.cached("access_token"), Some(("new".into(), 3540)));
}

#[test]
fn a_token_that_expired_early_is_renewed_once() {
    let host = host()
        .answer("GET", QUERY, 401, json!({"error": "invalid_token"}))
        .answer("GET", QUERY, 200, success(transaction()))
        .answer("POST", LOGIN, 200, token("new", json!(3567)));
    let (verified, host) = verify(host);
    assert_eq!(verified, Ok(()));
    let [first, login, second] = &sent(&host)[..] else { panic!("{:?}", sent(&host)) };
    assert_eq!(
        (first, second),
        (&request("query", "Bearer t0k3n"), &request("query", "Bearer new"))
    );
    assert_eq!(login.0, "login");
    assert_eq!(host.cached("access_token"), Some(("new".into(), 3507)));
}

#[test]
fn a_rejected_new_token_is_misconfigured() {
    let host = host().answer("GET", QUERY, 401, refused("99", "Access denied")).answer(
        "POST",
        LOGIN,
        200,
        token("new", json!(3567)),
    );
    let (verified, host) = verify(host);
    assert_eq!(verified.unwrap_err().category, FaultCategory::Misconfigured);
    assert_eq!(host.requests().len(), 3);
}

#[test]
fn a_failed_login_sends_no_further_requests() {
    for (status, response, category) in [
        (401, refused("99", "Invalid credentials"), FaultCategory::Misconfigured),
        (500, json!({}), FaultCategory::Unavailable),
        (200, success(json!({})), FaultCategory::Unavailable),
        (200, json!([]), FaultCategory::Unavailable),
    ] {
        let (verified, host) = verify(stranger().answer("POST", LOGIN, status, response));
        assert_eq!(verified.unwrap_err().category, category, "{status}");
        assert_eq!(host.requests().len(), 1);
    }
    let (verified, host) = verify(FakeHost::new().manifest(crate::MANIFEST));
    assert_eq!(verified.unwrap_err().category, FaultCategory::Misconfigured);
    assert!(host.requests().is_empty());
}
