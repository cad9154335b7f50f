//! A connection that is not read ahead before TLS begins.
//!
//! An attacker on the network can append responses to the server's reply to STARTTLS. Read ahead,
//! they would count as received over TLS; here they reach the handshake, which fails.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// First byte of a TLS handshake (RFC 8446, 5.1); no SMTP command begins with it.
const TLS_HANDSHAKE: u8 = 22;

#[derive(Debug)]
pub(super) struct UnbufferedStream {
    stream: TcpStream,
    tls: bool,
}

impl UnbufferedStream {
    pub(super) fn new(stream: TcpStream) -> UnbufferedStream {
        UnbufferedStream { stream, tls: false }
    }
}

impl AsyncTokioStream for UnbufferedStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

impl AsyncRead for UnbufferedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.tls {
            return Pin::new(&mut self.stream).poll_read(context, into);
        }
        let mut byte = [0];
        let mut one = ReadBuf::new(&mut byte);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut one))?;
        into.put_slice(one.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for UnbufferedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.tls |= bytes.first() == Some(&TLS_HANDSHAKE);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
