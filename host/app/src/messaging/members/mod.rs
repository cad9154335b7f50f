//! Members of companies: their API, and the e-mails that invite them to the portal.

pub mod api;

use crate::{
    messaging::messages::{self, Channel, Destination, InvitationContent, Message},
    operations::operators::members::Invited,
    tenants::prelude::*,
};

/// Queues the e-mail that invites a member. It costs the company nothing.
async fn send_invitation(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    invited: &Invited,
) -> Result<()> {
    let Invited { member, invitation, expires_at } = invited;
    let to = Destination { channel: Channel::Email, to: member.email.clone() };
    messages::check(tx, app, company, &to).await?;
    let url = app.settings.public_url.trim_end_matches('/');
    let content = InvitationContent {
        company: company.name.clone(),
        link: format!("{url}/portal/welcome/{invitation}"),
    };
    let message = Message::new(app, &company.id, &to, "invitation");
    let message = Message { topic: topic(&member.id), give_up_at: *expires_at, ..message };
    // An earlier invitation is not valid any more.
    messages::cancel_superseded(tx, app, &company.id, &message.topic).await?;
    messages::enqueue(tx, app, message, &to.to, content.into()).await
}

fn topic(member: &str) -> String {
    format!("invitation:{member}")
}
