//! `tollhouse direct-debit`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// Show a mandate, without its token
    Show(MandateArgs),
    /// Create or replace a mandate that another system created
    #[command(after_help = "\
A direct debit is a JSON object. Its token is a secret: delete the file afterwards.
  {\"user_id\": \"ada\", \"payment_service\": \"provider_a\", \"token\": \"AUTH_…\",
   \"email\": \"ada@example.com\", \"bank\": \"GTBank\", \"active\": true, \"default\": true}

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
pub struct MandateArgs {
    /// The company's id
    company: String,
    /// The mandate's id
    direct_debit: String,
}

const FIELDS: &str = "direct debit: id, user: user_id, email, provider: payment_service, bank, \
    currency, active, default, created: created_at";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        let (Action::Show(named) | Action::Put { named, .. }) = &self;
        let path = ["companies", &named.company, "direct-debits", &named.direct_debit];
        let direct_debit = match &self {
            Action::Show(_) => host.get(&path, &()).await?,
            Action::Put { input, .. } => {
                let body = read_object(&input.file, "{\"user_id\": \"…\", \"token\": \"…\", …}")?;
                host.change(Method::PUT, &path, &body).await?
            }
        };
        Ok(Report::record(direct_debit, FIELDS))
    }
}
