//! The fake host's implementation of the host functions.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};

use super::{CURRENT, FakeHost, Placeholder, Sent};
use crate::shared::tollhouse::plugin::{
    http::{Request, Response},
    vault_transform::Step,
};
use crate::types::Fault;

/// Runs `act` on the host of this thread.
pub(super) fn with_host<T>(act: impl FnOnce(&mut FakeHost) -> T) -> T {
    let host = CURRENT.with_borrow(Clone::clone);
    let host = host.expect("no FakeHost is installed on this thread");
    act(&mut host.borrow_mut())
}

impl FakeHost {
    pub(super) fn send(&mut self, request: &Request) -> Result<Response, Fault> {
        self.check_bindings(request);
        let sent = Sent {
            method: request.method.to_ascii_uppercase(),
            url: request.url.clone(),
            headers: request
                .headers
                .iter()
                .map(|(n, v)| (n.clone(), self.fill_placeholders(v)))
                .collect(),
            body: self.fill_bytes(request.body.as_deref().unwrap_or_default()),
            timeout_ms: request.timeout_ms,
        };
        let response = self.next_response(&sent.method, &sent.url);
        self.sent.push(sent);
        let (status, body) = response?;
        Ok(Response { status, headers: Vec::new(), body })
    }

    fn next_response(&mut self, method: &str, url: &str) -> Result<(u16, Vec<u8>), Fault> {
        let path = url.split('?').next().unwrap_or(url);
        let fits = |end: &str| url.ends_with(end) || path.ends_with(end);
        let Some(route) = self.routes.iter_mut().find(|r| r.method == method && fits(&r.url))
        else {
            panic!("FakeHost has no response for {method} {url}");
        };
        match route.responses.len() {
            1 => route.responses[0].clone(),
            _ => route.responses.pop_front().expect("a route has a response"),
        }
    }

    pub(super) fn placeholder(&mut self, names: &[&str], value: String) -> String {
        let text = format!("vault-{:032x}", self.placeholders.len());
        let names = names.iter().map(|&name| name.to_owned()).collect();
        self.placeholders.push(Placeholder { names, text: text.clone(), value });
        text
    }

    pub(super) fn secret_value(&self, name: &str) -> Result<String, Fault> {
        self.secrets
            .get(name)
            .cloned()
            .ok_or_else(|| Fault::misconfigured(format!("the secret {name} is missing")))
    }

    pub(super) fn basic(&mut self, user: &str, password: &str) -> Result<String, Fault> {
        let setting = self.settings.get(user).cloned();
        let name = setting.map_or_else(|| self.secret_value(user), Ok)?;
        let pair = format!("{name}:{}", self.secret_value(password)?);
        Ok(self.placeholder(&[user, password], STANDARD.encode(pair)))
    }

    pub(super) fn hmac(&self, algorithm: &str, name: &str, data: &[u8]) -> Result<Vec<u8>, Fault> {
        let key = self.secret_value(name)?;
        match algorithm {
            "sha256" => Ok(keyed_hash::<Hmac<Sha256>>(key.as_bytes(), data)),
            "sha512" => Ok(keyed_hash::<Hmac<Sha512>>(key.as_bytes(), data)),
            _ => Err(Fault::invalid("algorithm", "no such algorithm")),
        }
    }

    pub(super) fn transform(&mut self, template: &[u8], steps: &[Step]) -> Result<String, Fault> {
        let mut bytes = self.fill_bytes(template);
        for step in steps {
            bytes = self.apply(step, &bytes)?;
        }
        let value = String::from_utf8(bytes)
            .map_err(|_| Fault::misconfigured("the result of a transformation is not text"))?;
        let template = String::from_utf8_lossy(template);
        let is_inside = |known: &&Placeholder| template.contains(&known.text);
        let parts = self.placeholders.iter().filter(is_inside);
        let names: Vec<String> = parts.flat_map(|part| part.names.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(self.placeholder(&names, value))
    }

    fn apply(&self, step: &Step, bytes: &[u8]) -> Result<Vec<u8>, Fault> {
        let key = step.key.as_deref().unwrap_or_default();
        match &*step.name {
            "base64" => Ok(STANDARD.encode(bytes).into_bytes()),
            "base64url" => Ok(URL_SAFE_NO_PAD.encode(bytes).into_bytes()),
            "hex" => Ok(hex::encode(bytes).into_bytes()),
            "sha256" => Ok(Sha256::digest(bytes).to_vec()),
            "sha512" => Ok(Sha512::digest(bytes).to_vec()),
            "hmac-sha256" => self.hmac("sha256", key, bytes),
            "hmac-sha512" => self.hmac("sha512", key, bytes),
            "rsa-sha256" => {
                self.secret_value(key)?;
                Ok(format!("rsa-sha256({key}, {})", hex::encode(Sha256::digest(bytes))).into())
            }
            "rsa-encrypt" => {
                let setting = self.settings.get(key).cloned();
                setting.map_or_else(|| self.secret_value(key), Ok)?;
                Ok([format!("rsa-encrypt({key}, ").as_bytes(), bytes, b")"].concat())
            }
            _ => Err(Fault::invalid("algorithm", "no such algorithm")),
        }
    }

    fn fill_placeholders(&self, text: &str) -> String {
        let fill = |text: String, Placeholder { text: placeholder, value, .. }: &Placeholder| {
            text.replace(placeholder, value)
        };
        self.placeholders.iter().fold(text.to_owned(), fill)
    }

    fn fill_bytes(&self, body: &[u8]) -> Vec<u8> {
        match std::str::from_utf8(body) {
            Ok(text) => self.fill_placeholders(text).into_bytes(),
            Err(_) => body.to_vec(),
        }
    }
}

fn keyed_hash<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("an HMAC key may have any length");
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}
