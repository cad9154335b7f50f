//! The report of a check, for people and as JSON.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use super::readable::short;
use tollhouse_plugins::Check;

#[derive(Debug, Serialize)]
pub struct Report {
    /// `name@version` with the first digits of the digest; `null` if not admitted.
    pub plugin: Option<String>,
    pub passed: bool,
    pub cases: Vec<Case>,
    /// Maximum usage of a call, per function.
    pub functions: Vec<Taken>,
}

#[derive(Debug, Serialize)]
pub struct Case {
    /// A function, for example `checkout.start`, or `admission`.
    pub about: String,
    pub case: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Passed,
    /// Passed, with a note for the author.
    Noted {
        note: String,
    },
    Failed(Failing),
}

/// A violated requirement. Requests and responses are shortened and readable.
#[derive(Debug, Default, Serialize)]
pub struct Failing {
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
pub struct Taken {
    pub function: &'static str,
    pub requests: usize,
    pub memory_kib: usize,
    pub cpu_ms: f64,
}

impl Report {
    /// Creates a report from the results of admission.
    pub(super) fn of(checks: Vec<Check>) -> Report {
        let case = |Check { check, passed, said: found }: Check| Case {
            about: "admission".to_owned(),
            case: check.to_owned(),
            outcome: match passed {
                true => Outcome::Passed,
                false => {
                    let expected =
                        "the requirements of hosts: PLUGINS.md, \"Installing\"".to_owned();
                    Outcome::Failed(Failing { expected, found, ..Failing::default() })
                }
            },
        };
        let cases = checks.into_iter().map(case).collect();
        Report { plugin: None, passed: false, cases, functions: Vec::new() }
    }

    pub(super) fn note_about_admission(&mut self, case: &str, notes: Vec<String>) {
        self.cases.extend(notes.into_iter().map(|note| Case {
            about: "admission".to_owned(),
            case: case.to_owned(),
            outcome: Outcome::Noted { note },
        }));
    }

    /// Returns the numbers of failed cases and of all cases.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        (self.failures().count(), self.cases.len())
    }

    fn failures(&self) -> impl Iterator<Item = (&Case, &Failing)> {
        self.cases.iter().filter_map(|case| match &case.outcome {
            Outcome::Failed(failing) => Some((case, failing)),
            _ => None,
        })
    }

    /// Returns the notes with their cases.
    fn notes(&self) -> BTreeMap<&str, Vec<String>> {
        let mut notes = BTreeMap::<_, Vec<String>>::new();
        for Case { about, case, outcome } in &self.cases {
            if let Outcome::Noted { note } = outcome {
                notes.entry(&**note).or_default().push(format!("{about}: {case}"));
            }
        }
        notes
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (failed, all) = self.count();
        let name = self.plugin.as_deref().unwrap_or("the component is not admitted");
        match failed {
            0 => writeln!(f, "{name}: {all} cases passed")?,
            _ => writeln!(f, "{name}: {failed} of {all} cases failed")?,
        }
        for (Case { about, case, .. }, failing) in self.failures() {
            writeln!(f, "\nFAILED  {about}: {case}")?;
            writeln!(f, "  expected  {}", failing.expected)?;
            writeln!(f, "  found     {}", short(&failing.found))?;
            for (what, text) in [("request", &failing.request), ("answer", &failing.answer)] {
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
        writeln!(
            f,
            "\n{:24}{:>8}{:>14}{:>10}",
            "maximum of a call", "requests", "memory KiB", "cpu ms"
        )?;
        for Taken { function, requests, memory_kib, cpu_ms } in &self.functions {
            writeln!(f, "{function:24}{requests:>8}{memory_kib:>14}{cpu_ms:>10.1}")?;
        }
        Ok(())
    }
}
