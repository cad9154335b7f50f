//! Recordings of provider calls contain no personal data and no secrets, and replay in the same
//! component without differences.

use std::collections::BTreeSet;

use super::{Subject, cards, debits, refunds, replaces_reference};
use crate::{
    app::{Engine, PAYSTACK_KEY, TestApp},
    recordings::{RECORDING_FLAGS, fetch_recording, persisted_recordings, replayer},
};

const FUNCTIONS: [&str; 8] = [
    "checkout.start", "direct-debit.debit", "notifications.parse", "refunds.check",
    "refunds.start", "saved-card.charge", "saved-card.deauthorize", "verification.verify",
];

pub async fn repeats<S: Subject>() {
    let mut functions = BTreeSet::new();
    for part in 0..5 {
        let app = TestApp::start_with(Engine::Sqlite, RECORDING_FLAGS).await;
        match part {
            0 => refunds::are_made_once::<S>(&app).await,
            1 => replaces_reference::<S>(&app).await,
            2 => cards::verifies::<S>(&app).await,
            3 => cards::charges::<S>(&app).await,
            _ => debits::debits::<S>(&app).await,
        }
        functions.extend(check::<S>(&app).await);
        app.finish().await;
    }
    assert!(functions.iter().eq(FUNCTIONS), "{functions:?}");
}

/// Checks all recordings of the provider; returns the recorded functions.
async fn check<S: Subject>(app: &TestApp) -> BTreeSet<String> {
    let listed = persisted_recordings(app, S::NAME).await;
    let component = artifacts::BUILT_IN.iter().find(|component| component.name == S::NAME);
    let replayer = replayer(component.expect("a built-in provider").wasm).await;
    for call in &listed {
        let id = call["id"].as_str().expect("an id");
        let (recording, text) = fetch_recording(app, S::NAME, id).await;
        // Long enough that no masked text contains one of them by chance.
        for private in ["ada@example", "Ada Obi", PAYSTACK_KEY, "sk_test", "FLWSECK", "MK_TEST"] {
            assert!(!text.contains(private), "{private} in {text}");
        }
        let again = replayer.replay(id, &recording).await;
        assert!(again.faithful, "{again}: {text}");
        assert!(again.differences.is_empty(), "{again}");
    }
    let function = |call: &serde_json::Value| call["function"].as_str().map(str::to_owned);
    listed.iter().filter_map(function).collect()
}
