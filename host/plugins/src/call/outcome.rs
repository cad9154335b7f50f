//! The outcome of a call: its fault, its certainty and its measurements.

use std::time::Duration;

use wasmtime::{Trap, WasmBacktrace};

use crate::{
    CallError, Certainty, Fault, FaultCategory,
    limits::cpu::CpuExhausted,
    metrics::{self, CallMeasurements},
    runtime::{
        engine::{MAX_FRAMES, State},
        progress::{Progress, Usage},
        session::RunEnded,
    },
};

/// Determines the certainty of a failed call. Its outcome is unknown if a request that may change
/// something got no response, or if any request was sent and the fault is `Unavailable` or `Other`.
pub fn with_certainty<T>(
    result: Result<Result<T, Fault>, String>,
    progress: &Progress,
) -> Result<T, CallError> {
    let fault = match result {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(fault)) => fault,
        Err(reason) => Fault::new(FaultCategory::Other, Fault::PLUGIN_BROKE, reason),
    };
    let certainty = match fault.category {
        _ if progress.unanswered => Certainty::Unknown,
        FaultCategory::Unavailable | FaultCategory::Other if progress.sent => Certainty::Unknown,
        _ => Certainty::NotDone,
    };
    let Progress { sent, timed_out, retry_after_s, .. } = *progress;
    Err(CallError { fault, certainty, sent, timed_out, retry_after_s })
}

/// Returns the measurements of a call for metrics and spans.
pub fn measurements<T>(
    result: &Result<T, CallError>,
    progress: &Progress,
    duration: Duration,
) -> CallMeasurements {
    let outcome = outcome(result);
    let unknown = result.as_ref().is_err_and(|error| error.certainty == Certainty::Unknown);
    let Usage { cpu, peak_bytes: peak_memory_bytes, runs, .. } = progress.usage;
    CallMeasurements { outcome, unknown, duration, cpu, peak_memory_bytes, runs }
}

/// Returns the outcome by which metrics count a result.
pub fn outcome<T>(result: &Result<T, CallError>) -> &'static str {
    match result {
        Ok(_) => metrics::OK,
        Err(error) if error.timed_out => metrics::TIMED_OUT,
        Err(error) => error.fault.category.name(),
    }
}

/// Returns the reason why a run ended without a result, for operators.
pub fn failure_reason(error: &wasmtime::Error, state: &State) -> String {
    if let Some(exhausted) = error.downcast_ref::<CpuExhausted>() {
        exhausted.to_string()
    } else if let Some(ended) = error.downcast_ref::<RunEnded>() {
        ended.to_string()
    } else if state.memory.refused {
        "the plugin exceeded its memory limit".to_owned()
    } else if let Some(trap) = error.downcast_ref::<Trap>() {
        format!("the plugin trapped: {trap}{}", backtrace(error))
    } else {
        format!("the plugin failed: {}{}", error.root_cause(), backtrace(error))
    }
}

/// Formats the backtrace, innermost function first.
fn backtrace(error: &wasmtime::Error) -> String {
    let frames = error.downcast_ref::<WasmBacktrace>().map_or(&[][..], WasmBacktrace::frames);
    let named = frames.iter().map(|frame| match frame.func_name() {
        Some(name) => format!("{:#}", rustc_demangle::demangle(name)),
        None => format!("function {}", frame.func_index()),
    });
    let way: Vec<String> = named.take(MAX_FRAMES).collect();
    if way.is_empty() { String::new() } else { format!(" in {}", way.join(" < ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainty_follows_from_the_category_and_the_requests_sent() {
        use Certainty::{NotDone, Unknown};
        use FaultCategory::*;
        for (category, sent, unanswered, certainty, is_rejection) in [
            (Refused, true, false, NotDone, true),
            (Invalid, true, false, NotDone, true),
            (NotFound, true, false, NotDone, false),
            (Misconfigured, true, false, NotDone, false),
            (Refused, false, false, NotDone, false),
            (Invalid, false, false, NotDone, false),
            (Refused, true, true, Unknown, false),
            (Invalid, true, true, Unknown, false),
            (NotFound, true, true, Unknown, false),
            (Misconfigured, true, true, Unknown, false),
            (Unavailable, false, false, NotDone, false),
            (Unavailable, true, false, Unknown, false),
            (Other, true, false, Unknown, false),
        ] {
            let progress = Progress { sent, unanswered, ..Progress::default() };
            let judged = with_certainty::<()>(Ok(Err(Fault::new(category, "", ""))), &progress);
            let error = judged.unwrap_err();
            let what = format!("{category:?}, sent: {sent}, unanswered: {unanswered}");
            assert_eq!(
                (error.certainty, error.is_rejection()),
                (certainty, is_rejection),
                "{what}"
            );
        }
        let progress = Progress { sent: true, ..Progress::default() };
        let broke = with_certainty::<()>(Err("trap".to_owned()), &progress);
        assert_eq!(broke.unwrap_err().certainty, Certainty::Unknown);
    }
}
