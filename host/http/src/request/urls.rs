//! Checks of URLs in requests.

use url::Url;

/// Schemes that browsers or phones execute, that read local content, that wrap another URL, or that
/// start a call or a message. None belongs to an app.
const REFUSED_SCHEMES: [&str; 25] = [
    "about", "android-app", "blob", "chrome", "chrome-extension", "content", "data", "feed",
    "file", "filesystem", "ftp", "intent", "jar", "javascript", "livescript", "mailto",
    "moz-extension", "resource", "sms", "smsto", "tel", "vbscript", "view-source", "ws", "wss",
];

fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Returns whether a text is an absolute http or https URL without credentials.
pub(super) fn is_http(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| is_web(&url) && url.has_host() && !has_credentials(&url))
}

/// Returns whether a text is an app link without credentials: `myapp://paid` or
/// `com.example.app:/paid`. A scheme of one letter is a Windows drive.
pub(super) fn is_app_link(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        !is_web(&url)
            && url.scheme().len() > 1
            && !REFUSED_SCHEMES.contains(&url.scheme())
            && !url.cannot_be_a_base() // `mailto:ada@example.com`
            && !has_credentials(&url)
    })
}

fn is_web(url: &Url) -> bool {
    ["http", "https"].contains(&url.scheme())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_with_an_app_scheme_are_app_links() {
        for (text, is_link) in [
            ("myapp://paid", true),
            ("myapp://paid/42?status=ok#end", true),
            ("MyApp://paid", true),
            ("com.example.app:/paid", true),
            ("exp+lender://paid", true),
            ("https://lender.example/", false),
            ("http:///", false),
            ("javascript:alert(1)", false),
            ("javascript://%0aalert(1)", false),
            (" JaVaScRiPt://%0aalert(1)", false),
            ("vbscript://x", false),
            ("data:text/html,x", false),
            ("data:/text/html,x", false),
            ("file:///etc/passwd", false),
            ("filesystem:https://lender.example/x", false),
            ("blob:https://lender.example/x", false),
            ("about:blank", false),
            ("view-source://lender.example", false),
            ("intent://paid#Intent;scheme=file;end", false),
            ("content://downloads/1", false),
            ("wss://lender.example", false),
            ("mailto:ada@example.com", false),
            ("mailto:/ada@example.com", false),
            ("sms:/+2348012345678", false),
            ("SMSTO://+2348012345678", false),
            ("tel:/+2348012345678", false),
            ("tel:+2348012345678", false),
            ("ftp://lender.example/x", false),
            ("ws://lender.example", false),
            ("C:/Windows/paid.html", false),
            ("c://paid", false),
            ("my://paid", true),
            ("myapp:paid", false),
            ("myapp://ada:secret@paid", false),
        ] {
            assert_eq!(is_app_link(text), is_link, "{text}");
        }
    }
}
