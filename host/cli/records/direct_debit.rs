//! `tollhouse direct-debit`.

use clap::{Args, Subcommand};
use reqwest::Method;

use crate::{
    client::host::{HostAccess, HostClient},
    terminal::{
        failure::Failure,
        input::Input,
        output::{Report, left, text},
    },
};

#[derive(Args)]
pub struct DirectDebit {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show a mandate, without its token
    Show(MandateArgs),
    /// Create or replace a mandate that another system created
    #[command(after_help = "\
A direct debit is a JSON object. Its token is a secret: delete the file afterwards.
  {\"user_id\": \"ada\", \"payment_service\": \"provider_a\", \"token\": \"AUTH_…\", \"email\": \"ada@example.com\",
   \"bank\": \"GTBank\", \"active\": true, \"default\": true}

Examples:
  tollhouse direct-debit put 6b018eed9f8a1c2b3d4e5f60 dd-1 --file dd-1.json
  tollhouse direct-debit put 6b018eed9f8a1c2b3d4e5f60 dd-1 --file - < dd-1.json")]
    Put {
        #[command(flatten)]
        named: MandateArgs,
        #[command(flatten)]
        input: Input,
    },
}

#[derive(Args)]
struct MandateArgs {
    /// The company's id
    company: String,
    /// The mandate's id
    direct_debit: String,
}

impl DirectDebit {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        let (Action::Show(named) | Action::Put { named, .. }) = &self.action;
        let path = ["companies", &*named.company, "direct-debits", &*named.direct_debit];
        let direct_debit = match &self.action {
            Action::Show(_) => host.get(&path, &[]).await?,
            Action::Put { input, .. } => {
                let body = input.read("{\"user_id\": \"…\", \"token\": \"…\", …}")?;
                host.send_json(Method::PUT, &path, &body).await?
            }
        };
        let fields = [
            left("direct debit", |v| text(&v["id"])),
            left("user", |v| text(&v["user_id"])),
            left("email", |v| text(&v["email"])),
            left("provider", |v| text(&v["payment_service"])),
            left("bank", |v| text(&v["bank"])),
            left("currency", |v| text(&v["currency"])),
            left("active", |v| text(&v["active"])),
            left("default", |v| text(&v["default"])),
            left("created", |v| text(&v["created_at"])),
        ];
        Ok(Report::record(direct_debit, &fields))
    }
}
