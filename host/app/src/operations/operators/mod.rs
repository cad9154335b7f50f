//! Operators: the people and services that use the internal interface, their tokens and roles.
//!
//! The configured operator token is for bootstrapping: it has all permissions, and is rejected
//! while an administrator can authenticate.

pub mod api;
pub mod approvals;
pub mod members;
pub mod oidc;
pub mod permissions;
mod secrets;
mod sign_in;
mod store;
pub mod views;

use std::collections::BTreeSet;

use axum::http::Extensions;
use subtle::ConstantTimeEq;

pub use self::store::SEALED;
use self::store::{Operator, OwnRole, TokenHolder};
use crate::{
    operations::audit::{self, Actor, ActorParts},
    state::prelude::*,
};
use tollhouse_http::{ANY_OPERATOR, OperatorCall, Permission, RequestOrigin};
use tollhouse_platform::crypto::digest;

/// The name of the configured operator token in the audit log.
const CONFIGURED: &str = "operator";

/// Returns the operator of a token. 401 if the token is unknown, revoked or expired, or its
/// operator is not active; 429 beyond the operator's rate limit.
pub async fn authenticate(app: &App, token: &str, request: &Extensions) -> Result<Actor> {
    let configured = app.settings.operator_token.as_bytes();
    let actor = match bool::from(configured.ct_eq(token.as_bytes())) {
        true => configured_operator(app).await?,
        false => operator_of_token(app, token).await?,
    };
    app.rate_limits.operators.check(&actor.id)?;
    let RequestOrigin { request_id, address } = RequestOrigin::of(request);
    Ok(ActorParts { request_id, address, ..actor }.into())
}

/// Checks that an operator may make this call: 403 if it lacks the permission, or if it is limited
/// to other companies. A refusal is recorded in the audit log, and so is each call that shows
/// personal data.
pub async fn authorize(app: &App, actor: &Actor, call: OperatorCall) -> Result<()> {
    if let Some(company) = &actor.member_of
        && call.permission != ANY_OPERATOR
        && !call.operation.starts_with("GET ")
        && !app.store.select(async |tx| store::is_company_active(tx, company).await).await?
    {
        return Err(Error::Forbidden("the company is suspended".to_owned()));
    }
    match refusal(actor, &call) {
        Some(refusal) => {
            record(app, actor, call, "access.refuse").await?;
            Err(Error::Forbidden(refusal))
        }
        None if shows_personal_data(&call) => record(app, actor, call, "personal_data.read").await,
        None => Ok(()),
    }
}

fn refusal(actor: &Actor, call: &OperatorCall) -> Option<String> {
    if call.permission == ANY_OPERATOR {
        return None;
    }
    if !actor.permissions.contains(call.permission) {
        return Some(format!("you lack the permission {}", call.permission));
    }
    let allowed = actor.companies.as_ref()?;
    match &call.company {
        Some(company) if allowed.contains(company) => None,
        Some(_) => Some("you do not have access to this company".to_owned()),
        None => Some("this route requires access to all companies".to_owned()),
    }
}

fn shows_personal_data(call: &OperatorCall) -> bool {
    permissions::find(call.permission).is_some_and(|permission| permission.personal_data)
}

/// Records a call in the log of the company that it names, or in that of the service if there is no
/// such company. A member's call is recorded in the log of the member's own company.
async fn record(app: &App, actor: &Actor, call: OperatorCall, action: &'static str) -> Result<()> {
    let (app, db, actor) = (app.clone(), app.store.clone(), actor.clone());
    db.write(async move |tx| {
        // Refusals of a member concern its own company.
        let mut owner = actor.log();
        if owner == Owner::Service
            && let Some(company) = call.company
            && store::company_exists(tx, &company).await?
        {
            owner = company.into();
        }
        let detail = json!({ "operation": call.operation, "record": call.record });
        audit::record(tx, &app, &actor, owner, action, detail).await?;
        Ok(())
    })
    .await
}

/// Returns whether at least `count` administrators without a limit to companies can authenticate,
/// by token, or by the OpenID provider or password with which people sign in.
async fn has_administrators(app: &App, count: usize) -> Result<bool> {
    let now = app.clock.now();
    let provider = app.settings.openid_provider.as_ref();
    let issuer = provider.map_or("", |provider| provider.issuer.as_str());
    let list = async |tx: &mut Tx| store::list_usable_roles(tx, now, issuer).await;
    let roles = app.store.select(list).await?;
    let is_administrator =
        |roles: &&Json<Vec<String>>| roles.0.iter().any(|role| role == permissions::ADMINISTRATOR);
    Ok(roles.iter().filter(is_administrator).count() >= count)
}

