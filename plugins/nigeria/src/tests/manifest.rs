//! The manifest matches the code.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::{Value, json};
use tollhouse_plugin::identity::Image;
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::{identity_document, identity_face, identity_lookup};

use super::question;
use crate::Nigeria;
use crate::identity::IdentityType;

fn manifest() -> Value {
    serde_json::from_str(crate::MANIFEST).unwrap()
}

fn identities() -> Vec<Value> {
    manifest()["country"]["identities"].as_array().unwrap().clone()
}

fn text<'v>(identity: &'v Value, name: &str) -> &'v str {
    identity[name].as_str().unwrap_or_else(|| panic!("{identity} has no {name}"))
}

fn fits(identity: &Value, identifier: &str) -> bool {
    Regex::new(&format!("^(?:{})$", text(identity, "pattern"))).unwrap().is_match(identifier)
}

#[test]
fn capabilities_match_the_specification() {
    let listed = identities()
        .iter()
        .map(|i| {
            json!([i["path"], i["display_name"], i["field"], i["face"], i["document"], i["otp"]])
        })
        .collect::<Vec<_>>();
    assert_eq!(
        listed,
        [
            json!(["bvn", "BVN", "bvn", true, false, true]),
            json!(["nin", "NIN", "nin", true, false, true]),
            json!(["nin/virtual", "Virtual NIN", "virtual_nin", false, false, true]),
            json!(["drivers-license", "Driver's license", "number", true, true, true]),
            json!(["passport", "International passport", "number", true, true, true]),
            json!(["voters-card", "Voter's card", "number", false, false, true]),
            json!(["cac", "CAC", "number", false, false, false]),
            json!(["phone-number", "Phone number", "number", false, false, true]),
        ]
    );
    for identity in identities() {
        let shape = IdentityType::from_name(text(&identity, "name")).unwrap().shape();
        assert_eq!(identity["otp"], shape.contact, "{}", identity["name"]);
        for (price, offered) in [
            ("lookup", json!(true)),
            ("face", identity["face"].clone()),
            ("image", identity["document"].clone()),
        ] {
            assert_eq!(json!(identity["prices"][price].is_u64()), offered, "{}", identity["name"]);
        }
    }
}

#[test]
fn documented_identifiers_match_their_patterns() {
    for (name, identifiers) in [
        ("bvn", ["54651333604", "22222222222"].as_slice()),
        ("nin", &["12345678909", "70123456789"]),
        ("virtual_nin", &["AA1234567890123B"]),
        ("drivers_license", &["AAD23208212298", "AAD2320823198", "ABC12345YZ00"]),
        ("passport", &["A00400000", "B50000947"]),
        ("voters_card", &["987F545AJ67890", "90F5B0407E295502637"]),
        ("cac", &["092932", "RC092932", "BN1234567"]),
        ("phone_number", &["+2348082838283"]),
    ] {
        let identity = identities().into_iter().find(|i| i["name"] == name).unwrap();
        for identifier in identifiers.iter().chain([&text(&identity, "example")]) {
            assert!(fits(&identity, identifier), "{name} {identifier}");
        }
        let first = identifiers[0];
        for wrong in ["", "1", " ", &format!("{first}\n"), &format!("{first}&"), &"1".repeat(40)] {
            assert!(!fits(&identity, wrong), "{name} {wrong:?}");
        }
        let letters = text(&identity, "pattern").chars().any(|c| c.is_ascii_uppercase());
        assert_eq!(identity["upper"], letters, "{name}");
        assert!(text(&identity, "rule").starts_with("must be "), "{name}");
        assert!(text(&identity, "description").ends_with('.'), "{name}");
    }
}

#[test]
fn images_are_small_svg_drawings() {
    for identity in identities() {
        let image = text(&identity, "image");
        let svg =
            STANDARD.decode(image.strip_prefix("data:image/svg+xml;base64,").unwrap()).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert!(image.len() < 2048 && svg.starts_with("<svg ") && svg.ends_with("</svg>"));
        assert!(!svg.contains("script") && !svg.contains("href"), "{svg}");
    }
}

#[test]
fn optional_names_are_secrets_or_settings() {
    let manifest = manifest();
    for name in manifest["optional"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        let is_secret = manifest["secrets"].get(name).is_some();
        assert!(is_secret || !manifest["settings"][name].is_null(), "{name}");
    }
}

/// Runs each function on the manifest's examples, as `tollhouse plugin check` does.
#[test]
fn examples_suffice_for_one_call_of_each_interface() {
    let manifest = manifest();
    let mut host = FakeHost::new()
        .manifest(crate::MANIFEST)
        .secret("prembly_key", "example-secret")
        .secret("dojah_key", "example-secret")
        .setting("prembly_app_id", "example")
        .setting("dojah_app_id", "example");
    for example in manifest["examples"]["answers"].as_array().unwrap() {
        let (method, url) = text(example, "to").split_once(' ').unwrap();
        host = host.answer(method, url, 200, example["body"].clone());
    }
    let _host = host.install();
    let first = |capability: &str| {
        let mut identities = identities().into_iter();
        let identity = identities.find(|i| capability.is_empty() || i[capability] == true).unwrap();
        question(text(&identity, "name"), text(&identity, "example"))
    };
    let image = Image { media_type: "image/png".into(), bytes: vec![1] };
    let entry = <Nigeria as identity_lookup::Guest>::lookup(first("")).unwrap();
    assert!(entry.details.contains("\"first_name\":\"Ada\""), "{}", entry.details);
    let compared =
        <Nigeria as identity_face::Guest>::compare(first("face"), image.clone()).unwrap();
    assert!(compared.comparison.matches);
    let request = first("document");
    let reading = <Nigeria as identity_document::Guest>::read(request.identity, image).unwrap();
    assert_eq!(reading.identifier, request.identifier);
}
