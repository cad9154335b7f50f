//! `tollhouse plugin run`: a temporary host that reloads one plugin when its file changes.

use std::{
    collections::BTreeMap, fs::Permissions, os::unix::fs::PermissionsExt, sync::Arc,
    time::SystemTime,
};

use clap::{Command, FromArgMatches};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tollhouse_app::{
    state::{App, config::Config},
    wiring,
};
use tollhouse_http::Listener;
use tollhouse_plugins::{
    CheckoutOrder, CompletedCall, EXAMPLE_SECRET, Fault, PluginKind, recording::Recording,
};
use tracing::Level;

use crate::{prelude::*, server::serve::stop_signal, terminal::output::without_control_characters};

/// Polling interval of the file, and the time it must be unchanged before it is read.
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// Maximum time for calls in flight at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_SHOWN_CHARACTERS: usize = 300;
/// Wallet balance of the trial company in the major unit, more than trials use up.
const TRIAL_BALANCE: u64 = 1_000_000;

#[derive(Args)]
#[command(after_help = "\
The plugin may call https upstreams, and http upstreams on this machine. Failed calls of providers
and gateways are shown with the responses of the upstream; RUST_LOG=debug shows all activity of the
host. Ctrl-C stops the host and discards its data.

Example:
  tollhouse plugin run target/wasm32-wasip2/release/acme.wasm \\
    --credential base_url=http://127.0.0.1:9000")]
pub struct Run {
    /// The component, reloaded when its file changes
    file: PathBuf,
    /// Credential for the plugin's provider account; may be repeated. Default: the value in the
    /// manifest's `examples.credentials`; for other secrets `example-secret`
    #[arg(long = "credential", value_name = "NAME=VALUE")]
    credentials: Vec<String>,
    /// Port of the API on this machine; the internal interface uses the next one. 0 picks two free
    /// ports
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Write each call of a provider or gateway to this folder, masked, for `tollhouse plugin
    /// replay`
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
}

impl Run {
    /// Runs until Ctrl-C.
    pub async fn run(self) -> Result {
        let given = read_credentials(&self.credentials)?;
        // It holds secrets.
        let private = Permissions::from_mode(0o700);
        if let Some(folder) = &self.record {
            fs::create_dir_all(folder).map_err(|error| file_failure(folder, error.to_string()))?;
        }
        let folder = tempfile::Builder::new().permissions(private).tempdir();
        let folder = folder.map_err(Failure::usage)?;
        let stopped = stop_signal().map_err(Failure::refused)?;
        let running = self.serve(folder.path()).await?;
        let plugin = DevelopedPlugin { file: &self.file, given: &given, host: &running.host };
        let work = async {
            let installed = plugin.install().await?;
            print_line(&format_version(&installed.version));
            let key = create_trial_company(&running.host, &installed.version).await?;
            print_line(&format!("\n{}", running.format_access(&key, &installed)));
            plugin.reinstall_on_change().await;
            Ok(())
        };
        let ended = tokio::select! {
            ended = work => ended,
            () = stopped => Ok(()),
        };
        let _ = running.stop.send(true);
        // Until it ends, the host writes to the folder.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, running.served).await;
        ended.map(|()| Report::new(Value::Null, ""))
    }

    async fn serve(&self, folder: &Path) -> Result<RunningHost> {
        let next = if self.port == 0 { 0 } else { self.port.saturating_add(1) };
        let (public, internal) = (bind(self.port).await?, bind(next).await?);
        let address = |listener: &TcpListener| listener.local_addr().map_err(Failure::refused);
        let (listen, internal_listen) = (address(&public)?, address(&internal)?);
        let random = Random::system();
        let token = random.token("op_");
        let file = |name: &str, secret: &str| {
            let file = folder.join(name);
            fs::write(&file, secret).map_err(Failure::refused)?;
            Ok::<_, Failure>(file.display().to_string())
        };
        let master_key = hex::encode(random.bytes::<32>());
        let config = config([
            format!("--database=sqlite://{}", folder.join("tollhouse.db").display()),
            format!("--listen={listen}"),
            format!("--internal-listen={internal_listen}"),
            format!("--public-url=http://{listen}"),
            format!("--operator-token-file={}", file("operator-token", &token)?),
            format!("--master-key-file={}", file("master-key", &master_key)?),
            format!("--files={}", folder.join("files").display()),
            "--development".to_owned(),
            "--plugin-unsigned".to_owned(),
        ])?;
        let reporting = config.telemetry.start(Level::WARN);
        drop(reporting.map_err(|error| Failure::usage(chain(&*error)))?);
        let app = App::open(&config, Clock::system(), random.clone(), None).await;
        let app = app.map_err(|error| Failure::refused(chain(&*error)))?;
        let record = self.record.clone();
        app.plugins.set_recorder(Arc::new(move |call| {
            if let Some(failed) = format_failed_call(&call) {
                print_line(&failed);
            }
            if let Some(folder) = record.clone() {
                tokio::spawn(write_recording(folder, call, random.clone()));
            }
        }));
        let (stop, stopped) = watch::channel(false);
        let (public, internal) = (Listener::plain(public), Listener::plain(internal));
        let served = tokio::spawn(wiring::serve(app, public, internal, stopped));
        let host = HostClient::on_loopback(internal_listen, &token)?;
        Ok(RunningHost { host, api: format!("http://{listen}"), token, stop, served })
    }
}

