//! Under any interleaving of sends and attempts a code passes once, and never after five wrong
//! attempts: random scripts of concurrent attempts and sends, on real transactions.

use futures::future::join_all;
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tollhouse_app::{
    messaging::{
        messages::{Channel, Destination},
        otp::{self, CheckOutcome, CodeKey, CodeRequest},
    },
    state::App,
    tenants::companies::{self, Company},
};
use tollhouse_platform::{error::Error, store::Tx};

use crate::app::{Engine, TestApp, postgres};

/// Operations that run concurrently.
#[derive(Clone, Debug)]
struct Step {
    right: usize,
    wrong: usize,
    /// Attempts with the previous code.
    former: usize,
    /// Sends a new code meanwhile.
    sends: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let tries = (0..3_usize, 0..7_usize, 0..2_usize);
    (tries, any::<bool>()).prop_map(|((right, wrong, former), sends)| Step {
        right,
        wrong,
        former,
        sends,
    })
}

/// Expected state of the latest code.
#[derive(Clone, Copy, Debug, Default)]
struct Model {
    wrong: usize,
    used: bool,
}

struct Fixture<'a> {
    app: &'a TestApp,
    company: Company,
    key: CodeKey,
    /// Number of sent codes; each is different.
    sent: usize,
}

fn token(nth: usize) -> String {
    format!("{nth:08}")
}

impl Fixture<'_> {
    async fn send(&self, nth: usize) {
        let company = Company { fixed_otp: Some(token(nth)), ..self.company.clone() };
        let to = Destination { channel: Channel::Email, to: "ada@example.com".to_owned() };
        let order = CodeRequest {
            key: self.key.clone(),
            destinations: vec![to],
            digits: 8,
            minutes: 5,
            wording: None,
            purpose: "otp",
            run: None,
        };
        let order = async move |_: &mut Tx, _: &App, _: &Company| Ok(order);
        otp::send(&self.app.app, &company, order).await.expect("a sent code");
    }

    async fn check(&self, token: String) -> CheckOutcome {
        let (host, company) = (self.app.app.clone(), self.company.id.clone());
        let key = self.key.clone();
        let checked: Result<CheckOutcome, Error> = self
            .app
            .app
            .store
            .write(async move |tx| otp::check(tx, &host, &company, &key, &token, None).await)
            .await;
        checked.expect("a checked attempt")
    }

    /// Runs a step. Returns the results of the right, the wrong and the former attempts.
    async fn run(&self, step: &Step) -> [Vec<CheckOutcome>; 3] {
        let tries = |count: usize, token: String| {
            join_all((0..count).map(move |_| self.check(token.clone())))
        };
        let right = tries(step.right, token(self.sent));
        let wrong = tries(step.wrong, "99999999".to_owned());
        let former = tries(step.former, token(self.sent - 1));
        let send = async {
            if step.sends {
                self.send(self.sent + 1).await;
            }
        };
        let (right, wrong, former, ()) = tokio::join!(right, wrong, former, send);
        [right, wrong, former]
    }
}

fn count(tries: &[CheckOutcome], what: CheckOutcome) -> usize {
    tries.iter().filter(|tried| **tried == what).count()
}

/// Checks the results of a step without a send. Returns the new state of the code.
fn check_results(
    before: Model,
    step: &Step,
    [right, wrong, former]: &[Vec<CheckOutcome>; 3],
) -> Model {
    use CheckOutcome::{Cancelled, Passed, Wrong};
    let passed = count(right, Passed);
    assert_eq!(count(wrong, Passed) + count(former, Passed), 0, "a wrong code passed");
    if before.used {
        let all = [right, wrong, former].into_iter().flatten();
        assert!(all.clone().all(|tried| *tried == Wrong), "a used code is still valid");
        return before;
    }
    if before.wrong == 5 {
        let all = [right, wrong, former].into_iter().flatten();
        assert!(all.clone().all(|tried| *tried == Cancelled), "a cancelled code is still valid");
        return before;
    }
    let guesses = step.wrong + step.former;
    let cancelled: usize = [right, wrong, former].map(|tries| count(tries, Cancelled)).iter().sum();
    if passed > 0 {
        assert_eq!(passed, 1, "a code passed twice");
        assert_eq!(
            cancelled, 0,
            "a code passed after the fifth wrong attempt, or was cancelled after it passed"
        );
        return Model { used: true, ..before };
    }
    // The right code may fail only after five wrong attempts.
    let total = before.wrong + guesses;
    assert!(step.right == 0 || total >= 5, "the right code did not pass");
    if total >= 5 {
        let forgiven = count(wrong, Wrong) + count(former, Wrong);
        assert_eq!(
            forgiven,
            4 - before.wrong,
            "a code is not cancelled by exactly the fifth wrong attempt"
        );
        assert_eq!(count(right, Cancelled), step.right);
    } else {
        assert_eq!(cancelled, 0);
    }
    Model { wrong: total.min(5), used: false }
}

async fn run(app: &TestApp, steps: Vec<Step>) {
    let id = app.company.id.clone();
    let company: Result<Company, Error> =
        app.app.store.read(async |tx| companies::get(tx, &id).await).await;
    let identifier = app.app.new_id();
    let key = CodeKey {
        scope: otp::API_SCOPE,
        identifier,
        kind: "otp".to_owned(),
        address: String::new(),
    };
    let mut fixture = Fixture { app, company: company.expect("the company"), key, sent: 1 };
    fixture.send(1).await;
    let mut model = Model::default();
    for step in steps {
        let tried = fixture.run(&step).await;
        if step.sends {
            fixture.sent += 1;
            // Attempts before the send counted for the old code, those after it for the new one.
            let may_pass = usize::from(!model.used && model.wrong < 5);
            assert!(
                count(&tried[0], CheckOutcome::Passed) <= may_pass,
                "a used or cancelled code passed"
            );
            let others =
                count(&tried[1], CheckOutcome::Passed) + count(&tried[2], CheckOutcome::Passed);
            assert_eq!(others, 0, "a wrong code passed");
            fixture.send(fixture.sent).await;
            model = Model::default();
            assert_eq!(
                fixture.check(token(fixture.sent - 1)).await,
                CheckOutcome::Wrong,
                "a former code is still valid"
            );
            model.wrong += 1;
        } else {
            model = check_results(model, &step, &tried);
        }
    }
    app.run_until_idle().await;
}

/// Cases are independent on one host: each has its own identifier.
async fn all_interleavings(engine: Engine, cases: u32) {
    let flags =
        ["--otp-wrong-per-hour=0", "--otp-sends-per-hour=0", "--otp-company-sends-per-hour=0"];
    let app = TestApp::start_with(engine, &flags).await;
    let handle = tokio::runtime::Handle::current();
    let app = tokio::task::spawn_blocking(move || {
        let mut runner = TestRunner::new(Config { cases, ..Config::default() });
        let tested = runner.run(&vec(step(), 1..6), |steps| {
            handle.block_on(run(&app, steps));
            Ok(())
        });
        if let Err(error) = tested {
            panic!("{error}");
        }
        app
    });
    app.await.expect("the property holds").finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_interleaving_lets_a_code_pass_twice_or_after_five_wrong_attempts_on_sqlite() {
    all_interleavings(Engine::Sqlite, 60).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_interleaving_lets_a_code_pass_twice_or_after_five_wrong_attempts_on_postgres() {
    let Some(server) = postgres() else { return };
    all_interleavings(Engine::Postgres(server), 60).await;
}
