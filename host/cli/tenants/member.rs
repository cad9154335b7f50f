//! `tollhouse member`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// List the members of a company, who use its portal
    List(CompanyArg),
    /// Invite a person to the team of a company by e-mail
    #[command(after_help = "\
Roles: company-owner, company-finance, company-support, company-developer.
Example:
  tollhouse member invite 6b018eed9f8a1c2b3d4e5f60 ada@acme.example --role company-owner")]
    Invite {
        /// The company's id
        company: String,
        /// The person's e-mail address
        email: String,
        /// Name of a member role
        #[arg(long, value_name = "ROLE")]
        role: String,
    },
    /// Invite a member to set a new password; all their sessions end
    Reinvite(MemberArgs),
    /// Change the role of a member
    Edit {
        #[command(flatten)]
        named: MemberArgs,
        /// Name of a member role
        #[arg(long, value_name = "ROLE")]
        role: String,
    },
    /// Deactivate a member; all their sessions end
    Deactivate(MemberArgs),
    /// Activate a member again
    Activate(MemberArgs),
}

#[derive(Args)]
#[group(skip)]
pub struct MemberArgs {
    /// The company's id
    company: String,
    /// The member's id, as `member list` shows it
    member: String,
}

const FIELDS: &str = "member: id, email, role, state, last seen: last_seen_at";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::List(CompanyArg { company }) => {
                host.list(&["companies", &company, "members"], &(), FIELDS).await
            }
            Action::Invite { company, email, role } => {
                let body = json!({ "email": email, "role": role });
                let path = ["companies", &company, "members"];
                Ok(Report::record(host.change(Method::POST, &path, &body).await?, FIELDS))
            }
            Action::Reinvite(MemberArgs { company, member }) => {
                let path = ["companies", &company, "members", &member, "invite"];
                Ok(Report::record(host.change(Method::POST, &path, &json!({})).await?, FIELDS))
            }
            Action::Edit { named, role } => edit(host, named, &json!({ "role": role })).await,
            Action::Deactivate(named) => edit(host, named, &json!({ "active": false })).await,
            Action::Activate(named) => edit(host, named, &json!({ "active": true })).await,
        }
    }
}

async fn edit(
    host: &HostClient,
    MemberArgs { company, member }: MemberArgs,
    change: &Value,
) -> Result {
    let path = ["companies", &company, "members", &member];
    Ok(Report::record(host.change(Method::PATCH, &path, change).await?, FIELDS))
}
