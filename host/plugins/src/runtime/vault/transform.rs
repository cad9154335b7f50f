//! Transformations of secrets: encodings, digests, signatures and ciphertexts that a request needs.

use std::{collections::HashMap, ops::RangeInclusive};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use rand::{SeedableRng, rngs::StdRng};
use rsa::{
    PrivateKey, PublicKey,
    pkcs1::{DecodeRsaPrivateKey, DecodeRsaPublicKey},
    pkcs8::{DecodePrivateKey, DecodePublicKey},
    traits::PublicKeyParts,
};
use sha2::{Digest, Sha256, Sha512};
use x509_parser::pem::Pem;

use super::{Secrets, VaultError, placeholders::MAX_PLACEHOLDERS, truncate_name};

/// Maximum size of a template and of each result.
pub(super) const MAX_TRANSFORMED_BYTES: usize = 16 << 10;
const MAX_STEPS: usize = 8;
/// Smaller keys are insecure. The time of a signature grows with the cube of the size.
const KEY_BITS: RangeInclusive<u32> = 2_048..=4_096;

/// One step, by its name in the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub name: String,
    /// A secret or, for a public key, a setting.
    pub key: Option<String>,
}

/// The account's values by name.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    pub secrets: &'a Secrets,
    pub settings: &'a HashMap<String, String>,
}

/// The results of a call's transformations: later runs reuse those of the same template and steps.
pub struct Results {
    /// By the digest of template and steps.
    values: Vec<([u8; 32], String)>,
    /// For the padding of ciphertexts, which the guest must not know.
    rng: StdRng,
    /// In a replay, which has no secrets, all results are this text.
    replayed: Option<&'static str>,
}

impl Results {
    pub fn new(seed: [u8; 32]) -> Results {
        Results { values: Vec::new(), rng: StdRng::from_seed(seed), replayed: None }
    }

    pub fn set_replayed(&mut self, text: &'static str) {
        self.replayed = Some(text);
    }

    pub(super) fn get_or_transform(
        &mut self,
        account: Account<'_>,
        source: [u8; 32],
        filled: Vec<u8>,
        steps: &[Step],
    ) -> Result<String, VaultError> {
        if let Some(text) = self.replayed {
            return Ok(text.to_owned());
        }
        if let Some((_, value)) = self.values.iter().find(|(known, _)| *known == source) {
            return Ok(value.clone());
        }
        let value = transform(account, filled, steps, &mut self.rng)?;
        if self.values.len() < MAX_PLACEHOLDERS {
            self.values.push((source, value.clone()));
        }
        Ok(value)
    }
}

/// Checks the sizes, before anything is kept.
pub(super) fn check(template: &[u8], steps: &[Step]) -> Result<(), VaultError> {
    if steps.len() > MAX_STEPS {
        return Err(VaultError::TooManySteps);
    }
    match template.len() > MAX_TRANSFORMED_BYTES {
        true => Err(VaultError::TemplateTooLarge),
        false => Ok(()),
    }
}

/// Returns the digest of a template, as it is and filled, and of the steps.
pub(super) fn digest(template: &[u8], filled: &[u8], steps: &[Step]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let mut add = |part: &[u8]| {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    add(template);
    add(filled);
    for Step { name, key } in steps {
        add(name.as_bytes());
        add(key.as_deref().unwrap_or_default().as_bytes());
    }
    hasher.finalize().into()
}

/// Applies the steps in order. The result must be text.
fn transform(
    account: Account<'_>,
    template: Vec<u8>,
    steps: &[Step],
    rng: &mut StdRng,
) -> Result<String, VaultError> {
    let mut bytes = template;
    for step in steps {
        bytes = account.apply(&bytes, step, rng)?;
        if bytes.len() > MAX_TRANSFORMED_BYTES {
            return Err(VaultError::TemplateTooLarge);
        }
    }
    String::from_utf8(bytes).map_err(|_| VaultError::NotText)
}

impl Account<'_> {
    fn apply(self, bytes: &[u8], step: &Step, rng: &mut StdRng) -> Result<Vec<u8>, VaultError> {
        let key = step.key.as_deref().unwrap_or_default();
        match &*step.name {
            "base64" => Ok(STANDARD.encode(bytes).into_bytes()),
            "base64url" => Ok(URL_SAFE_NO_PAD.encode(bytes).into_bytes()),
            "hex" => Ok(hex::encode(bytes).into_bytes()),
            "sha256" => Ok(Sha256::digest(bytes).to_vec()),
            "sha512" => Ok(Sha512::digest(bytes).to_vec()),
            "hmac-sha256" => self.secrets.hmac("sha256", key, bytes),
            "hmac-sha512" => self.secrets.hmac("sha512", key, bytes),
            "rsa-sha256" => {
                let private = private_key(self.secrets.get(key)?);
                let private = private.ok_or_else(|| VaultError::BadKey(truncate_name(key)))?;
                private
                    .pkcs1v15_sign_with_rng::<Sha256, _>(rng, bytes)
                    .map_err(|_| VaultError::BadKey(truncate_name(key)))
            }
            "rsa-encrypt" => {
                let pem = self.settings.get(key).map(String::as_str);
                let public = public_key(pem.map_or_else(|| self.secrets.get(key), Ok)?);
                let public = public.ok_or_else(|| VaultError::BadKey(truncate_name(key)))?;
                let encrypted = public.pkcs1v15_encrypt_with_rng(rng, bytes);
                encrypted.map_err(|_| VaultError::TooLongToEncrypt)
            }
            unknown => Err(VaultError::UnknownAlgorithm(truncate_name(unknown))),
        }
    }
}

