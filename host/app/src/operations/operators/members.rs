//! Members: the people of a company, who use the portal.
//!
//! A member is an operator that belongs to a company, is limited to it and has one of the roles of
//! members.

use super::{
    Error, check_roles, permissions, sign_in,
    store::{self, Operator},
};
use crate::{
    operations::audit::{self, Actor},
    state::prelude::*,
};
use tollhouse_platform::values::email;

/// Maximum number of members of a company.
const MAX_MEMBERS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// Has no password yet: the invitation was not used.
    Invited,
    Active,
    /// Cannot sign in.
    Inactive,
}

/// A member of a company's team.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Member {
    pub id: String,
    pub email: String,
    /// `company-owner`, `company-finance`, `company-support` or `company-developer`.
    pub role: String,
    pub state: MemberState,
    /// Time of the last request, recorded at most once a minute.
    pub last_seen_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Member {
    fn new(operator: Operator, (has_password, last_seen_at): (bool, Option<Timestamp>)) -> Member {
        let state = match (operator.active, has_password) {
            (false, _) => MemberState::Inactive,
            (true, false) => MemberState::Invited,
            (true, true) => MemberState::Active,
        };
        Member {
            id: operator.id,
            email: operator.email.unwrap_or_default(),
            role: operator.roles.0.into_iter().next().unwrap_or_default(),
            state,
            last_seen_at,
            created_at: operator.created_at,
            updated_at: operator.updated_at,
        }
    }
}

/// A member with the secret of its invitation, which only the invited person may learn.
pub struct Invited {
    pub member: Member,
    pub invitation: String,
    pub expires_at: Timestamp,
}

fn not_found() -> Error {
    Error::not_found("member not found")
}

/// Returns the members of a company, by e-mail address.
pub async fn list(tx: &mut Tx, company: &CompanyId) -> Result<Vec<Member>> {
    let found = store::list_members(tx, company).await?;
    let member = |found: store::MemberRow| {
        Member::new(found.operator, (found.has_password, found.last_seen_at))
    };
    Ok(found.into_iter().map(member).collect())
}

/// Adds a member without a password. 409 if an account has the e-mail address.
pub async fn create(
    tx: &mut Tx,
    app: &App,
    actor: &Actor,
    company: &CompanyId,
    (email, role): (String, String),
) -> Result<Invited> {
    let (now, email) = (app.clock.now(), email::comparison_key(&email));
    let roles = vec![role];
    check_roles(tx, actor, &roles).await?;
    let members = store::lock_members(tx, company).await?;
    if members.iter().filter(|member| member.active).count() >= MAX_MEMBERS {
        return Err(Error::Conflict(format!("a company has at most {MAX_MEMBERS} active members")));
    }
    let operator = Operator {
        id: app.random.id(now),
        name: email.clone(),
        email: Some(email),
        roles: Json(roles),
        companies: Some(Json(vec![company.clone()])),
        company_id: Some(company.clone()),
        active: true,
        created_at: now,
        updated_at: now,
    };
    store::insert(tx, &operator).await.map_err(|error| email_taken(error.into()))?;
    let invited = issue_invitation(tx, app, operator).await?;
    audit::record(tx, app, actor, company, "member.create", json!(invited.member)).await?;
    Ok(invited)
}

fn email_taken(error: Error) -> Error {
    match error.is_duplicate() {
        true => Error::Conflict("another account has this e-mail address".to_owned()),
        false => error,
    }
}

async fn issue_invitation(tx: &mut Tx, app: &App, operator: Operator) -> Result<Invited> {
    let (invitation, expires_at) = sign_in::issue_invitation(tx, app, &operator).await?;
    let company = operator.company_id.as_ref().ok_or_else(not_found)?;
    let member = find(tx, company, &operator.id).await?;
    Ok(Invited { member, invitation, expires_at })
}

/// Invites a member to set a new password. Earlier invitations and all sessions of the member end.
pub async fn invite(
    tx: &mut Tx,
    app: &App,
    actor: &Actor,
    company: &CompanyId,
    member: &str,
) -> Result<Invited> {
    let members = store::lock_members(tx, company).await?;
    let member = members.into_iter().find(|found| found.id == *member).ok_or_else(not_found)?;
    if !member.active {
        return Err(Error::Conflict("the member is not active".to_owned()));
    }
    // Anyone who reads the e-mail can sign in with the member's role.
    check_roles(tx, actor, &member.roles).await?;
    let detail = json!({ "member": member.id });
    audit::record(tx, app, actor, company, "member.invite", detail).await?;
    issue_invitation(tx, app, member).await
}

/// Changes to a member's role, and to whether it can sign in. `None`: no change.
pub struct MemberChange {
    pub role: Option<String>,
    pub active: Option<bool>,
}

/// Changes a member. 409 if the company would be left without an owner who can sign in.
pub async fn edit(
    tx: &mut Tx,
    app: &App,
    actor: &Actor,
    company: &CompanyId,
    (member, change): (&str, MemberChange),
) -> Result<Member> {
    let mut members = store::lock_members(tx, company).await?;
    let found = members.iter_mut().find(|found| found.id == *member).ok_or_else(not_found)?;
    let before = found.clone();
    check_roles(tx, actor, &before.roles).await?;
    if let Some(role) = change.role {
        found.roles = Json(vec![role]);
        check_roles(tx, actor, &found.roles).await?;
    }
    found.active = change.active.unwrap_or(found.active);
    found.updated_at = app.clock.now();
    let after = found.clone();
    if is_owner(&before) && !is_owner(&after) && !has_other_owner(tx, company, &after.id).await? {
        let message = "the company needs another active owner who has set a password";
        return Err(Error::Conflict(message.to_owned()));
    }
    store::update(tx, &after).await?;
    if !after.active {
        store::end_sessions(tx, &after.id, after.updated_at).await?;
    }
    let mut detail = audit::changes(&before, &after);
    detail["member"] = json!(after.id);
    audit::record(tx, app, actor, company, "member.edit", detail).await?;
    find(tx, company, &after.id).await
}

async fn find(tx: &mut Tx, company: &CompanyId, id: &str) -> Result<Member> {
    let found = list(tx, company).await?.into_iter().find(|found| found.id == id);
    found.ok_or_else(not_found)
}

/// Returns whether another owner of the company can sign in.
async fn has_other_owner(tx: &mut Tx, company: &CompanyId, id: &str) -> Result<bool> {
    let members = store::list_members(tx, company).await?;
    let is_other = |row: &store::MemberRow| {
        row.has_password && row.operator.id != id && is_owner(&row.operator)
    };
    Ok(members.iter().any(is_other))
}

fn is_owner(member: &Operator) -> bool {
    member.active && member.roles.iter().any(|role| role == permissions::COMPANY_OWNER)
}
