//! `tollhouse publisher`.

use std::{fs, path::PathBuf};

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_plugins::PublicKey;

use crate::{
    client::host::{HostAccess, HostClient},
    terminal::{
        confirmation::Confirmation,
        failure::Failure,
        output::{Report, left, text},
    },
};

#[derive(Args)]
pub struct Publisher {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List trusted publishers and their keys
    List,
    /// Trust a publisher with these keys, which replace any former ones
    #[command(after_help = "Example:\n  tollhouse publisher trust acme acme.pub")]
    Trust {
        /// Name of the publisher
        name: String,
        /// Public keys in PEM, as `tollhouse plugin key` prints them
        #[arg(required = true, value_name = "FILE")]
        keys: Vec<PathBuf>,
    },
    /// Stop trusting a publisher; its installed plugins stay
    Distrust {
        name: String,
        #[command(flatten)]
        yes: Confirmation,
    },
}

impl Publisher {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        match self.action {
            Action::List => Ok(table(host.get(&["publishers"], &[]).await?)),
            Action::Trust { name, keys } => {
                let keys = keys.iter().map(key).collect::<Result<Vec<_>, _>>()?;
                let body = json!({ "keys": keys });
                let publisher = host.send_json(Method::PUT, &["publishers", &name], &body).await?;
                let said = format!("{name} is trusted: plugins that it signs are accepted");
                Ok(Report::new(publisher, said))
            }
            Action::Distrust { name, yes } => {
                yes.confirm(&format!("Stop trusting {name}?"))?;
                let gone = host.delete(&["publishers", &name]).await?;
                Ok(Report::new(gone, format!("{name} is no longer trusted")))
            }
        }
    }
}

fn key(file: &PathBuf) -> Result<String, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let pem = fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    PublicKey::from_pem(&pem).map(|key| key.to_line()).map_err(wrong)
}

fn table(publishers: Value) -> Report {
    let each = publishers.as_array().into_iter().flatten();
    let keys = each.flat_map(|publisher| {
        let keys = publisher["keys"].as_array().into_iter().flatten();
        keys.map(|key| {
            json!({ "name": publisher["name"], "key": key["key"],
        "added_at": key["added_at"] })
        })
    });
    let keys = Value::Array(keys.collect());
    let columns = [
        left("PUBLISHER", |v| text(&v["name"])),
        left("KEY", |v| text(&v["key"])),
        left("ADDED", |v| text(&v["added_at"])),
    ];
    Report::table(publishers, &keys, &columns)
}
