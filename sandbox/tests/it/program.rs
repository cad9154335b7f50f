//! `cargo sandbox` itself, as a process.

use std::{fs, net::TcpListener, process::Command};

/// Three in a row that nobody uses.
fn free_ports() -> u16 {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut firsts = (20_000..30_000).step_by(3);
    firsts.find(|first| (0..3).all(|n| is_free(first + n))).expect("three free ports")
}

#[test]
fn a_file_of_an_earlier_start_does_not_say_that_this_one_is_ready() {
    let dir = std::env::temp_dir().join(format!("tollhouse-sandbox-{}", std::process::id()));
    let file = dir.join("sandbox.json");
    fs::create_dir_all(&dir).unwrap();
    fs::write(&file, "{}").unwrap();
    fs::write(dir.join("master-key"), "no key: it does not get ready").unwrap();
    let mut sandbox = Command::new(env!("CARGO_BIN_EXE_sandbox"));
    sandbox.arg("--dir").arg(&dir).arg(format!("--port={}", free_ports()));
    let ended = sandbox.output().unwrap();
    let left = file.exists();
    fs::remove_dir_all(&dir).unwrap();
    assert!(!ended.status.success());
    assert!(!left, "{}", String::from_utf8_lossy(&ended.stderr));
}
