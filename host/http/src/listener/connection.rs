//! One HTTP/1.1 or HTTP/2 connection, as the client chooses, with timeouts that hyper lacks.

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body};
use hyper::{
    Request, Response,
    body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint},
    service::service_fn,
};
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

use crate::settings::limits::Limits;
use tollhouse_platform::error::Error;

/// Time for a client to close its connection after a graceful shutdown.
const GRACE: Duration = Duration::from_secs(5);

/// Factor between our header limits and hyper's, so that requests between them get our 431.
const HEADROOM: usize = 2;
const LEAST_BUFFER: usize = 64 << 10;

/// The connection preface of HTTP/2 clients (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// hyper's default limit of headers, which is raised only if ours is not below it.
const MOST_UNASKED_HEADERS: usize = 100;

/// Serves until the client leaves, a timeout expires, or `closing` resolves and requests end.
pub async fn serve<I>(io: I, router: Router, limits: &Limits, closing: impl Future<Output = ()>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(Activity::new(Instant::now()));
    let service = service_fn(|request: Request<Incoming>| {
        let open = activity.open(Instant::now());
        let answer = router.clone().call(request.map(Body::new));
        async move {
            let answer: Response<Body> = answer.await?;
            Ok::<_, Infallible>(answer.map(|body| Held { body, _open: open }))
        }
    });
    let io = TokioIo::new(Watched { io, activity: activity.clone() });
    let builder = builder(limits);
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut closing = pin!(closing);
    let mut check = pin!(sleep_until(activity.due(limits, Instant::now()).until));
    let mut told_to_leave = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(error, "connection ended early");
                }
                return;
            }
            () = &mut closing, if !told_to_leave => {
                told_to_leave = true;
                connection.as_mut().graceful_shutdown();
            }
            () = check.as_mut() => {
                let due = activity.due(limits, Instant::now());
                let again = match due.what {
                    What::Nothing => due.until,
                    What::Idle if told_to_leave => return,
                    What::Idle => {
                        told_to_leave = true;
                        connection.as_mut().graceful_shutdown();
                        Instant::now() + GRACE
                    }
                    // The next read of the socket ends the connection.
                    What::SlowHeaders if activity.cut() => Instant::now() + GRACE,
                    What::SlowHeaders | What::Stuck => return,
                };
                check.as_mut().reset(again);
            }
        }
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let header_bytes = limits.header_bytes.saturating_mul(HEADROOM);
    let mut http1 = builder.http1();
    // hyper's own timeout would include the pause between two requests.
    http1.timer(TokioTimer::new()).header_read_timeout(None);
    http1.max_buf_size(header_bytes.max(LEAST_BUFFER));
    if limits.header_count >= MOST_UNASKED_HEADERS {
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
struct Activity(Mutex<State>);

struct State {
    /// Start of each request whose response has not ended.
    open: HashMap<u64, Instant>,
    next: u64,
    /// End of the last response, or arrival of the first byte after it.
    since: Instant,
    /// True during an incomplete request head of HTTP/1.1.
    in_headers: bool,
    protocol: Protocol,
    /// Start of the time during which the client has not read pending output.
    unread_since: Option<Instant>,
    cut: bool,
}

/// The protocol, as far as the first bytes determine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// Number of bytes received, all of which match [`PREFACE`].
    Unknown(usize),
    Http1,
    Http2,
}

impl Protocol {
    fn after(self, bytes: &[u8]) -> Protocol {
        let Protocol::Unknown(before) = self else { return self };
        let rest = &PREFACE[before..];
        let bytes = &bytes[..bytes.len().min(rest.len())];
        match rest.strip_prefix(bytes) {
            None => Protocol::Http1,
            Some([]) => Protocol::Http2,
            Some(_) => Protocol::Unknown(before + bytes.len()),
        }
    }
}

/// The action that is due, or the time of the next check.
struct Due {
    what: What,
    until: Instant,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    Nothing,
    Idle,
    SlowHeaders,
    /// The client does not read its response, or a request takes too long.
    Stuck,
}

