//! An OpenID provider whose tokens a test can spoil.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use axum::{
    Form, Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64_URL},
};
use hmac::{Hmac, KeyInit, Mac};
use openidconnect::{
    JsonWebKeyId, PrivateSigningKey,
    core::{CoreEdDsaPrivateSigningKey, CoreJwsSigningAlgorithm},
};
use rcgen::{KeyPair, PKCS_ED25519};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tollhouse_platform::clock::Clock;
use url::Url;

pub const CLIENT_ID: &str = "tollhouse";
pub const CLIENT_SECRET: &str = "a client secret: 50 %";
const ACCESS_TOKEN: &str = "an-access-token";

/// How ID tokens are signed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signing {
    Valid,
    /// With a key that is not published, under the id of the one that is.
    ForeignKey,
    /// Algorithm `none`.
    Unsigned,
    /// An HMAC with the client secret.
    SharedSecret,
}

/// A running provider. Cheap to clone.
#[derive(Clone)]
pub struct TestProvider {
    pub issuer: String,
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    keys: Mutex<Vec<CoreEdDsaPrivateSigningKey>>,
    signing: Mutex<Signing>,
    /// Claims that replace those of ID tokens; `null` removes one.
    changes: Mutex<Value>,
    /// Claims of the UserInfo endpoint.
    user_info: Mutex<Value>,
    codes: Mutex<HashMap<String, Authorization>>,
    discoveries: AtomicUsize,
}

/// What the browser sent to the authorization endpoint, and the claims about the person.
struct Authorization {
    nonce: String,
    challenge: String,
    redirect: String,
    claims: Value,
}

fn new_key(id: &str) -> CoreEdDsaPrivateSigningKey {
    let pem = KeyPair::generate_for(&PKCS_ED25519).unwrap().serialize_pem();
    CoreEdDsaPrivateSigningKey::from_ed25519_pem(&pem, Some(JsonWebKeyId::new(id.to_owned())))
        .unwrap()
}

impl TestProvider {
    pub async fn start(clock: Clock) -> TestProvider {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", tcp.local_addr().unwrap());
        let provider = TestProvider::at(issuer, clock);
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .route("/userinfo", get(user_info))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(tcp, router).await });
        provider
    }

    /// A provider at a URL where nothing listens.
    pub fn at(issuer: String, clock: Clock) -> TestProvider {
        let shared = Shared {
            clock,
            keys: Mutex::new(vec![new_key("key-1"), new_key("key-1")]),
            signing: Mutex::new(Signing::Valid),
            changes: Mutex::new(json!({})),
            user_info: Mutex::new(json!({})),
            codes: Mutex::default(),
            discoveries: AtomicUsize::new(0),
        };
        TestProvider { issuer, shared: Arc::new(shared) }
    }

    pub fn sign(&self, signing: Signing) {
        *self.shared.signing.lock().unwrap() = signing;
    }

    pub fn change_claims(&self, changes: Value) {
        *self.shared.changes.lock().unwrap() = changes;
    }

    pub fn set_user_info(&self, claims: Value) {
        *self.shared.user_info.lock().unwrap() = claims;
    }

    /// Replaces the key, which gets another id.
    pub fn rotate_key(&self) {
        self.shared.keys.lock().unwrap()[0] = new_key("key-2");
    }

    pub fn discoveries(&self) -> usize {
        self.shared.discoveries.load(SeqCst)
    }

    /// Signs a person in at the URL to which the host sent the browser. Returns code and state.
    pub fn authorize(&self, url: &str, claims: Value) -> (String, String) {
        let url = Url::parse(url).unwrap();
        assert!(url.as_str().starts_with(&format!("{}/authorize?", self.issuer)), "{url}");
        let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
        let redirect = query["redirect_uri"].clone();
        assert_eq!(redirect, "https://console.example/console/sign-in/oidc/callback");
        let fixed = ["response_type", "client_id", "code_challenge_method", "scope"];
        let expected = ["code", CLIENT_ID, "S256", "openid email"];
        assert_eq!(fixed.map(|name| &*query[name]), expected);
        let mut codes = self.shared.codes.lock().unwrap();
        let code = format!("code {}", codes.len());
        let authorization = Authorization {
            nonce: query["nonce"].clone(),
            challenge: query["code_challenge"].clone(),
            redirect,
            claims,
        };
        codes.insert(code.clone(), authorization);
        (code, query["state"].clone())
    }

    /// Returns an ID token as the test wants it.
    fn id_token(&self, authorization: &Authorization) -> String {
        let now = self.shared.clock.now().unix_seconds();
        let mut claims = json!({
            "iss": self.issuer, "aud": CLIENT_ID, "exp": now + 300, "iat": now,
            "nonce": authorization.nonce,
        });
        for more in [&authorization.claims, &*self.shared.changes.lock().unwrap()] {
            for (name, value) in more.as_object().unwrap() {
                claims[name] = value.clone();
            }
        }
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let signing = *self.shared.signing.lock().unwrap();
        let algorithm = match signing {
            Signing::Valid | Signing::ForeignKey => "EdDSA",
            Signing::Unsigned => "none",
            Signing::SharedSecret => "HS256",
        };
        let keys = self.shared.keys.lock().unwrap();
        let header = json!({ "alg": algorithm, "kid": key_id(&keys[0]) });
        let encode = |value: Value| BASE64_URL.encode(value.to_string());
        let signed = format!("{}.{}", encode(header), encode(claims));
        let by_key = |key: &CoreEdDsaPrivateSigningKey| {
            key.sign(&CoreJwsSigningAlgorithm::EdDsa, signed.as_bytes()).unwrap()
        };
        let signature = match signing {
            Signing::Valid => by_key(&keys[0]),
            Signing::ForeignKey => by_key(&keys[1]),
            Signing::Unsigned => Vec::new(),
            Signing::SharedSecret => {
                let mac = Hmac::<Sha256>::new_from_slice(CLIENT_SECRET.as_bytes()).unwrap();
                mac.chain_update(&signed).finalize().into_bytes().to_vec()
            }
        };
        format!("{signed}.{}", BASE64_URL.encode(signature))
    }
}

