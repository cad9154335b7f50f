//! Which database.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::Args;
use url::Url;

use super::{ConfigError, secrets};
use crate::store::Limits;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Database")]
pub struct Database {
    /// `sqlite://FILE` or `postgres://…`
    #[arg(
        long,
        env = "TOLLHOUSE_DATABASE",
        value_name = "URL",
        default_value = "sqlite://tollhouse.db"
    )]
    pub database: DatabaseUrl,
    /// Holds the URL of the database, when that has a password in it
    #[arg(long, env = "TOLLHOUSE_DATABASE_FILE", value_name = "file")]
    pub database_file: Option<PathBuf>,
    /// All of them on PostgreSQL; readers on SQLite, which has one writer besides
    #[arg(long, env = "TOLLHOUSE_DATABASE_CONNECTIONS", value_name = "connections", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub database_connections: u32,
    /// For a connection, or for the writer of SQLite; then the answer is 503
    #[arg(long, env = "TOLLHOUSE_DATABASE_WAIT_MS", value_name = "ms", default_value_t = 5_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub database_wait_ms: u64,
    /// Of one transaction; then it is rolled back and the answer is 503
    #[arg(long, env = "TOLLHOUSE_DATABASE_DEADLINE_MS", value_name = "ms", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub database_deadline_ms: u64,
}

impl Database {
    /// What `database_file` holds, else `database`.
    pub fn url(&self) -> Result<DatabaseUrl, ConfigError> {
        match &self.database_file {
            Some(file) => secrets::read(file, "database_file")?
                .parse()
                .map_err(|wrong| ConfigError(format!("database_file {}: {wrong}", file.display()))),
            None => Ok(self.database.clone()),
        }
    }

    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            connections: self.database_connections,
            wait: Duration::from_millis(self.database_wait_ms),
            deadline: Duration::from_millis(self.database_deadline_ms),
        }
    }
}

/// Shows itself without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// As it is given, with its password.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn is_sqlite(&self) -> bool {
        self.0.starts_with("sqlite:")
    }

    #[must_use]
    pub fn has_password(&self) -> bool {
        self.to_string() != self.0
    }
}

impl FromStr for DatabaseUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<DatabaseUrl, &'static str> {
        let known = ["sqlite:", "postgres:", "postgresql:"];
        match known.iter().any(|scheme| text.starts_with(scheme)) {
            true => Ok(DatabaseUrl(text.to_owned())),
            false => Err("it must be sqlite://FILE or postgres://USER@HOST/DATABASE"),
        }
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_sqlite() {
            return f.write_str(&self.0);
        }
        match Url::parse(&self.0).map(without_password) {
            Ok(Some(shown)) => f.write_str(shown.as_str()),
            Ok(None) => f.write_str(&self.0),
            Err(_) => f.write_str("postgres://(hidden)"),
        }
    }
}

/// The URL as it may be shown; `None` when it has no password.
#[must_use]
pub fn without_password(mut url: Url) -> Option<Url> {
    let mut secret = url.password().is_some();
    if secret {
        // A URL that has a password has a host, so this cannot fail.
        let _ = url.set_password(Some("hidden"));
    }
    let hide = |name: &str, value: &str| match name {
        "password" | "sslpassword" => "hidden".to_owned(),
        _ => value.to_owned(),
    };
    let pairs: Vec<(String, String)> =
        url.query_pairs().map(|(k, v)| (k.into(), v.into())).collect();
    let shown: Vec<(String, String)> = pairs.iter().map(|(k, v)| (k.clone(), hide(k, v))).collect();
    if shown != pairs {
        secret = true;
        url.query_pairs_mut().clear().extend_pairs(shown);
    }
    secret.then_some(url)
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            ("sqlite://tollhouse.db", "sqlite://tollhouse.db"),
            ("sqlite:///var/lib/a:b@c.db", "sqlite:///var/lib/a:b@c.db"),
            (
                "postgres://ada@db.example/t?sslmode=require",
                "postgres://ada@db.example/t?sslmode=require",
            ),
            ("postgres://ada:s3cret@db.example/t", "postgres://ada:hidden@db.example/t"),
            ("postgres:///t?user=ada&password=s3cret", "postgres:///t?user=ada&password=hidden"),
            ("postgres://ada:s3/cret@db.example:x/t", "postgres://(hidden)"),
        ] {
            let parsed: DatabaseUrl = url.parse().unwrap();
            assert_eq!((&*parsed.to_string(), &*format!("{parsed:?}")), (shown, shown));
            assert_eq!((parsed.expose(), parsed.has_password()), (url, url.contains("s3")));
        }
        assert!("mysql://ada@db.example/t".parse::<DatabaseUrl>().is_err());
    }
}
