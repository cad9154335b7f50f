//! A listener: accepts connections up to a limit, and serves each until shutdown.

pub mod certificate;
pub mod connection;
pub mod metrics;
pub mod tls;

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    http::{HeaderValue, header},
    middleware,
    response::Response,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};

use self::tls::{Tls, TlsFiles};
use crate::server::Server;
use tollhouse_platform::limits::owner::OwnerLimiter;

/// HSTS for two years.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=63072000");

/// Pause after the system lacked the resources to accept a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(500);

/// The address of a listener, with or without TLS.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub tls: Option<TlsFiles>,
}

/// A listener cannot be opened, or its certificate or key cannot be used. The text states the
/// reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ListenError(String);

pub struct Listener {
    tcp: TcpListener,
    tls: Option<Arc<Tls>>,
}

impl Listener {
    pub async fn bind(endpoint: &Endpoint) -> Result<Listener, ListenError> {
        let tls = endpoint.tls.clone().map(Tls::open).transpose()?.map(Arc::new);
        let address = endpoint.address;
        let tcp = TcpListener::bind(address).await;
        let tcp =
            tcp.map_err(|error| ListenError(format!("cannot listen on {address}: {error}")))?;
        Ok(Listener { tcp, tls })
    }

    /// Creates a listener without TLS, for a socket on loopback.
    #[must_use]
    pub fn plain(tcp: TcpListener) -> Listener {
        Listener { tcp, tls: None }
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Accepts until `close`, then waits up to `limits.shutdown`. `name` is the label in metrics.
    pub async fn serve(
        self,
        server: &Server,
        name: &'static str,
        router: Router,
        close: watch::Receiver<bool>,
    ) {
        let Listener { tcp, tls } = self;
        let limits = &server.limits;
        let router = match tls {
            Some(_) => router.layer(middleware::map_response(strict_transport)),
            None => router,
        };
        let limit = Arc::new(Semaphore::new(limits.connections));
        let addresses = OwnerLimiter::new(limits.address_connections);
        let mut connections = JoinSet::new();
        let following = tls.clone().map(|tls| {
            let metrics = server.metrics.listeners.clone();
            server.tasks.spawn_supervised("certificates", move || {
                    let (tls, metrics) = (tls.clone(), metrics.clone());
                    async move {
                        tls.reload_on_change(|at| metrics.set_certificate_expiry(name, at)).await
                    }
                })
        });
        let closing = wait_for_stop(close.clone());
        let accepting = async {
            loop {
                let Ok(permit) = limit.clone().acquire_owned().await else { return };
                let (stream, address) = accept(&tcp).await;
                let Some(share) = addresses.try_acquire(&connection_limit_key(address)) else {
                    server.metrics.listeners.record_refused(name);
                    continue;
                };
                let (tls, router, limits) = (tls.clone(), router.clone(), limits.clone());
                let closing = wait_for_stop(close.clone());
                connections.spawn(async move {
                    let _held = (permit, share);
                    let Some(tls) = tls else {
                        return connection::serve(stream, address, router, &limits, closing).await;
                    };
                    if let Some(stream) = tls.accept(stream, limits.handshake_timeout).await {
                        connection::serve(stream, address, router, &limits, closing).await;
                    }
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
        if timeout(limits.shutdown_timeout, ended).await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                "shutdown timed out; open connections were closed"
            );
        }
        connections.shutdown().await;
    }
}

/// Accepts the next connection. If file descriptors run out, waits for connections to end.
async fn accept(tcp: &TcpListener) -> (TcpStream, IpAddr) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    loop {
        match tcp.accept().await {
            Ok((stream, client)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "connection was closed before it was accepted");
                }
                return (stream, client.ip());
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ConnectionAborted | ConnectionRefused | ConnectionReset
                ) => {}
            Err(error) => {
                tracing::error!(%error, "connections cannot be accepted");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

/// Returns the key for counting connections and attempts of a client: the IPv4 address, or the /64
/// network of an IPv6 address.
#[must_use]
pub fn connection_limit_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (!0 << 64)).into(),
        address => address,
    }
}

/// Adds the HSTS header.
async fn strict_transport(mut response: Response) -> Response {
    response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
    response
}

/// Resolves when `stop` is `true`, and never if its sender is dropped.
pub async fn wait_for_stop(mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        for (address, counts_as) in [
            ("203.0.113.7", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:3:3:4:5:6", "2001:db8:1:3::"),
        ] {
            let [address, counts_as] = [address, counts_as].map(|text| text.parse().unwrap());
            assert_eq!(connection_limit_key(address), counts_as, "{address}");
        }
    }
}
