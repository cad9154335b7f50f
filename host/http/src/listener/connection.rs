//! One HTTP/1.1 or HTTP/2 connection, as the client chooses, with timeouts that hyper lacks.

use std::{
    convert::Infallible,
    io,
    net::IpAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body};
use http_body_util::BodyExt;
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, sleep_until},
};
use tower::Service;

use crate::{ClientAddress, ServerLimits};
use tollhouse_platform::error::Error;

/// Time for a client to close its connection after a graceful shutdown.
const GRACE: Duration = Duration::from_secs(5);

/// Factor between our header limits and hyper's, so that requests between them get our 431.
const HEADROOM: usize = 2;
const MIN_BUFFER_BYTES: usize = 64 << 10;

/// The connection preface of HTTP/2 clients (RFC 9113, 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// hyper's default limit of headers, which is raised only if ours is not below it.
const DEFAULT_MAX_HEADERS: usize = 100;

/// Serves until the client leaves, a timeout expires, or `closing` resolves and requests end.
pub async fn serve<I>(
    io: I,
    address: IpAddr,
    router: Router,
    limits: &ServerLimits,
    closing: impl Future<Output = ()>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(ConnectionTimers::new(Instant::now()));
    let service = service_fn(|request: Request<Incoming>| {
        let open = activity.begin_request(Instant::now());
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ClientAddress(address));
        let response = router.clone().call(request);
        async move {
            let response: Response<Body> = response.await?;
            // The closure keeps the request open until the body is dropped.
            Ok::<_, Infallible>(response.map(|body| body.map_err(move |error| (error, &open).0)))
        }
    });
    let io = TokioIo::new(TrackedSocket { io, activity: activity.clone() });
    let builder = builder(limits);
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut closing = pin!(closing);
    let mut check = pin!(sleep_until(activity.next_deadline(limits, Instant::now()).1));
    let mut is_closing = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(error, "connection ended early");
                }
                return;
            }
            () = &mut closing, if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
            }
            () = check.as_mut() => {
                let (action, until) = activity.next_deadline(limits, Instant::now());
                let again = match action {
                    TimeoutAction::Nothing => until,
                    TimeoutAction::Idle if is_closing => return,
                    TimeoutAction::Idle => {
                        is_closing = true;
                        connection.as_mut().graceful_shutdown();
                        Instant::now() + GRACE
                    }
                    // The next read of the socket ends the connection.
                    TimeoutAction::SlowHeaders if activity.abort() => Instant::now() + GRACE,
                    TimeoutAction::SlowHeaders | TimeoutAction::Stuck => return,
                };
                check.as_mut().reset(again);
            }
        }
    }
}

fn builder(limits: &ServerLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let header_bytes = limits.header_bytes.saturating_mul(HEADROOM);
    let mut http1 = builder.http1();
    // hyper's own timeout would include the pause between two requests.
    http1.timer(TokioTimer::new()).header_read_timeout(None);
    http1.max_buf_size(header_bytes.max(MIN_BUFFER_BYTES));
    if limits.header_count >= DEFAULT_MAX_HEADERS {
        http1.max_headers(limits.header_count.saturating_mul(HEADROOM));
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2_streams)
        .max_pending_accept_reset_streams(limits.http2_resets)
        .max_header_list_size(u32::try_from(header_bytes).unwrap_or(u32::MAX));
    builder
}

// ---- timers -------------------------------------------------------------------------------------

/// The state of a connection that determines its timeouts.
struct ConnectionTimers(Mutex<State>);

struct State {
    /// Start of each request whose response has not ended.
    open: Vec<Instant>,
    /// End of the last response, or arrival of the first byte after it.
    since: Instant,
    /// True during an incomplete request head of HTTP/1.1.
    in_headers: bool,
    protocol: Protocol,
    /// Time since which the client has not read pending output.
    unread_since: Option<Instant>,
    cut: bool,
}

/// The protocol, as far as the first bytes determine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// Number of bytes received, all of which match [`HTTP2_PREFACE`].
    Unknown(usize),
    Http1,
    Http2,
}

