//! The inspection of one function: makes calls, watches them, and collects the cases.

use super::{
    invariants::Invariants,
    readable,
    report::{CaseFailure, CaseOutcome, CheckCase, FunctionUsage},
    subject::{CheckSubject, ObservedCall},
    upstream::{ObservedRequest, ResponsePlan},
};
use tollhouse_plugins::Call;

pub struct Inspection<'s> {
    pub subject: &'s CheckSubject,
    pub call: &'s Call,
    pub function: &'static str,
    cases: Vec<CheckCase>,
    invariants: Invariants,
    usage: FunctionUsage,
}

impl<'s> Inspection<'s> {
    pub fn new(subject: &'s CheckSubject, call: &'s Call) -> Inspection<'s> {
        let function = call.function();
        let taken = FunctionUsage { function, ..FunctionUsage::default() };
        Inspection {
            subject,
            call,
            function,
            cases: Vec::new(),
            invariants: Invariants::default(),
            usage: taken,
        }
    }

    /// Makes the example call.
    pub async fn run(&mut self, plan: ResponsePlan, case: &str) -> ObservedCall {
        self.run_with(self.call, plan, case, &[]).await
    }

    /// Makes a call with other arguments. Faults and logs must not contain `private`.
    pub async fn run_with(
        &mut self,
        call: &Call,
        plan: ResponsePlan,
        case: &str,
        private: &[&str],
    ) -> ObservedCall {
        let ran = self.subject.run(call, plan).await;
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
        let (about, case) = (self.function.to_owned(), case.into());
        self.cases.push(CheckCase { about, case, outcome });
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
            true => CaseOutcome::Passed,
            false => CaseOutcome::Noted {
                note: format!("more than half of a limit: {}", near.join(", ")),
            },
        }
    }
}

/// Creates a failure of a call: what was expected and found, and the request concerned.
pub fn case_failure(
    expected: impl Into<String>,
    ran: &ObservedCall,
    about: Option<&ObservedRequest>,
) -> CaseFailure {
    CaseFailure {
        expected: expected.into(),
        found: readable::reply(&ran.reply),
        request: about.map(readable::request),
        answer: about.map(|seen| readable::answer(&seen.answer)),
    }
}
