//! The cases of the manifest's examples: calls with other responses, and their expected results.

use super::{
    super::{prelude::*, report::CheckCase, subject::CheckSubject},
    missing_example,
};
use tollhouse_plugins::{ExampleCase, Examples};

const STATUSES: &str = "examples of each status";

/// Makes the calls of the cases of a function.
pub async fn inspect(inspection: &mut Inspection<'_>) {
    let plugin = inspection.subject.plugin.clone();
    let function = inspection.call.function();
    let cases = plugin.manifest().examples.cases().iter();
    for case in cases.filter(|case| case.function == function) {
        let Some(call) = Call::of_case(&plugin, case) else { continue };
        let name = title(case);
        let ran = inspection.subject.run_case(&call, case).await;
        inspection.record_call(&ran, &name, &[]);
        inspection.add_case(name, evaluate(case, &ran));
    }
    if matches!(inspection.call, Call::Verify(_) | Call::VerifySession(_)) {
        inspection.add_case(STATUSES, note_on_statuses(&plugin.manifest().examples, function));
    }
}

/// Notes the statuses of a payment that no case expects. The example itself should show a success.
fn note_on_statuses(examples: &Examples, function: &str) -> CaseOutcome {
    let expected = |status: &str| {
        examples.cases().iter().any(|case| case.function == function && case.expect == status)
    };
    let missing: Vec<&str> =
        ["failed", "pending"].into_iter().filter(|status| !expected(status)).collect();
    if missing.is_empty() {
        return CaseOutcome::Passed;
    }
    CaseOutcome::noted(format!(
        "no example shows a payment with the status {}: add cases to examples in the manifest, \
         so that each status is checked",
        missing.join(" or ")
    ))
}

/// Returns a failed case for each case of a function that the plugin does not have.
pub fn inspect_functions(subject: &CheckSubject) -> Vec<CheckCase> {
    let cases = subject.plugin.manifest().examples.cases().iter();
    let unknown = cases.filter(|case| Call::of_case(&subject.plugin, case).is_none());
    unknown
        .map(|case| {
            let expected = "a function of an exported interface, for example verification.verify";
            let failure = CaseFailure::new(expected, case.function.clone(), None);
            CheckCase::new("admission", title(case), CaseOutcome::Failed(failure))
        })
        .collect()
}

fn title(case: &ExampleCase) -> String {
    format!("the case {:?}", case.name)
}

fn evaluate(case: &ExampleCase, ran: &ObservedCall) -> CaseOutcome {
    if let Some(seen) = ran.requests.iter().find(|seen| seen.example.is_none()) {
        return CaseOutcome::failed(missing_example(seen), ran, Some(seen));
    }
    let result = match &ran.reply {
        Ok(reply) => reply.summary().to_owned(),
        Err(error) => error.fault.category.name().replace('_', "-"),
    };
    if result == case.expect {
        return CaseOutcome::Passed;
    }
    let expected = format!("the result {:?}; the call has the result {result:?}", case.expect);
    CaseOutcome::failed(expected, ran, ran.requests.last())
}
