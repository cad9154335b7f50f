//! A listener: accepts connections, up to a number, and serves each until the host stops.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, middleware};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};

use super::{
    connection, headers,
    limits::Limits,
    serve::stopped,
    tls::{Tls, TlsFiles},
};

/// After the system refused a connection for want of something.
const BREATHER: Duration = Duration::from_millis(500);

/// Where a listener listens, and how it is protected.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub tls: Option<TlsFiles>,
    /// Serve plain HTTP to the network, since something in front does TLS.
    pub plain_http: bool,
    /// What its flags begin with, for whoever has to set them.
    pub flags: &'static str,
}

/// Why a host does not listen; the text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ListenError(String);

impl Endpoint {
    /// Refuses what would send keys over the network in the clear.
    pub fn check(&self) -> Result<(), ListenError> {
        let Endpoint { address, tls, plain_http, flags } = self;
        match tls {
            Some(_) if *plain_http => Err(ListenError(format!(
                "--{flags}plain-http and --{flags}tls-certificate exclude each other"
            ))),
            None if !plain_http && !address.ip().is_loopback() => Err(ListenError(format!(
                "--{flags}listen {address} is not loopback and would serve plain HTTP: give --{flags}tls-certificate and \
                 --{flags}tls-key, or --{flags}plain-http if a proxy in front of it does TLS"
            ))),
            _ => Ok(()),
        }
    }
}

pub struct Listener {
    tcp: TcpListener,
    tls: Option<Arc<Tls>>,
}

impl Listener {
    pub async fn bind(endpoint: &Endpoint) -> Result<Listener, ListenError> {
        endpoint.check()?;
        let tls = endpoint.tls.clone().map(Tls::open).transpose();
        let tls = tls.map_err(|error| ListenError(error.to_string()))?.map(Arc::new);
        let address = endpoint.address;
        let tcp = TcpListener::bind(address).await;
        let tcp =
            tcp.map_err(|error| ListenError(format!("{address} cannot be listened on: {error}")))?;
        Ok(Listener { tcp, tls })
    }

    /// Plain HTTP, for a socket on loopback.
    #[must_use]
    pub fn plain(tcp: TcpListener) -> Listener {
        Listener { tcp, tls: None }
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Accepts until `close` shows `true`; then what is in flight has `limits.shutdown` to end.
    pub(super) async fn serve(self, router: Router, limits: Limits, close: watch::Receiver<bool>) {
        let Listener { tcp, tls } = self;
        let router = match tls {
            Some(_) => router.layer(middleware::map_response(headers::strict_transport)),
            None => router,
        };
        let room = Arc::new(Semaphore::new(limits.connections));
        let mut connections = JoinSet::new();
        let following = tls.clone().map(|tls| tokio::spawn(async move { tls.follow().await }));
        let closing = stopped(close.clone());
        let accepting = async {
            loop {
                let Ok(permit) = room.clone().acquire_owned().await else { return };
                let stream = accept(&tcp).await;
                let (tls, router, limits) = (tls.clone(), router.clone(), limits.clone());
                let closing = stopped(close.clone());
                connections.spawn(async move {
                    serve_stream(stream, tls, router, &limits, closing).await;
                    drop(permit);
                });
                while connections.try_join_next().is_some() {}
            }
        };
        tokio::select! {
            () = accepting => {}
            () = closing => {}
        }
        drop(tcp);
        if let Some(following) = following {
            following.abort();
        }
        let ended = async { while connections.join_next().await.is_some() {} };
        if timeout(limits.shutdown, ended).await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                "connections were cut: they did not end in time"
            );
        }
        connections.shutdown().await;
    }
}

async fn serve_stream(
    stream: TcpStream,
    tls: Option<Arc<Tls>>,
    router: Router,
    limits: &Limits,
    closing: impl Future<Output = ()>,
) {
    match tls {
        None => connection::serve(stream, router, limits, closing).await,
        Some(tls) => {
            if let Some(stream) = tls.accept(stream, limits.handshake).await {
                connection::serve(stream, router, limits, closing).await;
            }
        }
    }
}

/// The next connection. Want of file handles is waited out: the connections that end give theirs back.
async fn accept(tcp: &TcpListener) -> TcpStream {
    loop {
        match tcp.accept().await {
            Ok((stream, _)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection ended before it began");
                }
                return stream;
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted");
                tokio::time::sleep(BREATHER).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    [ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_loopback_or_by_order() {
        let files = || TlsFiles { certificate: "cert.pem".into(), key: "key.pem".into() };
        for (address, tls, plain_http, refused) in [
            ("127.0.0.1:8080", None, false, None),
            ("[::1]:8080", None, false, None),
            ("127.0.0.1:8080", None, true, None),
            ("0.0.0.0:8080", None, false, Some("or --internal-plain-http if")),
            ("[::]:8080", None, false, Some("--internal-listen [::]:8080 is not loopback")),
            ("192.168.1.1:8080", None, false, Some("give --internal-tls-certificate and")),
            ("0.0.0.0:8080", None, true, None),
            ("0.0.0.0:8080", Some(files()), false, None),
            ("0.0.0.0:8080", Some(files()), true, Some("exclude each other")),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            let endpoint = Endpoint { address, tls, plain_http, flags: "internal-" };
            let error = endpoint.check().err().map(|error| error.to_string());
            match (error, refused) {
                (None, None) => {}
                (Some(error), Some(part)) if error.contains(part) => {}
                (error, _) => panic!("{endpoint:?}: {error:?}"),
            }
        }
    }
}
