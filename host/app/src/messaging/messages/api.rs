//! Operator API for messages: their delivery, never their content.

use super::{Channel, Message, store};
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
    }
}

pub async fn list(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<MessageList>,
) -> Result<DataResponse<ListPage<Message>>> {
    let filter = query.read()?;
    let page = PageRequest { number: filter.page, limit: filter.limit };
    let messages = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            Ok(store::list(tx, &company, &filter, page).await?)
        })
        .await?;
    DataResponse::data(messages, "Messages fetched successfully")
}
