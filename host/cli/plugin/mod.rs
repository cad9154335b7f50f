//! `tollhouse plugin`.

mod bench;
mod check;
mod new;
mod publish;
pub mod publisher;
pub mod registry;
mod replay;
mod run;
mod sign;
mod source;

use std::io::{IsTerminal, stdin};

use self::source::ComponentSource;
use crate::prelude::*;

/// Commands without a host, and the headings of options that their help omits. Hidden options still
/// apply, also from a settings file.
const WITHOUT_HOST: [(&str, &[&str]); 8] = [
    ("bench", &HOST_HEADINGS),
    ("check", &HOST_HEADINGS),
    ("key", &HOST_HEADINGS),
    ("new", &HOST_HEADINGS),
    ("publish", &HOST_HEADINGS),
    ("run", &HOST_HEADINGS),
    ("sign", &HOST_HEADINGS),
    // It may read recorded calls from a host.
    ("replay", &["Plugins"]),
];
const HOST_HEADINGS: [&str; 3] = ["Plugins", "Connection to the host", "Secrets"];

/// Hides the options of hosts in the help of commands without one.
pub fn hide_host_options(plugin: clap::Command) -> clap::Command {
    WITHOUT_HOST.iter().fold(plugin, |plugin, (name, headings)| {
        let is_hidden = |arg: &clap::Arg| {
            arg.get_help_heading().is_some_and(|heading| headings.contains(&heading))
        };
        let hide = |arg: clap::Arg| match is_hidden(&arg) {
            true => arg.hide(true),
            false => arg,
        };
        plugin.mut_subcommand(name, |command| command.mut_args(hide))
    })
}

#[derive(Args)]
pub struct Plugin {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    #[command(flatten)]
    Remote(RemoteAction),
    /// Compare the performance of plugins, without a host or a network
    Bench(bench::Bench),
    /// Run the conformance check: upstream failures and hostile input, without a host or a network
    #[command(after_help = "\
Exit code: 1 if a case fails. Notes do not fail the check.

Example:
  tollhouse plugin check target/sprout.wasm --json")]
    Check(check::Check),
    /// Create a plugin project
    New(new::New),
    /// Replay recorded calls against a component and show differences; no upstream is contacted
    #[command(after_help = "\
A host records calls if it runs with --plugin-recording-retention-hours. Personal data is masked.

Examples:
  tollhouse plugin replay provider_a.wasm --last 100
  tollhouse plugin recording provider_a 6921… > call.json
  tollhouse plugin replay provider_a.wasm call.json")]
    Replay(replay::Replay),
    /// Run a development host that reloads the plugin when its file changes
    Run(run::Run),
    /// Create a signing key, or print the public key of an existing one
    Key(sign::Key),
    /// Sign a component, so that operators can verify its publisher
    Sign(sign::Sign),
    /// Publish a component to a registry
    Publish(publish::Publish),
}

/// Actions on a host.
#[derive(Subcommand)]
enum RemoteAction {
    /// Install a component and activate it without a restart
    #[command(after_help = "\
If a component requests more capabilities than the previous version, it stays inactive until they
are granted; the previous version stays active.

The signature is read from the component, or from FILE.sig beside it.

Examples:
  tollhouse plugin install provider_a.wasm
  tollhouse plugin install oci://registry.acme.example/plugins/acme:1.0.0")]
    Install {
        #[command(flatten)]
        source: ComponentSource,
        /// Grant all requested capabilities without confirmation
        #[arg(long)]
        grant: bool,
        /// Install without activating
        #[arg(long)]
        inactive: bool,
    },
    /// Show requested capabilities and admission checks of a component without installing it
    Examine(ComponentSource),
    /// List all installed versions and their states
    List,
    /// Show the active version and the credentials that it needs
    Show { name: String },
    /// List recorded calls of a plugin, newest first
    Recordings {
        name: String,
        #[command(flatten)]
        filter: RecordingFilter,
    },
    /// Show a recorded call: its input, transcript and effects
    Recording { name: String, id: String },
    /// Activate a version
    Activate {
        name: String,
        /// Version, or at least the first 4 digits of its digest. Default: the version that was
        /// active last
        version: Option<String>,
        /// Grant all requested capabilities
        #[arg(long)]
        grant: bool,
    },
    /// Start a canary: serve a share of calls and named companies with a version
    #[command(after_help = "Example:\n  tollhouse plugin canary provider_a 1.1.0 --percent 5")]
    Canary {
        name: String,
        /// Version, or at least the first 4 digits of its digest
        version: String,
        /// Percentage of the plugin's calls
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
        percent: u8,
        /// A company whose calls all use this version, by its id; may be repeated
        #[arg(long = "company", value_name = "COMPANY")]
        companies: Vec<String>,
        /// Grant all requested capabilities
        #[arg(long)]
        grant: bool,
    },
    /// End a canary, or reactivate the previous version
    Rollback { name: String },
    /// Deactivate a plugin; `activate` reverses it
    Deactivate {
        name: String,
        #[command(flatten)]
        yes: Confirmation,
    },
    /// Uninstall an inactive version
    Uninstall {
        name: String,
        /// Version, or at least the first 4 digits of its digest
        version: String,
        #[command(flatten)]
        yes: Confirmation,
    },
}

