//! `tollhouse plugin check`: admission, then each function with examples, failures and hostile
//! input.
//!
//! No request leaves the host, and no database is used: responses are the manifest's examples or
//! injected failures. Violations of `docs/PLUGINS.md` fail, other findings are notes. Apart from
//! CPU time, reports are reproducible.

mod example;
mod hostile;
mod inspection;
mod invariants;
mod manifest_keys;
mod notifications;
mod readable;
mod report;
mod rules;
mod subject;
mod upstream;

/// Names that most inspections use.
mod prelude {
    pub(super) use super::{
        inspection::Inspection,
        readable,
        report::{CaseFailure, CaseOutcome},
        subject::ObservedCall,
        upstream::{FailurePlan, ObservedRequest},
    };
    pub(super) use tollhouse_plugins::{Call, CallError, PluginKind, PluginReply, Webhook};
}

pub use self::report::{CaseFailure, CaseOutcome, CheckCase, CheckReport, FunctionUsage};
use self::{
    example::cases, inspection::Inspection, subject::CheckSubject, upstream::failure_cases,
};
use tollhouse_plugins::{Call, Limits};

/// Checks a component. `Err` concerns this machine, not the component.
pub async fn check(wasm: Vec<u8>, limits: Limits) -> Result<CheckReport, String> {
    let keys = manifest_keys::inspect(&wasm);
    let (checks, subject) = CheckSubject::load(wasm, limits).await?;
    let mut report = CheckReport::of(checks);
    report.cases.extend(keys);
    if let Some(subject) = subject {
        report.plugin = Some(subject.plugin.label().to_owned());
        for unbound in subject.plugin.manifest().secrets.warnings() {
            let outcome = CaseOutcome::noted(unbound);
            report.cases.push(CheckCase::new("admission", "secrets", outcome));
        }
        report.cases.extend(cases::inspect_functions(&subject));
        for call in Call::examples(&subject.plugin) {
            let mut inspection = Inspection::new(&subject, &call);
            let usual = example::inspect(&mut inspection).await;
            cases::inspect(&mut inspection).await;
            failure_cases::inspect(&mut inspection, &usual).await;
            hostile::inspect(&mut inspection, &usual).await;
            notifications::inspect(&mut inspection).await;
            let (cases, taken) = inspection.finish();
            report.cases.extend(cases);
            report.functions.push(taken);
        }
    }
    report.passed = report.count().0 == 0;
    Ok(report)
}
