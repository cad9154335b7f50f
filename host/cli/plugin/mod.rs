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

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use self::source::ComponentSource;
use crate::{
    client::host::{HostAccess, HostClient, PageArgs},
    terminal::{
        confirmation::Confirmation,
        failure::Failure,
        output::{Report, left, text},
    },
};

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
    OnHost(HostAction),
    /// Compare the performance of plugins, without a host or a network
    Bench(bench::Bench),
    /// Run the conformance check: upstream failures and hostile input, without a host or a network
    #[command(after_help = "Example:\n  tollhouse plugin check target/sprout.wasm --json")]
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

/// Commands that call a host.
#[derive(Subcommand)]
enum HostAction {
    /// Install a component and activate it without a restart
    #[command(after_help = "\
A component that requests more than the previous version waits until that is granted; the previous version stays active.

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
    Examine {
        #[command(flatten)]
        source: ComponentSource,
    },
    /// List all installed versions and their states
    List,
    /// Show the active version and the credentials that it needs
    Show { name: String },
    /// List recorded calls of a plugin, newest first
    Recordings {
        name: String,
        /// Function, for example checkout.start
        #[arg(long)]
        function: Option<String>,
        /// The company's id
        #[arg(long)]
        company: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a recorded call: its input, transcript and effects
    Recording { name: String, id: String },
    /// Activate a version
    Activate {
        name: String,
        /// Version, or the first digits of its digest. Default: the version that was active last
        version: Option<String>,
        /// Grant all requested capabilities
        #[arg(long)]
        grant: bool,
    },
    /// Start a canary: serve a share of calls and named companies with a version
    #[command(after_help = "Example:\n  tollhouse plugin canary provider_a 1.1.0 --percent 5")]
    Canary {
        name: String,
        /// Version, or the first digits of its digest
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
        /// Version, or the first digits of its digest
        version: String,
        #[command(flatten)]
        yes: Confirmation,
    },
}

impl Plugin {
    pub async fn run(self) -> Result<Report, Failure> {
        match self.action {
            Action::OnHost(action) => action.run(&HostClient::new(&self.access)?).await,
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

impl HostAction {
    async fn run(self, host: &HostClient) -> Result<Report, Failure> {
        match self {
            HostAction::Install { source, grant, inactive } => {
                install(host, &source, grant, !inactive).await
            }
            HostAction::Examine { source } => examine(host, &source).await,
            HostAction::List => list(host).await,
            HostAction::Show { name } => show(host, &name).await,
            HostAction::Recordings { name, function, company, page } => {
                let chosen = [("function", function), ("company", company)];
                let chosen = chosen.into_iter().filter_map(|(name, value)| Some((name, value?)));
                let query: Vec<_> = page.query().into_iter().chain(chosen).collect();
                recordings(host, &name, &query).await
            }
            HostAction::Recording { name, id } => {
                let call = host.get(&["plugins", &name, "recordings", &id], &[]).await?;
                let text = format!("{call:#}");
                Ok(Report::new(call, text))
            }
            HostAction::Activate { name, version, grant } => {
                let digest = match version {
                    Some(version) => Some(resolve_digest(host, &name, &version).await?),
                    None => None,
                };
                let body = json!({ "digest": digest, "grant": grant });
                change_plugin(host, &name, "activate", &body).await
            }
            HostAction::Canary { name, version, percent, companies, grant } => {
                let digest = resolve_digest(host, &name, &version).await?;
                let body = json!({
                    "digest": digest, "percent": percent, "companies": companies, "grant": grant,
                });
                change_plugin(host, &name, "canary", &body).await
            }
            HostAction::Rollback { name } => {
                change_plugin(host, &name, "rollback", &json!({})).await
            }
            HostAction::Deactivate { name, yes } => {
                yes.confirm(&format!("Deactivate {name} for all companies?"))?;
                change_plugin(host, &name, "deactivate", &json!({})).await
            }
            HostAction::Uninstall { name, version, yes } => {
                let digest = resolve_digest(host, &name, &version).await?;
                yes.confirm(&format!("Uninstall {name} {version}?"))?;
                let gone = host.delete(&["plugins", &name, &digest]).await?;
                let said = format!("{name} {} is uninstalled", text(&gone["version"]));
                Ok(Report::new(gone, said))
            }
        }
    }
}

async fn install(
    host: &HostClient,
    source: &ComponentSource,
    grant: bool,
    activate: bool,
) -> Result<Report, Failure> {
    let found = source.read().await?;
    let query = found.query(&[("grant", grant.to_string()), ("activate", activate.to_string())]);
    let plugin = host.post_bytes(&["plugins"], &query, found.file).await?;
    let named = format!("{} {}", text(&plugin["name"]), text(&plugin["version"]));
    let waits_for = text(&plugin["waits_for"]);
    let warnings = warnings(&plugin);
    let said = match plugin["state"].as_str() {
        Some("waiting") if activate && stdin().is_terminal() => {
            return grant_and_activate(host, &plugin, &named).await;
        }
        Some("waiting") => {
            let command = format!("tollhouse plugin activate {named} --grant");
            let failure = Failure::refused(format!(
                "{named} waits for a grant of {waits_for}: run {command}"
            ));
            return Ok(Report::new(plugin, warnings.trim_start()).with_failure(failure));
        }
        Some("active") => format!("{named} is active ({})", text(&plugin["digest"])),
        _ => format!("{named} is installed, but not active ({})", text(&plugin["digest"])),
    };
    let said = match plugin["replaces"].as_str() {
        Some(former) if plugin["state"] == "active" => format!("{said}\nit replaces {former}"),
        _ => said,
    };
    Ok(Report::new(plugin, said + &warnings))
}

/// Formats the warnings about a component, one per line, after other lines.
fn warnings(plugin: &Value) -> String {
    let each = plugin["warnings"].as_array().into_iter().flatten();
    each.map(|warning| format!("\nwarning: {}", text(warning))).collect()
}

/// Asks for confirmation, then grants the capabilities and activates the version.
async fn grant_and_activate(
    host: &HostClient,
    plugin: &Value,
    named: &str,
) -> Result<Report, Failure> {
    Confirmation::default().confirm(&format!(
        "{named} requests {}.{}\nGrant this and activate it?",
        text(&plugin["waits_for"]),
        warnings(plugin)
    ))?;
    let body = json!({ "digest": plugin["digest"], "grant": true });
    change_plugin(host, plugin["name"].as_str().unwrap_or_default(), "activate", &body).await
}

async fn examine(host: &HostClient, source: &ComponentSource) -> Result<Report, Failure> {
    let found = source.read().await?;
    let query = found.query(&[]);
    let examined = host.post_bytes(&["plugins", "examine"], &query, found.file).await?;
    let columns = [
        left("CHECK", |v| text(&v["check"])),
        left("PASSED", |v| text(&v["passed"])),
        left("FOUND", |v| text(&v["said"])),
    ];
    let report = Report::table(examined.clone(), &examined["checks"], &columns);
    Ok(match examined["admitted"] == true {
        true => report.with_note(&format!(
            "It requests {}{}",
            text(&examined["asks_for"]),
            warnings(&examined)
        )),
        false => report.with_failure(Failure::refused("the host would reject it")),
    })
}

async fn list(host: &HostClient) -> Result<Report, Failure> {
    let plugins = host.get(&["plugins"], &[]).await?;
    Ok(version_report(plugins))
}

async fn recordings(
    host: &HostClient,
    name: &str,
    query: &[(&str, String)],
) -> Result<Report, Failure> {
    let columns = [
        left("ID", |v| text(&v["id"])),
        left("FUNCTION", |v| text(&v["function"])),
        left("OUTCOME", |v| text(&v["outcome"])),
        left("VERSION", |v| text(&v["version"])),
        left("COMPANY", |v| text(&v["company_id"])),
        left("BEGAN", |v| text(&v["began_at"])),
    ];
    Ok(Report::page(host.get(&["plugins", name, "recordings"], query).await?, &columns))
}

fn version_report(plugins: Value) -> Report {
    let columns = [
        left("NAME", |v| text(&v["name"])),
        left("VERSION", |v| text(&v["version"])),
        left("STATE", format_state),
        left("SIGNED BY", |v| text(&v["publisher"])),
        left("INSTALLED", |v| text(&v["installed_at"])),
        left("DIGEST", |v| text(&v["digest"])),
    ];
    Report::table(plugins.clone(), &plugins, &columns)
}

/// Formats a version's state, with the share and the companies of a canary.
fn format_state(plugin: &Value) -> String {
    if !plugin["quarantined_at"].is_null() {
        return format!("{} (quarantined)", text(&plugin["state"]));
    }
    let companies = plugin["companies"].as_array().map_or(0, Vec::len);
    match plugin["state"].as_str() {
        Some("canary") if companies > 0 => {
            format!("canary ({} %, {companies} companies)", plugin["percent"])
        }
        Some("canary") => format!("canary ({} %)", plugin["percent"]),
        _ => text(&plugin["state"]),
    }
}

/// Returns the digest of the only version with this name or digest prefix.
async fn resolve_digest(host: &HostClient, name: &str, version: &str) -> Result<String, Failure> {
    let plugins = host.get(&["plugins", name], &[]).await?;
    let plugins = plugins.as_array().into_iter().flatten();
    let is_meant = |plugin: &&Value| {
        let digest = plugin["digest"].as_str().unwrap_or_default();
        plugin["version"] == version || version.len() >= 4 && digest.starts_with(version)
    };
    let meant: Vec<&str> = plugins.filter(is_meant).filter_map(|p| p["digest"].as_str()).collect();
    match meant[..] {
        [digest] => Ok(digest.to_owned()),
        [] => Err(Failure::refused(format!("no version {version} of {name} is installed"))),
        _ => {
            let message = format!(
                "several builds of {name} have the version {version}: specify one by its digest"
            );
            Err(Failure::refused(message))
        }
    }
}

/// Changes a plugin and returns its installed versions.
async fn change_plugin(
    host: &HostClient,
    name: &str,
    what: &str,
    body: &Value,
) -> Result<Report, Failure> {
    let plugins = host.send_json(Method::POST, &["plugins", name, what], body).await?;
    Ok(version_report(plugins))
}

async fn show(host: &HostClient, name: &str) -> Result<Report, Failure> {
    let plugins = host.get(&["plugins", name], &[]).await?;
    let mut plugins = plugins.as_array().into_iter().flatten();
    let plugin = plugins.find(|plugin| plugin["state"] == "active");
    let plugin =
        plugin.ok_or_else(|| Failure::refused(format!("no version of {name} is active")))?;
    Ok(Report::record(
        plugin.clone(),
        &[
            left("name", |v| text(&v["name"])),
            left("display name", |v| text(&v["manifest"]["display_name"])),
            left("version", |v| text(&v["version"])),
            left("signed by", |v| text(&v["publisher"])),
            left("digest", |v| text(&v["digest"])),
            left("installed", |v| text(&v["installed_at"])),
            left("active since", |v| text(&v["active_at"])),
            left("interfaces", |v| text(&v["interfaces"])),
            left("granted", |v| text(&v["granted"])),
            left("currencies", |v| text(&v["manifest"]["currencies"])),
            left("channels", |v| text(&v["manifest"]["channels"])),
            left("hosts", |v| text(&v["manifest"]["hosts"])),
            left("secrets", |v| names(&v["manifest"]["secrets"])),
            left("settings", |v| settings(&v["manifest"]["settings"])),
        ],
    ))
}

/// Lists the names of secrets. Their permitted hosts are part of the grant.
fn names(secrets: &Value) -> String {
    match secrets.as_object() {
        Some(bound) => text(&bound.keys().cloned().collect()),
        None => text(secrets),
    }
}

/// Lists the names of settings, with defaults.
fn settings(settings: &Value) -> String {
    let each = settings.as_object().into_iter().flatten();
    let said: Vec<String> = each
        .map(|(name, setting)| match &setting["default"] {
            Value::Null => name.clone(),
            default => format!("{name} [{}]", text(default)),
        })
        .collect();
    if said.is_empty() { "-".to_owned() } else { said.join(", ") }
}
