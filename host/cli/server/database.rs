//! `tollhouse migrate`, `backup` and `restore`, which access the database without a host.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tollhouse_platform::{
    config::database::DatabaseSettings,
    random::Random,
    store::{self, BackupError},
};

use crate::terminal::{
    failure::{Failure, chain},
    output::Report,
};

#[derive(Args)]
#[command(after_help = "\
On SQLite, `serve` applies migrations at its start. On PostgreSQL it does not: run this first, as the role that owns the tables.
Later runs repeat the grants to roles that --host-role has named.

Example:
  TOLLHOUSE_DATABASE_FILE=owner-url tollhouse migrate --host-role tollhouse")]
pub struct Migrate {
    /// PostgreSQL role that receives the privileges that `serve` needs, and no others
    #[arg(long, value_name = "ROLE")]
    host_role: Option<String>,
    #[command(flatten)]
    database: DatabaseSettings,
}

#[derive(Args)]
#[command(after_help = "\
Hosts continue to serve. Secrets in the copy are sealed: keep the master key elsewhere.

Example:
  tollhouse backup /backup/tollhouse-2026-11-21.db")]
pub struct Backup {
    /// Target file, which must not exist; it appears once the copy is complete
    file: PathBuf,
    #[command(flatten)]
    database: DatabaseSettings,
}

#[derive(Args)]
#[command(after_help = "\
Stop all hosts of the database first.

Example:
  tollhouse restore /backup/tollhouse-2026-11-21.db --replace")]
pub struct Restore {
    /// The copy to restore
    file: PathBuf,
    /// Replace an existing database; its data is lost
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    database: DatabaseSettings,
}

impl Migrate {
    pub async fn run(self) -> Result<Report, Failure> {
        let (url, limits) = (self.database.url()?, self.database.limits());
        let missing = store::missing_migrations(url.expose()).await?;
        let host_role = self.host_role.as_deref();
        let roles = store::migrate(url.expose(), limits, Random::system(), host_role).await?;
        let mut said = match missing {
            0 => "no migrations were missing".to_owned(),
            n => format!("migrations applied: {n}"),
        };
        if !roles.is_empty() {
            said = format!("{said}\nroles of hosts: {}", roles.join(", "));
        }
        Ok(Report::new(json!({ "applied": missing, "host_roles": roles }), said))
    }
}

impl Backup {
    pub async fn run(self) -> Result<Report, Failure> {
        store::backup(self.database.url()?.expose(), &self.file).await?;
        Ok(Report::new(json!({ "file": self.file }), format!("created {}", self.file.display())))
    }
}

impl Restore {
    pub async fn run(self) -> Result<Report, Failure> {
        let url = self.database.url()?;
        store::restore(&self.file, url.expose(), self.replace).await?;
        Ok(Report::new(json!({ "database": url.to_string() }), format!("restored {url}")))
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Failure {
        match error {
            BackupError::Store(error) => error.into(),
            refused => Failure::refused(chain(&refused)),
        }
    }
}
