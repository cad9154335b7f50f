//! Database settings.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::{ArgAction, Args};
use url::Url;

use super::secrets;
use crate::config::ConfigError;
use crate::store::{RolePolicy, StoreLimits, unverified_server};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Database")]
pub struct DatabaseSettings {
    /// Database URL: `sqlite://FILE` or `postgres://…`
    #[arg(
        long,
        env = "TOLLHOUSE_DATABASE",
        value_name = "URL",
        default_value = "sqlite://tollhouse.db"
    )]
    pub database: DatabaseUrl,
    /// File with the database URL, in place of `database`; for a URL with a password
    #[arg(long, env = "TOLLHOUSE_DATABASE_FILE", value_name = "file")]
    pub database_file: Option<PathBuf>,
    /// Allow PostgreSQL beyond loopback without sslmode=verify-full; for private networks only
    #[arg(long, env = "TOLLHOUSE_DATABASE_PLAIN", value_name = "bool", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub database_plain: bool,
    /// Allow serving from PostgreSQL as a role that owns the tables or is a superuser
    #[arg(long, env = "TOLLHOUSE_DATABASE_AS_OWNER", value_name = "bool", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub database_as_owner: bool,
    /// Maximum number of connections; on SQLite, of readers, in addition to the single writer
    #[arg(long, env = "TOLLHOUSE_DATABASE_CONNECTIONS", value_name = "connections", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub database_connections: u32,
    /// Maximum wait for a connection, or for the SQLite writer; beyond it the response is 503
    #[arg(long, alias = "database-wait-ms", env = "TOLLHOUSE_DATABASE_ACQUIRE_TIMEOUT_MS",
          value_name = "ms", default_value_t = 5_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub database_acquire_timeout_ms: u64,
    /// Maximum duration of a transaction until its commit; beyond it: rollback and response 503
    #[arg(long, alias = "database-deadline-ms", env = "TOLLHOUSE_DATABASE_TRANSACTION_TIMEOUT_MS",
          value_name = "ms", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub database_transaction_timeout_ms: u64,
}

impl DatabaseSettings {
    /// Returns the URL in `database_file`, else `database`. Refuses a server beyond loopback whose
    /// certificate would not be verified, unless `database_plain` is set.
    pub fn url(&self) -> Result<DatabaseUrl, ConfigError> {
        let url: DatabaseUrl = match &self.database_file {
            Some(file) => secrets::read_file(file, "database_file")?.parse().map_err(|wrong| {
                ConfigError(format!("database_file {}: {wrong}", file.display()))
            })?,
            None => self.database.clone(),
        };
        match unverified_server(url.expose()) {
            Some(server) if !self.database_plain => Err(ConfigError(format!(
                "database would reach {server} without verifying its certificate: add sslmode=verify-full to the URL (and sslrootcert=FILE for a private CA), or set database_plain if the network in between is private"
            ))),
            _ => Ok(url),
        }
    }

    #[must_use]
    pub fn role_policy(&self) -> RolePolicy {
        if self.database_as_owner { RolePolicy::Any } else { RolePolicy::NonOwner }
    }

    #[must_use]
    pub fn limits(&self) -> StoreLimits {
        StoreLimits {
            connections: self.database_connections,
            acquire_timeout: Duration::from_millis(self.database_acquire_timeout_ms),
            transaction_timeout: Duration::from_millis(self.database_transaction_timeout_ms),
        }
    }
}

/// A database URL whose `Display` and `Debug` hide the password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// Returns the URL with its password.
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
        match Url::parse(&self.0).map(hide_passwords) {
            Ok(Some(shown)) => f.write_str(shown.as_str()),
            Ok(None) => f.write_str(&self.0),
            Err(_) => f.write_str("postgres://(hidden)"),
        }
    }
}

/// Returns the URL with its passwords hidden; `None` if it has none.
#[must_use]
pub fn hide_passwords(mut url: Url) -> Option<Url> {
    let mut secret = url.password().is_some();
    if secret {
        // Cannot fail: a URL with a password has a host.
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

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        database: DatabaseSettings,
    }

    #[test]
    fn a_server_beyond_loopback_needs_verify_full_or_database_plain() {
        for (url, refused) in [
            ("sqlite://tollhouse.db", false),
            ("postgres://ada@127.0.0.1/t", false),
            ("postgres://ada@LOCALHOST:5432/t", false),
            ("postgres://ada@[::1]/t", false),
            ("postgres:///t?host=/run/postgresql&user=ada", false),
            ("postgres://ada@%2Frun%2Fpostgresql/t", false),
            ("postgres://ada@db.example/t?sslmode=verify-full", false),
            ("postgres://ada@db.example/t?sslmode=verify-full&sslrootcert=/etc/ca.pem", false),
            ("postgres://ada@db.example/t", true),
            ("postgresql://ada@10.0.0.5/t?sslmode=disable", true),
            ("postgres://ada@db.example/t?sslmode=require", true),
            ("postgres://ada@db.example/t?sslmode=verify-ca", true),
            ("postgres://ada@127.0.0.1/t?host=db.example", true),
            ("postgres://ada@127.0.0.1/t?hostaddr=10.0.0.5", true),
            ("postgres://ada@localhost.example/t", true),
            ("postgres://ada@[2001:db8::1]/t?sslmode=prefer", true),
        ] {
            let parse = |flags: &[&str]| {
                let flags = [&["test", "--database", url], flags].concat();
                <Flags as clap::Parser>::parse_from(flags).database.url()
            };
            match parse(&[]) {
                Ok(_) => assert!(!refused, "{url}"),
                Err(error) => {
                    assert!(refused && error.0.contains("sslmode=verify-full"), "{error}")
                }
            }
            assert!(parse(&["--database-plain"]).is_ok(), "{url}");
        }
    }

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
