use serde_json::{Value, json};
use tollhouse_plugin::normal;

use super::call_with_response;
use crate::LookupResult;

fn first_name(result: &LookupResult) -> Option<String> {
    result.record.first(&["first_name"], normal::text)
}

fn envelope(rest: Value) -> Value {
    let mut response = json!({"status": true, "detail": "Verification Successful", "response_code": "00",
        "verification": {"status": "VERIFIED", "reference": "31c0012-0f0a"}});
    for (name, value) in rest.as_object().into_iter().flatten() {
        response[name] = value.clone();
    }
    response
}

#[test]
fn a_record_is_found_in_every_place() {
    let ada = json!({"firstName": "Ada"});
    for rest in [
        json!({"data": ada}),
        json!({"bvn_data": ada}),
        json!({"nin_data": ada}),
        json!({"frsc_data": ada}),
        json!({"vc_data": ada}),
        json!({"data": [ada, {"firstName": "Bo"}]}),
        json!({"nin_data": [ada]}),
        json!({"data": {"nin_data": ada}}),
        json!({"data": null, "bvn_data": ada}),
        json!({"data": {"reference": "1"}, "bvn_data": ada}),
        json!({"data": {"face_data": {"status": true}}, "frsc_data": ada}),
        json!({"data": {"firstName": "Ada", "face_data": {"status": true}}}),
        json!({"data": ada, "response_code": 0}),
        json!({"data": ada, "response_code": null}),
        json!({"data": ada, "verification": null}),
    ] {
        let found = call_with_response(200, envelope(rest.clone())).unwrap();
        assert_eq!(first_name(&found).as_deref(), Some("Ada"), "{rest}");
    }
}

#[test]
fn face_data_is_found_beside_the_record_or_in_it() {
    let face =
        json!({"status": true, "response_code": "00", "message": "Face Match", "confidence": 99.9});
    let ada = json!({"firstName": "Ada"});
    for rest in [
        json!({"bvn_data": ada, "face_data": face}),
        json!({"data": {"firstName": "Ada", "face_data": face}}),
        json!({"data": {"face_data": face}, "nin_data": ada}),
        json!({"data": {"nin_data": ada, "face_data": face}}),
        json!({"nin_data": {"firstName": "Ada", "face_data": face}}),
    ] {
        let found = call_with_response(200, envelope(rest.clone())).unwrap();
        let compared = found.comparison().unwrap();
        assert_eq!((compared.matches, compared.confidence), (true, 9_990), "{rest}");
        assert_eq!(&*compared.message, "Face match");
        assert_eq!(first_name(&found).as_deref(), Some("Ada"), "{rest}");
    }
    let none = call_with_response(200, envelope(json!({"bvn_data": ada}))).unwrap().comparison();
    assert_eq!(none.unwrap_err().code, "unexpected-answer");
}

#[test]
fn a_watch_listed_entry_is_marked() {
    let watch_listed = |rest: Value| {
        let mut response = envelope(rest);
        response["response_code"] = json!("07");
        response["status"] = json!(false);
        response
    };
    let ada = json!({"bvn_data": {"firstName": "Ada", "watchListed": "NO"}});
    for status in [200, 400] {
        let found = call_with_response(status, watch_listed(ada.clone())).unwrap();
        let listed = found.record.first(&["watch_listed"], normal::text);
        assert_eq!(listed.as_deref(), Some("YES"));
    }
    for rest in [json!({}), json!({"data": null}), json!({"bvn_data": {}})] {
        assert_eq!(call_with_response(200, watch_listed(rest)).unwrap_err().code, "watch-listed");
    }
}
