//! An SMTP session: connecting and sending messages (RFC 5321).

use std::{error::Error as _, time::Duration};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use lettre::{
    Address,
    transport::smtp::{
        Error,
        authentication::Mechanism,
        client::{AsyncSmtpConnection, Certificate, TlsParameters},
        commands::{Data, Mail, Rcpt, Rset},
        extension::{ClientId, Extension, MailBodyParameter, MailParameter},
    },
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio::net::TcpStream;

use super::{SmtpEncryption, SmtpError, SmtpSettings, unbuffered::UnbufferedStream};
use crate::crypto::tls;

/// Maximum idle time: later the server or a firewall may have dropped the connection.
const MAX_IDLE: Duration = Duration::from_secs(60);

const UNUSABLE_CA: &str = "smtp_ca_file contains no usable certificate";

pub(super) struct SessionManager {
    settings: SmtpSettings,
    encryption: Encryption,
    hello: ClientId,
}

enum Encryption {
    Plain,
    StartTls(TlsParameters),
    Tls(TlsParameters),
}

pub(super) struct Session {
    connection: AsyncSmtpConnection,
    /// True if every command got its response.
    is_reusable: bool,
}

impl SessionManager {
    /// `name` is this host's name in `EHLO`.
    pub(super) fn new(settings: SmtpSettings, name: &str) -> Result<SessionManager, &'static str> {
        let roots = settings.ca.as_deref().map_or(Ok(Vec::new()), certificates)?;
        let encryption = match settings.security {
            SmtpEncryption::Plain => Encryption::Plain,
            SmtpEncryption::StartTls => Encryption::StartTls(parameters(&settings, roots)?),
            SmtpEncryption::Tls => Encryption::Tls(parameters(&settings, roots)?),
        };
        Ok(SessionManager { settings, encryption, hello: ClientId::Domain(name.to_owned()) })
    }

    async fn open(&self) -> Result<AsyncSmtpConnection, SmtpError> {
        let mut connection = match &self.encryption {
            Encryption::Plain => {
                let stream = Box::new(self.connect().await?);
                AsyncSmtpConnection::connect_with_transport(stream, &self.hello).await
            }
            Encryption::StartTls(_) => {
                let stream = Box::new(UnbufferedStream::new(self.connect().await?));
                AsyncSmtpConnection::connect_with_transport(stream, &self.hello).await
            }
            Encryption::Tls(tls) => {
                let tls = Some(tls.clone());
                AsyncSmtpConnection::connect_tokio1(self.server(), None, &self.hello, tls, None)
                    .await
            }
        }
        .map_err(|error| session_error(&error, "the mail server refused the connection"))?;
        if let Encryption::StartTls(tls) = &self.encryption {
            let secured = connection.starttls(tls.clone(), &self.hello).await;
            secured.map_err(|error| {
                session_error(&error, "the mail server does not support STARTTLS")
            })?;
        }
        if let Some(credentials) = &self.settings.login {
            let known = [Mechanism::Plain, Mechanism::Login];
            let accepted = connection.auth(&known, credentials).await;
            let refused = "the mail server did not accept smtp_username and its password";
            accepted.map_err(|error| session_error(&error, refused))?;
        }
        Ok(connection)
    }

    fn server(&self) -> (&str, u16) {
        (&self.settings.host, self.settings.port)
    }

    async fn connect(&self) -> Result<TcpStream, SmtpError> {
        let stream = TcpStream::connect(self.server()).await;
        let stream =
            stream.map_err(|_| SmtpError::transient("no connection to the mail server"))?;
        // Nagle's algorithm would delay the small last packet of a message.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

impl Manager for SessionManager {
    type Type = Session;
    type Error = SmtpError;

    async fn create(&self) -> Result<Session, SmtpError> {
        Ok(Session { connection: self.open().await?, is_reusable: true })
    }

    async fn recycle(&self, session: &mut Session, metrics: &Metrics) -> RecycleResult<SmtpError> {
        if !session.is_reusable || metrics.last_used() > MAX_IDLE {
            return Err(RecycleError::message("the session is over"));
        }
        // The pool drops a session whose check fails, takes too long or is cancelled.
        let reply = session.connection.command(Rset).await;
        reply.map_err(|error| session_error(&error, "the mail server ended the session"))?;
        Ok(())
    }
}

impl Session {
    /// Sends a message. If the future is dropped, the session is not reused.
    pub(super) async fn send(
        &mut self,
        from: &Address,
        to: &Address,
        message: &[u8],
    ) -> Result<(), SmtpError> {
        self.is_reusable = false;
        let sent = self.transmit(from, to, message).await;
        self.is_reusable = !sent.is_err_and(|error| error.code.is_none());
        sent
    }

    async fn transmit(
        &mut self,
        from: &Address,
        to: &Address,
        message: &[u8],
    ) -> Result<(), SmtpError> {
        let connection = &mut self.connection;
        let mut parameters = Vec::new();
        if !AsRef::<str>::as_ref(to).is_ascii() {
            if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
                return Err(SmtpError::permanent(
                    "the mail server does not support non-ASCII addresses",
                ));
            }
            let eight_bit = MailParameter::Body(MailBodyParameter::EightBitMime);
            parameters = vec![MailParameter::SmtpUtfEight, eight_bit];
        }
        let mail = connection.command(Mail::new(Some(from.clone()), parameters)).await;
        mail.map_err(|error| session_error(&error, "the mail server refused the sender"))?;
        let recipient = connection.command(Rcpt::new(to.clone(), Vec::new())).await;
        recipient
            .map_err(|error| message_error(&error, "the mail server refused the recipient"))?;
        let refused = |error| message_error(&error, "the mail server refused the message");
        if !connection.command(Data).await.map_err(refused)?.has_code(354) {
            return Err(SmtpError::transient("the mail server sent an invalid response"));
        }
        connection.message(message).await.map(drop).map_err(refused)
    }
}

fn parameters(
    settings: &SmtpSettings,
    roots: Vec<Certificate>,
) -> Result<TlsParameters, &'static str> {
    let tls = TlsParameters::builder(settings.host.clone());
    let tls = roots.into_iter().fold(tls, |tls, root| tls.add_root_certificate(root));
    tls.build().map_err(|_| match settings.ca {
        Some(_) => UNUSABLE_CA,
        None => "the system's CA certificates cannot be read",
    })
}

