//! The inspection of one function: makes calls, watches them, and collects the cases.

use super::{
    invariants::Invariants,
    prelude::*,
    report::{CheckCase, FunctionUsage},
    subject::CheckSubject,
};

pub struct Inspection<'s> {
    pub subject: &'s CheckSubject,
    pub kind: PluginKind,
    pub call: &'s Call,
    cases: Vec<CheckCase>,
    invariants: Invariants,
    usage: FunctionUsage,
}

impl<'s> Inspection<'s> {
    pub fn new(subject: &'s CheckSubject, call: &'s Call) -> Inspection<'s> {
        Inspection {
            subject,
            kind: subject.plugin.manifest().kind,
            call,
            cases: Vec::new(),
            invariants: Invariants::default(),
            usage: FunctionUsage { function: call.function(), ..FunctionUsage::default() },
        }
    }

    /// Makes the example call.
    pub async fn run(&mut self, plan: Option<FailurePlan>, case: &str) -> ObservedCall {
        let ran = self.subject.run(self.call, plan).await;
        self.record_call(&ran, case, &[]);
        ran
    }

    /// Makes a call with other arguments. Faults and logs must not contain `private`.
    pub async fn run_with(&mut self, call: &Call, case: &str, private: &[&str]) -> ObservedCall {
        let ran = self.subject.run(call, None).await;
        self.record_call(&ran, case, private);
        ran
    }

    /// Inspects a call that was made elsewhere.
    pub fn record_call(&mut self, ran: &ObservedCall, case: &str, private: &[&str]) {
        let identifier = match self.call {
            Call::LookUp(question) | Call::Compare(question, _) => Some(&*question.identifier),
            _ => None,
        };
        let private: Vec<&str> = private.iter().copied().chain(identifier).collect();
        self.invariants.check(ran, case, &private);
        let FunctionUsage { requests, memory_kib, cpu_ms, .. } = &mut self.usage;
        *requests = (*requests).max(ran.usage.requests);
        *memory_kib = (*memory_kib).max(ran.usage.peak_bytes >> 10);
        *cpu_ms = cpu_ms.max(ran.usage.cpu.as_secs_f64() * 1e3);
    }

    pub fn add_case(&mut self, case: impl Into<String>, outcome: CaseOutcome) {
        self.cases.push(CheckCase::new(self.call.function(), case, outcome));
    }

    /// Returns the cases, including those about all calls together.
    pub fn finish(mut self) -> (Vec<CheckCase>, FunctionUsage) {
        for (case, outcome) in std::mem::take(&mut self.invariants).outcomes() {
            self.add_case(case, outcome);
        }
        let outcome = self.check_limits();
        self.add_case("within the limits", outcome);
        (self.cases, self.usage)
    }

    /// Notes usage above half of a limit, which may exceed the limit in production.
    fn check_limits(&self) -> CaseOutcome {
        let (limits, taken) = (&self.subject.limits, &self.usage);
        let memory_kib = limits.memory_bytes >> 10;
        let near: Vec<String> = [
            ("requests", taken.requests as f64, limits.requests as f64),
            ("KiB of memory", taken.memory_kib as f64, memory_kib as f64),
            ("ms of CPU time", taken.cpu_ms, limits.cpu.as_secs_f64() * 1e3),
        ]
        .into_iter()
        .filter(|(_, taken, limit)| *taken > limit / 2.0)
        .map(|(what, taken, limit)| format!("{taken:.0} of {limit:.0} {what}"))
        .collect();
        match near.is_empty() {
            true => CaseOutcome::Passed,
            false => {
                CaseOutcome::noted(format!("uses more than half of a limit: {}", near.join(", ")))
            }
        }
    }
}
