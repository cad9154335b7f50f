//! The report of a check, for people and as JSON.

use super::{
    readable::{self, shorten},
    subject::ObservedCall,
    upstream::ObservedRequest,
};
use crate::prelude::*;

const CASE_COUNTS: &str = "\
The number of cases is not a score: each function, and each request of its example call, adds cases,
and a failed example hides some.";

#[derive(Debug, Serialize)]
pub struct CheckReport {
    /// `name@version` with the first digits of the digest; `null` if not admitted.
    pub plugin: Option<String>,
    pub passed: bool,
    pub cases: Vec<CheckCase>,
    /// Maximum usage of a call, per function.
    pub functions: Vec<FunctionUsage>,
}

#[derive(Debug, Serialize)]
pub struct CheckCase {
    /// A function, for example `checkout.start`, or `admission`.
    pub about: String,
    pub case: String,
    #[serde(flatten)]
    pub outcome: CaseOutcome,
}

#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CaseOutcome {
    Passed,
    /// Passed, with a note for the author.
    Noted {
        note: String,
    },
    Failed(CaseFailure),
}

/// A violated requirement. Requests and responses are shortened and readable.
#[derive(Debug, Serialize)]
pub struct CaseFailure {
    pub expected: String,
    pub found: String,
    /// The plugin's request, or the webhook that it received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The upstream's response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// Maximum usage of a call over all cases.
#[derive(Debug, Default, Serialize)]
pub struct FunctionUsage {
    pub function: &'static str,
    pub requests: usize,
    pub memory_kib: usize,
    pub cpu_ms: f64,
}

impl CheckCase {
    pub(super) fn new(about: &str, case: impl Into<String>, outcome: CaseOutcome) -> CheckCase {
        CheckCase { about: about.to_owned(), case: case.into(), outcome }
    }
}

impl CaseOutcome {
    pub(super) fn noted(note: impl Into<String>) -> CaseOutcome {
        CaseOutcome::Noted { note: note.into() }
    }

    /// Creates a failure of a call with an unexpected reply. `about` is the request concerned.
    pub(super) fn failed(
        expected: impl Into<String>,
        ran: &ObservedCall,
        about: Option<&ObservedRequest>,
    ) -> CaseOutcome {
        CaseOutcome::Failed(CaseFailure::new(expected, readable::reply(&ran.reply), about))
    }
}

impl CaseFailure {
    pub(super) fn new(
        expected: impl Into<String>,
        found: String,
        about: Option<&ObservedRequest>,
    ) -> CaseFailure {
        CaseFailure {
            expected: expected.into(),
            found,
            request: about.map(readable::request),
            answer: about.map(|seen| readable::response(&seen.response)),
        }
    }
}

impl CheckReport {
    /// Creates a report from the results of admission.
    pub(super) fn of(checks: Vec<AdmissionCheck>) -> CheckReport {
        let expected =
            "this admission step to pass: docs/PLUGINS.md, \"Installing, upgrading, rolling back\"";
        let case = |AdmissionCheck { check, passed, result: found }: AdmissionCheck| {
            let outcome = match passed {
                true => CaseOutcome::Passed,
                false => CaseOutcome::Failed(CaseFailure::new(expected, found, None)),
            };
            CheckCase::new("admission", check, outcome)
        };
        let cases = checks.into_iter().map(case).collect();
        CheckReport { plugin: None, passed: false, cases, functions: Vec::new() }
    }

    /// Returns the numbers of failed cases and of all cases.
    pub fn count(&self) -> (usize, usize) {
        (self.failures().count(), self.cases.len())
    }

    fn failures(&self) -> impl Iterator<Item = (&CheckCase, &CaseFailure)> {
        self.cases.iter().filter_map(|case| match &case.outcome {
            CaseOutcome::Failed(failing) => Some((case, failing)),
            _ => None,
        })
    }

    /// Returns the notes with their cases.
    fn notes(&self) -> BTreeMap<&str, Vec<String>> {
        let mut notes = BTreeMap::<_, Vec<String>>::new();
        for CheckCase { about, case, outcome } in &self.cases {
            if let CaseOutcome::Noted { note } = outcome {
                notes.entry(&**note).or_default().push(format!("{about}: {case}"));
            }
        }
        notes
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (failed, all) = self.count();
        let name = self.plugin.as_deref().unwrap_or("the component is not admitted");
        let noted = |case: &&CheckCase| matches!(case.outcome, CaseOutcome::Noted { .. });
        match (failed, self.cases.iter().filter(noted).count()) {
            (0, 0) => writeln!(f, "{name}: {all} cases passed")?,
            (0, noted) => writeln!(f, "{name}: {all} cases passed, {noted} of them with notes")?,
            _ => writeln!(f, "{name}: {failed} of {all} cases failed")?,
        }
        for (CheckCase { about, case, .. }, failing) in self.failures() {
            writeln!(f, "\nFAILED  {about}: {case}")?;
            writeln!(f, "  expected  {}", failing.expected)?;
            writeln!(f, "  found     {}", shorten(&failing.found))?;
            for (what, text) in [("request", &failing.request), ("response", &failing.answer)] {
                if let Some(text) = text {
                    writeln!(f, "  {what:8}  {text}")?;
                }
            }
        }
        for (note, cases) in self.notes() {
            writeln!(f, "\nnote    {note}")?;
            cases.iter().try_for_each(|case| writeln!(f, "  {case}"))?;
        }
        if self.functions.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nmaximum per call        requests    memory KiB    cpu ms")?;
        for FunctionUsage { function, requests, memory_kib, cpu_ms } in &self.functions {
            writeln!(f, "{function:24}{requests:>8}{memory_kib:>14}{cpu_ms:>10.1}")?;
        }
        writeln!(f, "\n{CASE_COUNTS}")
    }
}
