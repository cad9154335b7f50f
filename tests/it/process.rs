//! A host in a process of its own.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use reqwest::Client;
use tokio::{net::TcpStream, time::timeout};

use crate::{
    app::{Database, MASTER_KEY, OPERATOR_TOKEN, client},
    ports,
};

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A host process, killed when dropped.
pub struct Process {
    pub child: Child,
    pub client: Client,
    pub api: String,
    pub internal: String,
}

impl Process {
    /// Runs the program by `command` and waits until it listens. By then it has opened `database`.
    pub async fn serve(mut command: Command, database: &Database, flags: &[&str]) -> Process {
        let (api, internal) = (ports::reserve_address(), ports::reserve_address());
        let child = command
            .arg("serve")
            .env("TOLLHOUSE_DATABASE", &database.url)
            .args([format!("--listen={api}"), format!("--internal-listen={internal}")])
            .args(flags)
            .env("TOLLHOUSE_OPERATOR_TOKEN", OPERATOR_TOKEN)
            .env("TOLLHOUSE_MASTER_KEY", MASTER_KEY)
            .stdin(Stdio::null())
            .spawn();
        let process = Process {
            child: child.expect("the program starts"),
            client: client(),
            api: format!("http://{api}"),
            internal: format!("http://{internal}"),
        };
        let mut looks = tokio::time::interval(Duration::from_millis(50));
        let up = async {
            for address in [api, internal] {
                while TcpStream::connect(address).await.is_err() {
                    looks.tick().await;
                }
            }
        };
        timeout(START_TIMEOUT, up).await.expect("a host that comes up");
        process
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
