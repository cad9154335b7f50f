//! Signing in with a password and a one-time code.
//!
//! An invitation lets a person set a password and register an authenticator app. A sign-in yields a
//! session: a token that expires. Every failure has the same response and takes about the same
//! time, so that it reveals neither e-mail addresses nor which part was wrong.

use serde::Deserialize;

use super::{
    expect_operator,
    secrets::{OneTimeCodes, hash_password, verify_password},
    store::{self, Operator, Password, TOTP_SECRET, Token, TokenHolder, TokenKind},
};
use crate::{
    operations::audit::{self, Actor, ActorParts},
    state::{config::OpenIdProvider, prelude::*},
};
use tollhouse_http::{RequestOrigin, connection_limit_key};
use tollhouse_platform::{crypto::digest, values::email};

/// Maximum duration of a session, regardless of activity.
const SESSION_SECONDS: i64 = 12 * 3600;
/// Time without a request after which a session ends.
pub const IDLE_SECONDS: i64 = 30 * 60;
const INVITATION_SECONDS: i64 = 24 * 3600;
/// Number of consecutive failures that locks the account; each further one doubles the lock.
const LOCK_AFTER_FAILURES: i64 = 5;
const MAX_LOCK_SECONDS: i64 = 3600;
const MAX_MEMBER_LOCK_SECONDS: i64 = 60;

/// One error for unknown addresses, wrong passwords, wrong or used codes and locked accounts.
const REFUSED: Error =
    Error::Unauthorized("the e-mail address, the password or the code is not valid");
const INVITATION_ENDED: Error =
    Error::Unauthorized("the invitation was used or has expired: request a new one");

pub(super) fn actor(origin: &RequestOrigin, operator: &Operator) -> Actor {
    let RequestOrigin { request_id, address } = origin.clone();
    let (id, name) = (operator.id.clone(), operator.name.clone());
    let member_of = operator.company_id.clone();
    ActorParts { id, name, request_id, address, member_of, ..ActorParts::default() }.into()
}

/// Returns 403 if operators sign in with an OpenID provider. Members always use passwords.
fn check_passwords_are_used(app: &App, is_member: bool) -> Result<()> {
    match &app.settings.openid_provider {
        None => Ok(()),
        Some(_) if is_member => Ok(()),
        Some(OpenIdProvider { name, .. }) => {
            Err(Error::Forbidden(format!("passwords are disabled: people sign in with {name}")))
        }
    }
}

/// Returns 429 after too many attempts from one address. Members cannot use up the attempts of
/// operators.
pub(super) fn check_rate(app: &App, origin: &RequestOrigin, is_member: bool) -> Result<()> {
    let address = origin.address.map(|address| connection_limit_key(address).to_string());
    let limits = &app.rate_limits;
    let attempts = if is_member { &limits.member_sign_ins } else { &limits.sign_ins };
    Ok(attempts.check(&address.unwrap_or_default())?)
}

/// What a person enters to sign in.
pub struct Credentials {
    pub email: String,
    pub password: String,
    pub code: String,
    pub is_member: bool,
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

/// The TOTP secret for an authenticator app, and the enrolment to confirm.
#[derive(Serialize, JsonSchema)]
pub struct Enrolment {
    name: String,
    email: String,
    /// Secret of the one-time codes in base32.
    totp_secret: String,
    /// The secret as an `otpauth` URL.
    totp_url: String,
    /// The sealed password and secret, for the confirmation. Nothing is stored before that.
    enrolment: String,
}

/// The enrolment of a person who has not confirmed it yet.
#[derive(Serialize, Deserialize)]
struct PendingEnrolment {
    /// Digest of the invitation.
    invitation: String,
    hash: String,
    totp_secret: String,
}

const ENROLMENT_CONTEXT: &str = "operators/enrolment";

/// Issues a session or an invitation. Returns its id, its secret and when it expires.
async fn issue(
    tx: &mut Tx,
    app: &App,
    operator: &Operator,
    (kind, prefix, seconds): (TokenKind, &str, i64),
) -> Result<(String, String, Timestamp)> {
    let now = app.clock.now();
    let (secret, expires_at) = (app.random.token(prefix), now.plus_seconds(seconds));
    let token = Token {
        id: app.random.id(now),
        kind,
        prefix: prefix.to_owned(),
        label: None,
        last_used_at: None,
        expires_at: Some(expires_at),
        revoked_at: None,
        created_at: now,
    };
    store::insert_token(tx, &operator.id, &token, &digest(&secret)).await?;
    Ok((token.id, secret, expires_at))
}

/// Issues an invitation, and ends earlier ones and all sessions of the person. Returns its secret
/// and when it expires.
pub async fn issue_invitation(
    tx: &mut Tx,
    app: &App,
    operator: &Operator,
) -> Result<(String, Timestamp)> {
    store::end_sessions(tx, &operator.id, app.clock.now()).await?;
    let kind = (TokenKind::Invitation, "inv_", INVITATION_SECONDS);
    let (_, invitation, expires_at) = issue(tx, app, operator, kind).await?;
    Ok((invitation, expires_at))
}

/// Invites an operator to set a password.
pub async fn invite(app: &App, actor: Actor, operator: String) -> Result<Invitation> {
    check_passwords_are_used(app, false)?;
    let detail = json!({ "operator": operator });
    super::api::require_approval(app, &actor, "operator.invite", &detail).await?;
    let (app, db) = (app.clone(), app.store.clone());
    db.write(async move |tx| {
        let operator = expect_operator(store::lock(tx, &operator).await?)?;
        if operator.email.is_none() {
            return Err(Error::invalid("the operator has no e-mail address, so it cannot sign in"));
        }
        super::check_may_change(tx, &actor, &operator).await?;
        let (invitation, expires_at) = issue_invitation(tx, &app, &operator).await?;
        let detail = json!({ "operator": operator.id });
        audit::record(tx, &app, &actor, Owner::Service, "operator.invite", detail).await?;
        Ok(Invitation { invitation, expires_at })
    })
    .await
}

/// An invitation, and whether it is used on the site of members. It is valid only on the site of
/// its kind.
pub struct InvitationUse<'i> {
    pub invitation: &'i str,
    pub is_member: bool,
}

