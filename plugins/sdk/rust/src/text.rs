//! Sanitizes upstream messages and codes for logs.

const MESSAGE_CHARS: usize = 160;
const CODE_CHARS: usize = 64;

/// Truncates an upstream's message to 160 characters, and replaces each word that looks like an
/// e-mail address, a personal or account number, or a token with `[...]`.
pub fn short(value: &str) -> String {
    let mut kept = String::new();
    for word in value.split_whitespace() {
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.push_str(if is_private(word) { "[...]" } else { word });
    }
    truncate(&kept, MESSAGE_CHARS)
}

/// Reduces an upstream's error code to ASCII letters, digits and `-_.:`, at most 64 characters.
pub fn code(value: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || "-_.:".contains(*c);
    value.chars().filter(plain).take(CODE_CHARS).collect()
}

fn is_private(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let chars = word.chars().count();
    word.contains('@') || digits >= 6 || chars > 32 || (digits > 0 && chars >= 10)
}

fn truncate(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn personal_data_and_tokens_are_removed() {
        let value = "Customer ada@example.com (+2348012345678) has no AUTH_uh8bcl3zbn, try\n again in 5 min";
        assert_eq!(short(value), "Customer [...] [...] has no [...] try again in 5 min");
    }

    #[test]
    fn messages_and_codes_are_truncated() {
        assert_eq!(short(&"no ".repeat(500)).chars().count(), MESSAGE_CHARS + 3);
        assert_eq!(code(&"x".repeat(500)).len(), CODE_CHARS);
        assert_eq!(code("missing params\n<b>"), "missingparamsb");
    }
}
