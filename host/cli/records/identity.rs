//! `tollhouse identity`.

use crate::prelude::*;

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
    /// Disable lookups of an identity type; existing records are kept
    Disable(IdentityArg),
    /// Enable lookups of an identity type again
    Enable(IdentityArg),
}

#[derive(Args)]
#[group(skip)]
struct IdentityArg {
    /// Identity type as in the list, for example `nigeria.bvn`
    identity: String,
}

const COLUMNS: &str = "identity: identity_name, name, active, field, path: paths/0";

impl Identity {
    pub async fn run(self) -> Result {
        let host = HostClient::new(&self.access)?;
        let mut path = scope(self.company.as_deref(), "identities");
        let (identity, active) = match &self.action {
            Action::List => return host.list(&path, &(), COLUMNS).await,
            Action::Disable(IdentityArg { identity }) => (identity, false),
            Action::Enable(IdentityArg { identity }) => (identity, true),
        };
        let (country, name) = identity.split_once('.').unwrap_or((identity, "-"));
        path.extend([country, name]);
        let identity = host.change(Method::PUT, &path, &json!({ "active": active })).await?;
        let report = Report::list(json!([identity]), COLUMNS);
        Ok(Report { json: identity, ..report })
    }
}
