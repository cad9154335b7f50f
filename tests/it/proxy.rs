//! A stretch of network between the store and PostgreSQL, which breaks when a test says so.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

pub struct Proxy {
    /// The database, by way of this.
    pub url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// What the client says just before its connection breaks.
    cue: Mutex<Option<&'static str>>,
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

    /// Whether this is the cue, which is given once.
    fn is_cue(&self, said: &[u8]) -> bool {
        let mut cue = self.cue.lock().expect("no panic");
        let heard = cue.is_some_and(|cue| said.windows(cue.len()).any(|w| w == cue.as_bytes()));
        if heard {
            *cue = None;
            self.cuts.fetch_add(1, Ordering::SeqCst);
        }
        heard
    }
}

impl Proxy {
    pub async fn start(database: &str) -> Proxy {
        let mut url = Url::parse(database).expect("a URL");
        let host = url.host_str().expect("a host").to_owned();
        let server = (host, url.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        url.set_host(Some("127.0.0.1")).expect("a host");
        url.set_port(Some(listener.local_addr().expect("bound").port())).expect("a port");
        url.query_pairs_mut().append_pair("sslmode", "disable");
        let state = Arc::new(State::default());
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.expect("the server");
                tokio::spawn(pass_on(client, server, shared.clone()));
            }
        });
        Proxy { url: url.into(), state }
    }

    /// The connection on which the client says this next breaks, after the server has heard and answered it.
    pub fn cut_next(&self, cue: &'static str) {
        *self.state.cue.lock().expect("no panic") = Some(cue);
    }

    /// For prepared statements so far, and for asking whether the server is there.
    pub fn round_trips(&self) -> usize {
        self.state.round_trips.load(Ordering::SeqCst)
    }

    pub fn cuts(&self) -> usize {
        self.state.cuts.load(Ordering::SeqCst)
    }
}

async fn pass_on(mut client: TcpStream, mut server: TcpStream, state: Arc<State>) -> Option<()> {
    let (mut asked, mut answered) = ([0; 16 << 10], [0; 16 << 10]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let said = &asked[..read.ok().filter(|n| *n > 0)?];
                server.write_all(said).await.ok()?;
                state.count_round_trips(said);
                if state.is_cue(said) {
                    let _ = server.read(&mut answered).await;
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
