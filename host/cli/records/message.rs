//! `tollhouse message`.

use clap::{Args, Subcommand, ValueEnum};

use crate::{
    client::host::{HostAccess, HostClient, PageArgs, choice_name},
    terminal::{
        failure::Failure,
        output::{Report, left, right, text},
    },
};

#[derive(Args)]
pub struct Message {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List a company's e-mails and text messages without their content, newest first
    List {
        /// The company's id
        company: String,
        #[arg(long)]
        state: Option<State>,
        #[arg(long)]
        channel: Option<Channel>,
        #[command(flatten)]
        page: PageArgs,
    },
}

#[derive(Clone, ValueEnum)]
enum State {
    Pending,
    /// Accepted by the mail server or a gateway
    Delivered,
    /// Abandoned and refunded, or rejected before the fee was charged
    Failed,
}

#[derive(Clone, ValueEnum)]
enum Channel {
    Email,
    Sms,
}

impl Message {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        let Action::List { company, state, channel, page } = self.action;
        let mut query = page.query();
        query.extend(state.iter().map(|state| ("state", choice_name(state))));
        query.extend(channel.iter().map(|channel| ("channel", choice_name(channel))));
        let messages = host.get(&["companies", &company, "messages"], &query).await?;
        let columns = [
            left("MESSAGE", |v| text(&v["id"])),
            left("CHANNEL", |v| text(&v["channel"])),
            left("FOR", |v| text(&v["purpose"])),
            left("TO", |v| text(&v["to"])),
            left("STATE", |v| text(&v["state"])),
            right("ATTEMPTS", |v| text(&v["attempts"])),
            left("VIA", |v| text(&v["via"])),
            left("REASON", |v| text(&v["reason"])),
            left("CREATED", |v| text(&v["created_at"])),
        ];
        Ok(Report::page(messages, &columns))
    }
}
