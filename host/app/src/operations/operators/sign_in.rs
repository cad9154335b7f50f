//! Signing in with a password and a one-time code.
//!
//! An invitation lets a person set a password and register an authenticator app. A sign-in yields a
//! session: a token that ends by itself. Every failure has the same response and takes about the
//! same time, so that it reveals neither e-mail addresses nor which part was wrong.

use axum::{extract::FromRequestParts, http::request::Parts};

use super::{
    digest, not_found,
    secrets::{OneTimeCodes, hash_password, verify_password},
    store::{self, Operator, Password, TOTP_SECRET, Token, TokenKind},
};
use crate::{
    operations::audit::{self, Actor, ActorParts},
    state::prelude::*,
};
use tollhouse_http::{
    ClientAddress, RequestId,
    openapi::{Describe, Operation},
};

/// Duration of a session, however much it is used.
const SESSION_SECONDS: i64 = 12 * 3600;
/// Time without a request after which a session ends.
pub const IDLE_SECONDS: i64 = 30 * 60;
const INVITATION_SECONDS: i64 = 24 * 3600;
/// Failures in a row after which each further one locks the account, twice as long each time.
const FREE_FAILURES: i64 = 5;
const MAX_LOCK_SECONDS: i64 = 3600;

/// The same for an unknown address, a wrong password, a wrong or used code and a locked account.
const REFUSED: Error =
    Error::Unauthorized("the e-mail address, the password or the code is not valid");
const INVITATION_ENDED: Error =
    Error::Unauthorized("the invitation was used or has expired: ask for another one");

/// Where a request without an operator comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    request_id: String,
    address: Option<std::net::IpAddr>,
}

impl<S: Sync> FromRequestParts<S> for Origin {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Origin, Error> {
        let id = parts.extensions.get::<RequestId>().map(|RequestId(id)| id.clone());
        let address =
            parts.extensions.get::<ClientAddress>().map(|ClientAddress(address)| *address);
        Ok(Origin { request_id: id.unwrap_or_default(), address })
    }
}

impl Describe for Origin {
    fn describe(_: &mut Operation<'_>) {}
}

impl Origin {
    fn actor(&self, operator: &Operator) -> Actor {
        let Origin { request_id, address } = self.clone();
        let (id, name) = (operator.id.clone(), operator.name.clone());
        ActorParts { id, name, request_id, address, ..ActorParts::default() }.into()
    }