/// Writes a call to a file named after its start and its function.
async fn write_recording(folder: PathBuf, call: CompletedCall, random: Random) {
    let function = call.call.function();
    let recording = Recording::of(call, &random).await;
    let file = folder.join(format!("{}-{function}.json", recording.began_ms));
    let json = serde_json::to_vec_pretty(&recording);
    match json.map_err(Into::into).and_then(|json| fs::write(&file, json)) {
        Ok(()) => print_line(&format!("recorded {}", file.display())),
        Err(error) => print_line(&format!("{} cannot be written: {error}", file.display())),
    }
}

struct RunningHost {
    host: HostClient,
    api: String,
    token: String,
    /// Shuts the host down.
    stop: watch::Sender<bool>,
    /// Completes after the shutdown.
    served: JoinHandle<()>,
}

impl RunningHost {
    /// Formats the addresses and credentials of the host, with an example request.
    fn format_access(&self, key: &str, installed: &Installed) -> String {
        let Installed { version: installed, account, manifest } = installed;
        let (path, body) = match kind(installed) {
            Some(PluginKind::Sms) => (
                "otp/send".to_owned(),
                json!({ "identifier": "ada", "channels": ["sms"], "phone": "+2348031234567" }),
            ),
            Some(PluginKind::Country) => {
                let identity = &installed["manifest"]["country"]["identities"][0];
                let field = text(&identity["field"]);
                let path =
                    format!("kyc/{}/{}/lookup", text(&installed["name"]), text(&identity["path"]));
                (path, json!({ field: identity["example"] }))
            }
            _ => {
                let CheckoutOrder { email, phone, amount, success_url, .. } =
                    CheckoutOrder::example(manifest);
                let mut order = json!({
                    "email": email, "amount": amount.minor.to_major(), "currency": amount.currency,
                    "checkout": { "success_url": success_url },
                });
                if manifest.sessions.push {
                    order["phone"] = json!(phone);
                }
                if let Some(metadata) = manifest.examples.metadata() {
                    order["metadata"] = json!(metadata);
                }
                ("payment/initialize".to_owned(), order)
            }
        };
        let webhooks = account["notification_url"].as_str();
        let webhooks = webhooks.map(|url| format!("provider's webhooks {url}\n"));
        let webhooks = webhooks.unwrap_or_default();
        let RunningHost { api, token, host: HostClient { base, .. }, .. } = self;
        format!(
            "API                 {api}\nAPI key             {key}\n{webhooks}\
             internal interface  {base}\noperator token      {token}\n\n\
             Try:\n  curl -s {api}/api/v1/{path} -H 'Authorization: Bearer {key}' \
             -H 'Content-Type: application/json' -d '{body}'"
        )
    }
}

/// Prints a line. The reader may have closed the pipe.
fn print_line(line: &str) {
    drop(writeln!(std::io::stdout().lock(), "{line}"));
}

fn config(flags: [String; 9]) -> Result<Config> {
    let command = Config::augment_args(Command::new("tollhouse").no_binary_name(true));
    let matches = command.try_get_matches_from(flags).map_err(Failure::usage)?;
    Config::from_arg_matches(&matches).map_err(Failure::usage)
}

async fn bind(port: u16) -> Result<TcpListener> {
    let bound = TcpListener::bind(("127.0.0.1", port)).await;
    bound
        .map_err(|error| Failure::usage(format!("port {port} cannot be used: {error}; try --port")))
}

fn read_credentials(given: &[String]) -> Result<BTreeMap<&str, &str>> {
    let pairs = given.iter().map(|text| {
        let pair = text.split_once('=');
        pair.ok_or_else(|| {
            Failure::usage("--credential must have the form NAME=VALUE") // not quoted: a secret
        })
    });
    pairs.collect()
}

/// An installed version and the host's responses.
struct Installed {
    version: Value,
    account: Value,
    manifest: Manifest,
}

struct DevelopedPlugin<'a> {
    file: &'a Path,
    given: &'a BTreeMap<&'a str, &'a str>,
    host: &'a HostClient,
}

