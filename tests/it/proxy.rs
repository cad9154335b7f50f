//! A stretch of network between the store and PostgreSQL, which breaks when a test says so.

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
    /// The database, by way of this.
    pub url: String,
    address: SocketAddr,
    state: Arc<State>,
    is_up: watch::Sender<bool>,
}

/// What is lost of a question and its answer when a connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The server never hears it.
    Question,
    /// The server does it, and nobody hears of that.
    Answer,
}

/// What the client says just before its connection breaks.
struct Cue {
    said: &'static str,
    /// How often it is said before that without consequences.
    passes: usize,
    lost: Lost,
}

#[derive(Default)]
struct State {
    cue: Mutex<Option<Cue>>,
    cuts: AtomicUsize,
    round_trips: AtomicUsize,
}

/// Ends what a client says before it waits for the answers: <https://www.postgresql.org/docs/current/protocol-message-formats.html>.
const SYNC: &[u8] = b"S\0\0\0\x04";

impl State {
    fn count_round_trips(&self, said: &[u8]) {
        let syncs = said.windows(SYNC.len()).filter(|w| *w == SYNC).count();
        self.round_trips.fetch_add(syncs, Ordering::SeqCst);
    }

    /// What is lost, if this is the cue, which is given once.
    fn loses(&self, said: &[u8]) -> Option<Lost> {
        let mut waiting = self.cue.lock().expect("no panic");
        let cue = waiting.as_mut()?;
        if !said.windows(cue.said.len()).any(|w| w == cue.said.as_bytes()) {
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
        // It is given up in outages, and taken again.
        let address = ports::reserved();
        let listener = TcpListener::bind(address).await.expect("a free port");
        url.set_host(Some("127.0.0.1")).expect("a host");
        url.set_port(Some(address.port())).expect("a port");
        url.query_pairs_mut().append_pair("sslmode", "disable");
        let (state, (is_up, seen)) = (Arc::new(State::default()), watch::channel(true));
        tokio::spawn(serve(listener, address, server, state.clone(), seen));
        Proxy { url: url.into(), address, state, is_up }
    }

    /// The connection on which the client says this next breaks, after the server has heard and answered it.
    pub fn cut_next(&self, said: &'static str) {
        self.cut(said, 0, Lost::Answer);
    }

    /// As [`Proxy::cut_next`], after it was said so many times.
    pub fn cut(&self, said: &'static str, passes: usize, lost: Lost) {
        *self.state.cue.lock().expect("no panic") = Some(Cue { said, passes, lost });
    }

    /// Forgets a cue that was not given.
    pub fn spare(&self) {
        *self.state.cue.lock().expect("no panic") = None;
    }

    /// For prepared statements so far, and for asking whether the server is there.
    pub fn round_trips(&self) -> usize {
        self.state.round_trips.load(Ordering::SeqCst)
    }

    pub fn cuts(&self) -> usize {
        self.state.cuts.load(Ordering::SeqCst)
    }

    /// Breaks all connections, and takes new ones.
    pub async fn restart(&self) {
        self.set_up(false);
        while TcpStream::connect(self.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        self.set_up(true);
    }

    /// Breaks all connections and refuses new ones, or takes them again.
    pub fn set_up(&self, is_up: bool) {
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
                    connections.spawn(pass_on(client, server, state.clone()));
                }
                changed = is_up.changed() => changed.ok()?,
            }
        }
        drop((listener, connections));
        is_up.wait_for(|up| *up).await.ok()?;
        listener = TcpListener::bind(address).await.expect("the port from before");
    }
}

async fn pass_on(mut client: TcpStream, mut server: TcpStream, state: Arc<State>) -> Option<()> {
    let (mut asked, mut answered) = ([0; 16 << 10], [0; 16 << 10]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let said = &asked[..read.ok().filter(|n| *n > 0)?];
                let lost = state.loses(said);
                if lost != Some(Lost::Question) {
                    server.write_all(said).await.ok()?;
                    state.count_round_trips(said);
                }
                if lost == Some(Lost::Answer) {
                    let _ = server.read(&mut answered).await;
                }
                if lost.is_some() {
                    return None;
                }
            }
            read = server.read(&mut answered) => {
                let said = &answered[..read.ok().filter(|n| *n > 0)?];
                client.write_all(said).await.ok()?;
            }
        }
    }
}
