//! E-mail settings.

use std::{fs, net::IpAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, ValueEnum};
use url::Host;

use crate::config::{ConfigError, secrets::SmtpPassword};
use crate::outbound::smtp::{Mailer, SmtpCredentials, SmtpEncryption, SmtpSettings};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "E-mail")]
pub struct EmailSettings {
    /// Host name of the SMTP server for all e-mail. Without it, no e-mail is sent
    #[arg(long, env = "TOLLHOUSE_SMTP_HOST", value_name = "host name")]
    pub smtp_host: Option<String>,
    /// Port of the SMTP server. Default: 587 for `starttls`, 465 for `tls`, 25 for `none`
    #[arg(long, env = "TOLLHOUSE_SMTP_PORT", value_name = "number",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub smtp_port: Option<u16>,
    /// Encryption of SMTP: `tls` from the first byte, `starttls` before login, or `none`
    #[arg(long, env = "TOLLHOUSE_SMTP_SECURITY", value_name = "kind", value_enum, default_value_t = SmtpSecurity::Starttls)]
    pub smtp_security: SmtpSecurity,
    /// Allow unencrypted SMTP beyond loopback, login included; for private networks only
    #[arg(long, env = "TOLLHOUSE_SMTP_PLAIN_TEXT", value_name = "bool", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub smtp_plain_text: bool,
    /// User name at the SMTP server. Without it, the host does not authenticate
    #[arg(long, env = "TOLLHOUSE_SMTP_USERNAME", value_name = "text")]
    pub smtp_username: Option<String>,
    #[command(flatten)]
    pub smtp_password: SmtpPassword,
    /// PEM file with CA certificates for the SMTP server, in addition to those of the system
    #[arg(long, env = "TOLLHOUSE_SMTP_CA_FILE", value_name = "file")]
    pub smtp_ca_file: Option<PathBuf>,
    /// Maximum number of concurrent connections per host to the SMTP server; further messages wait
    #[arg(long, env = "TOLLHOUSE_SMTP_CONNECTIONS", value_name = "connections",
          default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub smtp_connections: u32,
    /// Timeout for connecting to the SMTP server, and again for sending a message. At most 50, so
    /// that both end before the job's lease expires
    #[arg(long, env = "TOLLHOUSE_SMTP_TIMEOUT_S", value_name = "s",
          default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub smtp_timeout_s: u32,
    /// Sender address of e-mail, shown with the company's name. Required with `smtp_host`
    #[arg(long, env = "TOLLHOUSE_EMAIL_FROM", value_name = "address")]
    pub email_from: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SmtpSecurity {
    Starttls,
    Tls,
    None,
}

impl EmailSettings {
    /// Returns `None` if `smtp_host` is not set.
    pub fn mailer(&self) -> Result<Option<Mailer>, ConfigError> {
        let Some(host) = self.smtp_host.as_deref().filter(|host| !host.is_empty()) else {
            return Ok(None);
        };
        let settings = SmtpSettings {
            host: host.to_owned(),
            port: self.port(),
            security: self.security(host)?,
            login: self.login()?,
            ca: self.ca()?,
            connections: usize::try_from(self.smtp_connections).unwrap_or(usize::MAX),
            timeout: Duration::from_secs(self.smtp_timeout_s.into()),
            from: self.from()?,
        };
        Mailer::new(settings).map(Some).map_err(|error| ConfigError(error.to_string()))
    }

    fn port(&self) -> u16 {
        self.smtp_port.unwrap_or(match self.smtp_security {
            SmtpSecurity::Starttls => 587,
            SmtpSecurity::Tls => 465,
            SmtpSecurity::None => 25,
        })
    }

    /// Refuses unencrypted SMTP beyond loopback, unless `smtp_plain_text` is set.
    fn security(&self, host: &str) -> Result<SmtpEncryption, ConfigError> {
        let address: Option<IpAddr> = host.parse().ok();
        if address.is_none() && Host::parse(host).is_err() {
            let what = "smtp_host must be a host name or an address; the port goes into smtp_port";
            return Err(ConfigError(what.to_owned()));
        }
        let loopback = match address {
            Some(address) => address.to_canonical().is_loopback(),
            None => host.eq_ignore_ascii_case("localhost"),
        };
        match self.smtp_security {
            SmtpSecurity::Starttls => Ok(SmtpEncryption::StartTls),
            SmtpSecurity::Tls => Ok(SmtpEncryption::Tls),
            SmtpSecurity::None if loopback || self.smtp_plain_text => Ok(SmtpEncryption::Plain),
            SmtpSecurity::None => Err(ConfigError(format!(
                "smtp_security none would send e-mail to {host} in the clear: use starttls or tls, or set smtp_plain_text if the network in between is private"
            ))),
        }
    }

