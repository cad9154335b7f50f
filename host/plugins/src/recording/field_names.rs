//! Classifies values by their field names, for masking.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldClass {
    /// A state, code or reference: kept.
    Protocol,
    /// Kept if it is a number.
    Amount,
    /// Protocol text, which may contain personal data.
    Message,
    /// Presumably personal data: masked.
    Private,
}

/// Last words of the names of protocol values.
const PROTOCOL: &[&str] = &[
    "at", "attempts", "channel", "code", "codes", "count", "currency", "date", "domain", "event",
    "events", "expires", "flag", "id", "kind", "method", "mode", "on", "plan", "ref", "reference",
    "result", "state", "status", "step", "success", "time", "timestamp", "type", "types",
    "version",
];
/// Last words of the names of protocol values even inside personal data.
const ALWAYS_PROTOCOL: &[&str] = &["channel", "currency", "status", "type"];
/// Words in the names of amounts and counts.
const AMOUNT: &[&str] = &[
    "amount", "balance", "charged", "cost", "expires", "fee", "fees", "in", "paid", "payable",
    "price", "settled", "total",
];
const WORDS: &[&str] =
    &["error", "errors", "message", "messages", "reason", "response", "responses"];
/// Words that mark a value as personal data.
const PRIVATE: &[&str] = &[
    "access", "account", "address", "auth", "authorization", "bank", "bin", "birth", "bvn", "card",
    "city", "customer", "cvc", "cvv", "device", "dob", "email", "fingerprint", "holder",
    "identification", "identity", "ip", "key", "licence", "license", "mail", "mandate", "mobile",
    "msisdn", "name", "national", "nin", "number", "otp", "pan", "passport", "password", "phone",
    "pin", "secret", "security", "session", "signature", "social", "tax", "token", "user",
    "verification", "voter", "wa",
];
/// Last words of the names of objects that are personal data, or a company's own, as a whole.
const PERSONAL_OBJECTS: &[&str] = &[
    "account", "address", "authorization", "bank", "card", "customer", "device", "mandate", "meta",
    "metadata", "user",
];
const SIGNATURES: &[&str] = &["digest", "hash", "hmac", "mac", "signature"];
const PLAIN_HEADERS: &[&str] = &["content-length", "content-type", "date", "retry-after"];
const MAX_NAME_CHARS: usize = 40;
const MAX_DIGITS: usize = 4;

/// Classifies the value of a field.
pub fn classify(name: &str, within_private: bool) -> FieldClass {
    let words = words(name);
    let last = words.last().map_or("", String::as_str);
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&&**word));
    if ALWAYS_PROTOCOL.contains(&last) {
        FieldClass::Protocol
    } else if within_private || any(PRIVATE) {
        FieldClass::Private
    } else if WORDS.contains(&last) {
        FieldClass::Message
    } else if PROTOCOL.contains(&last) {
        FieldClass::Protocol
    } else if any(AMOUNT) {
        FieldClass::Amount
    } else {
        FieldClass::Private
    }
}

/// Returns whether the whole value is personal data, or a company's own.
pub fn is_personal_object(name: &str) -> bool {
    // `metaData` has two words.
    ends_in(name, PERSONAL_OBJECTS) || words(name).concat() == "metadata"
}

/// Returns whether the value is the id of a record.
pub fn is_reference(name: &str) -> bool {
    ends_in(name, &["id", "ref", "reference"])
}

/// Returns whether the key of an object is a field name, not a personal address or number.
pub fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME_CHARS
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && name.chars().filter(char::is_ascii_digit).count() <= MAX_DIGITS
}

/// Returns whether a header contains a signature.
pub fn is_signature(name: &str) -> bool {
    words(name).iter().any(|word| SIGNATURES.contains(&&**word))
}

pub fn is_plain_header(name: &str) -> bool {
    PLAIN_HEADERS.contains(&&*name.to_ascii_lowercase())
}

/// Returns whether a value cannot identify a person.
pub fn is_not_identifying(text: &str) -> bool {
    const MAX_CHARS: usize = 2;
    text.chars().count() <= MAX_CHARS && text.chars().all(|c| c.is_ascii_digit())
        || ["true", "false", "yes", "no"].contains(&&*text.to_ascii_lowercase())
}

/// Returns whether a text is a number, with at most a currency before it.
pub fn is_amount(text: &str) -> bool {
    let (before, number) = text.rsplit_once(' ').unwrap_or(("", text));
    let is_currency =
        before.is_empty() || before.len() == 3 && before.chars().all(char::is_alphabetic);
    is_currency
        && !number.is_empty()
        && number.chars().all(|c| c.is_ascii_digit() || ".,-".contains(c))
}

/// Splits a name: `paymentStatus` and `payment_status` have the same words.
fn words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower {
            spaced.push(' ');
        }
        spaced.push(c);
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    let words = spaced.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Returns whether the last word of a name is one of these.
fn ends_in(name: &str, list: &[&str]) -> bool {
    words(name).last().is_some_and(|last| list.contains(&&**last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        for (name, all) in [
            ("paymentStatus", &["payment", "status"][..]),
            ("payment_status", &["payment", "status"]),
            ("X-Forwarded-For", &["x", "forwarded", "for"]),
            ("last4", &["last4"]),
            ("txRef", &["tx", "ref"]),
        ] {
            assert_eq!(words(name), all);
        }
    }

    #[test]
    fn values_are_classified_by_field_name() {
        use FieldClass::{Amount, Message, Private, Protocol};
        for (name, within_private, expected) in [
            ("status", false, Protocol),
            ("mandateStatus", false, Protocol),
            ("card_type", true, Protocol),
            ("transactionReference", false, Protocol),
            ("paid_at", false, Protocol),
            ("id", true, Private),
            ("customer_code", false, Private),
            ("access_code", false, Private),
            ("accountNumber", false, Private),
            ("amountPaid", false, Amount),
            ("gateway_response", false, Message),
            ("gateway_response", true, Private),
            ("narration", false, Private),
        ] {
            assert_eq!(classify(name, within_private), expected, "{name}");
        }
        assert!(is_personal_object("metaData") && is_personal_object("billing_address"));
        assert!(!is_personal_object("data"));
    }
}
