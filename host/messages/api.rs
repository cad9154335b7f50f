//! Messages, for operators: what became of them, without what they say.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Channel, Message,
    store::{self, Filter},
};
use crate::{
    app::App,
    clock::Timestamp,
    companies,
    error::Result,
    http::{
        answer::Answer,
        fields::{Choice, OneOf, fields},
        path::Path,
        query::{Limit, PageNumber, Query},
    },
    listing::{Listed, Page},
};

pub struct States;

impl Choice for States {
    const ALL: &'static [&'static str] = &["pending", "delivered", "failed"];
}

pub struct Channels;

impl Choice for Channels {
    const ALL: &'static [&'static str] = Channel::NAMES;
}

fields! {
    /// Which messages.
    Query MessageList {
        /// Which page, counted from 1.
        page: PageNumber,
        /// How many a page holds; more than 1,000 counts as 1,000.
        limit: Limit<50, 1_000>,
        state: OneOf<States>,
        channel: OneOf<Channels>,
    }
}

/// A message, and what became of it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Message")]
pub struct View {
    id: String,
    /// `email` or `sms`.
    channel: &'static str,
    /// What it is for, such as `otp`.
    purpose: String,
    /// Most of it hidden.
    to: String,
    /// A delivered one was handed over to the mail server or to a gateway; a failed one was refunded, or never charged.
    state: store::State,
    attempts: i64,
    /// Why the last attempt failed, or it was given up or refused; or `""`.
    reason: String,
    /// What took it: `smtp`, or the name of a gateway.
    via: Option<String>,
    /// The gateway's own id of it.
    via_id: Option<String>,
    /// Behind `charge:` and `refund:`, the keys of the wallet entries by which it was charged and given back; `null`: it was never
    /// charged.
    charge_key: Option<String>,
    /// When it is worth nothing any more.
    give_up_at: Timestamp,
    created_at: Timestamp,
    /// When it was delivered or given up.
    ended_at: Option<Timestamp>,
}

pub async fn list(
    State(app): State<App>,
    Path(company): Path<String>,
    query: Query<MessageList>,
) -> Result<Answer<Listed<View>>> {
    let page = Page { number: query.page()?, limit: query.limit()? };
    let filter = Filter { state: query.state()?, channel: query.channel()? };
    let (total, messages) = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            Ok(store::list(tx, &company, &filter, page).await?)
        })
        .await?;
    let messages = messages.into_iter().map(view).collect();
    Answer::data(page.of(total, messages), "Messages fetched successfully")
}

fn view(message: Message) -> View {
    View {
        id: message.id,
        channel: Channel::name(message.channel),
        purpose: message.purpose,
        to: message.recipient,
        state: message.state,
        attempts: message.attempts,
        reason: message.reason,
        via: message.via,
        via_id: message.via_id,
        charge_key: Some(message.charge_key).filter(|key| !key.is_empty()),
        give_up_at: message.give_up_at,
        created_at: message.created_at,
        ended_at: message.ended_at,
    }
}
