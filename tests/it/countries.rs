//! Conformance suite of country plugins: driven by their manifests, against the simulators of their
//! registers.

use serde_json::{Value, json};
use tollhouse_plugins::{IdentityType, Manifest, PluginKind};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Reply, TestApp},
    codes::{balance, credit, status_and_message},
    identity::{count_uids, install},
};

struct Subject {
    name: &'static str,
    wasm: &'static [u8],
    /// Its registers in the order of their use, by the names for fault injection.
    registers: &'static [&'static str],
}

const SUBJECTS: [Subject; 2] = [
    Subject { name: "ghana", wasm: artifacts::GHANA, registers: &["prembly"] },
    Subject { name: "nigeria", wasm: artifacts::NIGERIA, registers: &["prembly", "dojah"] },
];

/// Returns the lookup methods of a type: path suffix, and request body for this number.
fn lookup_methods(app: &TestApp, kind: &IdentityType, number: &str) -> Vec<(&'static str, Value)> {
    let picture = |of: &str| format!("{}/images/{of}-{number}.jpg", app.simulators.url());
    let mut ways = vec![("lookup", json!({ &kind.field: number }))];
    if kind.face {
        let body = json!({ &kind.field: number, "image": picture("match") });
        ways.push(("lookup/with-face", body));
    }
    if kind.document {
        ways.push(("lookup/image", json!({ "image": picture("document") })));
    }
    ways
}

impl Subject {
    fn identities(&self) -> Vec<IdentityType> {
        let manifest = Manifest::read(self.wasm).expect("a built-in component");
        manifest.country.expect("a country").identities
    }

    async fn look_up(
        &self,
        app: &TestApp,
        kind: &IdentityType,
        (end, body): (&str, Value),
    ) -> Reply {
        app.post(&format!("/kyc/{}/{}/{end}", self.name, kind.path), body).await
    }
}

#[test]
fn every_built_in_country_is_tested() {
    let kind = |wasm| Manifest::read(wasm).expect("a built-in component").kind;
    let countries =
        artifacts::BUILT_IN.iter().filter(|built| kind(built.wasm) == PluginKind::Country);
    let names: Vec<&str> = countries.map(|component| component.name).collect();
    assert_eq!(names, SUBJECTS.map(|subject| subject.name));
}

both! {
    async fn every_lookup_method_in_the_manifest_finds_a_person(app: TestApp) {
        for subject in SUBJECTS {
            install(app, subject.name, subject.wasm).await;
            credit(app, 10_000, subject.name).await;
            for kind in subject.identities() {
                let name = &kind.display_name;
                let number = kind.example.clone();
                for way in lookup_methods(app, &kind, &number) {
                    let before = balance(app).await;
                    let found = subject.look_up(app, &kind, way).await;
                    assert_eq!(status_and_message(&found), (200, &*format!("{name} lookup successful")));
                    let uid = found.data();
                    assert_eq!(uid["identity_name"], format!("{}.{}", subject.name, kind.name));
                    assert!(uid["details"].as_object().expect("an object").len() > 3, "{uid}");
                    let methods = uid["can_be_verified_by"].as_array().expect("a list");
                    assert_eq!(methods.contains(&json!("face_validation")), kind.face, "{name}");
                    let reachable = !uid["email"].is_null() || !uid["phone_number"].is_null();
                    assert_eq!(methods.contains(&json!("otp")), kind.otp && reachable, "{name}");
                    assert!(balance(app).await.as_f64() < before.as_f64(), "{name}");
                }
            }
        }
    }

    async fn a_person_in_no_register_is_not_found(app: TestApp) {
        for subject in SUBJECTS {
            install(app, subject.name, subject.wasm).await;
            credit(app, 10_000, subject.name).await;
            for kind in subject.identities() {
                let number = format!("{}10000", &kind.example[..kind.example.len() - 5]);
                let noun = kind.display_name.to_lowercase();
                for way in lookup_methods(app, &kind, &number) {
                    let (end, missing) = (way.0, subject.look_up(app, &kind, way).await);
                    assert_eq!(missing.failure(), (404, &*format!("{noun} data not found")), "{end}");
                }
            }
        }
        assert_eq!(count_uids(app).await, 0);
    }

    async fn lookups_get_502_while_all_registers_fail(app: TestApp) {
        use FaultKind::{Cut, CutAfter, Error500, Malformed};
        for subject in SUBJECTS {
            install(app, subject.name, subject.wasm).await;
            credit(app, 10_000, subject.name).await;
            let kind = subject.identities().remove(0);
            let noun = kind.display_name.to_lowercase();
            let number = kind.example.clone();
            for fault in [Cut, CutAfter, Error500, Malformed] {
                for register in subject.registers {
                    app.simulators.faults().push(Fault::new(register, fault));
                }
                let refused = subject.look_up(app, &kind, lookup_methods(app, &kind, &number).remove(0)).await;
                let outage = format!("{noun} service is unavailable, please try again later");
                assert_eq!(refused.failure(), (502, &*outage), "{fault:?}");
                subject.look_up(app, &kind, lookup_methods(app, &kind, &number).remove(0)).await.data();
            }
        }
    }
}
