//! Every upstream failure of every request of a function.

use super::failure::{FAILURES, UpstreamFailure};
use crate::check::{
    prelude::*,
    rules::{self, Assessment, ResultClass},
};

/// `usual` is the example call.
pub async fn inspect(inspection: &mut Inspection<'_>, usual: &ObservedCall) {
    let is_provider = inspection.kind == PluginKind::Provider;
    for (at, seen) in usual.requests.iter().enumerate() {
        for failure in &FAILURES {
            if failure.applies_to(seen.example.as_ref())
                && !(is_provider && failure.contains_personal_data())
            {
                let case = format!("request {}: {}", at + 1, failure.name);
                let outcome = run_failure(inspection, failure, at, &case).await;
                inspection.add_case(case, outcome);
            }
        }
    }
}

/// Injects a failure once. If the plugin sends further requests, a retry or another upstream may
/// have succeeded, so the result is judged with a lasting failure.
async fn run_failure(
    inspection: &mut Inspection<'_>,
    failure: &'static UpstreamFailure,
    at: usize,
    case: &str,
) -> CaseOutcome {
    let plan = |end| Some(FailurePlan { failure, requests: at..end });
    let mut ran = inspection.run(plan(at + 1), case).await;
    let result = ResultClass::of(inspection.call, &ran.reply);
    if ran.requests.len() > at + 1 && result != ResultClass::Aborted {
        ran = inspection.run(plan(usize::MAX), case).await;
    }
    let result = ResultClass::of(inspection.call, &ran.reply);
    match rules::evaluate(inspection.kind, inspection.call.function(), failure.meaning, result) {
        Assessment::Conforms => CaseOutcome::Passed,
        Assessment::Note(note) => CaseOutcome::noted(note),
        Assessment::Violation(expected) => {
            CaseOutcome::failed(expected, &ran, ran.requests.get(at))
        }
    }
}