fn key_id(key: &CoreEdDsaPrivateSigningKey) -> Value {
    json!(key.as_verification_key())["kid"].clone()
}

async fn metadata(State(provider): State<TestProvider>) -> Json<Value> {
    provider.shared.discoveries.fetch_add(1, SeqCst);
    let issuer = &provider.issuer;
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "userinfo_endpoint": format!("{issuer}/userinfo"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        // Whatever the provider offers, the host accepts only signatures by keys.
        "id_token_signing_alg_values_supported": ["EdDSA", "HS256", "none"],
    }))
}

async fn keys(State(provider): State<TestProvider>) -> Json<Value> {
    let keys = provider.shared.keys.lock().unwrap();
    Json(json!({ "keys": [keys[0].as_verification_key()] }))
}

async fn token(
    State(provider): State<TestProvider>,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> (StatusCode, Json<Value>) {
    let encode =
        |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let credentials = format!("{}:{}", encode(CLIENT_ID), encode(CLIENT_SECRET));
    if headers["authorization"] != format!("Basic {}", BASE64.encode(credentials)) {
        return (StatusCode::UNAUTHORIZED, Json(json!({ "error": "invalid_client" })));
    }
    let authorization = provider.shared.codes.lock().unwrap().remove(&form["code"]);
    let challenge = BASE64_URL.encode(Sha256::digest(&form["code_verifier"]));
    let granted = authorization.filter(|authorization| {
        authorization.challenge == challenge && authorization.redirect == form["redirect_uri"]
    });
    let Some(authorization) = granted else {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" })));
    };
    let tokens = json!({
        "access_token": ACCESS_TOKEN, "token_type": "Bearer",
        "id_token": provider.id_token(&authorization),
    });
    (StatusCode::OK, Json(tokens))
}

async fn user_info(State(provider): State<TestProvider>, headers: HeaderMap) -> Json<Value> {
    assert_eq!(headers["authorization"], format!("Bearer {ACCESS_TOKEN}"));
    Json(provider.shared.user_info.lock().unwrap().clone())
}
