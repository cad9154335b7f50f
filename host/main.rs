//! The program `tollhouse`.

use std::process::ExitCode;

mod cli;

/// Requests live on small pieces of memory that one thread takes and another gives back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    cli::run().await
}