/// Reads a private key in PKCS #8 or PKCS #1.
fn private_key(pem: &str) -> Option<PrivateKey> {
    let key = PrivateKey::from_pkcs8_pem(pem).or_else(|_| PrivateKey::from_pkcs1_pem(pem));
    key.ok().filter(|key| KEY_BITS.contains(&key.n().bit_width()))
}

/// Reads a public key, or that of a certificate.
fn public_key(pem: &str) -> Option<PublicKey> {
    let of_certificate = || {
        let block = Pem::iter_from_buffer(pem.as_bytes()).next()?.ok()?;
        let certificate = block.parse_x509().ok()?;
        PublicKey::from_public_key_der(certificate.public_key().raw).ok()
    };
    let key = PublicKey::from_public_key_pem(pem).or_else(|_| PublicKey::from_pkcs1_pem(pem));
    key.ok().or_else(of_certificate).filter(|key| KEY_BITS.contains(&key.n().bit_width()))
}

#[cfg(test)]
mod tests {
    use rsa::pkcs1::{EncodeRsaPrivateKey, EncodeRsaPublicKey};
    use rsa::pkcs8::LineEnding;

    use super::*;

    const PRIVATE_KEY: &str = include_str!("testdata/private_key.pem");
    const PUBLIC_KEY: &str = include_str!("testdata/public_key.pem");
    const CERTIFICATE: &str = include_str!("testdata/certificate.pem");

    fn step(step: &str) -> Step {
        let (name, key) =
            step.split_once(' ').map_or((step, None), |(name, key)| (name, Some(key)));
        Step { name: name.to_owned(), key: key.map(str::to_owned) }
    }

    /// Transforms by steps such as `hmac-sha256 key`, in the account of the tests.
    fn transformed(template: &[u8], steps: &[&str]) -> Result<String, VaultError> {
        let private = PrivateKey::from_pkcs8_pem(PRIVATE_KEY).unwrap();
        let secrets = [
            ("key", "Jefe".to_owned()),
            ("private", PRIVATE_KEY.to_owned()),
            ("private1", private.to_pkcs1_pem(LineEnding::LF).unwrap().to_string()),
            ("public", PUBLIC_KEY.to_owned()),
        ];
        let secrets = secrets.map(|(name, value)| (name.to_owned(), value));
        let public = private.to_public_key().to_pkcs1_pem(LineEnding::LF).unwrap();
        let settings = [("certificate", CERTIFICATE.to_owned()), ("public1", public)];
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        let secrets = Secrets::new(secrets.into());
        let account = Account { secrets: &secrets, settings: &settings.into() };
        let steps: Vec<Step> = steps.iter().map(|name| step(name)).collect();
        check(template, &steps)?;
        transform(account, template.to_vec(), &steps, &mut StdRng::seed_from_u64(1))
    }

