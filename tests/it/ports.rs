//! Addresses that are known before anybody listens there, if anybody ever does.

use std::{
    net::{SocketAddr, TcpListener},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// The system gives such ports to nobody who asks for any: those are 32768 and up.
const FIRST: u32 = 10_000;
const HOW_MANY: u32 = 20_000;

/// One that nobody else is given, by this process or by the system.
pub fn reserved() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at once begin at different ones.
    let begin = process::id().wrapping_mul(997);
    loop {
        let next = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % HOW_MANY;
        let port = u16::try_from(FIRST + next).expect("below 32768");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