/// Returns the operator of the configuration, unless an administrator can authenticate.
async fn configured_operator(app: &App) -> Result<ActorParts> {
    if has_administrators(app, 1).await? {
        return Err(Error::Unauthorized(
            "the configured operator token is disabled because an administrator can authenticate",
        ));
    }
    Ok(ActorParts {
        name: CONFIGURED.to_owned(),
        permissions: permissions::PERMISSIONS.iter().map(|permission| permission.name).collect(),
        ..ActorParts::default()
    })
}

async fn operator_of_token(app: &App, token: &str) -> Result<ActorParts> {
    let (digest, now) = (digest(token), app.clock.now());
    let used_since = now.plus_seconds(-sign_in::IDLE_SECONDS);
    let find = async |tx: &mut Tx| store::find_by_token(tx, &digest, now, used_since).await;
    let holder = app.store.select(find).await?;
    let holder = holder.ok_or(Error::Unauthorized("the operator token is not valid"))?;
    let is_built_in = |role: &String| permissions::of_built_in(role).is_some();
    let own = match holder.operator.roles.iter().all(is_built_in) {
        true => Vec::new(),
        false => app.store.select(async |tx| store::list_roles(tx).await).await?,
    };
    let permissions = permissions_of(&holder.operator.roles, &own);
    let TokenHolder { operator, token_id, last_used_at } = holder;
    let (db, used) = (app.store.clone(), (operator.id.clone(), token_id.clone()));
    app.record_use(&token_id, last_used_at, async move {
        let record =
            async move |tx: &mut Tx| store::record_token_use(tx, &used.0, &used.1, now).await;
        db.write(record).await
    });
    Ok(ActorParts {
        id: operator.id,
        name: operator.name,
        credential: Some(token_id),
        permissions,
        companies: operator.companies.map(|companies| companies.0),
        member_of: operator.company_id,
        ..ActorParts::default()
    })
}

/// Returns the permissions of roles. A role or permission that this host does not know grants
/// nothing.
fn permissions_of(roles: &[String], own: &[OwnRole]) -> BTreeSet<Permission> {
    let known = |name: &String| permissions::find(name).map(|permission| permission.name);
    let mut granted = BTreeSet::new();
    for role in roles {
        if let Some(built_in) = permissions::of_built_in(role) {
            granted.extend(built_in);
        } else if let Some(own) = own.iter().find(|own| own.name == *role) {
            granted.extend(own.permissions.iter().filter_map(known));
        }
    }
    granted
}

/// Returns the operator that was found. 404 if there is none, or if it is a member of a company.
fn expect_operator(found: Option<Operator>) -> Result<Operator> {
    let found = found.filter(|operator| operator.company_id.is_none());
    found.ok_or_else(|| Error::not_found("operator not found"))
}

/// Returns 400 if a role is a role of members.
fn check_roles_of_operators(roles: &[String]) -> Result<()> {
    match roles.iter().find(|role| permissions::MEMBER_ROLES.contains(&role.as_str())) {
        Some(role) => Err(Error::Invalid(format!(
            "the roles field must not contain {role}: it is a role of members of a company"
        ))),
        None => Ok(()),
    }
}

/// Returns 400 unless every role exists, and 403 unless the actor has all their permissions: no
/// operator can grant more than it has.
async fn check_roles(tx: &mut Tx, actor: &Actor, roles: &[String]) -> Result<()> {
    let own = store::list_roles(tx).await?;
    for role in roles {
        if permissions::of_built_in(role).is_none() && own.iter().all(|own| own.name != *role) {
            let message = format!("the roles field must not contain {role}: no such role");
            return Err(Error::Invalid(message));
        }
    }
    let granted = permissions_of(roles, &own);
    check_may_grant(actor, granted.iter().copied())
}

/// Returns 403 unless the actor has all permissions of an operator.
async fn check_may_change(tx: &mut Tx, actor: &Actor, operator: &Operator) -> Result<()> {
    let own = store::list_roles(tx).await?;
    check_may_grant(actor, permissions_of(&operator.roles, &own))
}

fn check_may_grant<'p>(actor: &Actor, granted: impl IntoIterator<Item = &'p str>) -> Result<()> {
    match granted.into_iter().find(|permission| !actor.permissions.contains(permission)) {
        Some(missing) => {
            let message = format!("you lack the permission {missing}, so you cannot grant it");
            Err(Error::Forbidden(message))
        }
        None => Ok(()),
    }
}