impl InvitationUse<'_> {
    /// Returns the invited person. 401 if the invitation is not valid, 403 for an operator who
    /// signs in with an OpenID provider.
    async fn find(&self, app: &App, origin: &RequestOrigin) -> Result<TokenHolder> {
        check_rate(app, origin, self.is_member)?;
        check_passwords_are_used(app, self.is_member)?;
        let (invitation, now) = (digest(self.invitation), app.clock.now());
        let find = async |tx: &mut Tx| store::find_by_invitation(tx, &invitation, now).await;
        let invited = app.store.select(find).await?;
        invited.filter(|found| found.is_member() == self.is_member).ok_or(INVITATION_ENDED)
    }
}

/// Prepares the password and the one-time codes of an invited person.
pub async fn enrol(
    app: &App,
    origin: &RequestOrigin,
    invitation: InvitationUse<'_>,
    password: String,
) -> Result<Enrolment> {
    let invited = invitation.find(app, origin).await?;
    let invitation = digest(invitation.invitation);
    let email = invited.operator.email.ok_or(INVITATION_ENDED)?;
    let codes = OneTimeCodes::generate(app, &email)?;
    let (totp_secret, totp_url) = (codes.secret(), codes.url()?);
    let hash = hash_password(app, password).await?;
    let pending = PendingEnrolment { invitation, hash, totp_secret: totp_secret.clone() };
    let enrolment = app.sealer.seal(ENROLMENT_CONTEXT, &json!(pending).to_string());
    Ok(Enrolment { name: invited.operator.name, email, totp_secret, totp_url, enrolment })
}

/// Stores the enrolment of an invited person after the first code, and signs the person in.
pub async fn confirm(
    app: &App,
    origin: &RequestOrigin,
    invitation: InvitationUse<'_>,
    enrolment: &str,
    code: String,
) -> Result<Session> {
    let invited = invitation.find(app, origin).await?;
    let invalid = || Error::invalid("the enrolment field must be that of the invitation");
    let opened = app.sealer.open(ENROLMENT_CONTEXT, enrolment).map_err(|_| invalid())?;
    let pending: PendingEnrolment = serde_json::from_str(&opened).map_err(|_| invalid())?;
    if pending.invitation != digest(invitation.invitation) {
        return Err(invalid());
    }
    let (app, db, origin) = (app.clone(), app.store.clone(), origin.clone());
    db.write(async move |tx| {
        let now = app.clock.now();
        // Of two concurrent confirmations, the second one finds the invitation used.
        store::lock(tx, &invited.operator.id).await?;
        let find = store::find_by_invitation(tx, &pending.invitation, now).await?;
        let operator = find.ok_or(INVITATION_ENDED)?.operator;
        let email = operator.email.as_deref().unwrap_or_default();
        let period = OneTimeCodes::parse(&pending.totp_secret, email)?.check(&code, now);
        let wrong = || Error::invalid("the code field must be the current code of the app");
        let password = Password {
            operator_id: operator.id.clone(),
            hash: pending.hash.clone(),
            totp_secret: seal_totp_secret(&app, &operator.id, &pending.totp_secret),
            last_period: period.ok_or_else(wrong)?,
            failures: 0,
            locked_until: Timestamp(0),
        };
        store::upsert_password(tx, &password).await?;
        store::end_sessions(tx, &operator.id, now).await?;
        let (actor, detail) = (actor(&origin, &operator), json!({ "operator": operator.id }));
        audit::record(tx, &app, &actor, actor.log(), "password.set", detail).await?;
        begin_session(tx, &app, &origin, operator).await
    })
    .await
}

