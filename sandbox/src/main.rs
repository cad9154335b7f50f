//! `cargo sandbox`: the host and the simulators of all upstreams in one process, ready to use.

mod examples;
mod setup;

use std::{
    fs,
    io::ErrorKind,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Parser;
use futures::FutureExt;
use serde_json::json;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tollhouse_app::{
    state::{App, config::Config},
    wiring,
};
use tollhouse_http as http;
use tollhouse_platform::{
    background::{jobs::RunSimulators, runtime},
    clock::Clock,
    random::Random,
};
use tollhouse_sandbox::Simulators;
use tracing_subscriber::EnvFilter;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Starts Tollhouse with simulators of all upstreams, a company with an API key, and a funded
/// wallet
#[derive(Parser)]
#[command(name = "cargo sandbox")]
struct Options {
    /// Folder for all state; its SQLite database is recreated at every start
    #[arg(long, default_value = "target/sandbox")]
    dir: PathBuf,
    /// Port of the API; the internal API uses the next port, the simulators the one after it, and
    /// SMTP any free port. 0: any free ports
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// PostgreSQL database to use instead of a SQLite file; its contents are kept
    #[arg(long)]
    postgres: Option<String>,
    /// Start without the three weeks of example data
    #[arg(long)]
    no_examples: bool,
    /// Also create the example data in a PostgreSQL database, which must be new
    #[arg(long, requires = "postgres", conflicts_with = "no_examples")]
    examples: bool,
    /// Start only the simulators, on --port, for a host that runs separately on this machine
    #[arg(long, alias = "standins-only", conflicts_with = "postgres")]
    simulators_only: bool,
}

fn main() -> ExitCode {
    match runtime::start() {
        Ok(runtime) => runtime.block_on(start()),
        Err(error) => {
            eprintln!("cargo sandbox: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let options = Options::parse();
    let ended =
        if options.simulators_only { run_simulators(&options).await } else { run(options).await };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo sandbox: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the simulators for a host that is started separately.
async fn run_simulators(options: &Options) -> Result<(), Failure> {
    let file = readiness_file(&options.dir)?;
    let (http, smtp) = (bind(options.port).await?, bind(0).await?);
    let simulators = Simulators::start(http, smtp, Clock::system());
    let (url, smtp) = (simulators.url(), simulators.smtp_addr());
    write_atomically(&file, &format!("{:#}\n", json!({ "sandbox": url, "smtp": smtp })))?;
    let file_shown = file.display();
    println!(
        "
The simulators are running, without a host.

  simulators   {url}/
  SMTP         {smtp}   (delivers to the mailbox)
  as JSON      {file_shown}

docs/guides/another-host.md describes how to connect a host. Ctrl-C stops them."
    );
    stop_signal().await?;
    remove(&file)
}

/// Returns the path of the readiness file, and removes one left by an earlier start.
fn readiness_file(dir: &Path) -> Result<PathBuf, Failure> {
    fs::create_dir_all(dir)?;
    let file = dir.join("sandbox.json");
    remove(&file)?;
    Ok(file)
}

async fn stop_signal() -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        done = tokio::signal::ctrl_c() => done?,
        _ = terminate.recv() => {}
    }
    Ok(())
}

async fn run(options: Options) -> Result<(), Failure> {
    let file = readiness_file(&options.dir)?;
    let [public, internal, upstream, smtp] = bind_all(options.port).await?;
    let now = Clock::system().now();
    let has_examples = options.examples || options.postgres.is_none() && !options.no_examples;
    let examples_end = has_examples.then_some(now);
    let clock = match examples_end {
        Some(_) => {
            Clock::behind_system(Duration::from_secs(examples::DAYS.unsigned_abs() * 86_400))
        }
        None => Clock::system(),
    };
    let simulators = Simulators::start(upstream, smtp, clock.clone());
    let addresses = [public.local_addr()?, internal.local_addr()?];
    let config = configure(&options, addresses, simulators.smtp_addr(), &Random::system())?;
    let settle = simulators.clone();
    let companion: RunSimulators = Box::new(move || {
        let simulators = settle.clone();
        async move { simulators.run_until_idle().await }.boxed()
    });
    let app = App::open(&config, clock.clone(), Random::system(), Some(companion)).await?;
    let (stop, stopped) = watch::channel(false);
    let (public, internal) = (http::Listener::plain(public), http::Listener::plain(internal));
    let serving = tokio::spawn(wiring::serve(app, public, internal, stopped));

    let info = setup::run(&config, &simulators, &clock, examples_end).await?;
    simulators.set_hints(info.hints());
    simulators.set_links(info.links());
    write_atomically(&file, &info.json())?;
    println!("{}", info.text(&file));

    stop_signal().await?;
    remove(&file)?;
    let _ = stop.send(true);
    serving.await?;
    Ok(())
}

async fn bind(port: u16) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(("127.0.0.1", port)).await;
    bound.map_err(|error| format!("port {port} cannot be used: {error}; try --port").into())
}

async fn bind_all(port: u16) -> Result<[TcpListener; 4], Failure> {
    let last = port
        .checked_add(2)
        .ok_or("--port must be at most 65533, because the next two ports are used too")?;
    let [first, second, third] = if port == 0 { [0; 3] } else { [port, port + 1, last] };
    Ok([bind(first).await?, bind(second).await?, bind(third).await?, bind(0).await?])
}

fn configure(
    options: &Options,
    [listen, internal]: [SocketAddr; 2],
    smtp: SocketAddr,
    random: &Random,
) -> Result<Config, Failure> {
    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        config: Config,
    }
    let dir = &options.dir;
    let database = match &options.postgres {
        Some(url) => url.clone(),
        None => fresh_sqlite(dir)?,
    };
    let token = secret_file(dir, "operator-token", || random.token("op_"))?;
    let master_key = secret_file(dir, "master-key", || hex::encode(random.bytes::<32>()))?;
    let flags = Flags::try_parse_from([
        "sandbox".to_owned(),
        format!("--database={database}"),
        format!("--listen={listen}"),
        format!("--internal-listen={internal}"),
        format!("--public-url=http://{listen}"),
        format!("--operator-token-file={}", token.display()),
        format!("--master-key-file={}", master_key.display()),
        format!("--plugin-cache={}", dir.join("plugins").display()),
        format!("--files={}", dir.join("files").display()),
        format!("--smtp-host={}", smtp.ip()),
        format!("--smtp-port={}", smtp.port()),
        "--smtp-security=none".to_owned(),
        "--email-from=no-reply@tollhouse.example".to_owned(),
        "--development".to_owned(),
        "--portal".to_owned(),
        "--plugin-unsigned".to_owned(),
        "--api-log-days=3".to_owned(),
    ])?;
    Ok(flags.config)
}

/// Removes the SQLite database, because the simulators also start without state. Returns its URL.
fn fresh_sqlite(dir: &Path) -> Result<String, Failure> {
    for name in ["tollhouse.db", "tollhouse.db-wal", "tollhouse.db-shm"] {
        remove(&dir.join(name))?;
    }
    Ok(format!("sqlite://{}", dir.join("tollhouse.db").display()))
}

fn remove(file: &Path) -> Result<(), Failure> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns the file of a secret that persists between starts.
fn secret_file(dir: &Path, name: &str, draw: impl Fn() -> String) -> Result<PathBuf, Failure> {
    let file = dir.join(name);
    if !file.exists() {
        write_atomically(&file, &draw())?;
    }
    Ok(file)
}

/// Writes a file atomically, readable only by the current user.
fn write_atomically(file: &Path, text: &str) -> Result<(), Failure> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let unfinished = file.with_extension("part");
    let mut options = fs::OpenOptions::new();
    let mut written =
        options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    written.write_all(text.as_bytes())?;
    written.sync_all()?;
    fs::rename(&unfinished, file)?;
    Ok(())
}
