//! Links and tests that documents name exist.

use std::path::Path;

use super::{assert_none, texts};

#[test]
fn every_link_has_a_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in texts(&["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs"], "md") {
        let folder = root.join(&file.path).parent().expect("a folder").to_owned();
        for link in file.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") {
                continue;
            }
            seen += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { root.join(&file.path) } else { folder.join(path) };
            let found = match std::fs::read_to_string(&target) {
                Ok(text) => anchor.is_empty() || text.lines().any(|line| slug(line) == anchor),
                Err(_) => target.is_dir(),
            };
            if !found {
                wrong.push(format!("{}: {link}", file.path));
            }
        }
    }
    assert!(seen > 10, "only {seen} links were found");
    assert_none(&wrong, "links without a target:");
}

/// The anchor of a heading; `-` for other lines.
fn slug(line: &str) -> String {
    let Some(heading) = line.strip_prefix('#') else { return "-".to_owned() };
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_invariant_names_tests_that_exist() {
    let sources = texts(&["host", "tests/it"], "rs");
    let architecture = texts(&["docs/ARCHITECTURE.md"], "md").remove(0);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let rows = |series: char| {
        let is_row = move |line: &&str| {
            let number = line.strip_prefix("| ").and_then(|line| line.strip_prefix(series));
            number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
        };
        architecture.text.lines().filter(is_row)
    };
    for row in rows('I').chain(rows('C')) {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let mut file = None;
        for name in tests.split('`').skip(1).step_by(2) {
            seen += 1;
            let exists = if name.ends_with(".rs") {
                let paths = [name.to_owned(), format!("tests/it/{name}")];
                file = sources.iter().find(|source| paths.contains(&source.path));
                file.is_some()
            } else if let Some(method) = name.strip_prefix("TestApp::") {
                sources.iter().any(|source| source.text.contains(&format!("fn {method}(")))
            } else {
                let function = format!("fn {name}(");
                name == "both!" || file.is_some_and(|file| file.text.contains(&function))
            };
            if !exists {
                wrong.push(format!("{name}, in {}", row.split('|').nth(1).unwrap_or_default()));
            }
        }
    }
    assert!(seen > 40, "only {seen} tests are named");
    for series in ['I', 'C'] {
        let numbers = rows(series).filter_map(|row| row[3..].split(' ').next());
        let numbers: Vec<&str> = numbers.collect();
        let counted: Vec<String> = (1..=numbers.len()).map(|number| number.to_string()).collect();
        assert_eq!(numbers, counted, "the numbers of the invariants {series}");
    }
    assert_none(&wrong, "tests that do not exist:");
}
