//! Requests to the OpenID provider: its metadata and keys, ID tokens, and claims about a person.
//!
//! Nothing is fetched before the first sign-in, so a host starts without its provider.

use std::{
    error::Error as StdError,
    iter::successors,
    sync::{Arc, Mutex, PoisonError},
};

use axum::http::{HeaderName, HeaderValue, StatusCode};
use openidconnect::{
    AccessToken, AsyncHttpClient, AuthType, AuthorizationCode, ClaimsVerificationError, CsrfToken,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, Nonce,
    OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError,
    Scope, SignatureVerificationError, TokenResponse,
    core::{
        CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreErrorResponseType,
        CoreIdTokenClaims, CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreTokenResponse,
        CoreUserInfoClaims,
    },
};

use super::REFUSED;
use crate::state::{config::OpenIdProvider, prelude::*};
use tollhouse_platform::outbound::{
    egress::{Egress, EgressError, EgressRequest},
    is_loopback,
};

/// Path of the console's page to which the provider returns a person.
const CALLBACK: &str = "/console/sign-in/oidc/callback";
/// Age at which metadata and keys are fetched again.
const MAX_AGE: Duration = Duration::from_secs(3600);
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_RESPONSE_BYTES: usize = 1 << 20;
const RETRY_AFTER_S: u32 = 10;

/// Algorithms of ID tokens: signatures with a key of the provider, never `none` or an HMAC.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

const SIGN_IN_EXPIRED: Error =
    Error::Unauthorized("the provider no longer accepts this sign-in: start again");

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// The provider's metadata and keys, and the monotonic time at which they were fetched.
#[derive(Default)]
pub struct MetadataCache(Mutex<Option<(Arc<CoreProviderMetadata>, Duration)>>);

/// The secrets of a sign-in that has begun.
pub struct Challenge {
    pub state: String,
    pub nonce: String,
    /// The PKCE code verifier.
    pub verifier: String,
}

/// Returns the provider of the settings, or 403.
pub fn settings(app: &App) -> Result<&OpenIdProvider> {
    let provider = app.settings.openid_provider.as_ref();
    provider.ok_or_else(|| Error::Forbidden("no OpenID provider is configured".to_owned()))
}

/// Returns the URL of the provider's page for a sign-in.
pub async fn authorization_url(app: &App, challenge: &Challenge) -> Result<String> {
    let client = connect(app).await?;
    let verifier = PkceCodeVerifier::new(challenge.verifier.clone());
    let (state, nonce) = (challenge.state.clone(), challenge.nonce.clone());
    let request = client.authorize_url(
        CoreAuthenticationFlow::AuthorizationCode,
        || CsrfToken::new(state),
        || Nonce::new(nonce),
    );
    let request = request
        .add_scope(Scope::new("email".to_owned()))
        .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
    let (url, ..) = request.url();
    Ok(url.into())
}

/// Exchanges an authorization code for an ID token, and verifies the token.
pub async fn exchange_code(app: &App, code: String, challenge: &Challenge) -> Result<Login> {
    let client = connect(app).await?;
    let request = client.exchange_code(AuthorizationCode::new(code)).map_err(unusable)?;
    let request = request.set_pkce_verifier(PkceCodeVerifier::new(challenge.verifier.clone()));
    let tokens = request.request_async(&http_client(app)).await;
    let tokens = tokens.map_err(|error| match error {
        RequestTokenError::ServerResponse(response)
            if *response.error() == CoreErrorResponseType::InvalidGrant =>
        {
            SIGN_IN_EXPIRED
        }
        error => unusable(error),
    })?;
    let nonce = Nonce::new(challenge.nonce.clone());
    let claims = match verify(app, &client, &tokens, &nonce) {
        Err(ClaimsVerificationError::SignatureVerification(
            SignatureVerificationError::NoMatchingKey,
        )) => verify(app, &client_of(app, fetch_metadata(app).await?)?, &tokens, &nonce),
        verified => verified,
    };
    let claims = claims.map_err(|error| {
        tracing::warn!(error = chain(&error), "an ID token was refused");
        REFUSED
    })?;
    Ok(Login { client, claims, access_token: tokens.access_token().clone() })
}

/// Verifies issuer, audience, signature, expiry, nonce and authorized party of an ID token.
fn verify(
    app: &App,
    client: &Client,
    tokens: &CoreTokenResponse,
    nonce: &Nonce,
) -> Result<CoreIdTokenClaims, ClaimsVerificationError> {
    let missing = || ClaimsVerificationError::Other("there is no ID token".to_owned());
    let verifier = client.id_token_verifier().set_allowed_algs(ALGORITHMS);
    let verifier = verifier.set_time_fn(|| app.clock.now().to_datetime());
    let claims = tokens.id_token().ok_or_else(missing)?.claims(&verifier, nonce)?;
    match claims.authorized_party() {
        Some(party) if party != client.client_id() => {
            let what = "the authorized party is another client".to_owned();
            Err(ClaimsVerificationError::InvalidAudience(what))
        }
        _ => Ok(claims.clone()),
    }
}

/// A person whom the provider authenticated.
pub struct Login {
    client: Client,
    claims: CoreIdTokenClaims,
    access_token: AccessToken,
}

