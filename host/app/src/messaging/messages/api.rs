//! Operator API for messages: their delivery, never their content.

use super::{Channel, Destination, Message, store};
use crate::tenants::prelude::*;

choices! {
    States = &["pending", "delivered", "failed"];
}

impl Choice for Channel {
    const ALL: &'static [&'static str] = &["email", "sms"];
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
        /// The complete e-mail address, or phone number in E.164 format, of the recipient.
        to: Exactly,
    }
}

pub async fn list(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<MessageList>,
) -> Result<DataResponse<ListPage<Message>>> {
    let filter = query.read()?;
    let page = PageRequest { number: filter.page, limit: filter.limit };
    let recipient = filter.to.as_ref().map(|to| {
        let channel = if to.contains('@') { Channel::Email } else { Channel::Sms };
        let parts = Destination { channel, to: to.clone() }.digest_parts(&company);
        app.sealer.digests(&parts.each_ref().map(String::as_str))
    });
    let messages = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            Ok(store::list(tx, &company, &filter, recipient.as_deref(), page).await?)
        })
        .await?;
    DataResponse::data(messages, "Messages fetched successfully")
}
