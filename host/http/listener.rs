//! A listener: accepts connections, up to a number, and serves each until the host stops.

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

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
    shares::Shares,
    tls::{Tls, TlsFiles},
};
use crate::app::App;

/// After the system refused a connection for want of something.
const BREATHER: Duration = Duration::from_millis(500);

/// Where a listener listens, with TLS or without.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub tls: Option<TlsFiles>,
}

/// Why a host does not listen.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ListenError(String);

pub struct Listener {
    tcp: TcpListener,
    tls: Option<Arc<Tls>>,
}

impl Listener {
    pub async fn bind(endpoint: &Endpoint) -> Result<Listener, ListenError> {
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

    /// Accepts until `close` shows `true`; then what is in flight has `limits.shutdown` to end. `name` is what metrics call it.
    pub(super) async fn serve(
        self,
        app: &App,
        name: &'static str,
        router: Router,
        close: watch::Receiver<bool>,
    ) {
        let Listener { tcp, tls } = self;
        let limits = &app.settings.http;
        let router = match tls {
            Some(_) => router.layer(middleware::map_response(headers::strict_transport)),
            None => router,
        };
        let room = Arc::new(Semaphore::new(limits.connections));
        let addresses = Shares::default();
        let mut connections = JoinSet::new();
        let following = tls.clone().map(|tls| {
            let metrics = app.telemetry.listeners.clone();
            app.tasks.keep("certificates", move || {
                let (tls, metrics) = (tls.clone(), metrics.clone());
                async move { tls.follow(|at| metrics.certificate_ends(name, at)).await }
            })
        });
        let closing = stopped(close.clone());
        let accepting = async {
            loop {
                let Ok(permit) = room.clone().acquire_owned().await else { return };
                let (stream, address) = accept(&tcp).await;
                let Some(share) = addresses.take(client(address), limits.address_connections)
                else {
                    app.telemetry.listeners.refused(name);
                    continue;
                };
                let (tls, router, limits) = (tls.clone(), router.clone(), limits.clone());
                let closing = stopped(close.clone());
                connections.spawn(async move {
                    serve_stream(stream, tls, router, &limits, closing).await;
                    drop((permit, share));
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
async fn accept(tcp: &TcpListener) -> (TcpStream, IpAddr) {
    loop {
        match tcp.accept().await {
            Ok((stream, client)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection ended before it began");
                }
                return (stream, client.ip());
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted");
                tokio::time::sleep(BREATHER).await;
            }
        }
    }
}

/// What connections are counted by: the address; of IPv6 the network of a site, whose addresses are
/// all its own.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (!0 << 64)).into(),
        address => address,
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
    fn addresses_that_one_client_may_have_count_together() {
        for (address, counts_as) in [
            ("203.0.113.7", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:3:3:4:5:6", "2001:db8:1:3::"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(client(address), counts_as.parse::<IpAddr>().unwrap(), "{address}");
        }
    }
}
