//! Examines a plugin before anybody installs it: admission, and then every function with what an upstream and a caller may do to it.
//!
//! Nothing leaves, and no database is asked: the manifest's examples answer in the upstream's place, or troubles in theirs. What fails
//! is demanded by `docs/PLUGINS.md`; the rest is a note. A report of the same component is the same every time, but for the processor time.

mod example;
mod hostile;
mod inspection;
mod judge;
mod lines;
mod notifications;
mod readable;
mod report;
mod subject;
mod trouble;
mod troubles;
mod upstream;
mod watch;

pub use self::report::{Case, Failing, Outcome, Report, Taken};
use self::{inspection::Inspection, subject::Subject};
use crate::plugins::{Call, Limits};

/// Examines a component. `Err` is about this machine, and nothing about the component.
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
