//! The command line.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tollhouse::{
    app::App,
    clock::Clock,
    config::{self, Config},
    http,
    random::Random,
    telemetry::Reporting,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A multi-tenant back end for lending platforms, with every provider in a WebAssembly sandbox.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the API and the internal interface
    Serve(Box<Serve>),
    /// Manage plugins of a running host
    #[command(subcommand)]
    Plugin(Plugin),
}

#[derive(Args)]
struct Serve {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    reporting: Reporting,
}

#[derive(Subcommand)]
enum Plugin {
    /// Install a component, or upgrade to it, without a restart
    Install {
        /// The component
        file: PathBuf,
        #[command(flatten)]
        host: Host,
    },
    /// List what is installed
    List {
        #[command(flatten)]
        host: Host,
    },
}

/// The host to talk to.
#[derive(Args)]
struct Host {
    /// URL of the internal interface
    #[arg(long, env = "TOLLHOUSE_INTERNAL_URL", default_value = "http://127.0.0.1:8081")]
    internal_url: String,
    /// File with the operator's token; or give the token in TOLLHOUSE_OPERATOR_TOKEN
    #[arg(long, env = "TOLLHOUSE_OPERATOR_TOKEN_FILE")]
    operator_token_file: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(serve) => run(*serve).await,
        Command::Plugin(Plugin::Install { file, host }) => install(&host, &file).await,
        Command::Plugin(Plugin::List { host }) => list(&host).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tollhouse: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(Serve { config, reporting }: Serve) -> Result<(), Failure> {
    let reports = reporting.start()?;
    let served = serve(config).await;
    reports.finish().await;
    served
}

async fn serve(config: Config) -> Result<(), Failure> {
    let app = App::open(&config, Clock::system(), Random::system(), None).await?;
    let public = TcpListener::bind(config.listen).await?;
    let internal = TcpListener::bind(config.internal_listen).await?;
    tracing::info!(api = %public.local_addr()?, internal = %internal.local_addr()?, "serving");
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        if let Err(error) = until_signal().await {
            tracing::error!(%error, "signals are not heard");
            return;
        }
        tracing::info!("finishing what is under way");
        let _ = stop.send(true);
    });
    http::serve(app, public, internal, stopped).await?;
    Ok(())
}

async fn until_signal() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        done = tokio::signal::ctrl_c() => done,
        _ = terminate.recv() => Ok(()),
    }
}

async fn install(host: &Host, file: &PathBuf) -> Result<(), Failure> {
    let wasm = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let answer = host.call(reqwest::Method::POST, "/internal/v1/plugins", wasm).await?;
    let data = &answer["data"];
    let text = |name: &str| data[name].as_str().unwrap_or("-").to_owned();
    println!("{} {} is serving ({})", text("name"), text("version"), text("digest"));
    if let Some(former) = data["replaces"].as_str() {
        println!("it replaces {former}");
    }
    Ok(())
}

async fn list(host: &Host) -> Result<(), Failure> {
    let answer = host.call(reqwest::Method::GET, "/internal/v1/plugins", Vec::new()).await?;
    for plugin in answer["data"].as_array().into_iter().flatten() {
        let text = |name: &str| plugin[name].as_str().unwrap_or("-").to_owned();
        println!(
            "{:20} {:12} {:8} {}",
            text("name"),
            text("version"),
            text("state"),
            text("digest")
        );
    }
    Ok(())
}

impl Host {
    async fn call(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<serde_json::Value, Failure> {
        let token = config::operator_token(self.operator_token_file.as_deref())?;
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = format!("{}{path}", self.internal_url.trim_end_matches('/'));
        let client = reqwest::Client::builder().no_proxy().build()?;
        let request = client.request(method, &url).bearer_auth(token).body(body);
        let answer = request.send().await.map_err(|error| format!("{url}: {error}"))?;
        let ok = answer.status().is_success();
        let answer: serde_json::Value = answer.json().await?;
        match ok {
            true => Ok(answer),
            false => Err(answer["message"].as_str().unwrap_or("the host refused").into()),
        }
    }
}