#[derive(Args, Serialize)]
#[group(skip)]
struct RecordingFilter {
    /// Function, for example checkout.start
    #[arg(long)]
    function: Option<String>,
    /// The company's id
    #[arg(long)]
    company: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageArgs,
}

const VERSIONS: &str =
    "name, version, state as state, signed by: publisher, installed: installed_at, digest";
const ACTIVE_VERSION: &str = "name, display name: manifest/display_name, version, \
    signed by: publisher, digest, installed: installed_at, active since: active_at, interfaces, \
    granted, currencies: manifest/currencies, channels: manifest/channels, \
    hosts: manifest/hosts, secrets: manifest/secrets as secrets, \
    settings: manifest/settings as settings";
const RECORDINGS: &str = "id, function, outcome, version, company: company_id, began: began_at";

impl Plugin {
    pub async fn run(self) -> Result {
        match self.action {
            Action::Remote(action) => action.run(&HostClient::new(&self.access)?).await,
            Action::Bench(bench) => bench.run().await,
            Action::Check(check) => check.run().await,
            Action::New(new) => new.run(),
            Action::Replay(replay) => replay.run(&self.access).await,
            Action::Run(run) => run.run().await,
            Action::Key(key) => key.run(),
            Action::Sign(sign) => sign.run(),
            Action::Publish(publish) => publish.run().await,
        }
    }
}

impl HostAction for RemoteAction {
    async fn run(self, host: &HostClient) -> Result {
        let (name, change, body) = match self {
            RemoteAction::Install { source, grant, inactive } => {
                return install(host, &source, grant, !inactive).await;
            }
            RemoteAction::Examine(source) => return examine(host, &source).await,
            RemoteAction::List => return host.list(&["plugins"], &(), VERSIONS).await,
            RemoteAction::Show { name } => return show(host, &name).await,
            RemoteAction::Recordings { name, filter } => {
                return host.list(&["plugins", &name, "recordings"], &filter, RECORDINGS).await;
            }
            RemoteAction::Recording { name, id } => {
                let call = host.get(&["plugins", &name, "recordings", &id], &()).await?;
                let text = format!("{call:#}");
                return Ok(Report::new(call, text));
            }
            RemoteAction::Uninstall { name, version, yes } => {
                let digest = resolve_digest(host, &name, &version).await?;
                yes.confirm(&format!("Uninstall {name} {version}?"))?;
                let gone = host.delete(&["plugins", &name, &digest]).await?;
                let message = format!("{name} {} is uninstalled", text(&gone["version"]));
                return Ok(Report::new(gone, message));
            }
            RemoteAction::Activate { name, version, grant } => {
                let digest = match version {
                    Some(version) => Some(resolve_digest(host, &name, &version).await?),
                    None => None,
                };
                (name, "activate", json!({ "digest": digest, "grant": grant }))
            }
            RemoteAction::Canary { name, version, percent, companies, grant } => {
                let digest = resolve_digest(host, &name, &version).await?;
                let body = json!({
                    "digest": digest, "percent": percent, "companies": companies, "grant": grant,
                });
                (name, "canary", body)
            }
            RemoteAction::Rollback { name } => (name, "rollback", json!({})),
            RemoteAction::Deactivate { name, yes } => {
                yes.confirm(&format!("Deactivate {name} for all companies?"))?;
                (name, "deactivate", json!({}))
            }
        };
        change_plugin(host, &name, change, &body).await
    }
}

