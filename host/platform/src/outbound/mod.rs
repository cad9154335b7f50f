//! Outgoing connections: HTTP, e-mail and files.

pub mod egress;
pub mod files;
pub mod smtp;

use std::net::IpAddr;

/// Returns whether a host name or address, IPv6 also in brackets, always means this machine.
pub fn is_loopback(host: &str) -> bool {
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}
