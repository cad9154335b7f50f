//! The identity registers, through their HTTP APIs.

mod dojah;
mod pictures;
mod prembly;

use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::world::World;

async fn send(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn prembly(world: &World, path: &str, body: &Value) -> RequestBuilder {
    world.request(Method::POST, &format!("/prembly{path}")).header("x-api-key", "key").json(body)
}

fn dojah(world: &World, method: Method, path: &str) -> RequestBuilder {
    let request = world.request(method, &format!("/dojah{path}"));
    request.header("Authorization", "prod_sk_key").header("AppId", "app")
}

/// Returns Prembly's record of this BVN.
async fn bvn_at_prembly(world: &World, bvn: &str) -> Value {
    let (status, body) = send(prembly(world, "/verification/bvn", &json!({ "number": bvn }))).await;
    assert_eq!(status, 200, "{body}");
    body
}

async fn bvn_at_dojah(world: &World, bvn: &str) -> (u16, Value) {
    send(dojah(world, Method::GET, &format!("/api/v1/kyc/bvn/full?bvn={bvn}"))).await
}

/// Panics unless the record has exactly these keys.
#[track_caller]
fn assert_keys(record: &Value, keys: &str, at: &str) {
    let mut expected: Vec<&str> = keys.split_whitespace().collect();
    let mut found: Vec<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "{at}");
}

#[tokio::test]
async fn both_upstreams_return_the_same_person_each_time() {
    let world = World::new().await;
    for bvn in ["54651333604", "22222222222", "22345678901", "22345678902"] {
        let prembly = &bvn_at_prembly(&world, bvn).await["data"];
        assert_eq!(prembly, &bvn_at_prembly(&world, bvn).await["data"]);
        let dojah = &bvn_at_dojah(&world, bvn).await.1["entity"];
        for (one, other) in [
            ("firstName", "first_name"),
            ("middleName", "middle_name"),
            ("lastName", "last_name"),
            ("dateOfBirth", "date_of_birth"),
            ("gender", "gender"),
            ("email", "email"),
            ("phoneNumber1", "phone_number1"),
            ("phoneNumber2", "phone_number2"),
            ("residentialAddress", "residential_address"),
            ("nin", "nin"),
            ("base64Image", "image"),
        ] {
            assert_eq!(prembly[one], dojah[other], "{bvn}: {one}");
        }
        assert_eq!(prembly["email"], format!("{bvn}@people.example"));
        assert!(prembly["phoneNumber1"].as_str().unwrap().starts_with("080"), "{prembly}");
    }
    let people = ["22345678901", "22345678902"].map(|bvn| bvn_at_prembly(&world, bvn));
    let [one, other] = futures::future::join_all(people).await.try_into().unwrap();
    assert_ne!(one["data"]["base64Image"], other["data"]["base64Image"]);
}

#[tokio::test]
async fn a_phone_number_has_the_same_person_in_every_format() {
    let world = World::new().await;
    let mut found = Vec::new();
    for number in ["08082838283", "2348082838283", "+2348082838283"] {
        let body = json!({ "number": number });
        let (_, response) =
            send(prembly(&world, "/verification/phone_number/advance", &body)).await;
        found.push(response["data"].clone());
    }
    assert_eq!(found[0]["email"], "2348082838283@people.example");
    assert_eq!(found[0]["telephoneno"], "08082838283");
    assert!(found.iter().all(|record| *record == found[0]));
    // Dojah's client library sends it as a number.
    for number in ["8082838283", "08082838283", "2348082838283", "%2B2348082838283"] {
        let path = format!("/api/v1/kyc/phone_number?phone_number={number}");
        let (_, response) = send(dojah(&world, Method::GET, &path)).await;
        assert_eq!(response["entity"]["msisdn"], "2348082838283", "{number}");
        assert_eq!(response["entity"]["lastName"], found[0]["surname"]);
    }
}

