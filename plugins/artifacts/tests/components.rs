//! Checks exports, imports and manifests of the components, as admission does.

use std::collections::BTreeSet;

use artifacts::{BUILT_IN, Component, GUESTS};
use serde_json::Value;
use wasmparser::{Parser, Payload};

const BASIC: [&str; 3] = ["checkout", "notifications", "verification"];
const ALL: [&str; 8] = [
    "checkout", "declines", "direct-debit", "notifications", "partial-refunds", "refunds",
    "saved-card", "verification",
];

#[derive(Default)]
struct Found {
    exports: BTreeSet<String>,
    imports: BTreeSet<String>,
    manifests: Vec<String>,
    /// Size of the names of functions in bytes.
    names: usize,
}

/// Reads a component: its imports and exports, and the manifests in it and its nested modules.
fn read(component: &Component) -> Found {
    let mut found = Found::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component.wasm) {
        match payload.expect("a whole component") {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentExportSection(section) if depth == 0 => {
                found.exports.extend(
                    section.into_iter().map(|e| e.expect("an export").name.name.to_owned()),
                );
            }
            Payload::ComponentImportSection(section) if depth == 0 => {
                found.imports.extend(
                    section.into_iter().map(|i| i.expect("an import").name.name.to_owned()),
                );
            }
            Payload::CustomSection(section) if section.name() == "tollhouse:manifest" => {
                found.manifests.push(String::from_utf8_lossy(section.data()).into_owned());
            }
            Payload::CustomSection(section) if section.name() == "name" => {
                found.names += section.data().len();
            }
            _ => {}
        }
    }
    found
}

fn exports(wasm: &'static [u8], interfaces: &[&str]) {
    let wanted = interfaces.iter().map(|name| format!("tollhouse:plugin/{name}@1.0.0")).collect();
    assert_eq!(read(&Component { name: "", wasm }).exports, wanted);
}

fn africastalking() {
    exports(artifacts::AFRICASTALKING, &["sms"]);
}

fn atlantis() {
    exports(artifacts::ATLANTIS, &["identity-document", "identity-face", "identity-lookup"]);
}

fn ghana() {
    exports(artifacts::GHANA, &["identity-face", "identity-lookup"]);
}

fn jenga() {
    exports(artifacts::JENGA, &["sessions"]);
}

fn mpesa() {
    exports(artifacts::MPESA, &["session-refunds", "sessions"]);
}

fn nigeria() {
    exports(artifacts::NIGERIA, &["identity-document", "identity-face", "identity-lookup"]);
}

fn provider_a() {
    let more = ["disputes", "mandates", "partial-debits", "settlements"];
    exports(artifacts::PROVIDER_A, &[&ALL[..], &more].concat());
}

fn provider_b() {
    exports(artifacts::PROVIDER_B, &[&ALL[..], &["disputes", "settlements"]].concat());
}

fn provider_c() {
    exports(
        artifacts::PROVIDER_C,
        &[&ALL[..], &["account-enquiry", "mandates", "settlements", "virtual-accounts"]].concat(),
    );
}

fn sapling() {
    exports(artifacts::SAPLING, &["sessions"]);
}

fn sprout() {
    exports(artifacts::SPROUT, &BASIC);
}

fn termii() {
    exports(artifacts::TERMII, &["sms"]);
}

fn twilio() {
    exports(artifacts::TWILIO, &["sms"]);
}

fn unruly() {
    exports(artifacts::UNRULY, &BASIC);
}

/// A component that is not listed above does not compile here.
#[test]
fn components_export_exactly_the_listed_interfaces() {
    macro_rules! check {
        ($name:ident) => {
            $name();
        };
    }
    artifacts::foreach_component!(check);
}

#[test]
fn manifests_are_complete_and_have_the_folders_name() {
    for component in BUILT_IN.iter().chain(GUESTS) {
        let [manifest] = &read(component).manifests[..] else {
            panic!("{component:?} does not have exactly one manifest");
        };
        let manifest: Value = serde_json::from_str(manifest).unwrap();
        assert_eq!(manifest["name"], component.name);
        for key in ["kind", "version", "display_name", "hosts", "secrets", "settings"] {
            assert!(!manifest[key].is_null(), "{component:?} has no {key}");
        }
    }
}

#[test]
fn components_import_only_the_contract_and_wasi() {
    for component in BUILT_IN.iter().chain(GUESTS) {
        for import in read(component).imports {
            let known = ["tollhouse:plugin/", "wasi:cli/", "wasi:clocks/", "wasi:io/"];
            let odd = ["wasi:filesystem/", "wasi:random/", "wasi:sockets/"];
            assert!(
                known.iter().chain(&odd).any(|start| import.starts_with(start)),
                "{component:?} imports {import}"
            );
        }
    }
}

/// Names do not count, because their length depends on the compiler's version.
#[test]
fn built_in_components_without_names_are_below_512_kib() {
    for component in BUILT_IN {
        let size = component.wasm.len() - read(component).names;
        assert!(size < 512 << 10, "{component:?} has {size} bytes without names");
    }
}
