//! The way out for e-mail: one mail server, the operator's choice, which takes every message.
//!
//! A few conversations with it are kept open and used again. What a conversation has not ended in step (an answer is missing, or
//! nobody waited for it) is never used again: the next message would take that answer for its own.

mod compose;
mod line_by_line;
mod session;

use std::time::Duration;

use deadpool::{
    Runtime,
    managed::{Pool, PoolConfig, PoolError, QueueMode, Timeouts},
};
use lettre::Address;
use tokio::time::timeout;

use self::session::Server;
use crate::{clock::Timestamp, tls};

/// For a conversation that was open already to show that it still is.
const TEST: Duration = Duration::from_secs(5);

/// How the mail server is reached, and as whom.
pub struct Settings {
    pub host: String,
    pub port: u16,
    pub security: Security,
    pub login: Option<Login>,
    /// Certificates, as PEM, of those who may vouch for the server besides the usual authorities.
    pub ca: Option<Vec<u8>>,
    /// At most so many conversations at once.
    pub connections: usize,
    /// To be connected, and again for a message to be taken.
    pub timeout: Duration,
    /// The address that every message comes from.
    pub from: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// TLS before anything is said; a server that does not offer it is given nothing.
    StartTls,
    /// TLS from the first byte.
    Tls,
    Plain,
}

pub struct Login {
    pub username: String,
    pub password: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("email_from must be an e-mail address, like no-reply@example.com")]
    From,
    #[error("smtp_ca_file holds no certificate that can be used")]
    Ca,
    #[error("the certificates of the usual authorities cannot be read")]
    Authorities,
}

/// A message to one person.
pub struct Email {
    /// Of 1 to 64 letters, digits, dots and dashes; the same at each attempt, so that who gets the message twice can tell.
    pub id: String,
    pub from_name: String,
    pub to: String,
    pub subject: String,
    pub text: String,
    pub html: String,
    pub at: Timestamp,
}

/// A message that was not sent, or of which nobody knows. It says nothing of what the server said, which could name people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SmtpError {
    /// This message will never be taken; any other failure may be over by the next attempt.
    pub is_final: bool,
    /// The server's, of three digits.
    pub code: Option<u16>,
    pub reason: &'static str,
}

impl SmtpError {
    fn last(reason: &'static str) -> SmtpError {
        SmtpError { is_final: true, code: None, reason }
    }

    fn again(reason: &'static str) -> SmtpError {
        SmtpError { is_final: false, code: None, reason }
    }
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    sessions: Pool<Server>,
    from: Address,
    timeout: Duration,
}

impl Mailer {
    /// Connects to nobody yet.
    pub fn new(settings: Settings) -> Result<Mailer, SettingsError> {
        tls::install_provider();
        let from = compose::address(&settings.from).ok_or(SettingsError::From)?;
        let (most, timeout) = (settings.connections, settings.timeout);
        let server = Server::new(settings, from.domain())?;
        let timeouts = Timeouts { recycle: Some(TEST), ..Timeouts::default() };
        let config = PoolConfig { max_size: most, timeouts, queue_mode: QueueMode::Lifo };
        let sessions = Pool::builder(server).config(config).runtime(Runtime::Tokio1).build();
        let sessions = sessions.expect("it has a runtime for its timeouts");
        Ok(Mailer { sessions, from, timeout })
    }

    /// Returns when the server has taken the message. A failure without a code may hide that it has: the message may then arrive
    /// twice, under one id.
    pub async fn send(&self, email: &Email) -> Result<(), SmtpError> {
        let to = compose::address(&email.to)
            .ok_or(SmtpError::last("the recipient's address cannot be used"))?;
        let message = compose::message(email, &self.from, &to);
        let mut session = match timeout(self.timeout, self.sessions.get()).await {
            Ok(Ok(session)) => session,
            Ok(Err(PoolError::Backend(error))) => return Err(error),
            Ok(Err(_)) => return Err(SmtpError::again("no connection to the mail server")),
            Err(_) => return Err(SmtpError::again("no connection to the mail server in time")),
        };
        let sent = timeout(self.timeout, session.send(&self.from, &to, &message)).await;
        sent.unwrap_or(Err(SmtpError::again("no answer of the mail server in time")))
    }
}
