//! The cookies of both sites.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::{ConsoleOptions, Site};

/// A cookie, which scripts cannot read.
#[derive(Clone, Copy)]
pub struct Cookie {
    name: &'static str,
    max_age_s: u32,
}

/// The token of a session, which may end earlier.
pub const SESSION: Cookie = Cookie { name: "tollhouse", max_age_s: 12 * 3600 };
/// The sealed sign-in of a person who is at the OpenID provider.
pub const SIGN_IN: Cookie = Cookie { name: "tollhouse-sign-in", max_age_s: 600 };

impl Cookie {
    fn full_name(self, options: &ConsoleOptions) -> String {
        // The prefix makes browsers refuse a cookie that another host or plain HTTP has set.
        let prefix = if options.secure { "__Host-" } else { "" };
        // Both sites may have the same host name, and cookies are sent to all its ports.
        let suffix = if options.site == Site::Portal { "-portal" } else { "" };
        format!("{prefix}{}{suffix}", self.name)
    }

    /// Returns the value, if it is not empty.
    pub fn read(self, headers: &HeaderMap, options: &ConsoleOptions) -> Option<String> {
        let cookies =
            headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split("; ")).filter_map(|c| c.split_once('='));
        let name = self.full_name(options);
        let (_, value) = pairs.find(|(found, _)| *found == name)?;
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Returns the header that sets the cookie, or deletes it if the value is empty. The value must
    /// be visible ASCII without `;`.
    pub fn set(self, value: &str, options: &ConsoleOptions) -> HeaderValue {
        let name = self.full_name(options);
        let age = if value.is_empty() { 0 } else { self.max_age_s };
        let secure = if options.secure { "; Secure" } else { "" };
        let cookie =
            format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::from_str(&cookie).expect("tokens and sealed texts are visible ASCII")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(secure: bool) -> ConsoleOptions {
        ConsoleOptions { site: Site::Console, secure, openid_provider: None }
    }

    #[test]
    fn a_cookie_is_found_by_its_exact_name() {
        let mut sent = HeaderMap::new();
        let value = "a=b; __Host-tollhouse=ses_1; tollhouse=ses_2; tollhouse-sign-in=v1.a+/b";
        sent.insert(header::COOKIE, HeaderValue::from_static(value));
        assert_eq!(SESSION.read(&sent, &options(true)).as_deref(), Some("ses_1"));
        assert_eq!(SESSION.read(&sent, &options(false)).as_deref(), Some("ses_2"));
        assert_eq!(SIGN_IN.read(&sent, &options(false)).as_deref(), Some("v1.a+/b"));
        assert_eq!(SIGN_IN.read(&sent, &options(true)), None);
        let of_portal = ConsoleOptions { site: Site::Portal, ..options(true) };
        assert_eq!(SESSION.read(&sent, &of_portal), None);
        sent.insert(header::COOKIE, HeaderValue::from_static("__Host-tollhouse="));
        assert_eq!(SESSION.read(&sent, &options(true)), None);
        let expected =
            "__Host-tollhouse=ses_1; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(SESSION.set("ses_1", &options(true)), expected);
    }
}
