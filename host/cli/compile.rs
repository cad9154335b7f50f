//! `tollhouse compile-plugin`: the other end of a host that admits a component.

use clap::Args;
use serde_json::Value;
use tollhouse::plugins;

use super::{failure::Failure, output::Report};

#[derive(Args)]
pub struct CompilePlugin {
    /// The most memory that compiling may take
    memory_bytes: u64,
    /// The most time
    seconds: u64,
    /// The memory of a call, which the machine code is made for
    call_memory_bytes: usize,
}

impl CompilePlugin {
    pub fn run(self) -> Result<Report, Failure> {
        let CompilePlugin { memory_bytes, seconds, call_memory_bytes } = self;
        let done = plugins::compile_as_child(memory_bytes, seconds, call_memory_bytes);
        done.map_err(Failure::refused)?;
        Ok(Report::new(Value::Null, ""))
    }
}
