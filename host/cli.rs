//! The command line: one file per noun. Most commands talk to a host that runs, through its internal interface.

mod ask;
mod bench;
mod config;
mod failure;
mod host;
mod key;
mod output;
mod plugin;
mod serve;
mod wallet;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tollhouse::config::layers::{self, Parsed, Refused};

use self::{failure::Failure, output::Report};

/// A multi-tenant back end for lending platforms, with every provider in a WebAssembly sandbox.
#[derive(Parser)]
#[command(version, after_help = HELP)]
struct Cli {
    /// Settings file; `tollhouse config example` shows what may stand in it
    #[arg(long, global = true, env = "TOLLHOUSE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write JSON: the answer to standard output, an error to standard error
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Exit codes:
  0  done
  1  refused, or found wrong
  2  the command line or the settings cannot be used
  3  the host or the database could not be reached: whether anything was done is not known";

#[derive(Subcommand)]
enum Command {
    /// Run the API and the internal interface
    Serve(serve::Serve),
    /// Look at settings, make a settings file
    #[command(subcommand)]
    Config(config::Command),
    /// Make, list and revoke the API keys of companies
    #[command(subcommand)]
    Key(key::Command),
    /// See and correct what companies have
    #[command(subcommand)]
    Wallet(wallet::Command),
    /// Install and list plugins
    #[command(subcommand)]
    Plugin(plugin::Command),
    /// Compare how fast plugins are, without a network
    Bench(bench::Bench),
}

/// Does what the command line asks for.
pub async fn run() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // Known before anything else, so that what is wrong with the rest is said in JSON, too.
    let json = arguments.iter().any(|argument| argument == "--json");
    let parsed = match layers::parse(Cli::command(), arguments) {
        Ok(parsed) => parsed,
        Err(Refused::Usage(error)) if error.use_stderr() && json => {
            return Failure::Usage(error.to_string()).tell(json);
        }
        Err(Refused::Usage(error)) => error.exit(),
        Err(Refused::Settings(wrong)) => return Failure::settings(wrong).tell(json),
    };
    match execute(&parsed).await {
        Ok(report) => {
            report.print(json);
            ExitCode::SUCCESS
        }
        Err(failure) => failure.tell(json),
    }
}

async fn execute(parsed: &Parsed) -> Result<Report, Failure> {
    let cli = Cli::from_arg_matches(&parsed.matches).map_err(|e| Failure::Usage(e.to_string()))?;
    match cli.command {
        Command::Serve(serve) => serve.run().await,
        Command::Config(command) => command.run(parsed).await,
        Command::Key(command) => command.run().await,
        Command::Wallet(command) => command.run().await,
        Command::Plugin(command) => command.run().await,
        Command::Bench(bench) => bench.run().await,
    }
}
