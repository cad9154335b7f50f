//! `tollhouse approval`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// List actions that need an approval, newest first
    List {
        /// State: pending, approved, rejected or used
        #[arg(long)]
        state: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Approve an action, so that the operator who requested it can repeat the request
    Approve(ApprovalArg),
    /// Reject an action
    Reject(ApprovalArg),
}

#[derive(Args)]
#[group(skip)]
pub struct ApprovalArg {
    /// The approval's id, as `approval list` shows it
    approval: String,
}

#[derive(Serialize)]
struct ListQuery {
    state: Option<String>,
    #[serde(flatten)]
    page: PageArgs,
}

const COLUMNS: &str = "approval: id, requested: requested_at, by: requested_by, action, company, \
    detail as json, state, decided by: decided_by";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::List { state, page } => {
                host.list(&["approvals"], &ListQuery { state, page }, COLUMNS).await
            }
            Action::Approve(ApprovalArg { approval }) => decide(host, &approval, "approve").await,
            Action::Reject(ApprovalArg { approval }) => decide(host, &approval, "reject").await,
        }
    }
}

async fn decide(host: &HostClient, approval: &str, decision: &str) -> Result {
    let path = ["approvals", approval, decision];
    let decided = host.change(Method::POST, &path, &json!({})).await?;
    Ok(Report::record(decided, COLUMNS))
}
