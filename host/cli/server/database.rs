//! `tollhouse migrate`, `backup` and `restore`, which access the database without a host.

use tollhouse_platform::{
    config::database::DatabaseSettings,
    store::{self, BackupError},
};

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Command {
    /// Apply the missing database migrations, then exit
    #[command(after_help = "\
On SQLite, `serve` applies migrations at its start. On PostgreSQL it does not: run this first, as
the role that owns the tables. Later runs repeat the grants to every role named by an earlier
--host-role.

Example:
  TOLLHOUSE_DATABASE_FILE=owner-url tollhouse migrate --host-role tollhouse")]
    Migrate {
        /// PostgreSQL role that receives the privileges that `serve` needs, and no others
        #[arg(long, value_name = "ROLE")]
        host_role: Option<String>,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Back up a SQLite database to a file; hosts keep serving
    #[command(after_help = "\
Secrets in the copy are sealed: keep the master key elsewhere.

Example:
  tollhouse backup /backup/tollhouse-2026-11-21.db")]
    Backup {
        /// Target file, which must not exist; it appears once the copy is complete
        file: PathBuf,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Restore a SQLite database from a copy
    #[command(after_help = "\
Stop all hosts of the database first.

Example:
  tollhouse restore /backup/tollhouse-2026-11-21.db --replace")]
    Restore {
        /// The copy to restore
        file: PathBuf,
        /// Replace an existing database; its data is lost
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        database: DatabaseSettings,
    },
}

impl Command {
    pub async fn run(self) -> Result {
        match self {
            Command::Migrate { host_role, database } => {
                migrate(host_role.as_deref(), &database).await
            }
            Command::Backup { file, database } => {
                store::backup(database.url()?.expose(), &file).await?;
                let message = format!("created {}", file.display());
                Ok(Report::new(json!({ "file": file }), message))
            }
            Command::Restore { file, replace, database } => {
                let url = database.url()?;
                store::restore(&file, url.expose(), replace).await?;
                Ok(Report::new(json!({ "database": url.to_string() }), format!("restored {url}")))
            }
        }
    }
}

async fn migrate(host_role: Option<&str>, database: &DatabaseSettings) -> Result {
    let url = database.url()?;
    let missing = store::missing_migrations(url.expose()).await?;
    let roles =
        store::migrate(url.expose(), database.limits(), Random::system(), host_role).await?;
    let mut message = match missing {
        0 => "no migrations to apply".to_owned(),
        n => format!("migrations applied: {n}"),
    };
    if !roles.is_empty() {
        message = format!("{message}\nroles of hosts: {}", roles.join(", "));
    }
    Ok(Report::new(json!({ "applied": missing, "host_roles": roles }), message))
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Failure {
        match error {
            BackupError::Store(error) => error.into(),
            refused => Failure::refused(chain(&refused)),
        }
    }
}
