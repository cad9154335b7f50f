//! The GSM 03.38 alphabet, in which a message holds 160 characters. Texts with other characters are
//! sent as Unicode, 70 characters per message.

/// The characters other than ASCII letters and digits.
const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà";
/// Characters of the extension table, each of which counts as two.
const EXTENDED: &str = "\u{c}^{}\\[~]|€";

pub(crate) fn is_encodable(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || BASIC.contains(c) || EXTENDED.contains(c))
}

#[cfg(test)]
mod tests {
    use super::is_encodable;

    #[test]
    fn only_texts_in_the_gsm_alphabet_are_plain() {
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