#[tokio::test]
async fn the_ending_of_a_number_selects_the_failure() {
    let world = World::new().await;
    let cases = [
        ("22222299999", "02", 424),
        ("22222229999", "02", 200),
        ("22222220000", "01", 404),
        ("22222227777", "07", 200),
        ("22222226666", "00", 200),
        ("22222221111", "00", 200),
    ];
    for (bvn, code, status) in cases {
        let prembly = bvn_at_prembly(&world, bvn).await;
        assert_eq!(prembly["response_code"], code, "{bvn}: {prembly}");
        assert_eq!(prembly["status"], code != "02", "{bvn}");
        assert_eq!(prembly.get("data").is_some(), ["00", "07"].contains(&code), "{bvn}");
        let (got, dojah) = bvn_at_dojah(&world, bvn).await;
        assert_eq!(got, status, "{bvn}: {dojah}");
        assert_eq!(dojah.get("entity").is_some(), status == 200, "{bvn}");
    }
    let missing = bvn_at_dojah(&world, "22222220000").await.1;
    assert_eq!(missing, json!({ "error": "Result Not Found" }));

    let (watched, free) = ("22222227777", "22222221111");
    for (bvn, listed) in [(watched, "YES"), (free, "NO")] {
        assert_eq!(bvn_at_prembly(&world, bvn).await["data"]["watchListed"], listed);
        assert_eq!(bvn_at_dojah(&world, bvn).await.1["entity"]["watch_listed"], listed);
    }
    let path = "/verification/voters_card";
    let (_, voter) = send(prembly(&world, path, &json!({ "number": "90F5B17777" }))).await;
    assert_eq!(voter["response_code"], "00", "there is no watch list for voters");

    let silent = &bvn_at_prembly(&world, "22222226666").await["data"];
    for key in ["email", "phoneNumber1", "phoneNumber2"] {
        assert_eq!(silent[key], "", "{key}");
    }
    let path = "/api/v1/kyc/nin?nin=22222226666";
    let nin = &send(dojah(&world, Method::GET, path)).await.1["entity"];
    assert_eq!((&nin["email"], &nin["telephone"]), (&Value::Null, &json!("")));
}

#[tokio::test]
async fn a_documented_identity_succeeds_with_any_ending() {
    let world = World::new().await;
    let request_body =
        json!({ "number": "A00400000", "last_name": "anything", "dob": "1900-01-01" });
    let path = "/verification/national_passport";
    let (_, passport) = send(prembly(&world, path, &request_body)).await;
    assert_eq!(passport["response_code"], "00", "{passport}");
    assert_eq!(passport["data"]["last_name"], "Test");
    let (_, other) = send(prembly(&world, path, &json!({ "number": "A00410000" }))).await;
    assert_eq!(other["response_code"], "01");
}

#[tokio::test]
async fn a_slow_register_responds_eventually() {
    let world = World::new().await;
    let start = Instant::now();
    let lookups = (bvn_at_prembly(&world, "22222228888"), bvn_at_dojah(&world, "22222228888"));
    let (prembly, (status, dojah)) = tokio::join!(lookups.0, lookups.1);
    assert!(start.elapsed() >= Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!((&prembly["response_code"], status), (&json!("00"), 200));
    assert_eq!(prembly["data"]["lastName"], dojah["entity"]["last_name"]);
}

#[tokio::test]
async fn faults_make_each_upstream_fail() {
    let world = World::new().await;
    for upstream in ["prembly", "dojah"] {
        let script = |kind| world.simulators.faults().push(Fault::new(upstream, kind).delay_ms(20));
        let query = || match upstream {
            "prembly" => {
                prembly(&world, "/verification/bvn", &json!({ "number": "22222222222" })).send()
            }
            _ => dojah(&world, Method::GET, "/api/v1/kyc/bvn/full?bvn=22222222222").send(),
        };
        script(FaultKind::Error500);
        assert_eq!(query().await.unwrap().status(), 500);
        script(FaultKind::Malformed);
        assert!(query().await.unwrap().json::<Value>().await.is_err());
        script(FaultKind::Cut);
        assert!(query().await.is_err());
        script(FaultKind::Slow);
        let start = Instant::now();
        assert_eq!(query().await.unwrap().status(), 200);
        assert!(start.elapsed() >= Duration::from_millis(20), "{upstream}");
        assert!(world.simulators.faults().list().is_empty());
        for kind in [FaultKind::Decline, FaultKind::Pending, FaultKind::Hold] {
            assert!(Fault::new(upstream, kind).validate().is_err(), "{kind:?}");
        }
    }
}

#[tokio::test]
async fn the_front_page_lists_the_test_identities() {
    let world = World::new().await;
    let page = world.request(Method::GET, "/").send().await.unwrap().text().await.unwrap();
    for text in [
        "People",
        "<code>99999</code>",
        "54651333604",
        "Teniola Ireti Balogun",
        "href=\"/images/match-54651333604.jpg\"",
    ] {
        assert!(page.contains(text), "{text}");
    }
}
