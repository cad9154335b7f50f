//! Probes for ways out of the sandbox: environment, arguments, files, sockets, names.

use std::net::{TcpListener, TcpStream, ToSocketAddrs};

use serde_json::{Value, json};

/// Returns what is reachable: in a tight sandbox, no variables, no arguments, and only `false`.
pub(crate) fn probe_environment() -> Value {
    let names: Vec<String> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    let arguments = std::env::args_os().skip(1).count();
    json!({
        "env": names,
        "arguments": arguments,
        "read_dir": std::fs::read_dir("/").is_ok(),
        "read_file": std::fs::read("/etc/passwd").is_ok(),
        "write_file": std::fs::write("/tmp/unruly", b"").is_ok(),
        "connect": TcpStream::connect("127.0.0.1:80").is_ok(),
        "listen": TcpListener::bind("127.0.0.1:0").is_ok(),
        "resolve": ("localhost", 80).to_socket_addrs().is_ok(),
    })
}
