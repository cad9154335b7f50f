//! A TCP proxy between the store and PostgreSQL, which cuts connections on demand.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use url::Url;

use crate::ports;

pub struct Proxy {
    /// The URL of the database through this proxy.
    pub url: String,
    address: SocketAddr,
    state: Arc<State>,
    is_up: watch::Sender<bool>,
}

/// The message that is lost when a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The server does not receive the request.
    Request,
    /// The server handles the request, and the client does not receive the response.
    Response,
}

/// The request of a client at which its connection is cut.
struct CutTrigger {
    pattern: &'static str,
    /// Number of earlier requests that pass.
    passes: usize,
    lost: Lost,
}

#[derive(Default)]
struct State {
    trigger: Mutex<Option<CutTrigger>>,
    cuts: AtomicUsize,
    round_trips: AtomicUsize,
}

/// `Sync`, after which a client waits for responses:
/// <https://www.postgresql.org/docs/current/protocol-message-formats.html>.
const SYNC: &[u8] = b"S\0\0\0\x04";

impl State {
    fn count_round_trips(&self, bytes: &[u8]) {
        let syncs = bytes.windows(SYNC.len()).filter(|w| *w == SYNC).count();
        self.round_trips.fetch_add(syncs, Ordering::SeqCst);
    }

    /// Returns what is lost if these bytes match the trigger, which applies once.
    fn loses(&self, bytes: &[u8]) -> Option<Lost> {
        let mut waiting = self.trigger.lock().expect("no panic");
        let cue = waiting.as_mut()?;
        if !bytes.windows(cue.pattern.len()).any(|w| w == cue.pattern.as_bytes()) {
            return None;
        }
        if cue.passes > 0 {
            cue.passes -= 1;
            return None;
        }
        self.cuts.fetch_add(1, Ordering::SeqCst);
        waiting.take().map(|cue| cue.lost)
    }
}

impl Proxy {
    pub async fn start(database: &str) -> Proxy {
        let mut url = Url::parse(database).expect("a URL");
        let host = url.host_str().expect("a host").to_owned();
        let server = (host, url.port().unwrap_or(5432));
        // The port is closed in outages, and then bound again.
        let address = ports::reserve_address();
        let listener = TcpListener::bind(address).await.expect("a free port");
        url.set_host(Some("127.0.0.1")).expect("a host");
        url.set_port(Some(address.port())).expect("a port");
        url.query_pairs_mut().append_pair("sslmode", "disable");
        let (state, (is_up, seen)) = (Arc::new(State::default()), watch::channel(true));
        tokio::spawn(serve(listener, address, server, state.clone(), seen));
        Proxy { url: url.into(), address, state, is_up }
    }

    /// Cuts the connection of the next request that contains these bytes, after the server has
    /// responded.
    pub fn cut_next(&self, pattern: &'static str) {
        self.cut(pattern, 0, Lost::Response);
    }

    /// Like [`Proxy::cut_next`], after `passes` requests that pass.
    pub fn cut(&self, pattern: &'static str, passes: usize, lost: Lost) {
        *self.state.trigger.lock().expect("no panic") = Some(CutTrigger { pattern, passes, lost });
    }

    /// Cancels a cut that has not happened.
    pub fn cancel_cut(&self) {
        *self.state.trigger.lock().expect("no panic") = None;
    }

    /// Number of round trips so far, for prepared statements and for pings.
    pub fn round_trips(&self) -> usize {
        self.state.round_trips.load(Ordering::SeqCst)
    }

    pub fn cuts(&self) -> usize {
        self.state.cuts.load(Ordering::SeqCst)
    }

    /// Cuts all connections, then accepts new ones.
    pub async fn restart(&self) {
        self.set_available(false);
        while TcpStream::connect(self.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        self.set_available(true);
    }

    /// `false` cuts all connections and refuses new ones; `true` accepts them again.
    pub fn set_available(&self, is_up: bool) {
        self.is_up.send_replace(is_up);
    }
}

async fn serve(
    mut listener: TcpListener,
    address: SocketAddr,
    server: (String, u16),
    state: Arc<State>,
    mut is_up: watch::Receiver<bool>,
) -> Option<()> {
    loop {
        let mut connections = JoinSet::new();
        while *is_up.borrow() {
            tokio::select! {
                accepted = listener.accept() => {
                    let (client, _) = accepted.expect("a connection");
                    let server = TcpStream::connect(&server).await.expect("the server");
                    connections.spawn(forward(client, server, state.clone()));
                }
                changed = is_up.changed() => changed.ok()?,
            }
        }
        drop((listener, connections));
        is_up.wait_for(|up| *up).await.ok()?;
        listener = TcpListener::bind(address).await.expect("the same port");
    }
}

async fn forward(mut client: TcpStream, mut server: TcpStream, state: Arc<State>) -> Option<()> {
    let (mut from_client, mut from_server) = ([0; 16 << 10], [0; 16 << 10]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let bytes = &from_client[..read.ok().filter(|n| *n > 0)?];
                let lost = state.loses(bytes);
                if lost != Some(Lost::Request) {
                    server.write_all(bytes).await.ok()?;
                    state.count_round_trips(bytes);
                }
                if lost == Some(Lost::Response) {
                    let _ = server.read(&mut from_server).await;
                }
                if lost.is_some() {
                    return None;
                }
            }
            read = server.read(&mut from_server) => {
                let bytes = &from_server[..read.ok().filter(|n| *n > 0)?];
                client.write_all(bytes).await.ok()?;
            }
        }
    }
}