impl Activity {
    fn new(now: Instant) -> Activity {
        Activity(Mutex::new(State {
            open: HashMap::new(),
            next: 0,
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

    fn open(self: &Arc<Activity>, now: Instant) -> Open {
        let mut state = self.state();
        state.in_headers = false;
        state.next += 1;
        let number = state.next;
        state.open.insert(number, now);
        Open { activity: self.clone(), number }
    }

    fn heard(&self, bytes: &[u8], now: Instant) {
        let mut state = self.state();
        state.protocol = state.protocol.after(bytes);
        if state.protocol == Protocol::Http2 {
            state.in_headers = false;
        } else if state.open.is_empty() && !state.in_headers {
            (state.in_headers, state.since) = (true, now);
        }
    }

    /// Cuts the connection. Returns whether the client can still receive a 408 over HTTP/1.1.
    fn cut(&self) -> bool {
        let mut state = self.state();
        let first = !state.cut;
        state.cut = true;
        first && state.unread_since.is_none() && state.protocol == Protocol::Http1
    }

    fn due(&self, limits: &Limits, now: Instant) -> Due {
        let state = self.state();
        let (what, begun, time) = match state.open.values().min() {
            Some(oldest) => (What::Stuck, *oldest, limits.longest_request()),
            None if state.in_headers => (What::SlowHeaders, state.since, limits.headers),
            None => (What::Idle, state.since, limits.keep_alive),
        };
        let mut due = Due { what, until: begun + time };
        if let Some(since) = state.unread_since
            && since + limits.answer < due.until
        {
            due = Due { what: What::Stuck, until: since + limits.answer };
        }
        if due.until <= now {
            return due;
        }
        // A phase that begins meanwhile may have a shorter timeout.
        let soonest = now + limits.headers.min(limits.keep_alive).min(limits.answer);
        Due { what: What::Nothing, until: soonest.min(due.until) }
    }

    /// Records whether all output has been flushed.
    fn sent(&self, all: bool, now: Instant) {
        let mut state = self.state();
        state.unread_since = if all { None } else { state.unread_since.or(Some(now)) };
    }
}

/// A request, from its headers to the end of its response.
struct Open {
    activity: Arc<Activity>,
    number: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.open.remove(&self.number);
        state.since = Instant::now();
    }
}

/// A response body that keeps its request open.
struct Held {
    body: Body,
    _open: Open,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// ---- the socket ---------------------------------------------------------------------------------

/// The socket of the client, which reports its activity.
struct Watched<I> {
    io: I,
    activity: Arc<Activity>,
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncRead for Watched<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.activity.state().cut {
            // Best effort: a client that sends slowly gets no extra time to read.
            let _ = Pin::new(&mut self.io).poll_write(context, too_slow().as_bytes());
            let _ = Pin::new(&mut self.io).poll_shutdown(context);
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        let bytes = &buffer.filled()[before..];
        if !bytes.is_empty() {
            self.activity.heard(bytes, Instant::now());
        }
        read
    }
}

/// The response to a request whose headers are late.
fn too_slow() -> String {
    let body = json!({ "error": true, "message": Error::TooSlow.to_string() }).to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

impl<I> Watched<I> {
    /// Records a pending write. A completed one may still be buffered: only a flush is certain.
    fn note<T>(&self, written: Poll<T>) -> Poll<T> {
        if written.is_pending() {
            self.activity.sent(false, Instant::now());
        }
        written
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, parts);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        self.activity.sent(flushed.is_ready(), Instant::now());
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            connections: 1,
            address_connections: 1,
            requests: 1,
            handshake: seconds(1),
            headers: seconds(10),
            header_bytes: 1,
            header_count: 1,
            body: seconds(30),
            body_bytes: 1,
            request: seconds(120),
            answer: seconds(30),
            keep_alive: seconds(60),
            http2_streams: 1,
            http2_resets: 1,
            drain: seconds(0),
            shutdown: seconds(1),
        }
    }

    #[test]
    fn each_phase_of_a_connection_has_its_timeout() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let due = |activity: &Activity, seconds| {
            let due = activity.due(&limits(), at(seconds));
            (due.what, (due.until - start).as_secs())
        };
        let activity = Arc::new(Activity::new(start));
        assert_eq!(due(&activity, 0), (What::Nothing, 10)); // the shortest timeout
        assert_eq!(due(&activity, 59), (What::Nothing, 60));
        assert_eq!(due(&activity, 60).0, What::Idle);

        activity.heard(b"GET", at(50));
        activity.heard(b" / ", at(58)); // does not extend the timeout
        assert_eq!(due(&activity, 59), (What::Nothing, 60));
        assert_eq!(due(&activity, 60).0, What::SlowHeaders);

        let open = activity.open(at(60));
        assert_eq!(due(&activity, 60 + 179), (What::Nothing, 60 + 180));
        assert_eq!(due(&activity, 60 + 180).0, What::Stuck);
        drop(open);
        assert_eq!(due(&activity, 0).0, What::Nothing);
    }

    #[test]
    fn the_write_timeout_begins_with_the_first_pending_byte() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let activity = Activity::new(start);
        activity.sent(false, at(5));
        activity.sent(false, at(30)); // some was sent meanwhile
        assert_eq!(activity.due(&limits(), at(34)).what, What::Nothing);
        assert_eq!(activity.due(&limits(), at(35)).what, What::Stuck);
        activity.sent(true, at(35));
        assert_eq!(activity.due(&limits(), at(36)).what, What::Nothing);
    }

    #[test]
    fn http2_bytes_between_requests_are_not_slow_headers() {
        let start = Instant::now();
        for size in 1..=PREFACE.len() {
            let activity = Activity::new(start);
            PREFACE.chunks(size).for_each(|bytes| activity.heard(bytes, start));
            activity.heard(b"ping", start);
            let late = activity.due(&limits(), start + Duration::from_secs(11));
            assert_eq!(late.what, What::Nothing, "{size}");
            let idle = activity.due(&limits(), start + Duration::from_secs(60));
            assert_eq!(idle.what, What::Idle, "{size}");
        }
    }

    #[test]
    fn slow_headers_get_408_over_http1_only() {
        let start = Instant::now();
        for (bytes, told) in [
            (&b"GET / HTTP/1.1"[..], true),
            (b"POST /", true),
            (b"PRI * HTTP/1.1", true),
            (b"PRI * HTTP/2.0\r\n", false),
            (b"P", false),
        ] {
            let activity = Activity::new(start);
            bytes.chunks(1).for_each(|byte| activity.heard(byte, start));
            let late = activity.due(&limits(), start + Duration::from_secs(10));
            assert_eq!(late.what, What::SlowHeaders, "{bytes:?}");
            assert_eq!(activity.cut(), told, "{bytes:?}");
        }
    }
}
