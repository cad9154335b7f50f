//! The program `tollhouse`, one file per noun. Most commands call a host's internal interface.

mod client;
mod developer;
mod operators;
mod plugin;
mod prelude;
mod records;
mod server;
mod tenants;
mod terminal;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory, FromArgMatches, Parser};
use tollhouse_app::state::config::describe;
use tollhouse_platform::{
    background::runtime,
    config::layers::{self, ParsedSettings},
};

use self::{
    developer::{listen, trigger},
    operators::{approval, audit, operator, role},
    plugin::publisher,
    prelude::*,
    records::{
        card_refund, collections, direct_debit, event, identity, job, loan, message, payment,
        reconcile,
    },
    server::{compile, config, database, master_key, serve},
    tenants::{company, event_endpoint, key, member, price, provider, wallet},
};

/// A multi-tenant back end for lending platforms that runs every provider in a WebAssembly sandbox.
#[derive(Parser)]
#[command(version, after_help = HELP)]
struct Cli {
    /// Settings file; `tollhouse config example` prints one
    #[arg(long, global = true, env = "TOLLHOUSE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print results (stdout) and errors (stderr) as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Each setting has a flag, a variable and a key in the settings file, for example --plugin-cpu-ms,
TOLLHOUSE_PLUGIN_CPU_MS and plugin_cpu_ms.

Exit codes:
  0  success
  1  rejected, or a check found errors
  2  invalid command line or settings
  3  the host or the database was unreachable, or failed: the outcome is unknown";

#[derive(Subcommand)]
enum Command {
    /// Run the API and the internal interface
    Serve(Box<serve::Serve>),
    /// Check settings and create settings files
    #[command(subcommand)]
    Config(config::Command),
    #[command(flatten)]
    Database(database::Command),
    /// Create, change and suspend companies
    Company(OnHost<company::Action>),
    /// Create, rotate and revoke API keys of companies
    Key(OnHost<key::Action>),
    /// Create, change and delete event endpoints of companies
    EventEndpoint(OnHost<event_endpoint::Action>),
    /// Invite and change members of companies, who use the portal
    Member(OnHost<member::Action>),
    /// Configure provider accounts
    Provider(provider::Provider),
    /// Develop, install and manage plugins
    Plugin(plugin::Plugin),
    /// Manage trusted plugin publishers
    Publisher(OnHost<publisher::Action>),
    /// Find, verify and refund payments
    Payment(OnHost<payment::Action>),
    /// Show and save loans, and list repayments
    Loan(OnHost<loan::Action>),
    /// Show, set and simulate collection policies of companies
    Collections(OnHost<collections::Action>),
    /// Show and save direct debit mandates
    DirectDebit(OnHost<direct_debit::Action>),
    /// List refunds of card verification charges and retry failed ones
    CardRefund(OnHost<card_refund::Action>),
    /// Compare records with the transactions that providers list, day by day, and close days
    Reconcile(reconcile::Reconcile),
    /// Show and correct wallets
    Wallet(OnHost<wallet::Action>),
    /// Show and set prices
    Price(price::Price),
    /// List events and operator events, and redeliver events
    Event(OnHost<event::Action>),
    /// List e-mails and text messages
    Message(OnHost<message::Action>),
    /// List failing jobs and retry them
    Job(OnHost<job::Action>),
    /// List, disable and enable identity types
    Identity(identity::Identity),
    /// Create and rotate the master key
    #[command(subcommand)]
    MasterKey(master_key::Command),
    /// Manage operators, their tokens and their access
    Operator(OnHost<operator::Action>),
    /// List, create and delete roles of operators
    Role(OnHost<role::Action>),
    /// Approve or reject actions of other operators
    Approval(OnHost<approval::Action>),
    /// List, export and verify the audit log
    Audit(audit::Audit),
    /// Forward a company's events to a URL on this machine
    Listen(listen::Listen),
    /// Trigger an event of a test company
    Trigger(trigger::Trigger),
    /// Compile a plugin, as a subprocess of a host
    #[command(hide = true)]
    CompilePlugin(compile::CompilePlugin),
}

/// Requests are often allocated and freed by different threads, which is slow with glibc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // With huge pages, an idle host uses half as much memory again. Kernels without this setting
    // return an error, which is harmless.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // Read first, so that all errors are written as JSON.
    let json = arguments.iter().any(|argument| argument == "--json");
    match runtime::start() {
        Ok(runtime) => runtime.block_on(run(arguments, json)),
        Err(error) => Failure::unreachable(error).print(json),
    }
}

fn command() -> clap::Command {
    let mut command = Cli::command();
    command.build(); // adds the global options to each command
    command.mut_subcommand("plugin", plugin::hide_host_options)
}

async fn run(arguments: Vec<OsString>, json: bool) -> ExitCode {
    let parsed = match layers::parse(command(), &describe::command(), arguments) {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() && json => {
            return Failure::usage(error).print(json);
        }
        Err(error) => error.exit(),
    };
    match execute(&parsed).await {
        Ok(report) => {
            report.print(json);
            report.failure.map_or(ExitCode::SUCCESS, |failure| failure.print(json))
        }
        Err(failure) => failure.print(json),
    }
}

async fn execute(parsed: &ParsedSettings) -> Result {
    let cli = Cli::from_arg_matches(&parsed.matches).map_err(Failure::usage)?;
    let checks = matches!(&cli.command, Command::Config(config::Command::Check { .. }));
    if !checks && !parsed.errors.is_empty() {
        return Err(parsed.errors.clone().into());
    }
    match cli.command {
        Command::Serve(serve) => serve.run().await,
        Command::Config(command) => command.run(parsed).await,
        Command::Database(command) => command.run().await,
        Command::Company(company) => company.run().await,
        Command::Key(key) => key.run().await,
        Command::EventEndpoint(endpoint) => endpoint.run().await,
        Command::Member(member) => member.run().await,
        Command::Provider(provider) => provider.run().await,
        Command::Plugin(plugin) => plugin.run().await,
        Command::Publisher(publisher) => publisher.run().await,
        Command::Payment(payment) => payment.run().await,
        Command::Loan(loan) => loan.run().await,
        Command::Collections(collections) => collections.run().await,
        Command::DirectDebit(direct_debit) => direct_debit.run().await,
        Command::CardRefund(card_refund) => card_refund.run().await,
        Command::Reconcile(reconcile) => reconcile.run().await,
        Command::Wallet(wallet) => wallet.run().await,
        Command::Price(price) => price.run().await,
        Command::Event(event) => event.run().await,
        Command::Message(message) => message.run().await,
        Command::Job(job) => job.run().await,
        Command::Identity(identity) => identity.run().await,
        Command::MasterKey(command) => command.run().await,
        Command::Operator(operator) => operator.run().await,
        Command::Role(role) => role.run().await,
        Command::Approval(approval) => approval.run().await,
        Command::Audit(audit) => audit.run().await,
        Command::Listen(listen) => listen.run(cli.json).await,
        Command::Trigger(trigger) => trigger.run().await,
        Command::CompilePlugin(compile) => compile.run(),
    }
}
