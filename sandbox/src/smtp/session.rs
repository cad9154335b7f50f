//! A conversation in SMTP, without its socket: bytes come in, replies and whole mails go out.

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
use crate::{env::Env, faults::FaultKind, in_flight::Flight};

const MOST_BYTES: usize = 10 * 1024 * 1024;
/// What RFC 5321 asks every server to take.
const MOST_RECIPIENTS: usize = 100;

const OK: &str = "250 2.0.0 OK";
const OUT_OF_ORDER: &str = "503 5.5.1 Not now: the order is EHLO, MAIL, RCPT, DATA";
const TOO_LARGE: &str = "552 5.3.4 Too large";
const NO_BASE64: &str = "501 5.5.2 This is not base64";

/// What is to be done next.
pub(super) enum Step {
    Say(String),
    /// Say it and hang up.
    Part(String),
    /// Deliver it and say how that went.
    Take(Letter),
}

/// A mail in its envelope.
pub(super) struct Letter {
    pub to: Vec<String>,
    pub body: Vec<u8>,
    utf8: bool,
    /// From DATA on: who gives up before that need not say so.
    flight: Option<Flight>,
}

pub(super) struct Session {
    env: Arc<Env>,
    reading: Reading,
    greeted: bool,
    authenticated: bool,
    /// From MAIL until DATA.
    letter: Option<Letter>,
}

/// What the next bytes are.
enum Reading {
    Commands(RequestReceiver),
    Mail(DataReceiver, Letter),
    /// The rest of a mail that is too large.
    Excess(DummyDataReceiver),
    /// The rest of a line that is too long.
    LongLine(DummyLineReceiver),
    Credentials(LineReceiver<Credential>),
}

/// What a client that authenticates is asked for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Credential {
    #[default]
    Plain,
    Username,
    Password,
}

impl Credential {
    fn is_met(self, given: &[u8]) -> bool {
        if self != Credential::Plain {
            return !given.is_empty();
        }
        let parts: Vec<&[u8]> = given.split(|byte| *byte == 0).collect();
        matches!(parts[..], [_on_behalf_of, user, password] if !user.is_empty() && !password.is_empty())
    }
}

impl Reading {
    fn commands() -> Reading {
        Reading::Commands(RequestReceiver::default())
    }
}

impl Session {
    pub(super) fn new(env: Arc<Env>) -> Session {
        Session {
            env,
            reading: Reading::commands(),
            greeted: false,
            authenticated: false,
            letter: None,
        }
    }

    /// Reads up to the next step; `None` when more bytes are needed.
    pub(super) fn next(&mut self, bytes: &mut Iter<'_, u8>) -> Option<Step> {
        match &mut self.reading {
            Reading::Commands(receiver) => match receiver.ingest(bytes).map(Request::into_owned) {
                Ok(request) => Some(self.obey(request)),
                Err(Error::NeedsMoreData { .. }) => None,
                Err(Error::ResponseTooLong) => {
                    self.reading = Reading::LongLine(DummyLineReceiver::default());
                    self.next(bytes)
                }
                Err(error) => Some(complain(error)),
            },
            Reading::Mail(receiver, letter) => {
                let ended = receiver.ingest(bytes, &mut letter.body);
                let fits = letter.body.len() <= MOST_BYTES;
                if !ended && !fits {
                    self.reading = Reading::Excess(DummyDataReceiver::new_data(receiver));
                    return self.next(bytes);
                }
                ended.then(|| self.end_mail(fits))
            }
            Reading::Excess(receiver) => {
                let ended = receiver.ingest(bytes);
                ended.then(|| self.end_mail(false))
            }
            Reading::LongLine(receiver) => {
                let ended = receiver.ingest(bytes);
                ended.then(|| {
                    self.reading = Reading::commands();
                    say("500 5.5.2 Line too long")
                })
            }
            Reading::Credentials(receiver) => {
                if !receiver.ingest(bytes) {
                    return None;
                }
                let (asked, line) = (receiver.state, mem::take(&mut receiver.buf));
                self.reading = Reading::commands();
                Some(self.credential(asked, &line))
            }
        }
    }

    fn end_mail(&mut self, fits: bool) -> Step {
        match mem::replace(&mut self.reading, Reading::commands()) {
            Reading::Mail(_, letter) if fits => Step::Take(letter),
            _ => say(TOO_LARGE),
        }
    }

