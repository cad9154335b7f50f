//! Operator API for messages: their delivery, never their content.

use super::{Channel, Message, store};
use crate::{state::prelude::*, tenants::companies};
use tollhouse_platform::values::id::CompanyId;

choices! {
    States = &["pending", "delivered", "failed"];
}

impl Choice for Channel {
    const ALL: &'static [&'static str] = Channel::NAMES;
}

fields! {
    /// Page and filters of messages.
    Query MessageList {
        /// Page number, counted from 1.
        page: PageNumber,
        /// Messages per page; more than 1,000 counts as 1,000.
        limit: Limit<50, 1_000>,
        state: OneOf<States>,
        channel: OneOf<Channel>,
    }
}

/// A message and its delivery.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Message")]
pub struct View {
    id: String,
    /// `email` or `sms`.
    channel: &'static str,
    /// Purpose, for example `otp`.
    purpose: String,
    /// Recipient, mostly masked.
    to: String,
    /// `delivered`: accepted by the mail server or a gateway. `failed`: refunded, or never charged.
    state: store::State,
    attempts: i64,
    /// Reason of the last failed attempt, cancellation or refusal; empty if there is none.
    reason: String,
    /// System that accepted the message: `smtp`, or the name of a gateway.
    via: Option<String>,
    /// Message id at the gateway.
    via_id: Option<String>,
    /// Key of the fee: its ledger transactions have this key with the prefix `charge:` or
    /// `refund:`. `null` if the message was never charged.
    charge_key: Option<String>,
    /// Time after which the message is no longer sent.
    give_up_at: Timestamp,
    created_at: Timestamp,
    /// Time of delivery or final failure.
    ended_at: Option<Timestamp>,
}

pub async fn list(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<MessageList>,
) -> Result<DataResponse<ListPage<View>>> {
    let filter = query.read()?;
    let page = PageRequest { number: filter.page, limit: filter.limit };
    let (total, messages) = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            Ok(store::list(tx, &company, &filter, page).await?)
        })
        .await?;
    let messages = messages.into_iter().map(view).collect();
    DataResponse::data(page.to_list_page(total, messages), "Messages fetched successfully")
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
