//! Signing in with the OpenID provider: authorization code flow with PKCE.
//!
//! A sign-in that has begun is not stored: the browser keeps it, sealed, until the provider returns
//! the person, on any host. The first sign-in finds the operator by the verified e-mail address,
//! and stores the account at the provider; later ones find the operator by the account. A sign-in
//! never creates an operator. Every refused person gets the same response.

mod provider;

use serde::Deserialize;
use subtle::ConstantTimeEq;

pub use self::provider::MetadataCache;
use self::provider::{Challenge, EmailClaim};
use super::{
    sign_in::{self, Session},
    store::{self, Operator},
};
use crate::{operations::audit, state::prelude::*};
use tollhouse_http::RequestOrigin;
use tollhouse_platform::values::email;

/// Time in which a person signs in at the provider.
const SIGN_IN_SECONDS: i64 = 600;
const CONTEXT: &str = "operators/oidc";

/// One error for refused ID tokens, unknown or unverified addresses, other accounts with a known
/// address, and deactivated operators.
const REFUSED: Error = Error::Unauthorized("this account cannot sign in");
const NOT_BEGUN: Error =
    Error::Unauthorized("the sign-in has expired or was begun in another browser: start again");
const NOT_AUTHENTICATED: Error =
    Error::Unauthorized("the provider did not sign you in: start again");

/// A sign-in at the provider.
#[derive(Serialize, JsonSchema)]
pub struct Begun {
    /// URL of the provider's page, for the browser.
    url: String,
    /// The sealed sign-in, for the same browser to keep until it returns.
    pending: String,
    expires_at: Timestamp,
}

/// A session, and where the person continues.
#[derive(Serialize, JsonSchema)]
pub struct Finished {
    #[serde(flatten)]
    session: Session,
    /// The `next` of the request that began the sign-in.
    next: Option<String>,
}

/// The provider's response to the browser, and the sealed sign-in that the browser kept.
pub struct Returned {
    pub pending: String,
    pub state: String,
    pub code: Option<String>,
    /// Why the provider did not sign the person in.
    pub error: Option<String>,
}

/// A sign-in between its two requests.
#[derive(Serialize, Deserialize)]
struct Pending {
    state: String,
    nonce: String,
    verifier: String,
    next: Option<String>,
    expires_at: Timestamp,
}

pub async fn begin(app: &App, origin: &RequestOrigin, next: Option<String>) -> Result<Begun> {
    sign_in::check_rate(app, origin, false)?;
    let secret = || hex::encode(app.random.bytes::<32>());
    let challenge = Challenge { state: secret(), nonce: secret(), verifier: secret() };
    let url = provider::authorization_url(app, &challenge).await?;
    let Challenge { state, nonce, verifier } = challenge;
    let expires_at = app.clock.now().plus_seconds(SIGN_IN_SECONDS);
    let pending = Pending { state, nonce, verifier, next, expires_at };
    let pending = app.sealer.seal(CONTEXT, &json!(pending).to_string());
    Ok(Begun { url, pending, expires_at })
}

