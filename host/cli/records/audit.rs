//! `tollhouse audit`.

use clap::Args;

use crate::{
    client::host::{HostAccess, HostClient, PageArgs},
    terminal::{
        failure::Failure,
        output::{Report, left, text},
    },
};

/// List audit log entries
#[derive(Args)]
pub struct Audit {
    /// The company's id; without it, entries of the service as a whole
    company: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    access: HostAccess,
}

impl Audit {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        let path = match &self.company {
            Some(company) => vec!["companies", company, "audit"],
            None => vec!["audit"],
        };
        let entries = host.get(&path, &self.page.query()).await?;
        let columns = [
            left("AT", |v| text(&v["created_at"])),
            left("ACTOR", |v| text(&v["actor"])),
            left("ACTION", |v| text(&v["action"])),
            left("DETAIL", |v| v["detail"].to_string()),
        ];
        Ok(Report::page(entries, &columns))
    }
}
