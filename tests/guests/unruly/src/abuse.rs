//! Exceeding the limits on time and memory.

use std::hint::black_box;
use std::time::Duration;

use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{log, vault};

use crate::{Outcome, SECRET};

/// Never returns, and never calls the host.
pub(crate) fn run_forever() -> ! {
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

/// Allocates memory, one MiB at a time, until none is left.
pub(crate) fn grow() -> ! {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1_u8; 1 << 20]));
    }
}

/// Sends a request while it holds this many MiB.
pub(crate) fn call_while_holding(mebibytes: u64) -> Result<Outcome, Fault> {
    let bytes = usize::try_from(mebibytes << 20).unwrap_or(usize::MAX);
    let held = black_box(vec![1_u8; bytes]);
    crate::egress::send_many(1)?;
    Outcome::raw(black_box(held).len().to_string())
}

/// Recurses until the stack overflows. `black_box` prevents the compiler from turning it into a
/// loop.
#[expect(unconditional_recursion, reason = "that is the point")]
pub(crate) fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    recurse(depth + 1).wrapping_add(black_box(frame)[3])
}

/// Returns a JSON string of `bytes` bytes, including its quotation marks.
pub(crate) fn large_json(bytes: u64) -> String {
    let inside = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(2);
    format!("\"{}\"", "a".repeat(inside))
}

/// Leaks this many handles of host resources.
#[cfg(target_os = "wasi")]
pub(crate) fn leak(times: u64) -> Result<Outcome, Fault> {
    for _ in 0..times {
        std::mem::forget(wasip2::clocks::monotonic_clock::subscribe_duration(1));
    }
    Outcome::raw(times.to_string())
}

/// Outside a sandbox there are no host resources to leak.
#[cfg(not(target_os = "wasi"))]
pub(crate) fn leak(times: u64) -> Result<Outcome, Fault> {
    Outcome::raw(times.to_string())
}

/// Sleeps.
pub(crate) fn sleep(ms: u64) -> Result<Outcome, Fault> {
    std::thread::sleep(Duration::from_millis(ms));
    Outcome::raw("{}")
}

/// Prints lines to standard output.
pub(crate) fn print(lines: u64) -> Result<Outcome, Fault> {
    for n in 0..lines {
        println!("{n}: as I was saying, there is always something more to say");
    }
    Outcome::raw("{}")
}

/// Draws this many random bytes from the host in one call.
#[cfg(target_os = "wasi")]
pub(crate) fn draw(bytes: u64) -> usize {
    black_box(wasip2::random::random::get_random_bytes(bytes)).len()
}

/// Outside a sandbox there is no host to draw from.
#[cfg(not(target_os = "wasi"))]
pub(crate) fn draw(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Draws this many random bytes at a time, forever.
pub(crate) fn read_random_forever(bytes: u64) -> ! {
    loop {
        black_box(draw(bytes));
    }
}

/// Requests HMACs of this many bytes, forever.
pub(crate) fn sign_forever(bytes: u64) -> Result<Outcome, Fault> {
    let data = vec![1_u8; usize::try_from(bytes).unwrap_or(usize::MAX)];
    loop {
        black_box(vault::hmac("sha512", SECRET, black_box(&data))?);
    }
}

/// Logs lines of this many bytes, forever.
pub(crate) fn log_forever(bytes: u64) -> ! {
    let line = "a".repeat(usize::try_from(bytes).unwrap_or(usize::MAX));
    loop {
        log::info(black_box(&line));
    }
}
