//! `tollhouse plugin`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{
    failure::Failure,
    host::{Access, Host},
    output::{Report, left, text},
};

#[derive(Args)]
pub struct Plugin {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Install a component, upgrade to it, or roll back to it, without a restart
    #[command(after_help = "Example:\n  tollhouse plugin install provider_a.wasm")]
    Install {
        /// The component
        file: PathBuf,
    },
    /// List every version that was installed, and which serves
    List,
    /// Show the version that serves, and which credentials it needs
    Show { name: String },
}

impl Plugin {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = Host::new(&self.access)?;
        match self.action {
            Action::Install { file } => install(&host, file).await,
            Action::List => list(&host).await,
            Action::Show { name } => show(&host, &name).await,
        }
    }
}

async fn install(host: &Host, file: PathBuf) -> Result<Report, Failure> {
    let wasm = std::fs::read(&file)
        .map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
    let plugin = host.post_bytes(&["plugins"], wasm).await?;
    let field = |name: &str| text(&plugin[name]);
    let mut said =
        format!("{} {} is serving ({})", field("name"), field("version"), field("digest"));
    if let Some(former) = plugin["replaces"].as_str() {
        said = format!("{said}\nit replaces {former}");
    }
    Ok(Report::new(plugin, said))
}

async fn list(host: &Host) -> Result<Report, Failure> {
    let plugins = host.get(&["plugins"], &[]).await?;
    let columns = [
        left("NAME", |v| text(&v["name"])),
        left("VERSION", |v| text(&v["version"])),
        left("STATE", |v| text(&v["state"])),
        left("INSTALLED", |v| text(&v["installed_at"])),
        left("DIGEST", |v| text(&v["digest"])),
    ];
    Ok(Report::table(plugins.clone(), &plugins, &columns))
}

async fn show(host: &Host, name: &str) -> Result<Report, Failure> {
    let plugins = host.get(&["plugins"], &[]).await?;
    let mut plugins = plugins.as_array().into_iter().flatten();
    let serves = |plugin: &&Value| plugin["name"] == name && plugin["state"] == "active";
    let plugin = plugins.find(serves);
    let plugin =
        plugin.ok_or_else(|| Failure::refused(format!("no plugin {name} is installed")))?;
    Ok(Report::record(
        plugin.clone(),
        &[
            left("name", |v| text(&v["name"])),
            left("display name", |v| text(&v["manifest"]["display_name"])),
            left("version", |v| text(&v["version"])),
            left("digest", |v| text(&v["digest"])),
            left("installed", |v| text(&v["installed_at"])),
            left("interfaces", |v| text(&v["interfaces"])),
            left("currencies", |v| text(&v["manifest"]["currencies"])),
            left("channels", |v| text(&v["manifest"]["channels"])),
            left("hosts", |v| text(&v["manifest"]["hosts"])),
            left("secrets", |v| text(&v["manifest"]["secrets"])),
            left("settings", |v| settings(&v["manifest"]["settings"])),
        ],
    ))
}

/// Names of settings, with their defaults.
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
