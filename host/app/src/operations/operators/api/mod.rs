//! API for operators, their tokens and roles.

pub mod sessions;

use super::{
    check_may_change, check_may_grant, check_roles, check_roles_of_operators, expect_operator,
    has_administrators, permissions,
    store::{self, Operator, Token, TokenKind},
};
use crate::{
    operations::{
        audit::{self, Actor},
        operators::approvals::{self, ApprovalSubject},
    },
    state::prelude::*,
};
use tollhouse_platform::crypto::digest;

const TOKEN_PREFIX_CHARACTERS: usize = 10;

/// Returns 400 unless each company exists.
async fn check_companies(tx: &mut Tx, companies: &[CompanyId]) -> Result<()> {
    for company in companies {
        if !store::company_exists(tx, company).await? {
            return Err(Error::Invalid(format!(
                "the companies field must not contain {company}: no such company"
            )));
        }
    }
    Ok(())
}

/// Changes of operators may need an approval, once there is a second administrator to give it.
pub(super) async fn require_approval(
    app: &App,
    actor: &Actor,
    action: &str,
    detail: &Value,
) -> Result<()> {
    let subject = ApprovalSubject::Operators;
    if !approvals::are_required(app, subject) || !has_administrators(app, 2).await? {
        return Ok(());
    }
    approvals::require(app, actor, subject, Owner::Service, action, detail).await
}

fn company_ids(ids: Option<Vec<String>>) -> Option<Vec<CompanyId>> {
    ids.map(|ids| ids.into_iter().map(CompanyId::from).collect())
}

fields! {
    /// A new operator.
    Body NewOperator {
        /// Unique name, which the audit log shows.
        name: Visible<100>,
        /// E-mail address of a person; omitted for a service.
        email: Option<Email>,
        /// Names of roles.
        roles: Texts,
        /// Ids of the companies to which the operator is limited; omitted for no limit.
        companies: Option<Texts>,
    }
}

pub async fn create(
    State(app): State<App>,
    actor: Actor,
    body: Body<NewOperator>,
) -> Result<DataResponse<Operator>> {
    let NewOperator { name, email, roles, companies } = body.read()?;
    let detail = json!({ "name": name, "email": email, "roles": roles, "companies": companies });
    require_approval(&app, &actor, "operator.create", &detail).await?;
    let now = app.clock.now();
    let operator = Operator {
        id: app.random.id(now),
        name,
        email,
        roles: Json(roles),
        companies: company_ids(companies).map(Json),
        company_id: None,
        active: true,
        created_at: now,
        updated_at: now,
    };
    let db = app.store.clone();
    db.write(async move |tx| {
        check_roles_of_operators(&operator.roles)?;
        check_roles(tx, &actor, &operator.roles).await?;
        check_companies(tx, operator.companies.as_deref().map_or(&[], Vec::as_slice)).await?;
        store::insert(tx, &operator).await.map_err(|error| name_taken(error.into()))?;
        audit::record(tx, &app, &actor, Owner::Service, "operator.create", json!(operator)).await?;
        DataResponse::data(operator, "Operator created successfully")
    })
    .await
}

fn name_taken(error: Error) -> Error {
    match error.is_duplicate() {
        true => Error::Conflict("another account has this name or e-mail address".to_owned()),
        false => error,
    }
}

pub async fn list(State(app): State<App>) -> Result<DataResponse<Vec<Operator>>> {
    let operators = app.store.read(async |tx| store::list(tx).await).await?;
    DataResponse::data(operators, "Operators fetched successfully")
}

pub async fn fetch(
    State(app): State<App>,
    Path(operator): Path<String>,
) -> Result<DataResponse<Operator>> {
    let found = app.store.select(async |tx| store::find(tx, &operator).await).await?;
    DataResponse::data(expect_operator(found)?, "Operator fetched successfully")
}

fields! {
    /// Changes to an operator.
    Body OperatorChange {
        name: Changeable<Visible<100>>,
        email: Clearable<Email>,
        /// Names of roles.
        roles: Option<Texts>,
        /// Ids of the companies to which the operator is limited; `null` for no limit.
        companies: Clearable<Texts>,
        /// `false` rejects all tokens of the operator.
        active: Option<Flag>,
    }
}

