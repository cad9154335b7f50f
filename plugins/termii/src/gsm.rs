//! Which texts a phone network writes in its own alphabet (GSM 03.38), 160 characters to a message; all others are sent as
//! Unicode, 70 characters to a message.

/// Beside the letters and digits of ASCII.
const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà";
/// These take two places each.
const EXTENDED: &str = "\u{c}^{}\\[~]|€";

pub(crate) fn is_encodable(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || BASIC.contains(c) || EXTENDED.contains(c))
}

#[cfg(test)]
mod tests {
    use super::is_encodable;

    #[test]
    fn an_alphabet_has_its_characters_and_no_others() {
        for text in [
            "",
            "Hello Ada,\r\nyour code is 012345.",
            "[Acme] 5€ ~ {}|^\\",
            "Ñandu",
            "àèìòùé @£$¥ ÄÖÜß ΔΩ",
        ] {
            assert!(is_encodable(text), "{text}");
        }
        for text in ["Ẹ kú àárọ̀", "₦500", "naïve", "“quoted”", "`", "tab\t", "ç", "🙂"]
        {
            assert!(!is_encodable(text), "{text}");
        }
    }
}
