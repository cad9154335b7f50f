//! The two sites that these pages serve.

use crate::api::path;

/// Where pages are served, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// For operators, on the internal listener.
    Console,
    /// For the members of companies, on the public listener.
    Portal,
}

impl Site {
    /// The path of the first page.
    pub fn root(self) -> &'static str {
        match self {
            Site::Console => "/console",
            Site::Portal => "/portal",
        }
    }

    /// Returns whether members of companies sign in here, instead of operators.
    pub fn is_for_members(self) -> bool {
        self == Site::Portal
    }

    /// Returns the path of a page, percent-encoded, with a query of the values that are not empty.
    pub fn href(self, segments: &[&str], query: &[(&str, &str)]) -> String {
        path(&[&[&self.root()[1..]], segments].concat(), query)
    }

    /// Returns a path if it is one of this site, else that of the first page: a redirect must not
    /// lead to another site.
    pub fn own_page(self, path: &str) -> &str {
        let rest = path.strip_prefix(self.root());
        let is_own = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
            && !path.contains('\\')
            && !path.contains(char::is_control);
        if is_own { path } else { self.root() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_same_site_follow_a_sign_in() {
        for (path, expected) in [
            ("/console", true),
            ("/console?q=a", true),
            ("/console/companies/1?page=2", true),
            ("/consoles", false),
            ("/portal", false),
            ("//evil.example", false),
            ("https://evil.example/console", false),
            ("/console\\@evil.example", false),
            ("/console/\r\nx", false),
            ("", false),
        ] {
            let followed = Site::Console.own_page(path);
            assert_eq!(followed == path, expected, "{path}");
            assert!(expected || followed == "/console", "{path}");
        }
        assert_eq!(Site::Portal.own_page("/portal/companies/1"), "/portal/companies/1");
    }

    #[test]
    fn links_are_encoded() {
        let href = Site::Portal.href(&["companies", "a/b"], &[("q", "1 2")]);
        assert_eq!(href, "/portal/companies/a%2Fb?q=1+2");
    }
}
