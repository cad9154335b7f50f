//! One operation (a request or one run of a job) uses one version of a plugin, even if there is a
//! canary or another version is activated meanwhile.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::state;
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{PAYSTACK_KEY, Reply, TestApp, reply},
    lending::{
        SUCCESS_CARD, create_card, create_loan, create_recollection, create_user, put_loan,
        saved_card,
    },
    plugins::{sprout_1_1, try_install},
    sprout::{SproutUpstream, repack},
    telemetry::scrape,
};

/// The active version and the canary.
const OLD: &str = "1.0.0";
const NEW: &str = "1.0.1";
const ROUNDS: usize = 10;

/// Starts a canary for half of all operations. It accepts only cards, NGN and references without
/// dots.
async fn start_canary(app: &TestApp) {
    let canary = repack(artifacts::PROVIDER_A, |manifest| {
        manifest["version"] = json!(NEW);
        (manifest["channels"], manifest["currencies"]) = (json!(["card"]), json!(["NGN"]));
        manifest["reference"]["alphabet"] = json!("-");
    });
    let canary =
        try_install(app, canary, "grant=true&activate=false").await.data()["digest"].clone();
    let body = json!({ "digest": canary, "percent": 50 });
    app.operator(Method::POST, "/plugins/provider_a/canary", body).await.data();
}

