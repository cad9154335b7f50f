//! Database settings.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use url::Url;

use crate::config::{ConfigError, secrets, settings};
use crate::store::{RolePolicy, StoreLimits, unverified_server};

settings! {
    "Database" DatabaseSettings;
    /// Database URL: `sqlite://FILE` or `postgres://…`
    database: DatabaseUrl, "TOLLHOUSE_DATABASE", "URL", default_value = "sqlite://tollhouse.db";
    /// File with the database URL, in place of `database`; for a URL with a password
    database_file: Option<PathBuf>, "TOLLHOUSE_DATABASE_FILE", "file";
    /// Allow PostgreSQL beyond loopback without sslmode=verify-full; for private networks only
    flag database_plain, "TOLLHOUSE_DATABASE_PLAIN";
    /// Allow serving from PostgreSQL as a role that owns the tables or is a superuser
    flag database_as_owner, "TOLLHOUSE_DATABASE_AS_OWNER";
    /// Maximum number of connections, of which one company may use half; on SQLite, of readers, in
    /// addition to the single writer
    database_connections: u32 [1..] = 16, "TOLLHOUSE_DATABASE_CONNECTIONS", "connections";
    /// Maximum wait for a connection, or for the SQLite writer; beyond it the response is 503
    database_acquire_timeout_ms: u64 [1..] = 5_000, "TOLLHOUSE_DATABASE_ACQUIRE_TIMEOUT_MS", "ms",
        alias = "database-wait-ms";
    /// Maximum duration of a transaction until its commit; beyond it: rollback and response 503
    database_transaction_timeout_ms: u64 [1..] = 10_000,
        "TOLLHOUSE_DATABASE_TRANSACTION_TIMEOUT_MS", "ms", alias = "database-deadline-ms";
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

    pub fn role_policy(&self) -> RolePolicy {
        if self.database_as_owner { RolePolicy::Any } else { RolePolicy::NonOwner }
    }

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
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_sqlite(&self) -> bool {
        self.0.starts_with("sqlite:")
    }

    pub fn has_password(&self) -> bool {
        let parsed = Url::parse(&self.0);
        !self.is_sqlite() && parsed.map_or(true, |url| hide_passwords(url).is_some())
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
pub fn hide_passwords(mut url: Url) -> Option<Url> {
    let given = url.clone();
    let is_secret = |name: &str| matches!(name, "password" | "sslpassword");
    let is_in_query = url.query_pairs().any(|(name, _)| is_secret(&name));
    let is_in_address = url.password().is_some();
    if is_in_address {
        // Cannot fail: a URL with a password has a host.
        let _ = url.set_password(Some("hidden"));
    }
    if is_in_query {
        let shown = given.query_pairs().map(|(name, value)| {
            let value = if is_secret(&name) { "hidden".into() } else { value };
            (name, value)
        });
        url.query_pairs_mut().clear().extend_pairs(shown);
    }
    (is_in_address || is_in_query).then_some(url)
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
                let flags = [&["--database", url], flags].concat();
                crate::config::parse_flags::<DatabaseSettings>(&flags).url()
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
            ("postgres://s3:hidden@db.example/t", "postgres://s3:hidden@db.example/t"),
        ] {
            let parsed: DatabaseUrl = url.parse().unwrap();
            assert_eq!((&*parsed.to_string(), &*format!("{parsed:?}")), (shown, shown));
            assert_eq!((parsed.expose(), parsed.has_password()), (url, url.contains("s3")));
        }
        assert!("mysql://ada@db.example/t".parse::<DatabaseUrl>().is_err());
    }
}