impl Protocol {
    fn after(self, bytes: &[u8]) -> Protocol {
        let Protocol::Unknown(before) = self else { return self };
        let rest = &HTTP2_PREFACE[before..];
        let bytes = &bytes[..bytes.len().min(rest.len())];
        match rest.strip_prefix(bytes) {
            None => Protocol::Http1,
            Some([]) => Protocol::Http2,
            Some(_) => Protocol::Unknown(before + bytes.len()),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum TimeoutAction {
    Nothing,
    Idle,
    SlowHeaders,
    /// The client does not read its response, or a request takes too long.
    Stuck,
}

impl ConnectionTimers {
    fn new(now: Instant) -> ConnectionTimers {
        ConnectionTimers(Mutex::new(State {
            open: Vec::new(),
            since: now,
            in_headers: false,
            protocol: Protocol::Unknown(0),
            unread_since: None,
            cut: false,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_request(self: &Arc<ConnectionTimers>, now: Instant) -> OpenRequest {
        let mut state = self.state();
        state.in_headers = false;
        state.open.push(now);
        OpenRequest { activity: self.clone(), begun: now }
    }

    fn record_input(&self, bytes: &[u8], now: Instant) {
        let mut state = self.state();
        state.protocol = state.protocol.after(bytes);
        if state.protocol == Protocol::Http2 {
            state.in_headers = false;
        } else if state.open.is_empty() && !state.in_headers {
            (state.in_headers, state.since) = (true, now);
        }
    }

    /// Cuts the connection. Returns whether the client can still receive a 408 over HTTP/1.1.
    fn abort(&self) -> bool {
        let mut state = self.state();
        let first = !state.cut;
        state.cut = true;
        first && state.unread_since.is_none() && state.protocol == Protocol::Http1
    }

    /// Returns the action that is due, or `Nothing` and the time of the next check.
    fn next_deadline(&self, limits: &ServerLimits, now: Instant) -> (TimeoutAction, Instant) {
        let state = self.state();
        let (mut action, mut until) = match state.open.iter().min() {
            Some(oldest) => (TimeoutAction::Stuck, *oldest + limits.max_request_time()),
            None if state.in_headers => {
                (TimeoutAction::SlowHeaders, state.since + limits.header_timeout)
            }
            None => (TimeoutAction::Idle, state.since + limits.idle_timeout),
        };
        if let Some(since) = state.unread_since
            && since + limits.write_timeout < until
        {
            (action, until) = (TimeoutAction::Stuck, since + limits.write_timeout);
        }
        if until <= now {
            return (action, until);
        }
        // A phase that begins meanwhile may have a shorter timeout.
        let soonest =
            now + limits.header_timeout.min(limits.idle_timeout).min(limits.write_timeout);
        (TimeoutAction::Nothing, soonest.min(until))
    }

    /// Records whether all output has been flushed.
    fn record_output(&self, all: bool, now: Instant) {
        let mut state = self.state();
        state.unread_since = if all { None } else { state.unread_since.or(Some(now)) };
    }
}

/// A request, from its headers to the end of its response.
struct OpenRequest {
    activity: Arc<ConnectionTimers>,
    begun: Instant,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        let mut open = state.open.iter();
        if let Some(position) = open.position(|begun| *begun == self.begun) {
            state.open.swap_remove(position);
        }
        state.since = Instant::now();
    }
}

// ---- the socket ---------------------------------------------------------------------------------

/// The socket of the client, which reports its activity.
struct TrackedSocket<I> {
    io: I,
    activity: Arc<ConnectionTimers>,
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncRead for TrackedSocket<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.activity.state().cut {
            // Best effort: a client that sends slowly gets no extra time to read.
            let _ = Pin::new(&mut self.io).poll_write(context, timeout_response().as_bytes());
            let _ = Pin::new(&mut self.io).poll_shutdown(context);
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        let bytes = &buffer.filled()[before..];
        if !bytes.is_empty() {
            self.activity.record_input(bytes, Instant::now());
        }
        read
    }
}

/// The response to a request whose headers are late.
fn timeout_response() -> String {
    let body = json!({ "error": true, "message": Error::RequestTimeout.to_string() }).to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

impl<I> TrackedSocket<I> {
    /// Records a pending write. A completed one may still be buffered: only a flush is certain.
    fn record_write<T>(&self, written: Poll<T>) -> Poll<T> {
        if written.is_pending() {
            self.activity.record_output(false, Instant::now());
        }
        written
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for TrackedSocket<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.record_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, parts);
        self.record_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        self.activity.record_output(flushed.is_ready(), Instant::now());
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    /// Timeouts: 10 s for headers, 60 s idle, 180 s for a request, and 30 s to write.
    fn limits() -> ServerLimits {
        let command = ServerLimits::augment_args(Command::new("limits"));
        let flags = ["limits", "--header-timeout-s=10", "--idle-timeout-s=60"];
        ServerLimits::from_arg_matches(&command.get_matches_from(flags)).unwrap()
    }

    #[test]
    fn each_phase_of_a_connection_has_its_timeout() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let due = |activity: &ConnectionTimers, seconds| {
            let (action, until) = activity.next_deadline(&limits(), at(seconds));
            (action, (until - start).as_secs())
        };
        let activity = Arc::new(ConnectionTimers::new(start));
        assert_eq!(due(&activity, 0), (TimeoutAction::Nothing, 10)); // the shortest timeout
        assert_eq!(due(&activity, 59), (TimeoutAction::Nothing, 60));
        assert_eq!(due(&activity, 60).0, TimeoutAction::Idle);

        activity.record_input(b"GET", at(50));
        activity.record_input(b" / ", at(58)); // does not extend the timeout
        assert_eq!(due(&activity, 59), (TimeoutAction::Nothing, 60));
        assert_eq!(due(&activity, 60).0, TimeoutAction::SlowHeaders);

        let open = activity.begin_request(at(60));
        assert_eq!(due(&activity, 60 + 179), (TimeoutAction::Nothing, 60 + 180));
        assert_eq!(due(&activity, 60 + 180).0, TimeoutAction::Stuck);
        drop(open);
        assert_eq!(due(&activity, 0).0, TimeoutAction::Nothing);
    }

    #[test]
    fn the_write_timeout_begins_with_the_first_pending_byte() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let activity = ConnectionTimers::new(start);
        activity.record_output(false, at(5));
        activity.record_output(false, at(30)); // some was sent meanwhile
        assert_eq!(activity.next_deadline(&limits(), at(34)).0, TimeoutAction::Nothing);
        assert_eq!(activity.next_deadline(&limits(), at(35)).0, TimeoutAction::Stuck);
        activity.record_output(true, at(35));
        assert_eq!(activity.next_deadline(&limits(), at(36)).0, TimeoutAction::Nothing);
    }

    #[test]
    fn http2_bytes_between_requests_are_not_slow_headers() {
        let start = Instant::now();
        for size in 1..=HTTP2_PREFACE.len() {
            let activity = ConnectionTimers::new(start);
            HTTP2_PREFACE.chunks(size).for_each(|bytes| activity.record_input(bytes, start));
            activity.record_input(b"ping", start);
            let late = activity.next_deadline(&limits(), start + Duration::from_secs(11));
            assert_eq!(late.0, TimeoutAction::Nothing, "{size}");
            let idle = activity.next_deadline(&limits(), start + Duration::from_secs(60));
            assert_eq!(idle.0, TimeoutAction::Idle, "{size}");
        }
    }

    #[test]
    fn slow_headers_get_408_over_http1_only() {
        let start = Instant::now();
        for (bytes, gets_408) in [
            (&b"GET / HTTP/1.1"[..], true),
            (b"POST /", true),
            (b"PRI * HTTP/1.1", true),
            (b"PRI * HTTP/2.0\r\n", false),
            (b"P", false),
        ] {
            let activity = ConnectionTimers::new(start);
            bytes.chunks(1).for_each(|byte| activity.record_input(byte, start));
            let late = activity.next_deadline(&limits(), start + Duration::from_secs(10));
            assert_eq!(late.0, TimeoutAction::SlowHeaders, "{bytes:?}");
            assert_eq!(activity.abort(), gets_408, "{bytes:?}");
        }
    }
}