async fn install(
    host: &HostClient,
    source: &ComponentSource,
    grant: bool,
    activate: bool,
) -> Result {
    let (component, signature) = source.read().await?;
    let query = [
        ("grant", Some(grant.to_string())),
        ("activate", Some(activate.to_string())),
        ("signature", signature),
    ];
    let plugin = host.post_bytes(&["plugins"], &query, component).await?;
    let (name, digest) = (text(&plugin["name"]), text(&plugin["digest"]));
    let named = format!("{name} {}", text(&plugin["version"]));
    let warnings = warnings(&plugin);
    let message = match plugin["state"].as_str() {
        Some("waiting") => {
            let requested = text(&plugin["waits_for"]);
            let needs_grant = || {
                Failure::refused(format!(
                    "{named} needs {requested} to be granted: \
                     run tollhouse plugin activate {named} --grant"
                ))
            };
            if activate && stdin().is_terminal() {
                let question = format!(
                    "{named} requests {requested}.{warnings}\n\
                     Grant these capabilities and activate the version?"
                );
                // The version is installed even if its activation is not confirmed.
                Confirmation::default().confirm(&question).map_err(|_| needs_grant())?;
                let body = json!({ "digest": plugin["digest"], "grant": true });
                return change_plugin(host, &name, "activate", &body).await;
            }
            let failure = needs_grant();
            return Ok(Report::new(plugin, warnings.trim_start()).with_failure(failure));
        }
        Some("active") => match plugin["replaces"].as_str() {
            Some(former) => format!("{named} is active ({digest})\nit replaces {former}"),
            None => format!("{named} is active ({digest})"),
        },
        _ => format!("{named} is installed, but not active ({digest})"),
    };
    Ok(Report::new(plugin, message + &warnings))
}

/// Formats the warnings about a component, one per line, after other lines.
fn warnings(plugin: &Value) -> String {
    let each = plugin["warnings"].as_array().into_iter().flatten();
    each.map(|warning| format!("\nwarning: {}", text(warning))).collect()
}

async fn examine(host: &HostClient, source: &ComponentSource) -> Result {
    let (component, signature) = source.read().await?;
    let query = [("signature", signature)];
    let examined = host.post_bytes(&["plugins", "examine"], &query, component).await?;
    let checks = table(&examined["checks"], "check, passed, found: result");
    let note =
        format!("It requests {}{}", text(&examined["requested_capabilities"]), warnings(&examined));
    let is_admitted = examined["admitted"] == true;
    let report = Report::new(examined, checks);
    let report = if is_admitted { report.with_note(&note) } else { report };
    Ok(report.refused_if(!is_admitted, "the host would reject it"))
}

/// Returns the digest of the only version with this name or digest prefix.
async fn resolve_digest(host: &HostClient, name: &str, version: &str) -> Result<String> {
    let plugins = host.get(&["plugins", name], &()).await?;
    let plugins = plugins.as_array().into_iter().flatten();
    let is_meant = |plugin: &&Value| {
        let digest = plugin["digest"].as_str().unwrap_or_default();
        plugin["version"] == version || version.len() >= 4 && digest.starts_with(version)
    };
    let meant: Vec<&str> = plugins.filter(is_meant).filter_map(|p| p["digest"].as_str()).collect();
    match meant[..] {
        [digest] => Ok(digest.to_owned()),
        [] => Err(Failure::refused(format!("no version {version} of {name} is installed"))),
        _ => Err(Failure::refused(format!(
            "{version} matches several installed builds of {name}: \
             give enough digits of the digest to identify one"
        ))),
    }
}

/// Changes a plugin and reports its installed versions.
async fn change_plugin(host: &HostClient, name: &str, change: &str, body: &Value) -> Result {
    let versions = host.change(Method::POST, &["plugins", name, change], body).await?;
    Ok(Report::list(versions, VERSIONS))
}

async fn show(host: &HostClient, name: &str) -> Result {
    let plugins = host.get(&["plugins", name], &()).await?;
    let mut plugins = plugins.as_array().into_iter().flatten();
    match plugins.find(|plugin| plugin["state"] == "active") {
        Some(plugin) => Ok(Report::record(plugin.clone(), ACTIVE_VERSION)),
        None => Err(Failure::refused(format!("no version of {name} is active"))),
    }
}
