//! The manifest matches the code.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::{Value, json};
use tollhouse_plugin::testing::FakeHost;

use super::{compare, lookup, question};
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
fn the_manifest_lists_the_capabilities() {
    let listed = identities()
        .iter()
        .map(|i| {
            json!([i["path"], i["display_name"], i["field"], i["face"], i["document"], i["upper"]])
        })
        .collect::<Vec<_>>();
    assert_eq!(
        listed,
        [
            json!(["passport", "Passport", "number", false, false, true]),
            json!(["ssnit", "SSNIT", "number", true, false, true]),
            json!(["drivers-license", "Driver's license", "number", false, false, true]),
            json!(["voters-card", "Voter's card", "number", false, false, false]),
        ]
    );
    for identity in identities() {
        let shape = IdentityType::from_name(text(&identity, "name")).unwrap().shape();
        assert_eq!(identity["otp"], shape.contact);
        assert_eq!(identity["prices"]["face"].is_u64(), identity["face"] == true);
        assert!(identity["prices"]["lookup"].is_u64() && identity["prices"]["image"].is_null());
    }
}

#[test]
fn documented_identifiers_match_their_patterns() {
    for (identity, identifier) in
        identities().iter().zip(["G0000575", "C987464748983", "AAA-21051990-12345", "9001332866"])
    {
        for fitting in [identifier, text(identity, "example")] {
            assert!(fits(identity, fitting), "{fitting}");
        }
        for wrong in
            ["", "1", &format!("{identifier}\n"), &format!("{identifier}&"), &"1".repeat(40)]
        {
            assert!(!fits(identity, wrong), "{wrong:?}");
        }
        assert!(text(identity, "rule").starts_with("must be "));
        assert!(text(identity, "description").ends_with('.'));
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
    }
}

/// Runs each function on the manifest's examples, as `tollhouse plugin check` does.
#[test]
fn examples_suffice_for_one_call_of_each_interface() {
    let manifest = manifest();
    let mut host =
        FakeHost::new().manifest(crate::MANIFEST).secret("prembly_key", "example-secret");
    for example in manifest["examples"]["answers"].as_array().unwrap() {
        let (method, url) = text(example, "to").split_once(' ').unwrap();
        host = host.answer(method, url, 200, example["body"].clone());
    }
    let _host = host.install();
    let first = |face: bool| {
        let identity = identities().into_iter().find(|i| !face || i["face"] == true).unwrap();
        question(text(&identity, "name"), text(&identity, "example"))
    };
    assert!(lookup(first(false)).unwrap().details.contains("\"first_name\":\"Ama\""));
    assert!(compare(first(true)).unwrap().comparison.matches);
}
