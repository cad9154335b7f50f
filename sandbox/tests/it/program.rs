//! `cargo sandbox` itself, as a process.

use std::{fs, process::Command};

#[test]
fn a_file_of_an_earlier_start_does_not_say_that_this_one_is_ready() {
    let dir = std::env::temp_dir().join(format!("tollhouse-sandbox-{}", std::process::id()));
    let file = dir.join("sandbox.json");
    fs::create_dir_all(&dir).unwrap();
    fs::write(&file, "{}").unwrap();
    fs::write(dir.join("master-key"), "no key: it does not get ready").unwrap();
    let mut sandbox = Command::new(env!("CARGO_BIN_EXE_sandbox"));
    sandbox.arg("--dir").arg(&dir).arg("--port=0");
    let ended = sandbox.output().unwrap();
    let left = file.exists();
    fs::remove_dir_all(&dir).unwrap();
    assert!(!ended.status.success());
    assert!(!left, "{}", String::from_utf8_lossy(&ended.stderr));
}
