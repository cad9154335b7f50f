//! Outgoing e-mail through one SMTP server.
//!
//! Pooled connections with an outstanding response are never reused: the next message would receive
//! that response as its own.

mod compose;
mod session;
mod unbuffered;

use std::time::Duration;

use clap::ValueEnum;
use deadpool::{
    Runtime,
    managed::{Pool, PoolConfig, PoolError, QueueMode, Timeouts},
};
use lettre::Address;
pub use lettre::transport::smtp::authentication::Credentials as SmtpCredentials;
use tokio::time::timeout;

use self::session::SessionManager;
use crate::{clock::Timestamp, crypto::tls};

/// Timeout of the check that a pooled connection still works.
const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

pub struct SmtpSettings {
    pub host: String,
    pub port: u16,
    pub security: SmtpEncryption,
    pub login: Option<SmtpCredentials>,
    /// CA certificates, as PEM, to trust in addition to those of the system.
    pub ca: Option<Vec<u8>>,
    /// Maximum number of concurrent connections.
    pub connections: usize,
    /// Timeout for connecting, and again for sending a message.
    pub timeout: Duration,
    /// Sender address of every message.
    pub from: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SmtpEncryption {
    // Mandatory: a server without it gets no login and no message.
    #[value(name = "starttls")]
    StartTls,
    // TLS from the first byte.
    Tls,
    #[value(name = "none")]
    Plain,
}

/// A message to one recipient.
pub struct OutgoingEmail {
    /// 1 to 64 letters, digits, dots and dashes; the same at each attempt, to reveal duplicates.
    pub id: String,
    pub from_name: String,
    pub to: String,
    pub subject: String,
    pub text: String,
    pub html: String,
    pub at: Timestamp,
}

/// A message was not sent, or its outcome is unknown. Omits the server's text: it may name people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SmtpError {
    /// True if the server will never accept this message; other failures may be temporary.
    pub is_permanent: bool,
    /// Reply code of the server, three digits.
    pub code: Option<u16>,
    pub reason: &'static str,
}

impl SmtpError {
    fn permanent(reason: &'static str) -> SmtpError {
        SmtpError { is_permanent: true, code: None, reason }
    }

    fn transient(reason: &'static str) -> SmtpError {
        SmtpError { is_permanent: false, code: None, reason }
    }
}

/// An SMTP client. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    sessions: Pool<SessionManager>,
    from: Address,
    timeout: Duration,
}

impl Mailer {
    /// Creates a client. Does not connect yet. Fails with a text for operators.
    pub fn new(settings: SmtpSettings) -> Result<Mailer, &'static str> {
        tls::install_provider();
        let from = compose::parse_address(&settings.from)
            .ok_or("email_from must be an e-mail address, like no-reply@example.com")?;
        let (most, timeout) = (settings.connections, settings.timeout);
        let server = SessionManager::new(settings, from.domain())?;
        let timeouts = Timeouts { recycle: Some(HEALTH_CHECK_TIMEOUT), ..Timeouts::default() };
        let config = PoolConfig { max_size: most, timeouts, queue_mode: QueueMode::Lifo };
        let sessions = Pool::builder(server).config(config).runtime(Runtime::Tokio1).build();
        let sessions = sessions.expect("a runtime is set for the timeouts");
        Ok(Mailer { sessions, from, timeout })
    }

    /// Returns when the server has accepted the message. After a failure without a code it may have
    /// been accepted too, so a retry may deliver it twice, under the same id.
    pub async fn send(&self, email: &OutgoingEmail) -> Result<(), SmtpError> {
        let to = compose::parse_address(&email.to)
            .ok_or(SmtpError::permanent("the recipient's address is invalid"))?;
        let message = compose::compose_message(email, &self.from, &to);
        let mut session = match timeout(self.timeout, self.sessions.get()).await {
            Ok(Ok(session)) => session,
            Ok(Err(PoolError::Backend(error))) => return Err(error),
            Ok(Err(_)) => return Err(SmtpError::transient("no connection to the mail server")),
            Err(_) => return Err(SmtpError::transient("no connection to the mail server in time")),
        };
        let sent = timeout(self.timeout, session.send(&self.from, &to, &message)).await;
        sent.unwrap_or(Err(SmtpError::transient("no response of the mail server in time")))
    }
}
