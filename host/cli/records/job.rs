//! `tollhouse job`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// List parked jobs and jobs that have failed at least ten times in a row
    #[command(after_help = "Example:\n  tollhouse job list --kind charge.reconcile")]
    List(Filter),
    /// Run failing jobs now, including parked ones
    #[command(after_help = "\
Example:
  tollhouse job retry --kind event.deliver
  tollhouse job retry --company 6b018eed9f8a1c2b3d4e5f60 --kind charge.reconcile \\
      --subject 6920280a1f2e3d4c5b6a7980")]
    Retry {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        yes: Confirmation,
    },
}

#[derive(Args, Serialize)]
#[group(skip)]
pub struct Filter {
    /// Only jobs of this kind, for example event.deliver
    #[arg(long)]
    kind: Option<String>,
    /// Only jobs of the company with this id
    #[arg(long)]
    company: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    part: PageArgs,
}

#[derive(Args, Serialize)]
#[group(skip)]
pub struct Which {
    /// Only jobs of this kind
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// Only jobs of the company with this id
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    company: Option<String>,
    /// Only jobs with this subject, as `job list` shows it
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
}

const COLUMNS: &str = "company, kind, subject, failures as number, \
    parked: parked_at, next run: next_run_at, error";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::List(filter) => host.list(&["jobs"], &filter, COLUMNS).await,
            Action::Retry { which, yes } => {
                yes.confirm("Run these failing jobs now?")?;
                let retried = host.change(Method::POST, &["jobs", "retry"], &which).await?;
                let message = format!("jobs queued for retry: {}", retried["jobs"]);
                Ok(Report::new(retried, message))
            }
        }
    }
}
