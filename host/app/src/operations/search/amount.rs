//! Amounts as people write them.

use tollhouse_platform::values::money::{Currency, Minor};

/// An amount to search for.
#[derive(Debug, PartialEq, Eq)]
pub struct SearchAmount {
    pub amount: Minor,
    /// `None`: any currency.
    pub currency: Option<Currency>,
}

impl SearchAmount {
    /// Reads an amount such as `2500`, `2 500.00`, `2,500` or `2500.50 NGN`. Returns `None` for
    /// other texts and for zero, which no record has.
    pub fn parse(text: &str) -> Option<SearchAmount> {
        let text = text.trim();
        let (number, currency) = match text.rsplit_once(char::is_whitespace) {
            Some((number, code)) if is_code(code) => (number, Some(code)),
            _ => match text.split_once(char::is_whitespace) {
                Some((code, number)) if is_code(code) => (number, Some(code)),
                _ => (text, None),
            },
        };
        let (whole, decimals) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let number = format!("{}.{decimals:0<1}", ungrouped(whole)?);
        if !is_digits(decimals) || decimals.len() > 2 {
            return None;
        }
        let amount = Minor::from_major(&number.parse().ok()?).ok()?;
        let currency = currency.map(|code| code.to_ascii_uppercase().into());
        (amount > Minor(0)).then_some(SearchAmount { amount, currency })
    }
}

fn is_code(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Returns a whole number without its thousands separators; `None` if they are misplaced, as spaces
/// are in, for example, a phone number.
fn ungrouped(whole: &str) -> Option<String> {
    let groups: Vec<&str> = whole.split(|c: char| c == ',' || c.is_whitespace()).collect();
    let (first, others) = groups.split_first()?;
    let is_number = |group: &&str| group.bytes().all(|byte| byte.is_ascii_digit());
    let is_grouped = others.is_empty() || first.len() <= 3;
    let is_valid = !first.is_empty()
        && is_grouped
        && groups.iter().all(is_number)
        && others.iter().all(|group| group.len() == 3);
    // A number with a leading zero is not an amount, but perhaps a code or an account number.
    (is_valid && (!first.starts_with('0') || *first == "0")).then(|| groups.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_separators_and_currency() {
        for (text, minor, currency) in [
            ("2500", 250_000, None),
            ("2500.5", 250_050, None),
            ("0.50", 50, None),
            (" 2 500.00 ", 250_000, None),
            ("2\u{202F}500.00\u{A0}NGN", 250_000, Some("NGN")),
            ("1,234,567.89", 123_456_789, None),
            ("2500.50 ngn", 250_050, Some("NGN")),
            ("USD 12", 1_200, Some("USD")),
        ] {
            let found = SearchAmount::parse(text);
            let currency = currency.map(Currency::from);
            assert_eq!(found, Some(SearchAmount { amount: Minor(minor), currency }), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_amounts() {
        for text in [
            "", "NGN", "order-1", "0", "0.00", "-5", "+2348031000009", "0803 100 0009", "2500.505",
            "25,00", "2 50", "1e5", "0123", "99999999999999999999", "692813ab692813ab692813ab",
        ] {
            assert_eq!(SearchAmount::parse(text), None, "{text}");
        }
    }
}
