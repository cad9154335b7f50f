//! Where the host is reached.

use std::net::SocketAddr;

use clap::Args;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Listeners")]
pub struct Listeners {
    /// The API, for companies and for providers' notifications
    #[arg(
        long,
        env = "TOLLHOUSE_LISTEN",
        value_name = "address",
        default_value = "127.0.0.1:8080"
    )]
    pub listen: SocketAddr,
    /// The internal interface, for operators
    #[arg(
        long,
        env = "TOLLHOUSE_INTERNAL_LISTEN",
        value_name = "address",
        default_value = "127.0.0.1:8081"
    )]
    pub internal_listen: SocketAddr,
    /// How providers reach the API: the base of notification URLs. Without it, the address of `listen`
    #[arg(long, env = "TOLLHOUSE_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,
}

impl Listeners {
    #[must_use]
    pub fn public_url(&self) -> String {
        self.public_url.clone().unwrap_or_else(|| format!("http://{}", self.listen))
    }
}
