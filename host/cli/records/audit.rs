//! `tollhouse audit`.

use crate::prelude::*;

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
    pub async fn run(self) -> Result {
        let host = HostClient::new(&self.access)?;
        let columns = "at: created_at, actor, action, detail as json";
        host.list(&scope(self.company.as_deref(), "audit"), &self.page, columns).await
    }
}
