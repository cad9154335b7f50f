//! Notifications to systemd, by the protocol of `sd_notify(3)`.

use std::{
    net::TcpStream,
    os::unix::net::UnixDatagram,
    process::{Child, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    app::{Database, Engine, MASTER_KEY, OPERATOR_TOKEN},
    command_line::program,
    ports,
};

const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(60);

/// A host process, killed when dropped.
struct Host(Child);

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn systemd_is_notified_when_the_host_is_ready_and_when_it_stops() {
    let database = Database::create(Engine::Sqlite).await;
    let socket = database.dir.path().join("notify");
    let notifications = UnixDatagram::bind(&socket).expect("a socket");
    notifications.set_read_timeout(Some(NOTIFICATION_TIMEOUT)).expect("a limit");
    let next = || {
        let mut message = [0; 100];
        let length = notifications.recv(&mut message).expect("a message in time");
        String::from_utf8(message[..length].to_vec()).expect("a text")
    };
    let (api, internal) = (ports::reserve_address(), ports::reserve_address());
    let mut command = program(&["serve"]);
    command
        .env("TOLLHOUSE_DATABASE", &database.url)
        .env("TOLLHOUSE_LISTEN", api.to_string())
        .env("TOLLHOUSE_INTERNAL_LISTEN", internal.to_string())
        .env("TOLLHOUSE_OPERATOR_TOKEN", OPERATOR_TOKEN)
        .env("TOLLHOUSE_MASTER_KEY", MASTER_KEY)
        .env("NOTIFY_SOCKET", &socket)
        .stderr(Stdio::null());
    let mut host = Host(command.spawn().expect("the program starts"));

    assert_eq!(next(), "READY=1\n");
    for listener in [api, internal] {
        TcpStream::connect(listener).expect("a listener that is bound");
    }
    let id = Pid::from_child(&host.0);
    kill_process(id, Signal::TERM).expect("a process");
    assert_eq!(next(), "STOPPING=1\n");
    assert!(host.0.wait().expect("an end").success());
}

#[test]
fn the_unit_disables_core_dumps() {
    let unit = include_str!("../../deploy/tollhouse.service");
    assert!(unit.lines().any(|line| line == "LimitCORE=0"));
}