    #[test]
    fn steps_apply_in_order() {
        // RFC 4231, test case 2.
        let hmac = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        for (template, steps, expected) in [
            ("as it is", &[][..], "as it is"),
            ("a?~", &["base64"], "YT9+"),
            ("a?~a", &["base64"], "YT9+YQ=="),
            ("a?~a", &["base64url"], "YT9-YQ"),
            ("a", &["hex", "hex"], "3631"),
            ("what do ya want for nothing?", &["hmac-sha256 key", "hex"], hmac),
        ] {
            assert_eq!(transformed(template.as_bytes(), steps).as_deref(), Ok(expected));
        }
        let length = |step: &str| transformed(b"a", &[step, "hex"]).unwrap().len() / 2;
        let lengths = ["sha256", "sha512", "hmac-sha512 key", "rsa-sha256 private"].map(length);
        assert_eq!(lengths, [32, 64, 64, 256]);
    }

    #[test]
    fn signatures_are_those_of_openssl() {
        // printf abc | openssl dgst -sha256 -sign private_key.pem | base64
        let expected = "SwxYjGbptu0cFgPJz+P/dmarxWwFPbPaSzuvJ4fGOB0MBrV6JIoNuRwga6srqUMz+9C/IiqjieclRdQjalCDOMWrI0hHiOboF6Cd1VMmq34/mxJbxhwLlKeqptkjtCvCPswsiMVBXmn1dJXn0O7EGUmd4I/VrdXIlLVLqq6Sh3e3dv5J3GYZ6qOAHF0hd7vus0EST5QC46VxlN9panGE+yHiWRgeZlBWemnBMm3Bv7RWVBYRQQXeAlq/nYvutpV+sKVcV0JUrW01zzfOyZzoT4LwnJh83bDjYoJfIcSFpA9BqXVWj+lcXHo7dvcQNis2ojfmo2FUW4jNN9Uw4G5HDg==";
        for key in ["rsa-sha256 private", "rsa-sha256 private1"] {
            assert_eq!(transformed(b"abc", &[key, "base64"]).unwrap(), expected);
        }
    }

    #[test]
    fn a_ciphertext_for_a_certificate_or_a_key_is_decrypted_by_its_private_key() {
        let private = PrivateKey::from_pkcs8_pem(PRIVATE_KEY).unwrap();
        for key in ["certificate", "public", "public1"] {
            let encrypted =
                transformed(b"p4ss", &[&format!("rsa-encrypt {key}"), "base64"]).unwrap();
            let decrypted = private.pkcs1v15_decrypt(&STANDARD.decode(encrypted).unwrap());
            assert_eq!(decrypted.unwrap(), b"p4ss", "{key}");
        }
    }

    #[test]
    fn invalid_steps_keys_and_sizes_are_rejected() {
        let long = "x".repeat(MAX_TRANSFORMED_BYTES);
        let named = |error: fn(String) -> VaultError, name: &str| error(name.to_owned());
        for (template, steps, expected) in [
            ("a", &["md5"][..], named(VaultError::UnknownAlgorithm, "md5")),
            ("a", &["hmac-sha256 none", "hex"], named(VaultError::UnknownSecret, "none")),
            ("a", &["hmac-sha256 certificate"], named(VaultError::UnknownSecret, "certificate")),
            ("a", &["rsa-sha256"], named(VaultError::UnknownSecret, "")),
            ("a", &["rsa-sha256 key"], named(VaultError::BadKey, "key")),
            ("a", &["rsa-sha256 public"], named(VaultError::BadKey, "public")),
            ("a", &["rsa-encrypt key"], named(VaultError::BadKey, "key")),
            ("a", &["sha256"], VaultError::NotText),
            ("a", &["hex"; MAX_STEPS + 1], VaultError::TooManySteps),
            (&long[..246], &["rsa-encrypt public"], VaultError::TooLongToEncrypt),
            (&*long, &["base64"], VaultError::TemplateTooLarge),
        ] {
            assert_eq!(transformed(template.as_bytes(), steps), Err(expected), "{steps:?}");
        }
        assert!(transformed(&long.as_bytes()[..245], &["rsa-encrypt public", "hex"]).is_ok());
    }

    #[test]
    fn a_replay_has_results_without_keys() {
        let (secrets, settings) = (Secrets::default(), HashMap::new());
        let account = Account { secrets: &secrets, settings: &settings };
        let steps = [step("rsa-sha256 private"), step("base64")];
        let mut results = Results::new([0; 32]);
        let get = |results: &mut Results| {
            let source = digest(b"a", b"a", &steps);
            results.get_or_transform(account, source, b"a".to_vec(), &steps)
        };
        assert_eq!(get(&mut results), Err(VaultError::UnknownSecret("private".to_owned())));
        results.set_replayed("example");
        assert_eq!(get(&mut results).as_deref(), Ok("example"));
    }
}
