//! E-mail settings.

use std::{fs, net::IpAddr, path::PathBuf, time::Duration};

use url::Host;

use crate::config::{ConfigError, secrets, settings};
use crate::outbound::{
    is_loopback,
    smtp::{Mailer, SmtpCredentials, SmtpEncryption, SmtpSettings},
};

settings! {
    "E-mail" EmailSettings;
    /// Host name of the SMTP server for all e-mail. Without it, no e-mail is sent
    smtp_host: Option<String>, "TOLLHOUSE_SMTP_HOST", "host name";
    /// Port of the SMTP server. Default: 587 for `starttls`, 465 for `tls`, 25 for `none`
    smtp_port: Option<u16>, "TOLLHOUSE_SMTP_PORT", "number",
        value_parser = clap::value_parser!(u16).range(1..);
    /// Encryption of SMTP: `tls` from the first byte, `starttls` before login, or `none`
    smtp_security: SmtpEncryption = SmtpEncryption::StartTls, "TOLLHOUSE_SMTP_SECURITY", "kind",
        value_enum;
    /// Allow unencrypted SMTP beyond loopback, login included; for private networks only
    flag smtp_plain_text, "TOLLHOUSE_SMTP_PLAIN_TEXT";
    /// User name at the SMTP server. Without it, the host does not authenticate
    smtp_username: Option<String>, "TOLLHOUSE_SMTP_USERNAME", "text";
    /// File with the password of `smtp_username`. Without it, TOLLHOUSE_SMTP_PASSWORD contains it
    smtp_password_file: Option<PathBuf>, "TOLLHOUSE_SMTP_PASSWORD_FILE", "file";
    /// PEM file with CA certificates for the SMTP server, in addition to those of the system
    smtp_ca_file: Option<PathBuf>, "TOLLHOUSE_SMTP_CA_FILE", "file";
    /// Maximum number of concurrent connections per host to the SMTP server; further messages wait
    smtp_connections: u32 [1..] = 8, "TOLLHOUSE_SMTP_CONNECTIONS", "connections";
    /// Timeout for connecting to the SMTP server, and again for sending a message. At most 50, so
    /// that both end before the job's lease expires
    smtp_timeout_s: u32 [1..=50] = 30, "TOLLHOUSE_SMTP_TIMEOUT_S", "s";
    /// Sender address of e-mail, shown with the company's name. Required with `smtp_host`
    email_from: Option<String>, "TOLLHOUSE_EMAIL_FROM", "address";
}

impl EmailSettings {
    /// Returns `None` if `smtp_host` is not set.
    pub fn mailer(&self) -> Result<Option<Mailer>, ConfigError> {
        let Some(host) = self.smtp_host.as_deref().filter(|host| !host.is_empty()) else {
            return Ok(None);
        };
        self.check_encryption(host)?;
        let read_ca = |file: &PathBuf| {
            fs::read(file)
                .map_err(|error| ConfigError(format!("smtp_ca_file {}: {error}", file.display())))
        };
        let settings = SmtpSettings {
            host: host.to_owned(),
            port: self.port(),
            security: self.smtp_security,
            login: self.login()?,
            ca: self.smtp_ca_file.as_ref().map(read_ca).transpose()?,
            connections: usize::try_from(self.smtp_connections).unwrap_or(usize::MAX),
            timeout: Duration::from_secs(self.smtp_timeout_s.into()),
            from: self.email_from.clone().ok_or_else(|| {
                ConfigError("smtp_host requires email_from, the sender of e-mail".to_owned())
            })?,
        };
        Mailer::new(settings).map(Some).map_err(|error| ConfigError(error.to_owned()))
    }

    fn port(&self) -> u16 {
        self.smtp_port.unwrap_or(match self.smtp_security {
            SmtpEncryption::StartTls => 587,
            SmtpEncryption::Tls => 465,
            SmtpEncryption::Plain => 25,
        })
    }

    /// Refuses unencrypted SMTP beyond loopback, unless `smtp_plain_text` is set.
    fn check_encryption(&self, host: &str) -> Result<(), ConfigError> {
        let is_name = !host.starts_with('[') && Host::parse(host).is_ok();
        if host.parse::<IpAddr>().is_err() && !is_name {
            let what = "smtp_host must be a host name or an address; the port goes into smtp_port";
            return Err(ConfigError(what.to_owned()));
        }
        let is_plain = self.smtp_security == SmtpEncryption::Plain;
        if !is_plain || is_loopback(host) || self.smtp_plain_text {
            return Ok(());
        }
        Err(ConfigError(format!(
            "smtp_security none would send e-mail to {host} in the clear: use starttls or tls, or set smtp_plain_text if the network in between is private"
        )))
    }

    fn login(&self) -> Result<Option<SmtpCredentials>, ConfigError> {
        let username = self.smtp_username.clone().filter(|name| !name.is_empty());
        let password = secrets::read(self.smtp_password_file.as_deref(), secrets::SMTP_PASSWORD)?;
        match (username, password) {
            (Some(username), Some(password)) => Ok(Some(SmtpCredentials::new(username, password))),
            (None, None) => Ok(None),
            _ => {
                let what = "smtp_username and its password must be set together: set smtp_password_file to a file that contains the password, or TOLLHOUSE_SMTP_PASSWORD to the password itself";
                Err(ConfigError(what.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_flags;

    fn email(host: &str, smtp_security: SmtpEncryption, smtp_plain_text: bool) -> EmailSettings {
        EmailSettings {
            smtp_security,
            smtp_plain_text,
            ..parse_flags(&["--smtp-host", host, "--email-from", "no-reply@example.com"])
        }
    }

    #[test]
    fn unencrypted_smtp_is_allowed_on_loopback_or_with_smtp_plain_text() {
        use SmtpEncryption::{Plain, StartTls, Tls};
        for (host, security, plain_text, refused) in [
            ("127.0.0.1", Plain, false, None),
            ("127.1.2.3", Plain, false, None),
            ("::1", Plain, false, None),
            ("::ffff:127.0.0.1", Plain, false, None),
            ("LOCALHOST", Plain, false, None),
            ("10.0.0.5", Plain, true, None),
            ("mail.example.com", StartTls, false, None),
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
            ("mail.example.com:587", StartTls, false, Some("the port goes into smtp_port")),
            ("smtp://mail.example.com", StartTls, false, Some("must be a host name or an address")),
            ("[::1]", Plain, false, Some("must be a host name or an address")),
            ("mail example", StartTls, false, Some("must be a host name or an address")),
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
        for (security, port) in [
            (SmtpEncryption::StartTls, 587),
            (SmtpEncryption::Tls, 465),
            (SmtpEncryption::Plain, 25),
        ] {
            let mut email = email("localhost", security, false);
            assert_eq!(email.port(), port);
            email.smtp_port = Some(2525);
            assert_eq!(email.port(), 2525);
        }
    }
}
