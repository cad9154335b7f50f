//! An SMTP session without its socket: consumes bytes, and produces replies and complete mails.

use std::{mem, slice::Iter, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use smtp_proto::{
    AUTH_LOGIN, AUTH_PLAIN, EXT_8BIT_MIME, EXT_AUTH, EXT_ENHANCED_STATUS_CODES, EXT_PIPELINING,
    EXT_SIZE, EXT_SMTP_UTF8, EhloResponse, Error, MAIL_SMTPUTF8, MailFrom, Request,
    request::receiver::{
        DataReceiver, DummyDataReceiver, DummyLineReceiver, LineReceiver, RequestReceiver,
    },
};

use super::{OPERATION, REFUSED};
use crate::{env::Env, faults::FaultKind, in_flight::InFlightGuard};

const MAX_BYTES: usize = 10 * 1024 * 1024;
/// Minimum that RFC 5321 requires of servers.
const MAX_RECIPIENTS: usize = 100;

const OK: &str = "250 2.0.0 OK";
const BAD_SEQUENCE: &str = "503 5.5.1 Bad sequence: use EHLO, MAIL, RCPT, DATA";
const TOO_LARGE: &str = "552 5.3.4 Message too large";
const INVALID_BASE64: &str = "501 5.5.2 Not base64";

/// The next action.
pub(super) enum Step {
    Reply(String),
    /// Reply and close the connection.
    ReplyAndClose(String),
    /// Deliver the mail and reply with the result.
    Accept(ReceivedMail),
}

/// A mail in its envelope.
pub(super) struct ReceivedMail {
    pub to: Vec<String>,
    pub body: Vec<u8>,
    utf8: bool,
    /// Set from DATA on: a client may give up before that without notice.
    in_flight: Option<InFlightGuard>,
}

pub(super) struct Session {
    env: Arc<Env>,
    reading: ReadState,
    greeted: bool,
    authenticated: bool,
    /// Set from MAIL until DATA.
    letter: Option<ReceivedMail>,
}

/// The parser of the next bytes.
enum ReadState {
    Commands(RequestReceiver),
    Mail(DataReceiver, ReceivedMail),
    /// The rest of a mail that is too large.
    Oversized(DummyDataReceiver),
    /// The rest of a line that is too long.
    LongLine(DummyLineReceiver),
    Credentials(LineReceiver<CredentialPrompt>),
}

/// The credential that the client must send next.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CredentialPrompt {
    #[default]
    Plain,
    Username,
    Password,
}

impl CredentialPrompt {
    fn accepts(self, given: &[u8]) -> bool {
        if self != CredentialPrompt::Plain {
            return !given.is_empty();
        }
        let parts: Vec<&[u8]> = given.split(|byte| *byte == 0).collect();
        matches!(parts[..], [_on_behalf_of, user, password] if !user.is_empty() && !password.is_empty())
    }
}

impl ReadState {
    fn commands() -> ReadState {
        ReadState::Commands(RequestReceiver::default())
    }
}

impl Session {
    pub(super) fn new(env: Arc<Env>) -> Session {
        Session {
            env,
            reading: ReadState::commands(),
            greeted: false,
            authenticated: false,
            letter: None,
        }
    }

    /// Reads up to the next action; `None` if more bytes are needed.
    pub(super) fn next(&mut self, bytes: &mut Iter<'_, u8>) -> Option<Step> {
        match &mut self.reading {
            ReadState::Commands(receiver) => {
                match receiver.ingest(bytes).map(Request::into_owned) {
                    Ok(request) => Some(self.handle(request)),
                    Err(Error::NeedsMoreData { .. }) => None,
                    Err(Error::ResponseTooLong) => {
                        self.reading = ReadState::LongLine(DummyLineReceiver::default());
                        self.next(bytes)
                    }
                    Err(error) => Some(error_reply(error)),
                }
            }
            ReadState::Mail(receiver, letter) => {
                let ended = receiver.ingest(bytes, &mut letter.body);
                let fits = letter.body.len() <= MAX_BYTES;
                if !ended && !fits {
                    self.reading = ReadState::Oversized(DummyDataReceiver::new_data(receiver));
                    return self.next(bytes);
                }
                ended.then(|| self.finish_mail(fits))
            }
            ReadState::Oversized(receiver) => {
                let ended = receiver.ingest(bytes);
                ended.then(|| self.finish_mail(false))
            }
            ReadState::LongLine(receiver) => {
                let ended = receiver.ingest(bytes);
                ended.then(|| {
                    self.reading = ReadState::commands();
                    reply("500 5.5.2 Line too long")
                })
            }
            ReadState::Credentials(receiver) => {
                if !receiver.ingest(bytes) {
                    return None;
                }
                let (expected, line) = (receiver.state, mem::take(&mut receiver.buf));
                self.reading = ReadState::commands();
                Some(self.handle_credential(expected, &line))
            }
        }
    }

    fn finish_mail(&mut self, fits: bool) -> Step {
        match mem::replace(&mut self.reading, ReadState::commands()) {
            ReadState::Mail(_, letter) if fits => Step::Accept(letter),
            _ => reply(TOO_LARGE),
        }
    }

