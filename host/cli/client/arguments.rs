//! Arguments that commands on a host share. Queries are their serialized form.

use tollhouse_app::state::config::Remote;
use tollhouse_platform::config::secrets::OperatorToken;

use crate::prelude::*;

/// The connection settings of a command.
#[derive(Args)]
pub struct HostAccess {
    #[command(flatten)]
    pub remote: Remote,
    #[command(flatten)]
    pub operator_token: OperatorToken,
}

/// A command with actions on a host.
#[derive(Args)]
pub struct OnHost<A: HostAction> {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: A,
}

pub trait HostAction: Subcommand {
    async fn run(self, host: &HostClient) -> Result;
}

impl<A: HostAction> OnHost<A> {
    pub async fn run(self) -> Result {
        self.action.run(&HostClient::new(&self.access)?).await
    }
}

#[derive(Args)]
#[group(skip)]
pub struct CompanyArg {
    /// The company's id
    pub company: String,
}

/// The page of a list.
#[derive(Args, Serialize)]
pub struct PageArgs {
    /// Page number, from 1
    #[arg(long, default_value_t = 1)]
    page: u32,
    /// Maximum number of records per page, at most 1000
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

/// The cursor and limit of a feed.
#[derive(Args, Serialize)]
pub struct CursorArgs {
    /// Cursor that the previous response returned
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Maximum number of records, at most 1000
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

/// Returns the path of a company's resource or, without a company, of the service's.
pub fn scope<'p>(company: Option<&'p str>, resource: &'p str) -> Vec<&'p str> {
    match company {
        Some(company) => vec!["companies", company, resource],
        None => vec![resource],
    }
}
