//! Passwords and one-time codes of operators.

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use totp_rs::{Builder, Secret, Totp};

use crate::state::prelude::*;

/// Length of a TOTP secret in bytes, as RFC 4226 recommends.
const SECRET_BYTES: usize = 20;
/// A hash that no password has, checked for unknown e-mail addresses so that they take as long.
const NO_PASSWORD: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Returns the Argon2id hash of a password in PHC form, with the parameters that OWASP recommends.
pub async fn hash_password(app: &App, password: String) -> Result<String> {
    let salt: [u8; 16] = app.random.bytes();
    let work = tokio::task::spawn_blocking(move || -> argon2::password_hash::Result<_> {
        let hash: PasswordHash =
            Argon2::default().hash_password_with_salt(password.as_bytes(), &salt)?;
        Ok(hash.to_string())
    });
    work.await.map_err(Error::internal)?.map_err(Error::internal)
}

/// Returns whether the hash is that of the password; `false`, after the same time, without a hash.
pub async fn verify_password(password: String, hash: Option<String>) -> Result<bool> {
    let work = tokio::task::spawn_blocking(move || {
        let hash = hash.as_deref().unwrap_or(NO_PASSWORD);
        let parsed = PasswordHash::new(hash);
        parsed.map(|parsed| Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok())
    });
    work.await.map_err(Error::internal)?.map_err(Error::internal)
}

/// The one-time codes of an operator's authenticator app (RFC 6238): six digits, a new one every 30
/// seconds, with one period of tolerance.
pub struct OneTimeCodes(Totp);

impl OneTimeCodes {
    /// Creates the codes of a new secret.
    pub fn generate(app: &App, email: &str) -> Result<OneTimeCodes> {
        OneTimeCodes::new(Secret::from(&app.random.bytes::<SECRET_BYTES>()[..]), email)
    }

    /// Creates the codes of a secret in base32.
    pub fn parse(secret: &str, email: &str) -> Result<OneTimeCodes> {
        let secret = Secret::try_from_base32(secret).map_err(Error::internal)?;
        OneTimeCodes::new(secret, email)
    }

    fn new(secret: Secret, email: &str) -> Result<OneTimeCodes> {
        let totp = Builder::new()
            .with_secret(secret)
            .with_account_name(email)
            .with_issuer(Some("Tollhouse"))
            .build();
        totp.map(OneTimeCodes).map_err(Error::internal)
    }

    /// Returns the secret in base32.
    pub fn secret(&self) -> String {
        self.0.secret().to_base32()
    }

    /// Returns the `otpauth` URL for authenticator apps.
    pub fn url(&self) -> Result<String> {
        self.0.to_url().map_err(Error::internal)
    }

    /// Returns the period of a valid code.
    pub fn check(&self, code: &str, now: Timestamp) -> Option<i64> {
        let seconds = u64::try_from(now.unix_seconds()).ok()?;
        self.0.check(code, seconds).and_then(|step| i64::try_from(step).ok())
    }
}