/// Signs in the person whom the provider returned.
pub async fn finish(app: &App, origin: &RequestOrigin, returned: Returned) -> Result<Finished> {
    sign_in::check_rate(app, origin, false)?;
    provider::settings(app)?;
    let Pending { state, nonce, verifier, next, .. } = open(app, &returned)?;
    let Some(code) = returned.code.filter(|_| returned.error.is_none()) else {
        tracing::info!(error = returned.error, "the OpenID provider did not sign a person in");
        return Err(NOT_AUTHENTICATED);
    };
    let challenge = Challenge { state, nonce, verifier };
    let login = provider::exchange_code(app, code, &challenge).await?;
    let account =
        Account { issuer: login.issuer().to_owned(), subject: login.subject().to_owned() };
    let find = async |tx: &mut Tx| account.find(tx).await;
    let email = match app.store.select(find).await? {
        Some(_) => None,
        None => Some(login.email(app).await?.ok_or(REFUSED)?),
    };
    let (app, db, origin) = (app.clone(), app.store.clone(), origin.clone());
    let session = db.write(async move |tx| -> Result<Option<Session>> {
        match find_operator(tx, &app, &origin, &account, email.as_ref()).await? {
            Outcome::Permitted(operator) => {
                sign_in::begin_session(tx, &app, &origin, operator).await.map(Some)
            }
            Outcome::Refused(operator, reason) => {
                let actor = sign_in::actor(&origin, &operator);
                let detail = json!({ "reason": reason });
                audit::record(tx, &app, &actor, Owner::Service, "session.refuse", detail).await?;
                Ok(None)
            }
            Outcome::Unknown => Ok(None),
        }
    });
    Ok(Finished { session: session.await?.ok_or(REFUSED)?, next })
}

/// Opens the sign-in that the browser kept. Fails unless the provider's response belongs to it.
fn open(app: &App, returned: &Returned) -> Result<Pending> {
    let opened = app.sealer.open(CONTEXT, &returned.pending).map_err(|_| NOT_BEGUN)?;
    let pending: Pending = serde_json::from_str(&opened).map_err(|_| NOT_BEGUN)?;
    let is_same = bool::from(pending.state.as_bytes().ct_eq(returned.state.as_bytes()));
    match is_same && app.clock.now() < pending.expires_at {
        true => Ok(pending),
        false => Err(NOT_BEGUN),
    }
}

/// An account at an OpenID provider.
#[derive(Clone)]
struct Account {
    issuer: String,
    subject: String,
}

impl Account {
    async fn find(&self, tx: &mut Tx) -> tollhouse_platform::store::Result<Option<Operator>> {
        store::find_by_identity(tx, &self.issuer, &self.subject).await
    }
}

/// The decision whether an account may sign in.
enum Outcome {
    Permitted(Operator),
    /// The operator, and the reason for the audit log.
    Refused(Operator, &'static str),
    Unknown,
}

/// Returns the operator of an account. At the first sign-in it is the one with the e-mail address,
/// and the account is stored.
async fn find_operator(
    tx: &mut Tx,
    app: &App,
    origin: &RequestOrigin,
    account: &Account,
    email: Option<&EmailClaim>,
) -> Result<Outcome> {
    if let Some(operator) = account.find(tx).await? {
        return Ok(match operator.active {
            true => Outcome::Permitted(operator),
            false => Outcome::Refused(operator, "the operator is not active"),
        });
    }
    let Some(email) = email else { return Ok(Outcome::Unknown) };
    let address = email::comparison_key(&email.address);
    let Some(found) = store::find_by_email(tx, &address, false).await? else {
        return Ok(Outcome::Unknown);
    };
    // Of two concurrent first sign-ins, the second one finds the account of the first.
    let operator = store::lock(tx, &found.id).await?;
    let is_current = |operator: &Operator| operator.active && operator.email == found.email;
    let Some(operator) = operator.filter(is_current) else { return Ok(Outcome::Unknown) };
    if !email.is_verified {
        return Ok(Outcome::Refused(operator, "the e-mail address is not verified"));
    }
    match store::find_subject(tx, &operator.id, &account.issuer).await? {
        Some(subject) if subject == account.subject => {}
        Some(_) => {
            return Ok(Outcome::Refused(operator, "the operator has another account"));
        }
        None => {
            let (issuer, subject) = (&*account.issuer, &*account.subject);
            let now = app.clock.now();
            store::insert_identity(tx, &operator.id, (issuer, subject), now).await?;
            let actor = sign_in::actor(origin, &operator);
            let detail = json!({ "operator": operator.id, "issuer": issuer, "subject": subject });
            audit::record(tx, app, &actor, Owner::Service, "operator.identity", detail).await?;
        }
    }
    Ok(Outcome::Permitted(operator))
}
