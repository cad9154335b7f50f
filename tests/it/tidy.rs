//! Rules of the source: imports, lengths, the company in SQL statements, references in documents.

mod documents;
mod imports;
mod lengths;
mod statements;

use std::path::{Path, PathBuf};

/// A text file of this repository.
pub struct Text {
    /// From the root, with slashes: `host/app/src/money/payments/api.rs`.
    pub path: String,
    pub text: String,
}

/// All files with this extension in these folders, except build results and dependencies.
pub fn texts(folders: &[&str], extension: &str) -> Vec<Text> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in folders {
        collect(&root.join(folder), extension, &mut found);
    }
    found.sort();
    let read = |file: PathBuf| Text {
        path: file.strip_prefix(root).expect("below the root").display().to_string(),
        text: std::fs::read_to_string(&file).expect("a text file"),
    };
    found.into_iter().map(read).collect()
}

fn collect(path: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        if path.extension().is_some_and(|e| e == extension) {
            found.push(path.to_owned());
        }
        return;
    }
    let entries = std::fs::read_dir(path).expect("a folder of this repository");
    for entry in entries.map(|entry| entry.expect("an entry of a folder").path()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !["node_modules", "target"].contains(&&*name) && !name.starts_with('.') {
            collect(&entry, extension, found);
        }
    }
}

/// Fails with all violations, not only the first.
#[track_caller]
pub fn assert_none(wrong: &[String], rule: &str) {
    assert!(wrong.is_empty(), "{rule}\n  {}", wrong.join("\n  "));
}
