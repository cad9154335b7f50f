//! The command line: one file per noun. Most commands talk to a host that runs, through its internal interface.

mod ask;
mod audit;
mod card_refund;
mod certificate;
mod company;
mod compile;
mod config;
mod database;
mod direct_debit;
mod event;
mod failure;
mod host;
mod identity;
mod init;
mod input;
mod key;
mod loan;
mod master_key;
mod message;
mod output;
mod payment;
mod plugin;
mod price;
mod provider;
mod publisher;
mod registry;
mod serve;
mod wallet;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tollhouse::config::layers::{self, Parsed};

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
Every setting is a flag, a variable and a key of the settings file: --plugin-cpu-ms is TOLLHOUSE_PLUGIN_CPU_MS and plugin_cpu_ms.

Exit codes:
  0  done
  1  refused, or found wrong
  2  the command line or the settings cannot be used
  3  the host or the database could not be reached, or failed: whether anything was done is not known";

#[derive(Subcommand)]
enum Command {
    /// Run the API and the internal interface
    Serve(Box<serve::Serve>),
    /// Look at settings, make a settings file
    #[command(subcommand)]
    Config(config::Command),
    /// Bring the database's tables up to date, and end
    Migrate(database::Migrate),
    /// Copy a SQLite database to a file, while hosts serve
    Backup(database::Backup),
    /// Put a copy in the place of a SQLite database
    Restore(database::Restore),
    /// Create companies, change and suspend them
    Company(company::Company),
    /// Make, exchange and revoke the API keys of companies
    Key(key::Key),
    /// Set up accounts at providers
    Provider(provider::Provider),
    /// Install plugins, and see what serves
    Plugin(plugin::Plugin),
    /// Say whose plugins are taken
    Publisher(publisher::Publisher),
    /// Find payments, verify and refund them
    Payment(payment::Payment),
    /// See and save loans, and read what was repaid
    Loan(loan::Loan),
    /// See and save direct debits
    DirectDebit(direct_debit::DirectDebit),
    /// See how verification charges of cards go back, and try again
    CardRefund(card_refund::CardRefund),
    /// See and correct what companies have
    Wallet(wallet::Wallet),
    /// Set what companies are charged
    Price(price::Price),
    /// See what companies and operators were told, and tell companies again
    Event(event::Event),
    /// See what became of e-mails and text messages
    Message(message::Message),
    /// See what can be looked up, and switch it off and on
    Identity(identity::Identity),
    /// Make and exchange the master key
    #[command(subcommand)]
    MasterKey(master_key::Command),
    /// See what operators did
    Audit(audit::Audit),
    /// What a host starts to compile a plugin
    #[command(hide = true)]
    CompilePlugin(compile::CompilePlugin),
}

/// Does what the command line asks for.
pub async fn run() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // Known before anything else, so that what is wrong with the rest is said in JSON, too.
    let json = arguments.iter().any(|argument| argument == "--json");
    let parsed = match layers::parse(Cli::command(), arguments) {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() && json => {
            return Failure::Usage(error.to_string()).tell(json);
        }
        Err(error) => error.exit(),
    };
    match execute(&parsed).await {
        Ok(report) => {
            report.print(json);
            report.failure.map_or(ExitCode::SUCCESS, |failure| failure.tell(json))
        }
        Err(failure) => failure.tell(json),
    }
}

async fn execute(parsed: &Parsed) -> Result<Report, Failure> {
    let cli = Cli::from_arg_matches(&parsed.matches).map_err(|e| Failure::Usage(e.to_string()))?;
    let checks = matches!(&cli.command, Command::Config(config::Command::Check { .. }));
    if !checks && !parsed.wrong.is_empty() {
        return Err(Failure::settings(parsed.wrong.clone()));
    }
    match cli.command {
        Command::Serve(serve) => serve.run().await,
        Command::Config(command) => command.run(parsed).await,
        Command::Migrate(migrate) => migrate.run().await,
        Command::Backup(backup) => backup.run().await,
        Command::Restore(restore) => restore.run().await,
        Command::Company(company) => company.run().await,
        Command::Key(key) => key.run().await,
        Command::Provider(provider) => provider.run().await,
        Command::Plugin(plugin) => plugin.run().await,
        Command::Publisher(publisher) => publisher.run().await,
        Command::Payment(payment) => payment.run().await,
        Command::Loan(loan) => loan.run().await,
        Command::DirectDebit(direct_debit) => direct_debit.run().await,
        Command::CardRefund(card_refund) => card_refund.run().await,
        Command::Wallet(wallet) => wallet.run().await,
        Command::Price(price) => price.run().await,
        Command::Event(event) => event.run().await,
        Command::Message(message) => message.run().await,
        Command::Identity(identity) => identity.run().await,
        Command::MasterKey(command) => command.run().await,
        Command::Audit(audit) => audit.run().await,
        Command::CompilePlugin(compile) => compile.run(),
    }
}
