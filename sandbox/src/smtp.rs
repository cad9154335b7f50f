//! A mail server (RFC 5321) that delivers every e-mail to the mailbox, with or without credentials.
//!
//! Only recipients whose address begins with `refused` are rejected, like unknown mailboxes.

mod mail;
mod session;

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{
    env::Env,
    faults::{Fault, FaultKind},
    mailbox::Message,
};
use session::{ReceivedMail, Session, Step};

/// Operation name for scripted faults.
pub(crate) const OPERATION: &str = "smtp";
/// Prefix of addresses that are rejected.
pub(crate) const REFUSED: &str = "refused";

/// Idle timeout of a server in RFC 5321.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(300);

const GREETING: &str = "220 localhost ESMTP Tollhouse simulator\r\n";
const TIMED_OUT: &str = "421 4.4.2 Idle timeout\r\n";
const ACCEPTED: &str = "250 2.0.0 Taken\r\n";
const TRY_AGAIN: &str = "451 4.3.0 Temporary failure, try again later\r\n";
const UNREADABLE: &str = "554 5.6.0 The message cannot be parsed\r\n";
const MALFORMED: &str = "Taken\r\n";

pub(crate) async fn serve(stream: TcpStream, env: Arc<Env>) {
    if let Err(error) = run_session(stream, &env).await {
        tracing::debug!(%error, "SMTP connection ended early");
    }
}

async fn run_session(mut stream: TcpStream, env: &Arc<Env>) -> io::Result<()> {
    let mut session = Session::new(env.clone());
    let mut buffer = vec![0; 16 * 1024];
    stream.write_all(GREETING.as_bytes()).await?;
    loop {
        let Ok(read) = timeout(COMMAND_TIMEOUT, stream.read(&mut buffer)).await else {
            return stream.write_all(TIMED_OUT.as_bytes()).await;
        };
        let mut bytes = buffer[..read?].iter();
        if bytes.as_slice().is_empty() {
            return Ok(());
        }
        while let Some(step) = session.next(&mut bytes) {
            match step {
                Step::Reply(reply) => stream.write_all(reply.as_bytes()).await?,
                Step::ReplyAndClose(reply) => return stream.write_all(reply.as_bytes()).await,
                Step::Accept(letter) => match accept_mail(env, &letter).await {
                    Some(reply) => stream.write_all(reply.as_bytes()).await?,
                    None => return Ok(()),
                },
            }
        }
    }
}

/// Accepts a mail after applying the next fault, and returns the reply; `None` drops the
/// connection.
async fn accept_mail(env: &Env, letter: &ReceivedMail) -> Option<&'static str> {
    let fault = env.faults.take(OPERATION, FaultKind::is_transport);
    let Some(Fault { kind, delay_ms, .. }) = fault else { return Some(deliver(env, letter)) };
    let delay = Duration::from_millis(delay_ms);
    match kind {
        FaultKind::SlowAfter => {
            let reply = deliver(env, letter);
            sleep(delay).await;
            Some(reply)
        }
        FaultKind::Error500 => Some(TRY_AGAIN),
        FaultKind::Malformed => Some(MALFORMED),
        kind => {
            sleep(delay).await;
            let reply = (kind != FaultKind::Cut).then(|| deliver(env, letter));
            reply.filter(|_| kind == FaultKind::Slow)
        }
    }
}

/// Delivers to the mailbox, once per recipient.
fn deliver(env: &Env, letter: &ReceivedMail) -> &'static str {
    let Some(mail) = mail::parse(&letter.body) else { return UNREADABLE };
    for to in &letter.to {
        let at = env.clock.now();
        env.mailbox.deliver(Message { to: to.clone(), at, ..mail.clone() });
    }
    ACCEPTED
}
