//! API for the members of a company.

use super::send_invitation;
use crate::{
    operations::operators::{
        members::{self, Invited, Member, MemberChange},
        permissions::MEMBER_ROLES,
    },
    tenants::prelude::*,
};

choices! {
    Role = MEMBER_ROLES;
}

fields! {
    /// A person to invite.
    Body NewMember {
        email: Email,
        role: OneOf<Role>,
    }
}

fields! {
    /// Changes to a member.
    Body MemberEdit {
        role: Option<OneOf<Role>>,
        /// `false` ends all sessions of the member.
        active: Option<Flag>,
    }
}

/// Returns 403 if this service has no portal, in which members could sign in.
fn check_portal(app: &App) -> Result<()> {
    match app.settings.service.portal {
        true => Ok(()),
        false => Err(Error::Forbidden("the portal is not enabled: set portal".to_owned())),
    }
}

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
) -> Result<DataResponse<Vec<Member>>> {
    let list = async |tx: &mut Tx| members::list(tx, &company.id).await;
    DataResponse::data(app.store.read(list).await?, "Members fetched successfully")
}

/// Adds a member and e-mails an invitation to set a password, which is valid for 24 hours.
pub async fn create(
    State(app): State<App>,
    actor: Actor,
    AuthenticatedCompany(company): AuthenticatedCompany,
    body: Body<NewMember>,
) -> Result<DataResponse<Member>> {
    check_portal(&app)?;
    let NewMember { email, role } = body.read()?;
    app.rate_limits.invitations.check(&company.id)?;
    let db = app.store.clone();
    db.write(async move |tx| {
        let new = (email, role);
        let invited = members::create(tx, &app, &actor, &company.id, new).await?;
        send_invitation(tx, &app, &company, &invited).await?;
        DataResponse::data(invited.member, "Member invited successfully")
    })
    .await
}

/// E-mails a new invitation to set a password. Earlier invitations and all sessions of the member
/// end.
pub async fn invite(
    State(app): State<App>,
    actor: Actor,
    AuthenticatedCompany(company): AuthenticatedCompany,
    RecordId(member): RecordId<String>,
) -> Result<DataResponse<Member>> {
    check_portal(&app)?;
    app.rate_limits.invitations.check(&company.id)?;
    let db = app.store.clone();
    db.write(async move |tx| {
        let invited: Invited = members::invite(tx, &app, &actor, &company.id, &member).await?;
        send_invitation(tx, &app, &company, &invited).await?;
        DataResponse::data(invited.member, "Member invited successfully")
    })
    .await
}

pub async fn edit(
    State(app): State<App>,
    actor: Actor,
    AuthenticatedCompany(company): AuthenticatedCompany,
    RecordId(member): RecordId<String>,
    body: Body<MemberEdit>,
) -> Result<DataResponse<Member>> {
    let MemberEdit { role, active } = body.read()?;
    let db = app.store.clone();
    db.write(async move |tx| {
        let change = (&*member, MemberChange { role, active });
        let member = members::edit(tx, &app, &actor, &company.id, change).await?;
        DataResponse::data(member, "Member updated successfully")
    })
    .await
}