impl OperatorChange {
    fn apply(self, before: &Operator, now: Timestamp) -> Operator {
        let mut after = before.clone();
        after.name = self.name.unwrap_or(after.name);
        self.email.apply(&mut after.email);
        after.roles = self.roles.map_or(after.roles, Json);
        if let Change::To(companies) = self.companies {
            after.companies = company_ids(companies).map(Json);
        }
        after.active = self.active.unwrap_or(after.active);
        after.updated_at = now;
        after
    }
}

pub async fn edit(
    State(app): State<App>,
    actor: Actor,
    Path(operator): Path<String>,
    body: Body<OperatorChange>,
) -> Result<DataResponse<Operator>> {
    let (new, now) = (body.read()?, app.clock.now());
    let before = app.store.select(async |tx| store::find(tx, &operator).await).await?;
    let before = expect_operator(before)?;
    let changes = audit::changes(&before, &new.clone().apply(&before, now));
    let detail = json!({ "operator": operator, "changes": changes });
    require_approval(&app, &actor, "operator.edit", &detail).await?;
    let db = app.store.clone();
    db.write(async move |tx| {
        let before = expect_operator(store::lock(tx, &operator).await?)?;
        let after = new.apply(&before, now);
        check_may_change(tx, &actor, &before).await?;
        if after.roles.0 != before.roles.0 {
            check_roles_of_operators(&after.roles)?;
            check_roles(tx, &actor, &after.roles).await?;
        }
        check_companies(tx, after.companies.as_deref().map_or(&[], Vec::as_slice)).await?;
        store::update(tx, &after).await.map_err(|error| name_taken(error.into()))?;
        if !after.active || after.email != before.email {
            store::end_sessions(tx, &after.id, now).await?;
        }
        if after.email != before.email {
            // The next sign-in finds the operator by the new address.
            store::delete_identities(tx, &after.id).await?;
        }
        let detail = json!({ "operator": after.id, "changes": audit::changes(&before, &after) });
        audit::record(tx, &app, &actor, Owner::Service, "operator.edit", detail).await?;
        DataResponse::data(after, "Operator updated successfully")
    })
    .await
}

/// A created token. The token itself is returned only once.
#[derive(Serialize, JsonSchema)]
pub struct CreatedToken {
    #[serde(flatten)]
    token: Token,
    operator_token: String,
}

fields! {
    /// A new token.
    Body NewToken(body, now: Timestamp) {
        /// Purpose of the token.
        label: Option<Text<100>>,
        /// Expiry of the token; must be in the future.
        expires_at: Option<Time> => match expires_at {
            Some(at) if at <= now => Err(body.must_be("expires_at", "in the future")),
            at => Ok(at),
        },
    }
}

pub async fn create_token(
    State(app): State<App>,
    actor: Actor,
    Path(operator): Path<String>,
    body: Body<NewToken>,
) -> Result<DataResponse<CreatedToken>> {
    let now = app.clock.now();
    let NewToken { label, expires_at } = NewToken::read(&body, now)?;
    let detail = json!({ "operator": operator, "label": label, "expires_at": expires_at });
    require_approval(&app, &actor, "operator.token.create", &detail).await?;
    let operator_token = app.random.token("op_");
    let token = Token {
        id: app.new_id(),
        kind: TokenKind::Token,
        prefix: operator_token[..TOKEN_PREFIX_CHARACTERS].to_owned(),
        label,
        last_used_at: None,
        expires_at,
        revoked_at: None,
        created_at: now,
    };
    let db = app.store.clone();
    db.write(async move |tx| {
        let operator = expect_operator(store::lock(tx, &operator).await?)?;
        // A token acts with the roles of its operator.
        check_may_change(tx, &actor, &operator).await?;
        store::insert_token(tx, &operator.id, &token, &digest(&operator_token)).await?;
        let detail = json!({ "operator": operator.id, "token": token.id, "label": token.label });
        audit::record(tx, &app, &actor, Owner::Service, "operator.token.create", detail).await?;
        let created = CreatedToken { token, operator_token };
        DataResponse::data(created, "Token created successfully")
    })
    .await
}

pub async fn list_tokens(
    State(app): State<App>,
    Path(operator): Path<String>,
) -> Result<DataResponse<Vec<Token>>> {
    let read = async |tx: &mut Tx| -> Result<_> {
        expect_operator(store::find(tx, &operator).await?)?;
        Ok(store::list_tokens(tx, &operator).await?)
    };
    DataResponse::data(app.store.read(read).await?, "Tokens fetched successfully")
}

