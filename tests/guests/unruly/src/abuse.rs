//! Taking more than its share of time and memory.

use std::hint::black_box;
use std::time::Duration;

use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{log, vault};

use crate::{Outcome, SECRET};

/// Never ends, and never calls the host.
pub(crate) fn run_forever() -> ! {
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

/// Takes memory, a mebibyte at a time, until there is none.
pub(crate) fn grow() -> ! {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1_u8; 1 << 20]));
    }
}

/// Asks with so many mebibytes in its hands.
pub(crate) fn call_while_holding(mebibytes: u64) -> Result<Outcome, Fault> {
    let bytes = usize::try_from(mebibytes << 20).unwrap_or(usize::MAX);
    let held = black_box(vec![1_u8; bytes]);
    crate::egress::send_many(1)?;
    Outcome::raw(black_box(held).len().to_string())
}

/// Calls itself until the stack ends. `black_box` keeps it from becoming a loop.
#[expect(unconditional_recursion, reason = "that is the point")]
pub(crate) fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    recurse(depth + 1).wrapping_add(black_box(frame)[3])
}

/// A JSON text of `bytes` bytes, quotation marks included.
pub(crate) fn large_json(bytes: u64) -> String {
    let inside = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(2);
    format!("\"{}\"", "a".repeat(inside))
}

/// Holds on to things of the host's, so many.
#[cfg(target_os = "wasi")]
pub(crate) fn leak(times: u64) -> Result<Outcome, Fault> {
    for _ in 0..times {
        std::mem::forget(wasip2::clocks::monotonic_clock::subscribe_duration(1));
    }
    Outcome::raw(times.to_string())
}

/// There is nothing to hold on to outside a sandbox.
#[cfg(not(target_os = "wasi"))]
pub(crate) fn leak(times: u64) -> Result<Outcome, Fault> {
    Outcome::raw(times.to_string())
}

/// Waits without working.
pub(crate) fn sleep(ms: u64) -> Result<Outcome, Fault> {
    std::thread::sleep(Duration::from_millis(ms));
    Outcome::raw("{}")
}

/// Talks to itself.
pub(crate) fn print(lines: u64) -> Result<Outcome, Fault> {
    for n in 0..lines {
        println!("{n}: as I was saying, there is always something more to say");
    }
    Outcome::raw("{}")
}

/// So many random bytes of the host's, drawn at once.
#[cfg(target_os = "wasi")]
pub(crate) fn draw(bytes: u64) -> usize {
    black_box(wasip2::random::random::get_random_bytes(bytes)).len()
}

/// There is no such host outside a sandbox.
#[cfg(not(target_os = "wasi"))]
pub(crate) fn draw(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Draws without end, so many bytes at a time.
pub(crate) fn read_random_forever(bytes: u64) -> ! {
    loop {
        black_box(draw(bytes));
    }
}

/// Has so many bytes signed without end.
pub(crate) fn sign_forever(bytes: u64) -> Result<Outcome, Fault> {
    let data = vec![1_u8; usize::try_from(bytes).unwrap_or(usize::MAX)];
    loop {
        black_box(vault::hmac("sha512", SECRET, black_box(&data))?);
    }
}

/// Writes lines of so many bytes without end.
pub(crate) fn log_forever(bytes: u64) -> ! {
    let line = "a".repeat(usize::try_from(bytes).unwrap_or(usize::MAX));
    loop {
        log::info(black_box(&line));
    }
}