fn seal_totp_secret(app: &App, operator: &str, secret: &str) -> String {
    app.sealer.seal(&(TOTP_SECRET.context)(operator, operator), secret)
}

/// Signs in an operator or, with `is_member`, a member of a company.
pub async fn sign_in(
    app: &App,
    origin: &RequestOrigin,
    Credentials { email, password, code, is_member }: Credentials,
) -> Result<Session> {
    check_rate(app, origin, is_member)?;
    check_passwords_are_used(app, is_member)?;
    let email = email::comparison_key(&email);
    let find = async |tx: &mut Tx| -> Result<Option<(Operator, Password)>> {
        let found = store::find_by_email(tx, &email, is_member).await?;
        let Some(operator) = found else { return Ok(None) };
        let password = store::find_password(tx, &operator.id).await?;
        Ok(password.map(|password| (operator, password)))
    };
    let found = app.store.read(find).await?;
    let hash = found.as_ref().map(|(_, password)| password.hash.clone());
    let matches = verify_password(password, hash.clone()).await?;
    let (operator, _) = found.ok_or(REFUSED)?;
    let (app, db, origin) = (app.clone(), app.store.clone(), origin.clone());
    let session = db.write(async move |tx| -> Result<Option<Session>> {
        let now = app.clock.now();
        let locked = store::lock_password(tx, &operator.id).await?;
        let Some(mut password) = locked.filter(|password| password.locked_until <= now) else {
            return Ok(None);
        };
        let password_matches = matches && hash.as_ref() == Some(&password.hash);
        let period = codes(&app, &operator, &password)?.check(&code, now);
        let unused_period = period.filter(|period| *period > password.last_period);
        let Some(period) = unused_period.filter(|_| password_matches) else {
            record_failure(tx, &app, &origin, &operator, password).await?;
            return Ok(None);
        };
        (password.failures, password.last_period) = (0, period);
        store::upsert_password(tx, &password).await?;
        begin_session(tx, &app, &origin, operator.clone()).await.map(Some)
    });
    session.await?.ok_or(REFUSED)
}

async fn record_failure(
    tx: &mut Tx,
    app: &App,
    origin: &RequestOrigin,
    operator: &Operator,
    mut password: Password,
) -> Result<()> {
    password.failures += 1;
    let lock = match operator.company_id {
        // Anyone can cause failures; the one-time codes limit guessing.
        Some(_) => lock_seconds(password.failures).min(MAX_MEMBER_LOCK_SECONDS),
        None => lock_seconds(password.failures),
    };
    password.locked_until = app.clock.now().plus_seconds(lock);
    store::upsert_password(tx, &password).await?;
    let (actor, detail) = (actor(origin, operator), json!({ "failures": password.failures }));
    Ok(audit::record(tx, app, &actor, actor.log(), "session.refuse", detail).await?)
}

fn lock_seconds(failures: i64) -> i64 {
    match failures - LOCK_AFTER_FAILURES {
        ..0 => 0,
        excess => 60_i64.saturating_mul(1 << excess.min(6)).min(MAX_LOCK_SECONDS),
    }
}

fn codes(app: &App, operator: &Operator, password: &Password) -> Result<OneTimeCodes> {
    let secret = TOTP_SECRET.open(&app.sealer, [&*operator.id; 2], &password.totp_secret);
    OneTimeCodes::parse(&secret.map_err(Error::internal)?, operator.email.as_deref().unwrap_or(""))
}

pub(super) async fn begin_session(
    tx: &mut Tx,
    app: &App,
    origin: &RequestOrigin,
    operator: Operator,
) -> Result<Session> {
    let kind = (TokenKind::Session, "ses_", SESSION_SECONDS);
    let (id, session_token, expires_at) = issue(tx, app, &operator, kind).await?;
    let (actor, detail) = (actor(origin, &operator), json!({ "session": id }));
    audit::record(tx, app, &actor, actor.log(), "session.create", detail).await?;
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
        audit::record(tx, &app, &actor, actor.log(), "session.end", detail).await?;
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
