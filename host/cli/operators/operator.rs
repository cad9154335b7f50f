//! `tollhouse operator`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// Create an operator: a person or a service
    #[command(after_help = "\
`tollhouse role list` shows the roles. Then run `tollhouse operator token` for a service, or
`tollhouse operator invite` for a person.

Examples:
  tollhouse operator create ada --email ada@lender.example --role administrator
  tollhouse operator create loan-service --role integration")]
    Create {
        /// Unique name, which the audit log shows
        name: String,
        /// E-mail address of a person
        #[arg(long)]
        email: Option<String>,
        #[command(flatten)]
        rights: Rights,
    },
    /// List operators
    List,
    /// Change the name, roles or companies of an operator
    Edit {
        /// The operator's id
        operator: String,
        /// New name
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        rights: Rights,
        /// Give the operator access to all companies
        #[arg(long, conflicts_with = "companies")]
        all_companies: bool,
    },
    /// Deactivate an operator: all its tokens are rejected from the next request on
    Deactivate(OperatorArg),
    /// Activate a deactivated operator
    Activate(OperatorArg),
    /// Invite a person to set a password for the console; earlier sessions of the person end
    Invite(OperatorArg),
    /// Create a token for an operator; it is shown only once
    Token {
        /// The operator's id
        operator: String,
        /// Purpose of the token
        #[arg(long)]
        label: Option<String>,
        /// Time of expiry, for example 2027-01-01T00:00:00Z. Default: never
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
    },
    /// List the tokens of an operator
    Tokens(OperatorArg),
    /// Revoke a token: it is rejected from the next request on
    RevokeToken {
        /// The operator's id
        operator: String,
        /// The token's id, as `operator tokens` shows it
        token: String,
    },
}

#[derive(Args)]
#[group(skip)]
pub struct OperatorArg {
    /// The operator's id, as `operator list` shows it
    operator: String,
}

/// The roles and companies of an operator.
#[derive(Args)]
#[group(skip)]
pub struct Rights {
    /// Name of a role; repeated for several
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    /// Id of a company to which the operator is limited; repeated for several
    #[arg(long = "company", value_name = "COMPANY")]
    companies: Vec<String>,
}

const FIELDS: &str = "operator: id, name, email, roles, companies as or_all, active";
const TOKENS: &str = "token: id, prefix, label, last used: last_used_at, expires: expires_at, \
    revoked: revoked_at";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::Create { name, email, rights } => {
                let mut body = json!({ "name": name, "email": email, "roles": rights.roles });
                if !rights.companies.is_empty() {
                    body["companies"] = json!(rights.companies);
                }
                let created = host.change(Method::POST, &["operators"], &body).await?;
                let id = text(&created["id"]);
                let command = if created["email"].is_null() { "token" } else { "invite" };
                let next = format!("Give it access: tollhouse operator {command} {id}");
                Ok(Report::record(created, FIELDS).with_note(&next))
            }
            Action::List => host.list(&["operators"], &(), FIELDS).await,
            Action::Edit { operator, name, rights, all_companies } => {
                let mut body = json!({});
                if let Some(name) = name {
                    body["name"] = json!(name);
                }
                if !rights.roles.is_empty() {
                    body["roles"] = json!(rights.roles);
                }
                if all_companies {
                    body["companies"] = Value::Null;
                } else if !rights.companies.is_empty() {
                    body["companies"] = json!(rights.companies);
                }
                edit(host, &operator, &body).await
            }
            Action::Deactivate(OperatorArg { operator }) => {
                edit(host, &operator, &json!({ "active": false })).await
            }
            Action::Activate(OperatorArg { operator }) => {
                edit(host, &operator, &json!({ "active": true })).await
            }
            Action::Invite(OperatorArg { operator }) => invite(host, &operator).await,
            Action::Token { operator, label, expires_at } => {
                let body = json!({ "label": label, "expires_at": expires_at });
                let path = ["operators", &operator, "tokens"];
                let created = host.change(Method::POST, &path, &body).await?;
                let fields =
                    "token: id, operator token: operator_token, label, expires: expires_at";
                Ok(Report::record(created, fields).with_note(
                    "The operator token is not shown again. Set it as TOLLHOUSE_OPERATOR_TOKEN.",
                ))
            }
            Action::Tokens(OperatorArg { operator }) => {
                host.list(&["operators", &operator, "tokens"], &(), TOKENS).await
            }
            Action::RevokeToken { operator, token } => {
                let revoked = host.delete(&["operators", &operator, "tokens", &token]).await?;
                Ok(Report::new(revoked, "revoked"))
            }
        }
    }
}

async fn edit(host: &HostClient, operator: &str, body: &Value) -> Result {
    let edited = host.change(Method::PATCH, &["operators", operator], body).await?;
    Ok(Report::record(edited, FIELDS))
}

/// Creates an invitation, and prints the page on which the person accepts it.
async fn invite(host: &HostClient, operator: &str) -> Result {
    let path = ["operators", operator, "invite"];
    let mut invitation = host.change(Method::POST, &path, &json!({})).await?;
    let mut page = host.base.clone();
    let mut segments = page.path_segments_mut().expect("http and https URLs have paths");
    let secret = text(&invitation["invitation"]);
    segments.pop_if_empty().extend(["console", "welcome", &secret]);
    drop(segments);
    invitation["page"] = page.as_str().into();
    Ok(Report::record(invitation, "page, expires: expires_at")
        .with_note("Send the link to the person. It is not shown again."))
}