/// An e-mail address, and whether the provider has verified it.
#[derive(Clone)]
pub struct EmailClaim {
    pub address: String,
    pub is_verified: bool,
}

impl Login {
    pub fn issuer(&self) -> &str {
        self.claims.issuer()
    }

    pub fn subject(&self) -> &str {
        self.claims.subject()
    }

    /// Returns the e-mail address of the ID token or, without it, of the UserInfo endpoint.
    pub async fn email(&self, app: &App) -> Result<Option<EmailClaim>> {
        let claim = |address: &str, is_verified: Option<bool>| EmailClaim {
            address: address.to_owned(),
            is_verified: is_verified == Some(true),
        };
        if let Some(address) = self.claims.email() {
            return Ok(Some(claim(address, self.claims.email_verified())));
        }
        let token = &self.access_token;
        if !token.secret().bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(unusable_because("the access token is no header value".to_owned()));
        }
        let subject = self.claims.subject().clone();
        let Ok(request) = self.client.user_info(token.clone(), Some(subject)) else {
            return Ok(None); // the provider has no such endpoint
        };
        let claims = request.request_async(&http_client(app)).await;
        let claims: CoreUserInfoClaims = claims.map_err(unusable)?;
        Ok(claims.email().map(|address| claim(address, claims.email_verified())))
    }
}

async fn connect(app: &App) -> Result<Client> {
    settings(app)?;
    let cached = {
        let cache = &app.slot::<MetadataCache>().0;
        cache.lock().unwrap_or_else(PoisonError::into_inner).clone()
    };
    let now = app.clock.elapsed();
    match cached.filter(|(_, fetched_at)| now.saturating_sub(*fetched_at) < MAX_AGE) {
        Some((metadata, _)) => client_of(app, metadata),
        None => client_of(app, fetch_metadata(app).await?),
    }
}

async fn fetch_metadata(app: &App) -> Result<Arc<CoreProviderMetadata>> {
    let issuer = settings(app)?.issuer.clone();
    let metadata = CoreProviderMetadata::discover_async(issuer, &http_client(app)).await;
    let metadata = metadata.map_err(unusable)?;
    let metadata = Arc::new(metadata);
    let cache = &app.slot::<MetadataCache>().0;
    let fetched = (metadata.clone(), app.clock.elapsed());
    *cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(fetched);
    Ok(metadata)
}

fn client_of(app: &App, metadata: Arc<CoreProviderMetadata>) -> Result<Client> {
    let provider = settings(app)?;
    let page = metadata.authorization_endpoint().url();
    let to_loopback = page.host_str().is_some_and(is_loopback);
    let is_permitted = match page.scheme() {
        "http" => provider.allow_loopback && to_loopback,
        scheme => scheme == "https",
    };
    if !is_permitted {
        return Err(unusable_because("the authorization endpoint has no https URL".to_owned()));
    }
    let redirect = RedirectUrl::new(format!("{}{CALLBACK}", app.settings.console_url));
    let (id, secret) = (provider.client_id.clone(), provider.client_secret.clone());
    // Without a list, `client_secret_basic` is the default (OpenID Connect Discovery, 3).
    let methods = metadata.token_endpoint_auth_methods_supported();
    let has_basic =
        methods.is_none_or(|methods| methods.contains(&CoreClientAuthMethod::ClientSecretBasic));
    let auth_type = if has_basic { AuthType::BasicAuth } else { AuthType::RequestBody };
    let client = CoreClient::from_provider_metadata((*metadata).clone(), id, Some(secret));
    Ok(client.set_auth_type(auth_type).set_redirect_uri(redirect.map_err(Error::internal)?))
}

/// Egress as the HTTP client of the library.
struct HttpClient(Egress);

fn http_client(app: &App) -> HttpClient {
    HttpClient(app.egress.sign_in.clone())
}

impl<'c> AsyncHttpClient<'c> for HttpClient {
    type Error = EgressError;
    type Future = BoxFuture<'c, Result<HttpResponse, EgressError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        send(&self.0, request).boxed()
    }
}

async fn send(egress: &Egress, request: HttpRequest) -> Result<HttpResponse, EgressError> {
    let (parts, body) = request.into_parts();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
    let response = egress.send(EgressRequest {
        sender: "sign_in".into(),
        method: parts.method.to_string(),
        url: parts.uri.to_string(),
        headers: headers.collect(),
        body: (!body.is_empty()).then(|| body.into()),
        identity: None,
        timeout: TIMEOUT,
        max_response_bytes: MAX_RESPONSE_BYTES,
    });
    let response = response.await?;
    let mut received = HttpResponse::new(response.body.to_vec());
    // An invalid HTTP status counts as a failure, too.
    *received.status_mut() =
        StatusCode::from_u16(response.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = response.headers.into_iter().filter_map(|(name, value)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    });
    received.headers_mut().extend(headers);
    Ok(received)
}

/// Returns 503: the provider is unreachable, or its response or the settings are wrong. The cause
/// is logged.
fn unusable(error: impl StdError + 'static) -> Error {
    unusable_because(chain(&error))
}

fn unusable_because(detail: String) -> Error {
    let message = "the OpenID provider cannot be used now: try again later".to_owned();
    Error::RetryLater { message, detail, retry_after_s: RETRY_AFTER_S }
}

fn chain(error: &(dyn StdError + 'static)) -> String {
    let causes = successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
