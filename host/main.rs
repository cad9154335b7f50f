//! The program `tollhouse`.

use std::process::ExitCode;

mod cli;

#[tokio::main]
async fn main() -> ExitCode {
    cli::run().await
}
