//! `tollhouse plugin check`: admission, then each function with examples, failures and hostile
//! input.
//!
//! No request leaves the host, and no database is used: responses are the manifest's examples or
//! injected failures. Violations of `docs/PLUGINS.md` fail, other findings are notes. Apart from
//! CPU time, reports are reproducible.

mod example;
mod hostile;
mod inspection;
mod judge;
mod lines;
mod notifications;
mod readable;
mod report;
mod subject;
mod upstream;
mod watch;

pub use self::report::{Case, Failing, Outcome, Report, Taken};
use self::{inspection::Inspection, subject::Subject, upstream::troubles};
use tollhouse_plugins::{Call, Limits};

/// Checks a component. `Err` concerns this machine, not the component.
pub async fn check(wasm: Vec<u8>, limits: Limits) -> Result<Report, String> {
    let (checks, subject) = Subject::load(wasm, limits).await?;
    let mut report = Report::of(checks);
    if let Some(subject) = subject {
        report.plugin = Some(subject.plugin.label().to_owned());
        let unbound = subject.plugin.manifest().secrets.warnings();
        report.note_about_admission("secrets", unbound);
        for call in Call::examples(&subject.plugin) {
            let mut inspection = Inspection::new(&subject, &call);
            let usual = example::inspect(&mut inspection).await;
            troubles::inspect(&mut inspection, &usual).await;
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