impl DevelopedPlugin<'_> {
    /// Installs the component and configures its account.
    async fn install(&self) -> Result<Installed> {
        let wasm = read_bytes(self.file)?;
        let manifest = Manifest::read(&wasm).map_err(Failure::refused)?;
        let credentials = self.credentials(&manifest)?;
        let version = self.host.post_bytes(&["plugins"], &[("grant", true)], wasm).await?;
        let account = json!({ "credentials": credentials, "active": true });
        let account =
            self.host.change(Method::PUT, &["providers", &manifest.name], &account).await?;
        Ok(Installed { version, account, manifest })
    }

    fn credentials(&self, manifest: &Manifest) -> Result<BTreeMap<String, String>> {
        let example = manifest.examples.credentials();
        let given = |name: &str| {
            let given = self.given.get(name).map(|value| (*value).to_owned());
            given.or_else(|| example.get(name).cloned())
        };
        if let Some(name) = self.given.keys().find(|name| !manifest.has_credential(name)) {
            let message = format!("--credential {name}=…: the manifest has no such credential");
            return Err(Failure::usage(message));
        }
        let mut credentials = BTreeMap::new();
        for name in manifest.secrets.names() {
            let secret = given(name).unwrap_or_else(|| EXAMPLE_SECRET.to_owned());
            credentials.insert(name.clone(), secret);
        }
        let mut missing = Vec::new();
        for (name, setting) in &manifest.settings {
            match given(name) {
                Some(value) => drop(credentials.insert(name.clone(), value)),
                None if setting.default.is_some() || manifest.optional.contains(name) => {}
                None => missing.push(format!("--credential {name}=…")),
            }
        }
        match missing.is_empty() {
            true => Ok(credentials),
            false => {
                let missing = missing.join(" ");
                Err(Failure::usage(format!("the account needs more values: add {missing}")))
            }
        }
    }

    /// Reinstalls the component when its file changes.
    async fn reinstall_on_change(&self) {
        let mut known = file_version(self.file);
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = file_version(self.file);
            if now == known || now.is_none() {
                continue;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            if file_version(self.file) != now {
                continue;
            }
            known = now;
            match self.install().await {
                Ok(installed) => print_line(&format_version(&installed.version)),
                Err(failure) => {
                    let why = without_control_characters(&failure.message);
                    print_line(&format!("rejected, the previous version stays active: {why}"));
                }
            }
        }
    }
}

/// Formats a failed call with its upstream responses.
fn format_failed_call(call: &CompletedCall) -> Option<String> {
    let Fault { code, message, .. } = call.fault.as_ref()?;
    let code = if code.is_empty() { String::new() } else { format!(" {code:?}") };
    let mut lines =
        vec![format!("{} failed, {}{code}: {message}", call.call.function(), call.outcome)];
    lines.extend(call.transcript.answers.iter().map(|response| match response {
        Ok(response) => {
            let body: String = response.body.chars().take(MAX_SHOWN_CHARACTERS).collect();
            format!("  response {}: {body}", response.status)
        }
        Err(error) => format!("  no response: {}", text(&json!(error))),
    }));
    Some(lines.iter().map(|line| without_control_characters(line)).collect::<Vec<_>>().join("\n"))
}

/// Returns the modification time and size, which detect a change.
fn file_version(file: &Path) -> Option<(SystemTime, u64)> {
    let found = fs::metadata(file).ok()?;
    Some((found.modified().ok()?, found.len()))
}

fn format_version(installed: &Value) -> String {
    let digest = installed["digest"].as_str().unwrap_or_default();
    let digest = digest.get(..8).unwrap_or_default();
    let warnings = installed["warnings"].as_array().into_iter().flatten();
    let warnings: String = warnings
        .map(|warning| format!("\nwarning: {}", without_control_characters(&text(warning))))
        .collect();
    format!(
        "{} {} is active ({digest}){warnings}",
        text(&installed["name"]),
        text(&installed["version"])
    )
}

/// Creates a company that has a balance and prefers the plugin. Returns its API key.
async fn create_trial_company(host: &HostClient, installed: &Value) -> Result<String> {
    let new = json!({ "name": "Trial Lending", "server": "test" });
    let company = host.change(Method::POST, &["companies"], &new).await?;
    let id = company["id"].as_str().unwrap_or_default();
    let credit = json!({ "amount": TRIAL_BALANCE, "key": "trial" });
    host.change(Method::POST, &["companies", id, "wallet", "credit"], &credit).await?;
    let name = &installed["name"];
    let choice = match kind(installed) {
        Some(PluginKind::Provider) => json!({ "payment_service": name }),
        Some(PluginKind::Sms) => json!({ "sms_gateway": name }),
        _ => return Ok(text(&company["api_key"])),
    };
    host.change(Method::PATCH, &["companies", id], &choice).await?;
    Ok(text(&company["api_key"]))
}

fn kind(installed: &Value) -> Option<PluginKind> {
    serde_json::from_value(installed["manifest"]["kind"].clone()).ok()
}
