//! API for signing in and out.

use crate::operations::operators::{
    oidc::{self, Begun, Finished, Returned},
    permissions::PERMISSIONS,
    sign_in::{self, Credentials, Enrolment, Invitation, InvitationUse, Session},
};
use crate::{operations::audit::Actor, state::prelude::*};
use tollhouse_http::RequestOrigin;

/// Shortest password. Longer ones need no rules about characters (NIST SP 800-63B).
const MIN_PASSWORD_CHARACTERS: usize = 12;

/// Invites a person to set a password. Earlier invitations and all sessions of the person end.
pub async fn invite(
    State(app): State<App>,
    actor: Actor,
    Path(operator): Path<String>,
) -> Result<DataResponse<Invitation>> {
    let invitation = sign_in::invite(&app, actor, operator).await?;
    DataResponse::data(invitation, "Invitation created successfully")
}

fields! {
    /// A password for an invited person.
    Body EnrolmentOrder(body) {
        invitation: Visible<100>,
        /// At least 12 characters.
        password: Text<200> => match password.chars().count() >= MIN_PASSWORD_CHARACTERS {
            true => Ok(password),
            false => Err(body.must_be("password", "at least 12 characters long")),
        },
        /// `true` for the invitation of a member of a company.
        member: Option<Flag>,
    }
}

/// Prepares the password of an invited person. It is stored at the confirmation.
pub async fn enrol(
    State(app): State<App>,
    origin: RequestOrigin,
    body: Body<EnrolmentOrder>,
) -> Result<DataResponse<Enrolment>> {
    let EnrolmentOrder { invitation, password, member } = EnrolmentOrder::read(&body)?;
    let invitation = InvitationUse { invitation: &invitation, is_member: member.unwrap_or(false) };
    let enrolment = sign_in::enrol(&app, &origin, invitation, password).await?;
    DataResponse::data(enrolment, "Enrolment prepared successfully")
}

fields! {
    /// The first code of an authenticator app.
    Body Confirmation {
        invitation: Visible<100>,
        /// The `enrolment` of the response that prepared the password.
        enrolment: Visible<1_000>,
        /// Six digits.
        code: Visible<10>,
        /// `true` for the invitation of a member of a company.
        member: Option<Flag>,
    }
}

/// Confirms the authenticator app of an invited person, and signs the person in.
pub async fn confirm(
    State(app): State<App>,
    origin: RequestOrigin,
    body: Body<Confirmation>,
) -> Result<DataResponse<Session>> {
    let Confirmation { invitation, enrolment, code, member } = body.read()?;
    let invitation = InvitationUse { invitation: &invitation, is_member: member.unwrap_or(false) };
    let session = sign_in::confirm(&app, &origin, invitation, &enrolment, code).await?;
    DataResponse::data(session, "Signed in successfully")
}

fields! {
    /// Credentials of a person.
    Body SignIn {
        email: Email,
        password: Text<200>,
        /// Code of the authenticator app: six digits, each valid once.
        code: Visible<10>,
        /// `true` signs in a member of a company; otherwise only operators can sign in.
        member: Option<Flag>,
    }
}

pub async fn sign_in(
    State(app): State<App>,
    origin: RequestOrigin,
    body: Body<SignIn>,
) -> Result<DataResponse<Session>> {
    let SignIn { email, password, code, member } = body.read()?;
    let is_member = member.unwrap_or(false);
    let credentials = Credentials { email, password, code, is_member };
    let session = sign_in::sign_in(&app, &origin, credentials).await?;
    DataResponse::data(session, "Signed in successfully")
}

fields! {
    /// A sign-in with the OpenID provider.
    Body OidcSignIn {
        /// Where the person continues, in a format of the client. It is returned at the end.
        next: Option<Text<1_000>>,
    }
}

/// Begins a sign-in with the OpenID provider.
pub async fn begin_oidc(
    State(app): State<App>,
    origin: RequestOrigin,
    body: Body<OidcSignIn>,
) -> Result<DataResponse<Begun>> {
    let OidcSignIn { next } = body.read()?;
    DataResponse::data(oidc::begin(&app, &origin, next).await?, "Sign-in begun successfully")
}

fields! {
    /// The response of the OpenID provider, and the sealed sign-in that the browser kept.
    Body OidcResponse {
        /// The `pending` of the response that began the sign-in.
        pending: Visible<8_000>,
        state: Visible<200>,
        code: Option<Text<4_000>>,
        /// Error code of the provider, instead of `code`.
        error: Option<Text<200>>,
    }
}

/// Finishes a sign-in with the OpenID provider.
pub async fn finish_oidc(
    State(app): State<App>,
    origin: RequestOrigin,
    body: Body<OidcResponse>,
) -> Result<DataResponse<Finished>> {
    let OidcResponse { pending, state, code, error } = body.read()?;
    let returned = Returned { pending, state, code, error };
    let finished = oidc::finish(&app, &origin, returned).await?;
    DataResponse::data(finished, "Signed in successfully")
}

fields! {
    /// Options of a sign-out.
    Body SignOut {
        /// `true` ends all sessions of the operator.
        everywhere: Option<Flag>,
    }
}

pub async fn sign_out(
    State(app): State<App>,
    actor: Actor,
    body: Body<SignOut>,
) -> Result<MessageResponse> {
    let everywhere = body.read()?.everywhere.unwrap_or(false);
    sign_in::sign_out(&app, actor, everywhere).await?;
    Ok(MessageResponse("Signed out successfully"))
}

/// The operator behind a request.
#[derive(Serialize, JsonSchema)]
pub struct Me {
    /// Empty for the configured operator token.
    id: String,
    name: String,
    permissions: Vec<&'static str>,
    /// Ids of the companies to which the operator is limited; `null`: no limit.
    companies: Option<Vec<CompanyId>>,
    /// Id of the company to whose team the person belongs; `null` for an operator.
    company: Option<CompanyId>,
}

pub async fn me(actor: Actor) -> Result<DataResponse<Me>> {
    let held = |name: &&'static str| actor.permissions.contains(name);
    let me = Me {
        id: actor.id.clone(),
        name: actor.name.clone(),
        permissions: PERMISSIONS.iter().map(|info| info.name).filter(held).collect(),
        companies: actor.companies.clone(),
        company: actor.member_of.clone(),
    };
    DataResponse::data(me, "Operator fetched successfully")
}