/// Revokes a token, effective from the next request.
pub async fn revoke_token(
    State(app): State<App>,
    actor: Actor,
    Path((operator, token)): Path<(String, String)>,
) -> Result<MessageResponse> {
    let found = app.store.select(async |tx| store::find(tx, &operator).await).await?;
    let found = expect_operator(found)?;
    let is_administrator = found.roles.iter().any(|role| role == permissions::ADMINISTRATOR);
    if is_administrator && found.id != actor.id {
        // Otherwise one administrator could exclude the others, and approvals with them.
        let detail = json!({ "operator": operator, "token": token });
        require_approval(&app, &actor, "operator.token.revoke", &detail).await?;
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        let operator = expect_operator(store::lock(tx, &operator).await?)?;
        check_may_change(tx, &actor, &operator).await?;
        if !store::revoke_token(tx, &operator.id, &token, app.clock.now()).await? {
            return Err(Error::not_found("token not found"));
        }
        let detail = json!({ "operator": operator.id, "token": token });
        audit::record(tx, &app, &actor, Owner::Service, "operator.token.revoke", detail).await?;
        Ok(MessageResponse("Token revoked successfully"))
    })
    .await
}

/// A role: a set of permissions.
#[derive(Serialize, JsonSchema)]
pub struct Role {
    name: String,
    permissions: Vec<String>,
    /// `true` for roles that every host has and that cannot be changed.
    built_in: bool,
}

pub async fn list_roles(State(app): State<App>) -> Result<DataResponse<Vec<Role>>> {
    let own = app.store.read(async |tx| store::list_roles(tx).await).await?;
    let built_in = permissions::ROLES.iter().map(|role| Role {
        name: role.name.to_owned(),
        permissions: role.permissions.iter().map(ToString::to_string).collect(),
        built_in: true,
    });
    let own = own.into_iter().map(|own| Role {
        name: own.name,
        permissions: own.permissions.0,
        built_in: false,
    });
    DataResponse::data(built_in.chain(own).collect(), "Roles fetched successfully")
}

fields! {
    /// The permissions of a role.
    Body RolePermissions(body) {
        permissions: Texts => match permissions.iter().find(|name| permissions::find(name).is_none()) {
            Some(unknown) => {
                let what = format!("a list of permissions: there is no {unknown}");
                Err(body.must_be("permissions", &what))
            }
            None => Ok(permissions),
        },
    }
}

/// Creates a role, or replaces its permissions. Operators with the role have the new permissions
/// from the next request on.
pub async fn put_role(
    State(app): State<App>,
    actor: Actor,
    Path(role): Path<String>,
    body: Body<RolePermissions>,
) -> Result<DataResponse<Role>> {
    let permissions = body.read()?.permissions;
    if permissions::of_built_in(&role).is_some() {
        return Err(Error::Conflict(format!("{role} is a built-in role, which cannot be changed")));
    }
    check_may_grant(&actor, permissions.iter().map(String::as_str))?;
    let detail = json!({ "role": role, "permissions": permissions });
    require_approval(&app, &actor, "role.put", &detail).await?;
    let db = app.store.clone();
    db.write(async move |tx| {
        store::upsert_role(tx, &role, &permissions, app.clock.now()).await?;
        audit::record(tx, &app, &actor, Owner::Service, "role.put", detail).await?;
        let role = Role { name: role, permissions, built_in: false };
        DataResponse::data(role, "Role saved successfully")
    })
    .await
}

pub async fn delete_role(
    State(app): State<App>,
    actor: Actor,
    Path(role): Path<String>,
) -> Result<MessageResponse> {
    let db = app.store.clone();
    db.write(async move |tx| {
        let users = store::list(tx).await?;
        if let Some(user) = users.iter().find(|operator| operator.roles.contains(&role)) {
            return Err(Error::Conflict(format!("the operator {} has this role", user.name)));
        }
        if !store::delete_role(tx, &role).await? {
            return Err(Error::not_found("role not found"));
        }
        let detail = json!({ "role": role });
        audit::record(tx, &app, &actor, Owner::Service, "role.delete", detail).await?;
        Ok(MessageResponse("Role deleted successfully"))
    })
    .await
}
