//! `tollhouse identity`.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    client::host::{HostAccess, HostClient},
    terminal::{
        failure::Failure,
        output::{Report, left, text},
    },
};

#[derive(Args)]
pub struct Identity {
    #[command(flatten)]
    access: HostAccess,
    /// The company's id; without it, the command applies to all companies
    #[arg(long, global = true, value_name = "COMPANY")]
    company: Option<String>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the identity types of the installed countries
    List,
    /// Disable lookups of an identity type; existing records stay
    Disable {
        /// Identity type as in the list, for example `nigeria.bvn`
        identity: String,
    },
    /// Enable lookups of an identity type again
    Enable {
        /// Identity type as in the list, for example `nigeria.bvn`
        identity: String,
    },
}

impl Identity {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        let company = self.company.as_deref();
        let mut path: Vec<&str> = company.map_or_else(Vec::new, |id| vec!["companies", id]);
        path.push("identities");
        let switch = async |identity: &str, active: bool| {
            let (country, name) = identity.split_once('.').unwrap_or((identity, "-"));
            let path = [&path[..], &[country, name]].concat();
            host.send_json(Method::PUT, &path, &json!({ "active": active })).await
        };
        match self.action {
            Action::List => {
                let all = host.get(&path, &[]).await?;
                Ok(report(all.clone(), &all))
            }
            Action::Disable { identity } => one(switch(&identity, false).await?),
            Action::Enable { identity } => one(switch(&identity, true).await?),
        }
    }
}

fn one(identity: Value) -> Result<Report, Failure> {
    let all = json!([identity]);
    Ok(report(identity, &all))
}

fn report(data: Value, all: &Value) -> Report {
    let columns = [
        left("IDENTITY", |v| text(&v["identity_name"])),
        left("NAME", |v| text(&v["name"])),
        left("ACTIVE", |v| text(&v["active"])),
        left("FIELD", |v| text(&v["field"])),
        left("PATH", |v| text(&v["paths"][0])),
    ];
    Report::table(data, all, &columns)
}
