//! Excerpts of long texts. Those of two texts begin shortly before their first difference.

/// Returns two texts from where they begin to differ, or from their start if that is near.
pub fn excerpts(one: &str, other: &str, max_chars: usize) -> [String; 2] {
    let start = start(one, other, max_chars);
    [one, other].map(|text| excerpt_from(start, text, max_chars))
}

/// Returns the start of a text.
pub fn excerpt(text: &str, max_chars: usize) -> String {
    excerpt_from(0, text, max_chars)
}

/// Returns the position from which to show two texts: 0, unless their common start is long.
fn start(one: &str, other: &str, max_chars: usize) -> usize {
    const BEFORE: usize = 20;
    let same = one.char_indices().zip(other.chars()).find(|((_, a), b)| a != b);
    let same = same.map_or(one.len().min(other.len()), |((at, _), _)| at);
    if same > max_chars / 2 { one.floor_char_boundary(same.saturating_sub(BEFORE)) } else { 0 }
}

fn excerpt_from(start: usize, text: &str, max_chars: usize) -> String {
    let (before, rest) = (if start > 0 { "…" } else { "" }, text.get(start..).unwrap_or_default());
    match rest.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{before}{}… ({} bytes)", &rest[..end], text.len()),
        None => format!("{before}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_texts_are_shown_from_their_first_difference() {
        assert_eq!(excerpts("abc", "abd", 60), ["abc", "abd"]);
        let long = |end: &str| "é".repeat(100) + end;
        let same = format!("…{}", "é".repeat(10));
        assert_eq!(excerpts(&long("a"), &long("b"), 60), [format!("{same}a"), format!("{same}b")]);
        assert_eq!(excerpts(&long(""), &long("b"), 60), [same.clone(), format!("{same}b")]);
        let [one, _] = excerpts(&long(&"a".repeat(100)), &long("b"), 60);
        assert_eq!(one, format!("{same}{}… (300 bytes)", "a".repeat(50)));
    }
}
