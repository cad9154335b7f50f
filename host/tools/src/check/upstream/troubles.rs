//! Every upstream failure of every request of a function.

use super::{Lasting, Plan, trouble::Trouble};
use crate::check::{
    inspection::{Inspection, failing},
    judge::{self, Judgement, Said},
    report::Outcome,
    subject::Ran,
};
use tollhouse_plugins::Kind;

/// `usual` is the example call.
pub async fn inspect(inspection: &mut Inspection<'_>, usual: &Ran) {
    let kind = inspection.subject.plugin.manifest().kind;
    for (at, seen) in usual.requests.iter().enumerate() {
        for trouble in Trouble::ALL {
            if trouble.fits(seen.example.as_ref()) && (kind != Kind::Provider || !trouble.gossips())
            {
                let case = format!("request {}: {}", at + 1, trouble.name());
                let outcome = once_and_for_good(inspection, trouble, at, &case).await;
                inspection.note(case, outcome);
            }
        }
    }
}

/// Injects a failure once. If the plugin sends further requests, a retry or another upstream may
/// have succeeded, so the result is judged with a lasting failure.
async fn once_and_for_good(
    inspection: &mut Inspection<'_>,
    trouble: Trouble,
    at: usize,
    case: &str,
) -> Outcome {
    let once = inspection.run(Plan::trouble(trouble, at, Lasting::Once), case).await;
    if once.requests.len() <= at + 1 {
        return outcome(inspection, trouble, at, &once);
    }
    if Said::of(inspection.call, &once.reply) == Said::Broke {
        return Outcome::Failed(failing(judge::BROKE, &once, once.requests.get(at)));
    }
    let lasting = inspection.run(Plan::trouble(trouble, at, Lasting::FromThenOn), case).await;
    outcome(inspection, trouble, at, &lasting)
}

fn outcome(inspection: &Inspection<'_>, trouble: Trouble, at: usize, ran: &Ran) -> Outcome {
    let kind = inspection.subject.plugin.manifest().kind;
    let said = Said::of(inspection.call, &ran.reply);
    match judge::judge(kind, inspection.function, trouble.meaning(), said) {
        Judgement::Fine => Outcome::Passed,
        Judgement::Note(note) => Outcome::Noted { note: note.to_owned() },
        Judgement::Wrong(expected) => Outcome::Failed(failing(expected, ran, ran.requests.get(at))),
    }
}