    /// Returns 429 after too many attempts from one address.
    fn check_rate(&self, app: &App) -> Result<()> {
        let address = self.address.map(|address| address.to_string());
        Ok(app.rate_limits.sign_ins.check(&address.unwrap_or_default())?)
    }
}

/// A session of a person. The token is returned only once.
#[derive(Serialize, JsonSchema)]
pub struct Session {
    session_token: String,
    expires_at: Timestamp,
    operator: Operator,
}

/// An invitation to set a password. It is returned only once.
#[derive(Serialize, JsonSchema)]
pub struct Invitation {
    invitation: String,
    expires_at: Timestamp,
}

/// What an authenticator app needs.
#[derive(Serialize, JsonSchema)]
pub struct Enrolment {
    name: String,
    email: String,
    /// Secret of the one-time codes in base32.
    totp_secret: String,
    /// The same as an `otpauth` URL.
    totp_url: String,
}

async fn issue(
    tx: &mut Tx,
    app: &App,
    operator: &Operator,
    (kind, prefix, seconds): (TokenKind, &str, i64),
) -> Result<(String, Token)> {
    let now = app.clock.now();
    let secret = app.random.token(prefix);
    let token = Token {
        id: app.random.id(now),
        kind,
        prefix: prefix.to_owned(),
        label: None,
        last_used_at: None,
        expires_at: Some(now.plus_seconds(seconds)),
        revoked_at: None,
        created_at: now,
    };
    store::insert_token(tx, &operator.id, &token, &digest(&secret)).await?;
    Ok((secret, token))
}

/// Issues an invitation, and ends earlier ones and all sessions of the operator.
pub async fn invite(app: &App, actor: Actor, operator: String) -> Result<Invitation> {
    let (app, db) = (app.clone(), app.store.clone());
    db.write(async move |tx| {
        let operator = store::lock(tx, &operator).await?.ok_or_else(not_found)?;
        if operator.email.is_none() {
            return Err(Error::invalid("the operator has no e-mail address, so it cannot sign in"));
        }
        super::check_roles(tx, &actor, &operator.roles).await?;
        store::end_sessions(tx, &operator.id, app.clock.now()).await?;
        let kind = (TokenKind::Invitation, "inv_", INVITATION_SECONDS);
        let (invitation, token) = issue(tx, &app, &operator, kind).await?;
        let detail = json!({ "operator": operator.id });
        audit::record(tx, &app, &actor, Owner::Service, "operator.invite", detail).await?;
        let expires_at = token.expires_at.unwrap_or(token.created_at);
        Ok(Invitation { invitation, expires_at })
    })
    .await
}

/// Sets the password of an invited person, and creates the secret of its one-time codes.
pub async fn enrol(
    app: &App,
    origin: &Origin,
    invitation: &str,
    password: String,
) -> Result<Enrolment> {
    origin.check_rate(app)?;
    let hash = hash_password(app, password).await?;
    let (app, db, invitation) = (app.clone(), app.store.clone(), digest(invitation));
    db.write(async move |tx| {
        let invited = store::find_by_invitation(tx, &invitation, app.clock.now()).await?;
        let operator = invited.ok_or(INVITATION_ENDED)?.operator;
        let email = operator.email.ok_or(INVITATION_ENDED)?;
        let codes = OneTimeCodes::generate(&app, &email)?;
        let id = [&*operator.id, &*operator.id];
        let password = Password {
            operator_id: operator.id.clone(),
            hash: hash.clone(),
            totp_secret: app.sealer.seal(&(TOTP_SECRET.context)(id[0], id[1]), &codes.secret()),
            confirmed_at: None,
            last_period: 0,
            failures: 0,
            locked_until: Timestamp(0),
        };
        store::upsert_password(tx, &password).await?;
        let (totp_secret, totp_url) = (codes.secret(), codes.url()?);
        Ok(Enrolment { name: operator.name, email, totp_secret, totp_url })
    })
    .await
}

/// Confirms the enrolment with the first code, and signs the person in.
pub async fn confirm(
    app: &App,
    origin: &Origin,
    invitation: &str,
    code: String,
) -> Result<Session> {
    origin.check_rate(app)?;
    let (app, db, origin) = (app.clone(), app.store.clone(), origin.clone());
    let invitation = digest(invitation);
    db.write(async move |tx| {
        let now = app.clock.now();
        let invited = store::find_by_invitation(tx, &invitation, now).await?;
        let operator = invited.ok_or(INVITATION_ENDED)?.operator;
        let password = store::lock_password(tx, &operator.id).await?;
        let mut password = password.ok_or(INVITATION_ENDED)?;
        let period = codes(&app, &operator, &password)?.check(&code, now);
        let Some(period) = period else {
            return Err(Error::invalid("the code field must be the current code of the app"));
        };
        (password.confirmed_at, password.last_period) = (Some(now), period);
        store::upsert_password(tx, &password).await?;
        store::end_sessions(tx, &operator.id, now).await?;
        begin_session(tx, &app, &origin, operator).await
    })
    .await
}

/// Signs a person in.
pub async fn sign_in(
    app: &App,
    origin: &Origin,
    email: String,
    password: String,
    code: String,
) -> Result<Session> {
    origin.check_rate(app)?;
    let find = async |tx: &mut Tx| -> Result<Option<(Operator, Password)>> {
        let Some(operator) = store::find_by_email(tx, &email).await? else { return Ok(None) };
        let password = store::find_password(tx, &operator.id).await?;
        Ok(password.map(|password| (operator, password)))
    };
    let found = app.store.read(find).await?;
    let hash = found.as_ref().map(|(_, password)| password.hash.clone());
    let is_right = verify_password(password, hash.clone()).await?;
    let (operator, _) = found.ok_or(REFUSED)?;
    let (app, db, origin) = (app.clone(), app.store.clone(), origin.clone());
    let session = db.write(async move |tx| -> Result<Option<Session>> {
        let now = app.clock.now();
        let locked = store::lock_password(tx, &operator.id).await?;
        let Some(mut password) = locked.filter(|password| password.locked_until <= now) else {
            return Ok(None);
        };
        let period = codes(&app, &operator, &password)?.check(&code, now);
        let period = period.filter(|period| *period > password.last_period);
        let is_right = is_right && hash.as_ref() == Some(&password.hash);
        match period.filter(|_| is_right && password.confirmed_at.is_some()) {
            Some(period) => {
                (password.failures, password.last_period) = (0, period);
                store::upsert_password(tx, &password).await?;
                begin_session(tx, &app, &origin, operator.clone()).await.map(Some)
            }
            None => {
                password.failures += 1;
                password.locked_until = now.plus_seconds(lock_seconds(password.failures));
                store::upsert_password(tx, &password).await?;
                let (actor, detail) =
                    (origin.actor(&operator), json!({ "failures": password.failures }));
                audit::record(tx, &app, &actor, Owner::Service, "session.refuse", detail).await?;
                Ok(None)
            }
        }
    });
    session.await?.ok_or(REFUSED)
}

fn lock_seconds(failures: i64) -> i64 {
    match failures - FREE_FAILURES {
        ..0 => 0,
        excess => 60_i64.saturating_mul(1 << excess.min(6)).min(MAX_LOCK_SECONDS),
    }
}

fn codes(app: &App, operator: &Operator, password: &Password) -> Result<OneTimeCodes> {
    let secret = TOTP_SECRET.open(&app.sealer, [&*operator.id; 2], &password.totp_secret);
    OneTimeCodes::parse(&secret.map_err(Error::internal)?, operator.email.as_deref().unwrap_or(""))
}

async fn begin_session(
    tx: &mut Tx,
    app: &App,
    origin: &Origin,
    operator: Operator,
) -> Result<Session> {
    let kind = (TokenKind::Session, "ses_", SESSION_SECONDS);
    let (session_token, token) = issue(tx, app, &operator, kind).await?;
    let (actor, detail) = (origin.actor(&operator), json!({ "session": token.id }));
    audit::record(tx, app, &actor, Owner::Service, "session.create", detail).await?;
    let expires_at = token.expires_at.unwrap_or(token.created_at);
    Ok(Session { session_token, expires_at, operator })
}

/// Ends the session of a request, or all sessions of its operator.
pub async fn sign_out(app: &App, actor: Actor, everywhere: bool) -> Result<()> {
    let (app, db) = (app.clone(), app.store.clone());
    db.write(async move |tx| {
        let now = app.clock.now();
        match (everywhere, &actor.credential) {
            (true, _) => store::end_sessions(tx, &actor.id, now).await?,
            (false, Some(token)) => drop(store::revoke_token(tx, &actor.id, token, now).await?),
            (false, None) => {}
        }
        let detail = json!({ "everywhere": everywhere });
        audit::record(tx, &app, &actor, Owner::Service, "session.end", detail).await?;
        Ok(())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_failures_lock_ever_longer() {
        let locks = [1, 5, 6, 7, 11, 12, 1_000].map(lock_seconds);
        assert_eq!(locks, [0, 60, 120, 240, 3_600, 3_600, 3_600]);
    }
}