    fn handle(&mut self, request: Request<String>) -> Step {
        match request {
            Request::Ehlo { .. } => {
                self.start_session();
                Step::Reply(extensions())
            }
            Request::Helo { .. } => {
                self.start_session();
                reply("250 localhost")
            }
            Request::Auth { mechanism, initial_response } => {
                self.authenticate(mechanism, &initial_response)
            }
            Request::Mail { from } => self.mail_from(&from),
            Request::Rcpt { to } => self.rcpt_to(to.address),
            Request::Data => self.data(),
            Request::Rset => {
                self.letter = None;
                reply(OK)
            }
            Request::Noop { .. } => reply(OK),
            Request::Vrfy { .. } => reply("252 2.5.0 Cannot verify, but will accept the message"),
            Request::Quit => Step::ReplyAndClose("221 2.0.0 Bye\r\n".to_owned()),
            _ => reply("502 5.5.1 Command not implemented"),
        }
    }

    fn start_session(&mut self) {
        self.greeted = true;
        self.letter = None;
    }

    fn authenticate(&mut self, mechanism: u64, initial: &str) -> Step {
        if !self.greeted || self.authenticated || self.letter.is_some() {
            return reply("503 5.5.1 Bad sequence: AUTH is valid once, after EHLO and before MAIL");
        }
        let expected = match mechanism {
            AUTH_PLAIN => CredentialPrompt::Plain,
            AUTH_LOGIN => CredentialPrompt::Username,
            _ => return reply("504 5.5.4 Only PLAIN and LOGIN are supported"),
        };
        match initial {
            "" => self.prompt_for(expected),
            initial => self.handle_credential(expected, initial.as_bytes()),
        }
    }

    fn prompt_for(&mut self, expected: CredentialPrompt) -> Step {
        self.reading = ReadState::Credentials(LineReceiver::new(expected));
        let prompt = match expected {
            CredentialPrompt::Plain => "",
            CredentialPrompt::Username => "Username:",
            CredentialPrompt::Password => "Password:",
        };
        reply(&format!("334 {}", BASE64_STANDARD.encode(prompt)))
    }

    fn handle_credential(&mut self, expected: CredentialPrompt, line: &[u8]) -> Step {
        if line == b"*" {
            return reply("501 5.7.0 Authentication cancelled");
        }
        let Ok(given) = BASE64_STANDARD.decode(line) else { return reply(INVALID_BASE64) };
        if !expected.accepts(&given) {
            return reply("535 5.7.8 A user name and a password are required; any are accepted");
        }
        if expected == CredentialPrompt::Username {
            return self.prompt_for(CredentialPrompt::Password);
        }
        self.authenticated = true;
        reply("235 2.7.0 Welcome")
    }

    fn mail_from(&mut self, from: &MailFrom<String>) -> Step {
        if !self.greeted || self.letter.is_some() {
            return reply(BAD_SEQUENCE);
        }
        let utf8 = from.flags & MAIL_SMTPUTF8 != 0;
        if from.size > MAX_BYTES {
            return reply(TOO_LARGE);
        }
        if !utf8 && !from.address.is_ascii() {
            return reply("550 5.6.7 This address requires SMTPUTF8");
        }
        self.letter =
            Some(ReceivedMail { to: Vec::new(), body: Vec::new(), utf8, in_flight: None });
        reply("250 2.1.0 OK")
    }

    fn rcpt_to(&mut self, address: String) -> Step {
        let Some(letter) = &mut self.letter else { return reply(BAD_SEQUENCE) };
        if letter.to.len() == MAX_RECIPIENTS {
            return reply("452 4.5.3 Too many recipients");
        }
        if !letter.utf8 && !address.is_ascii() {
            return reply("553 5.6.7 This address requires SMTPUTF8");
        }
        let declined = self.env.faults.take(OPERATION, FaultKind::is_outcome).is_some();
        if declined || address.to_lowercase().starts_with(REFUSED) {
            return reply("550 5.1.1 Mailbox does not exist");
        }
        letter.to.push(address);
        reply("250 2.1.5 OK")
    }

    fn data(&mut self) -> Step {
        match self.letter.take() {
            Some(mut letter) if !letter.to.is_empty() => {
                letter.in_flight = Some(self.env.in_flight.begin());
                self.reading = ReadState::Mail(DataReceiver::new(), letter);
                reply("354 End data with a dot on a line of its own")
            }
            letter => {
                self.letter = letter;
                reply(BAD_SEQUENCE)
            }
        }
    }
}

fn reply(reply: &str) -> Step {
    Step::Reply(format!("{reply}\r\n"))
}

fn extensions() -> String {
    let mut response = EhloResponse::new("localhost");
    response.capabilities = EXT_8BIT_MIME
        | EXT_AUTH
        | EXT_ENHANCED_STATUS_CODES
        | EXT_PIPELINING
        | EXT_SIZE
        | EXT_SMTP_UTF8;
    response.auth_mechanisms = AUTH_PLAIN | AUTH_LOGIN;
    response.size = MAX_BYTES;
    let mut lines = Vec::new();
    response.write(&mut lines).expect("writing to memory succeeds");
    String::from_utf8_lossy(&lines).into_owned()
}

fn error_reply(error: Error) -> Step {
    match error {
        Error::UnknownCommand => reply("500 5.5.1 Unknown command"),
        Error::InvalidSenderAddress => reply("501 5.1.7 Invalid address"),
        Error::InvalidRecipientAddress => reply("501 5.1.3 Invalid address"),
        Error::SyntaxError { syntax } => reply(&format!("501 5.5.2 Syntax: {syntax}")),
        Error::InvalidParameter { param } => reply(&format!("501 5.5.4 Invalid value for {param}")),
        Error::UnsupportedParameter { param } => {
            reply(&format!("555 5.5.4 Unsupported parameter: {param}"))
        }
        _ => reply("500 5.5.2 Syntax error"),
    }
}
