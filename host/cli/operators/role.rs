//! `tollhouse role`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// List roles with their permissions
    List,
    /// Create a role, or replace its permissions
    #[command(after_help = "\
Example:
  tollhouse role put night-shift --permission payments.read --permission payments.verify")]
    Put {
        /// Name of the role
        role: String,
        /// Name of a permission; repeated for several
        #[arg(long = "permission", value_name = "PERMISSION", required = true)]
        permissions: Vec<String>,
    },
    /// Delete a role that no operator has
    Delete {
        /// Name of the role
        role: String,
    },
}

const FIELDS: &str = "role: name, permissions, built in: built_in";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::List => host.list(&["roles"], &(), FIELDS).await,
            Action::Put { role, permissions } => {
                let body = json!({ "permissions": permissions });
                let saved = host.change(Method::PUT, &["roles", &role], &body).await?;
                Ok(Report::record(saved, FIELDS))
            }
            Action::Delete { role } => {
                let deleted = host.delete(&["roles", &role]).await?;
                Ok(Report::new(deleted, "deleted"))
            }
        }
    }
}
