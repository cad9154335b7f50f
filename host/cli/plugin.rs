//! `tollhouse plugin`.

use std::path::PathBuf;

use clap::Subcommand;
use tollhouse::config::Remote;

use super::{
    failure::Failure,
    host::Host,
    output::{Report, left, text},
};

#[derive(Subcommand)]
pub enum Command {
    /// Install a component, upgrade to it, or roll back to it, without a restart
    #[command(after_help = "Example:\n  tollhouse plugin install provider_a.wasm")]
    Install {
        /// The component
        file: PathBuf,
        #[command(flatten)]
        remote: Remote,
    },
    /// List every version that was installed, and which serves
    List {
        #[command(flatten)]
        remote: Remote,
    },
}

impl Command {
    pub async fn run(self) -> Result<Report, Failure> {
        match self {
            Command::Install { file, remote } => install(&Host::new(&remote)?, file).await,
            Command::List { remote } => list(&Host::new(&remote)?).await,
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