/// Number of calls of a version without those for webhooks: Paystack sends them at any time, and
/// each is an operation of its own.
async fn calls_of(app: &TestApp, version: &str) -> u64 {
    let begin =
        format!("tollhouse_plugin_calls_total{{plugin=\"provider_a\",version=\"{version}\"");
    let page = scrape(app).await;
    let is_notification = |line: &&str| line.contains("notifications.parse");
    let series = page.lines().filter(|line| line.starts_with(&begin) && !is_notification(line));
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// Runs an operation. Returns its result, and the number of calls of the old and the new version.
async fn counted<T>(app: &TestApp, operation: impl Future<Output = T>) -> (T, [u64; 2]) {
    let before = [calls_of(app, OLD).await, calls_of(app, NEW).await];
    let given = operation.await;
    (given, [calls_of(app, OLD).await - before[0], calls_of(app, NEW).await - before[1]])
}

/// Numbers of operations that used the old and the new version.
#[derive(Default)]
struct VersionsUsed([usize; 2]);

impl VersionsUsed {
    /// Records the calls of an operation: at least `at_least`, all of one version.
    #[track_caller]
    fn record(&mut self, what: &str, calls: [u64; 2], at_least: u64) {
        let [old, new] = calls;
        assert!(old == 0 || new == 0, "{what} used both versions: {calls:?}");
        assert!(old + new >= at_least, "{what} made too few plugin calls: {calls:?}");
        self.0[0] += usize::from(old > 0);
        self.0[1] += usize::from(new > 0);
    }

    /// Returns whether a test may end after this number of rounds: each version was used. Fails
    /// after many rounds, because about half of them should have used each version.
    #[track_caller]
    fn are_enough(&self, rounds: usize) -> bool {
        let both = self.0.iter().all(|times| *times > 0);
        assert!(both || rounds < 10 * ROUNDS, "{:?}", self.0);
        both && rounds >= ROUNDS
    }
}

/// Creates a transaction with this reference at Paystack.
async fn take_reference(app: &TestApp, reference: &str) {
    let url = format!("{}/paystack/transaction/initialize", app.simulators.url());
    let order = json!({ "email": "bola@example.com", "amount": 500, "currency": "NGN", "reference": reference });
    let taken = reply(app.client.post(url).bearer_auth(PAYSTACK_KEY).json(&order)).await;
    assert_eq!(taken.status, 200, "{}", taken.body);
}

fn fault(app: &TestApp, operation: &str, kind: FaultKind) {
    app.simulators.faults().push(Fault::new(operation, kind));
}

async fn verify(app: &TestApp, reference: &str) -> Reply {
    app.post(&format!("/payment/verify/{reference}"), json!({})).await
}

/// Puts a loan in a currency that the new version does not accept.
async fn put_dollar_loan(app: &TestApp) {
    put_loan(
        app,
        "dollars",
        json!({
            "user_id": "ada", "amount": 100, "currency": "USD", "disbursed": true,
            "schedule": [{ "due_date": "2027-01-01", "amount": 100 }],
        }),
    )
    .await;
}

both! {
    async fn a_payment_follows_the_manifest_of_the_version_that_is_called(app: TestApp) {
        start_canary(app).await;
        let mut used = VersionsUsed::default();
        for n in 0.. {
            if used.are_enough(n) {
                break;
            }
            // The new version does not accept the dot, so it gets another reference, which is free.
            let reference = format!("order.{n}");
            take_reference(app, &reference).await;
            let (begun, calls) = counted(app, app.initialize(&reference)).await;
            let is_new = begun["channels"] == json!(["card"]);
            assert_ne!(begun["service_ref"], json!(reference));
            let expected = if is_new { [0, 1] } else { [2, 0] };
            assert_eq!(calls, expected, "{begun}");
            used.0[usize::from(is_new)] += 1;
        }
    }

    async fn each_operation_on_a_payment_uses_one_version(app: TestApp) {
        start_canary(app).await;
        let mut used = VersionsUsed::default();
        for n in 0.. {
            if used.are_enough(n) {
                break;
            }
            let reference = format!("order-{n}");
            fault(app, "initialize", FaultKind::CutAfter);
            let begin = app.post("/payment/initialize", app.order(&reference));
            let (lost, calls) = counted(app, begin).await;
            assert_eq!(lost.failure().0, 502);
            used.record("a payment", calls, 1);
            // The host verifies the lost attempt, then initializes under another reference.
            let (begun, calls) = counted(app, app.initialize(&reference)).await;
            used.record("a resumed payment", calls, 2);
            // Verifies both references.
            let (pending, calls) = counted(app, verify(app, &reference)).await;
            assert_eq!(pending.failure(), (400, "payment still pending"));
            used.record("a verification", calls, 2);
            // A job for each reference, and each chooses a version.
            let (_, calls) = counted(app, app.advance(60)).await;
            assert_eq!(calls[0] + calls[1], 2);
            app.complete(&begun, "success").await;
            app.run_until_idle().await;
            let path = format!("/companies/{}/payments/{}/refund", app.company.id, begun["id"].as_str().expect("an id"));
            let (refunded, calls) = counted(app, app.operator(Method::POST, &path, Value::Null)).await;
            assert_eq!(refunded.data()["status"], "refunded");
            used.record("a refund", calls, 1);
            // Until the payment has no job left.
            app.advance(10 * 3_600).await;
        }
    }

    async fn a_card_follows_the_currencies_of_the_version_that_is_called(app: TestApp) {
        create_user(app, "ada").await;
        start_canary(app).await;
        let mut used = VersionsUsed::default();
        let order = json!({ "user_id": "ada", "currency": "USD", "checkout": { "success_url": "https://a.example/" } });
        for n in 0.. {
            if used.are_enough(n / 2) {
                break;
            }
            let (begun, calls) = counted(app, app.post("/card/create", order.clone())).await;
            let is_new = begun.status != 200;
            if is_new {
                assert_eq!(begun.failure(), (400, "the currency field must be one of NGN"));
            }
            assert_eq!(calls, if is_new { [0, 0] } else { [1, 0] }, "{}", begun.body);
            used.0[usize::from(is_new)] += 1;
        }
        let card = create_card(app, "ada").await;
        let path = format!("/card/verify/{}", card["id"].as_str().expect("an id"));
        let (_, calls) = counted(app, app.post(&path, json!({}))).await;
        used.record("the verification of a card", calls, 1);
    }

    async fn each_operation_on_a_repayment_uses_one_version(app: TestApp) {
        create_user(app, "ada").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        put_dollar_loan(app).await;
        create_loan(app, "loan-1", "ada", &[(30, 10_000.0)]).await;
        app.advance(3 * 3_600).await;
        start_canary(app).await;
        let mut used = VersionsUsed::default();
        for n in 0.. {
            if used.are_enough(n) {
                break;
            }
            // A charge whose response was lost is verified, and repeated after a minute.
            fault(app, "charge", FaultKind::Cut);
            let reference = format!("charge-{n}");
            let card = json!({
                "loan": "loan-1", "with_provider": true, "payment_channel": "card", "amount": 5, "reference": reference,
            });
            create_recollection(app, card).await.data();
            let (_, calls) = counted(app, app.run_until_idle()).await;
            used.record("a charge", calls, 1);
            let path = format!("/recollection/verify/{reference}");
            let (_, calls) = counted(app, app.post(&path, json!({}))).await;
            used.record("a verification", calls, 1);
            app.advance(60).await;
        }
        let mut used = VersionsUsed::default();
        let page = json!({
            "loan": "dollars", "with_provider": true, "payment_channel": "checkout", "amount": 5,
            "checkout": { "success_url": "https://a.example/" },
        });
        for n in 0.. {
            if used.are_enough(n / 2) {
                break;
            }
            let (begun, calls) = counted(app, create_recollection(app, page.clone())).await;
            let is_new = begun.status != 200;
            if is_new {
                assert_eq!(begun.failure(), (400, "provider_a does not support USD"));
            }
            assert_eq!(calls, if is_new { [0, 0] } else { [1, 0] }, "{}", begun.body);
            used.0[usize::from(is_new)] += 1;
        }
    }

    async fn an_operation_ends_on_the_version_that_it_began_with(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        upstream.configure_account(app).await;
        let version = |app: &state::App, company: &str| {
            app.plugins.provider("sprout", company).map(|plugin| plugin.manifest().version.minor).ok()
        };
        let id = &*app.company.id;
        let (began, idle) = (app.app.for_operation(), app.app.for_operation());
        assert_eq!(version(&began, id), Some(0));
        app.install(&sprout_1_1()).await;
        assert_eq!((version(&began, id), version(&began.clone(), id)), (Some(0), Some(0)));
        // An operation that has not used the plugin yet gets the new version.
        assert_eq!((version(&idle, id), version(&app.app.for_operation(), id)), (Some(1), Some(1)));
        app.operator(Method::POST, "/plugins/sprout/deactivate", json!({})).await.data();
        assert_eq!((version(&began, id), version(&idle, id)), (Some(0), Some(1)));
        assert_eq!(version(&app.app.for_operation(), id), None);
        // Within an operation, too, a provider is not returned as a gateway.
        assert!(began.plugins.gateway("sprout", id).is_none());
    }
}