    fn obey(&mut self, request: Request<String>) -> Step {
        match request {
            Request::Ehlo { .. } => {
                self.greet();
                Step::Say(extensions())
            }
            Request::Helo { .. } => {
                self.greet();
                say("250 localhost")
            }
            Request::Auth { mechanism, initial_response } => {
                self.authenticate(mechanism, &initial_response)
            }
            Request::Mail { from } => self.mail(&from),
            Request::Rcpt { to } => self.recipient(to.address),
            Request::Data => self.data(),
            Request::Rset => {
                self.letter = None;
                say(OK)
            }
            Request::Noop { .. } => say(OK),
            Request::Vrfy { .. } => say("252 2.5.0 Send it and see"),
            Request::Quit => Step::Part("221 2.0.0 Bye\r\n".to_owned()),
            _ => say("502 5.5.1 This is not offered"),
        }
    }

    fn greet(&mut self) {
        self.greeted = true;
        self.letter = None;
    }

    fn authenticate(&mut self, mechanism: u64, initial: &str) -> Step {
        if !self.greeted || self.authenticated || self.letter.is_some() {
            return say("503 5.5.1 Not now: after EHLO, before MAIL, once");
        }
        let asked = match mechanism {
            AUTH_PLAIN => Credential::Plain,
            AUTH_LOGIN => Credential::Username,
            _ => return say("504 5.5.4 PLAIN or LOGIN"),
        };
        match initial {
            "" => self.ask(asked),
            initial => self.credential(asked, initial.as_bytes()),
        }
    }

    fn ask(&mut self, asked: Credential) -> Step {
        self.reading = Reading::Credentials(LineReceiver::new(asked));
        let prompt = match asked {
            Credential::Plain => "",
            Credential::Username => "Username:",
            Credential::Password => "Password:",
        };
        say(&format!("334 {}", BASE64_STANDARD.encode(prompt)))
    }

    fn credential(&mut self, asked: Credential, line: &[u8]) -> Step {
        if line == b"*" {
            return say("501 5.7.0 Given up");
        }
        let Ok(given) = BASE64_STANDARD.decode(line) else { return say(NO_BASE64) };
        if !asked.is_met(&given) {
            return say("535 5.7.8 A user's name and a password are needed, whatever they are");
        }
        if asked == Credential::Username {
            return self.ask(Credential::Password);
        }
        self.authenticated = true;
        say("235 2.7.0 Welcome")
    }

    fn mail(&mut self, from: &MailFrom<String>) -> Step {
        if !self.greeted || self.letter.is_some() {
            return say(OUT_OF_ORDER);
        }
        let utf8 = from.flags & MAIL_SMTPUTF8 != 0;
        if from.size > MOST_BYTES {
            return say(TOO_LARGE);
        }
        if !utf8 && !from.address.is_ascii() {
            return say("550 5.6.7 Such an address needs SMTPUTF8");
        }
        self.letter = Some(Letter { to: Vec::new(), body: Vec::new(), utf8, flight: None });
        say("250 2.1.0 OK")
    }

    fn recipient(&mut self, address: String) -> Step {
        let Some(letter) = &mut self.letter else { return say(OUT_OF_ORDER) };
        if letter.to.len() == MOST_RECIPIENTS {
            return say("452 4.5.3 Too many recipients");
        }
        if !letter.utf8 && !address.is_ascii() {
            return say("553 5.6.7 Such an address needs SMTPUTF8");
        }
        let declined = self.env.faults.take(OPERATION, FaultKind::is_outcome).is_some();
        if declined || address.to_lowercase().starts_with(REFUSED) {
            return say("550 5.1.1 There is no such mailbox");
        }
        letter.to.push(address);
        say("250 2.1.5 OK")
    }

    fn data(&mut self) -> Step {
        match self.letter.take() {
            Some(mut letter) if !letter.to.is_empty() => {
                letter.flight = Some(self.env.in_flight.begin());
                self.reading = Reading::Mail(DataReceiver::new(), letter);
                say("354 Go on, end with a dot on a line of its own")
            }
            letter => {
                self.letter = letter;
                say(OUT_OF_ORDER)
            }
        }
    }
}

fn say(reply: &str) -> Step {
    Step::Say(format!("{reply}\r\n"))
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
    response.size = MOST_BYTES;
    let mut lines = Vec::new();
    response.write(&mut lines).expect("memory can be written");
    String::from_utf8_lossy(&lines).into_owned()
}

fn complain(error: Error) -> Step {
    match error {
        Error::UnknownCommand => say("500 5.5.1 Unknown command"),
        Error::InvalidSenderAddress => say("501 5.1.7 This is no address"),
        Error::InvalidRecipientAddress => say("501 5.1.3 This is no address"),
        Error::SyntaxError { syntax } => say(&format!("501 5.5.2 Syntax: {syntax}")),
        Error::InvalidParameter { param } => say(&format!("501 5.5.4 Not a value for {param}")),
        Error::UnsupportedParameter { param } => say(&format!("555 5.5.4 Not offered: {param}")),
        _ => say("500 5.5.2 Syntax error"),
    }
}