fn certificates(pem: &[u8]) -> Result<Vec<Certificate>, &'static str> {
    let each = CertificateDer::pem_slice_iter(pem)
        .map(|found| Certificate::from_der(found.ok()?.to_vec()).ok());
    let all: Option<Vec<_>> = each.collect();
    all.filter(|all| !all.is_empty()).ok_or(UNUSABLE_CA)
}

/// Converts an error that is not about this message: a retry may succeed.
fn session_error(error: &Error, refused: &'static str) -> SmtpError {
    let reason = match error.status() {
        Some(_) => refused,
        None if error.is_client() => refused,
        None if tls::find_error(error).is_some() => {
            "TLS with the mail server failed: check its certificate, smtp_host and smtp_ca_file"
        }
        None => "the connection to the mail server was lost",
    };
    SmtpError { is_permanent: false, code: error.status().map(u16::from), reason }
}

/// Converts a response about the recipient or the message.
fn message_error(error: &Error, reason: &'static str) -> SmtpError {
    let failed = session_error(error, reason);
    let reply = error.source().map(ToString::to_string).unwrap_or_default();
    SmtpError { is_permanent: failed.code.is_some_and(|code| is_permanent(code, &reply)), ..failed }
}

/// Returns whether a response rejects the recipient or message permanently. Servers use the same
/// codes for faults of the sender: its rights (5.7) or its address (5.1.7, 5.1.8; RFC 3463).
fn is_permanent(code: u16, reply: &str) -> bool {
    let status = reply.split_whitespace().next().unwrap_or_default();
    let about_us = status.starts_with("5.7.") || ["5.1.7", "5.1.8"].contains(&status);
    matches!(code, 550..=554 | 556) && !about_us
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rejections_of_recipient_or_message_are_final() {
        for (code, reply, expected) in [
            (550, "5.1.1 no such user", true),
            (550, "no such user", true),
            (550, "5.7.1 relaying denied", false),
            (550, "5.7.26 unauthenticated sender", false),
            (553, "5.1.8 sender's domain not found", false),
            (553, "5.1.7 bad sender", false),
            (553, "5.1.3 bad recipient", true),
            (551, "user not local", true),
            (552, "5.2.2 mailbox full", true),
            (554, "", true),
            (556, "5.1.10 null MX", true),
            (555, "parameters not recognized", false),
            (530, "5.7.0 must log in first", false),
            (535, "5.7.8 bad password", false),
            (503, "bad sequence", false),
            (500, "what", false),
            (451, "4.7.1 greylisted", false),
            (421, "closing", false),
        ] {
            assert_eq!(is_permanent(code, reply), expected, "{code} {reply}");
        }
    }
}
