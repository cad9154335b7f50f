//! Cells of files that are opened with a spreadsheet.

/// Returns whether a spreadsheet may read a cell as a formula. Some skip leading whitespace.
#[must_use]
pub fn is_formula(text: &str) -> bool {
    let skipped = |c: char| c == '\'' || c.is_whitespace();
    text.trim_start_matches(skipped).starts_with(['=', '+', '-', '@'])
}

/// Adds an apostrophe before a text that a spreadsheet may read as a formula.
#[must_use]
pub fn escape_formula(text: &str) -> String {
    if is_formula(text) { format!("'{text}") } else { text.to_owned() }
}
