//! `tollhouse compile-plugin`: the subprocess in which a host compiles a component.

use crate::prelude::*;

#[derive(Args)]
pub struct CompilePlugin {
    /// Memory limit of the compilation, in bytes
    memory_bytes: u64,
    /// Time limit of the compilation, in seconds
    seconds: u64,
    /// Memory limit of a call, in bytes, for which machine code is generated
    call_memory_bytes: usize,
}

impl CompilePlugin {
    pub fn run(self) -> Result {
        let CompilePlugin { memory_bytes, seconds, call_memory_bytes } = self;
        let done = tollhouse_plugins::compile_as_child(memory_bytes, seconds, call_memory_bytes);
        done.map_err(Failure::refused)?;
        Ok(Report::new(Value::Null, ""))
    }
}
