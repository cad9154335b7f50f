//! The inspection of one function: makes calls, watches them, and collects the cases.

use super::{
    readable,
    report::{Case, Failing, Outcome, Taken},
    subject::{Ran, Subject},
    upstream::{Plan, Seen},
    watch::Watch,
};
use tollhouse_plugins::Call;

pub struct Inspection<'s> {
    pub subject: &'s Subject,
    pub call: &'s Call,
    pub function: &'static str,
    cases: Vec<Case>,
    watch: Watch,
    taken: Taken,
}

impl<'s> Inspection<'s> {
    pub fn new(subject: &'s Subject, call: &'s Call) -> Inspection<'s> {
        let function = call.function();
        let taken = Taken { function, ..Taken::default() };
        Inspection { subject, call, function, cases: Vec::new(), watch: Watch::default(), taken }
    }

    /// Makes the example call.
    pub async fn run(&mut self, plan: Plan, case: &str) -> Ran {
        self.run_with(self.call, plan, case, &[]).await
    }

    /// Makes a call with other arguments. Faults and logs must not contain `private`.
    pub async fn run_with(&mut self, call: &Call, plan: Plan, case: &str, private: &[&str]) -> Ran {
        let ran = self.subject.run(call, plan).await;
        self.saw(&ran, case, private);
        ran
    }

    /// Inspects a call that was made elsewhere.
    pub fn saw(&mut self, ran: &Ran, case: &str, private: &[&str]) {
        let identifier = match self.call {
            Call::LookUp(question) | Call::Compare(question, _) => Some(&*question.identifier),
            _ => None,
        };
        let private: Vec<&str> = private.iter().copied().chain(identifier).collect();
        self.watch.look(ran, case, &private);
        let Taken { requests, memory_kib, cpu_ms, .. } = &mut self.taken;
        *requests = (*requests).max(ran.used.requests);
        *memory_kib = (*memory_kib).max(ran.used.peak_bytes >> 10);
        *cpu_ms = cpu_ms.max(ran.used.cpu.as_secs_f64() * 1e3);
    }

    pub fn note(&mut self, case: impl Into<String>, outcome: Outcome) {
        let (about, case) = (self.function.to_owned(), case.into());
        self.cases.push(Case { about, case, outcome });
    }

    /// Returns the cases, including those about all calls together.
    pub fn finish(mut self) -> (Vec<Case>, Taken) {
        for (case, outcome) in std::mem::take(&mut self.watch).outcomes() {
            self.note(case, outcome);
        }
        let outcome = self.limits();
        self.note("within the limits", outcome);
        (self.cases, self.taken)
    }

    /// Notes usage above half of a limit, which may exceed the limit in production.
    fn limits(&self) -> Outcome {
        let (limits, taken) = (&self.subject.limits, &self.taken);
        let cpu_ms = limits.cpu.as_secs_f64() * 1e3;
        let near = [
            ("requests", taken.requests as f64, limits.requests as f64),
            ("KiB of memory", taken.memory_kib as f64, (limits.memory_bytes >> 10) as f64),
            ("ms of CPU time", taken.cpu_ms, cpu_ms),
        ];
        let near: Vec<String> = near
            .into_iter()
            .filter(|(_, taken, limit)| *taken > limit / 2.0)
            .map(|(what, taken, limit)| format!("{taken:.0} of {limit:.0} {what}"))
            .collect();
        match near.is_empty() {
            true => Outcome::Passed,
            false => {
                Outcome::Noted { note: format!("more than half of a limit: {}", near.join(", ")) }
            }
        }
    }
}

/// Creates a failure of a call: what was expected and found, and the request concerned.
pub fn failing(expected: impl Into<String>, ran: &Ran, about: Option<&Seen>) -> Failing {
    Failing {
        expected: expected.into(),
        found: readable::reply(&ran.reply),
        request: about.map(readable::request),
        answer: about.map(|seen| readable::answer(&seen.answer)),
    }
}
