//! Addresses that are known before a program listens on them, or that stay unused.

use std::{
    net::{SocketAddr, TcpListener},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// Outside the range of ports that the system assigns, which begins at 32768.
const FIRST_PORT: u32 = 10_000;
const PORT_COUNT: u32 = 20_000;

/// Returns an address that neither this process nor the system assigns again.
pub fn reserve_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at the same time begin at different ports.
    let begin = process::id().wrapping_mul(997);
    loop {
        let next = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORT_COUNT;
        let port = u16::try_from(FIRST_PORT + next).expect("below 32768");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