    fn login(&self) -> Result<Option<SmtpCredentials>, ConfigError> {
        let username = self.smtp_username.clone().filter(|name| !name.is_empty());
        match (username, self.smtp_password.read()?) {
            (Some(username), Some(password)) => Ok(Some(SmtpCredentials { username, password })),
            (None, None) => Ok(None),
            _ => {
                let what = "smtp_username and its password must be set together: set smtp_password_file to a file that contains the password, or TOLLHOUSE_SMTP_PASSWORD to the password itself";
                Err(ConfigError(what.to_owned()))
            }
        }
    }

    fn ca(&self) -> Result<Option<Vec<u8>>, ConfigError> {
        let Some(file) = &self.smtp_ca_file else { return Ok(None) };
        let read = fs::read(file).map(Some);
        read.map_err(|error| ConfigError(format!("smtp_ca_file {}: {error}", file.display())))
    }

    fn from(&self) -> Result<String, ConfigError> {
        self.email_from.clone().ok_or_else(|| {
            ConfigError("smtp_host requires email_from, the sender of e-mail".to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn email(host: &str, smtp_security: SmtpSecurity, smtp_plain_text: bool) -> EmailSettings {
        EmailSettings {
            smtp_host: Some(host.to_owned()),
            smtp_port: None,
            smtp_security,
            smtp_plain_text,
            smtp_username: None,
            smtp_password: SmtpPassword { smtp_password_file: None },
            smtp_ca_file: None,
            smtp_connections: 1,
            smtp_timeout_s: 1,
            email_from: Some("no-reply@example.com".to_owned()),
        }
    }

    #[test]
    fn unencrypted_smtp_is_allowed_on_loopback_or_with_smtp_plain_text() {
        use SmtpSecurity::{None as Plain, Starttls, Tls};
        for (host, security, plain_text, refused) in [
            ("127.0.0.1", Plain, false, None),
            ("127.1.2.3", Plain, false, None),
            ("::1", Plain, false, None),
            ("::ffff:127.0.0.1", Plain, false, None),
            ("LOCALHOST", Plain, false, None),
            ("10.0.0.5", Plain, true, None),
            ("mail.example.com", Starttls, false, None),
            ("mail.example.com", Tls, false, None),
            ("2001:db8::1", Tls, false, None),
            (
                "10.0.0.5",
                Plain,
                false,
                Some("to 10.0.0.5 in the clear: use starttls or tls, or set"),
            ),
            ("0.0.0.0", Plain, false, Some("smtp_plain_text")),
            ("mail.example.com", Plain, false, Some("mail.example.com")),
            ("localhost.example", Plain, false, Some("localhost.example")),
            ("127.0.0.1.example", Plain, false, Some("127.0.0.1.example")),
            ("2001:db8::1", Plain, false, Some("2001:db8::1")),
            ("mail.example.com:587", Starttls, false, Some("the port goes into smtp_port")),
            ("smtp://mail.example.com", Starttls, false, Some("must be a host name or an address")),
            ("mail example", Starttls, false, Some("must be a host name or an address")),
        ] {
            match (email(host, security, plain_text).mailer(), refused) {
                (Ok(Some(_)), None) => {}
                (Err(error), Some(part)) if error.0.contains(part) => {}
                (found, _) => panic!("{host} {security:?} {plain_text}: {:?}", found.err()),
            }
        }
    }

    #[test]
    fn the_default_port_depends_on_the_encryption() {
        for (security, port) in
            [(SmtpSecurity::Starttls, 587), (SmtpSecurity::Tls, 465), (SmtpSecurity::None, 25)]
        {
            let mut email = email("localhost", security, false);
            assert_eq!(email.port(), port);
            email.smtp_port = Some(2525);
            assert_eq!(email.port(), 2525);
        }
    }
}
