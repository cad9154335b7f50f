//! The host functions under the names that a component imports, served by the installed fake host.

pub(crate) mod http {
    use crate::shared::tollhouse::plugin::http::{Request, Response};
    use crate::testing::calls::with_host;
    use crate::types::Fault;

    pub(crate) fn send(request: &Request) -> Result<Response, Fault> {
        with_host(|host| host.send(request))
    }
}

pub(crate) mod vault {
    use crate::testing::calls::with_host;
    use crate::types::Fault;

    pub(crate) fn secret(name: &str) -> Result<String, Fault> {
        with_host(|host| host.secret_value(name).map(|value| host.placeholder(&[name], value)))
    }

    pub(crate) fn basic(user: &str, password: &str) -> Result<String, Fault> {
        with_host(|host| host.basic(user, password))
    }

    pub(crate) fn hmac(algorithm: &str, secret: &str, data: &[u8]) -> Result<Vec<u8>, Fault> {
        with_host(|host| host.hmac(algorithm, secret, data))
    }

    pub(crate) fn matches(secret: &str, candidate: &[u8]) -> Result<bool, Fault> {
        with_host(|host| host.secret_value(secret).map(|value| value.as_bytes() == candidate))
    }
}

pub(crate) mod vault_transform {
    use crate::shared::tollhouse::plugin::vault_transform::Step;
    use crate::testing::calls::with_host;
    use crate::types::Fault;

    pub(crate) fn transform(template: &[u8], steps: &[Step]) -> Result<String, Fault> {
        with_host(|host| host.transform(template, steps))
    }
}

pub(crate) mod settings {
    use crate::testing::calls::with_host;

    pub(crate) fn get(name: &str) -> Option<String> {
        with_host(|host| host.settings.get(name).cloned())
    }
}

pub(crate) mod cache {
    use crate::testing::calls::with_host;

    pub(crate) fn get(key: &str) -> Option<String> {
        with_host(|host| host.cache.get(key).map(|(value, _)| value.clone()))
    }

    pub(crate) fn put(key: &str, value: &str, ttl_seconds: u32) {
        with_host(|host| host.cache.insert(key.to_owned(), (value.to_owned(), ttl_seconds)));
    }
}

pub(crate) mod log {
    use crate::log::Level;
    use crate::testing::calls::with_host;

    pub(crate) fn write(level: Level, message: &str) {
        with_host(|host| host.logged.push((level, message.to_owned())));
    }
}
