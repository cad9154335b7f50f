//! Every upstream failure of every request of a function.

use super::{FailureDuration, ResponsePlan, failure::UpstreamFailure};
use crate::check::{
    inspection::{Inspection, case_failure},
    report::CaseOutcome,
    rules::{self, Assessment, ResultClass},
    subject::ObservedCall,
};
use tollhouse_plugins::PluginKind;

/// `usual` is the example call.
pub async fn inspect(inspection: &mut Inspection<'_>, usual: &ObservedCall) {
    let kind = inspection.subject.plugin.manifest().kind;
    for (at, seen) in usual.requests.iter().enumerate() {
        for trouble in UpstreamFailure::ALL {
            if trouble.applies_to(seen.example.as_ref())
                && (kind != PluginKind::Provider || !trouble.contains_personal_data())
            {
                let case = format!("request {}: {}", at + 1, trouble.name());
                let outcome = run_failure(inspection, trouble, at, &case).await;
                inspection.add_case(case, outcome);
            }
        }
    }
}

/// Injects a failure once. If the plugin sends further requests, a retry or another upstream may
/// have succeeded, so the result is judged with a lasting failure.
async fn run_failure(
    inspection: &mut Inspection<'_>,
    trouble: UpstreamFailure,
    at: usize,
    case: &str,
) -> CaseOutcome {
    let once =
        inspection.run(ResponsePlan::with_failure(trouble, at, FailureDuration::Once), case).await;
    if once.requests.len() <= at + 1 {
        return outcome(inspection, trouble, at, &once);
    }
    if ResultClass::of(inspection.call, &once.reply) == ResultClass::Aborted {
        return CaseOutcome::Failed(case_failure(
            rules::EXPECT_RESULT,
            &once,
            once.requests.get(at),
        ));
    }
    let lasting = inspection
        .run(ResponsePlan::with_failure(trouble, at, FailureDuration::Permanent), case)
        .await;
    outcome(inspection, trouble, at, &lasting)
}

fn outcome(
    inspection: &Inspection<'_>,
    trouble: UpstreamFailure,
    at: usize,
    ran: &ObservedCall,
) -> CaseOutcome {
    let kind = inspection.subject.plugin.manifest().kind;
    let said = ResultClass::of(inspection.call, &ran.reply);
    match rules::evaluate(kind, inspection.function, trouble.meaning(), said) {
        Assessment::Conforms => CaseOutcome::Passed,
        Assessment::Note(note) => CaseOutcome::Noted { note: note.to_owned() },
        Assessment::Violation(expected) => {
            CaseOutcome::Failed(case_failure(expected, ran, ran.requests.get(at)))
        }
    }
}
