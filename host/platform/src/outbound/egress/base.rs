//! Checks of base URLs that an operator sets.

use std::net::Ipv4Addr;

use url::Url;

use super::{Egress, literal_ip};

impl Egress {
    /// Checks whether requests to URLs below `base` are permitted, as far as possible before name
    /// resolution. The error completes the sentence "it must be …".
    pub fn check_base(&self, base: &str) -> Result<(), &'static str> {
        const ABSOLUTE: &str = "an absolute https URL";
        let url = Url::parse(base).map_err(|_| ABSOLUTE)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("a URL without user name and password");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("a URL without query and fragment");
        }
        let host = url.host_str().unwrap_or_default();
        // Names that always mean the local machine (RFC 6761, 6.3).
        let name = host.trim_end_matches('.');
        let is_local = name == "localhost" || name.ends_with(".localhost");
        let ip = if is_local { Some(Ipv4Addr::LOCALHOST.into()) } else { literal_ip(&url) };
        if ip.is_some_and(|ip| !self.policy.permits(host, ip)) {
            return Err("a URL of a public address");
        }
        self.check_url(base).map(drop).map_err(|_| ABSOLUTE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::EgressPolicy;
    use super::*;

    #[test]
    fn base_urls_that_egress_would_refuse_are_rejected() {
        const ABSOLUTE: Result<(), &str> = Err("an absolute https URL");
        const WITHOUT_USER: Result<(), &str> = Err("a URL without user name and password");
        const WITHOUT_QUERY: Result<(), &str> = Err("a URL without query and fragment");
        const PUBLIC: Result<(), &str> = Err("a URL of a public address");
        let check = |allow_loopback, base: &str| {
            let allow_private = vec!["registers.internal".to_owned(), "10.1.2.3".to_owned()];
            Egress::new(EgressPolicy { allow_loopback, allow_private }).unwrap().check_base(base)
        };
        for (base, strict, development) in [
            ("https://api.example.com", Ok(()), Ok(())),
            ("https://api.example.com:8443/v3/", Ok(()), Ok(())),
            ("https://registers.internal/v1", Ok(()), Ok(())),
            ("https://10.1.2.3", Ok(()), Ok(())),
            ("http://api.example.com", ABSOLUTE, ABSOLUTE),
            ("api.example.com", ABSOLUTE, ABSOLUTE),
            ("/v3", ABSOLUTE, ABSOLUTE),
            ("", ABSOLUTE, ABSOLUTE),
            ("https://", ABSOLUTE, ABSOLUTE),
            ("file:///etc/passwd", ABSOLUTE, ABSOLUTE),
            ("https://10.0.0.1", PUBLIC, PUBLIC),
            ("https://[fd00::1]/", PUBLIC, PUBLIC),
            ("https://169.254.169.254/latest", PUBLIC, PUBLIC),
            ("https://127.0.0.1", PUBLIC, Ok(())),
            ("http://127.0.0.1:9/x", PUBLIC, Ok(())),
            ("http://localhost:9/x", PUBLIC, Ok(())),
            ("https://localhost.", PUBLIC, Ok(())),
            ("https://api.localhost", PUBLIC, Ok(())),
            ("https://user:word@api.example.com", WITHOUT_USER, WITHOUT_USER),
            ("https://user@api.example.com", WITHOUT_USER, WITHOUT_USER),
            ("https://api.example.com/?key=1", WITHOUT_QUERY, WITHOUT_QUERY),
            ("https://api.example.com/#top", WITHOUT_QUERY, WITHOUT_QUERY),
        ] {
            assert_eq!((check(false, base), check(true, base)), (strict, development), "{base}");
        }
    }
}
