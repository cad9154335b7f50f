//! `tollhouse config init`: creates the files that a host needs to start.

use std::{fs::OpenOptions, os::unix::fs::OpenOptionsExt};

use tollhouse_app::state::config::describe;
use tollhouse_platform::crypto::seal;

use crate::prelude::*;

/// Creates settings, a master key and an operator token, unless one of the files exists.
pub fn init(folder: &Path) -> Result {
    let wrong = |error: std::io::Error| Failure::refused(format!("{}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(wrong)?;
    let folder = folder.canonicalize().map_err(wrong)?;
    let random = Random::system();
    let [master_key, token, settings] =
        ["master-key", "operator-token", "tollhouse.toml"].map(|name| folder.join(name));
    let database = format!("sqlite://{}", folder.join("tollhouse.db").display());
    let text = set_values(
        describe::example(),
        &[
            ("database", database),
            ("operator_token_file", token.display().to_string()),
            ("master_key_file", master_key.display().to_string()),
            ("plugin_cache", folder.join("plugins").display().to_string()),
        ],
    );
    let files = [
        (&master_key, seal::new_master_key(&random), 0o600),
        (&token, random.token("op_"), 0o600),
        (&settings, text, 0o644),
    ];
    let taken = files.iter().filter(|(file, ..)| file.exists());
    let taken: Vec<String> = taken.map(|(file, ..)| file.display().to_string()).collect();
    if !taken.is_empty() {
        let taken = taken.join(", ");
        return Err(Failure::refused(format!(
            "these files already exist, so nothing was created: {taken}"
        )));
    }
    for (file, text, mode) in &files {
        write_new(file, text, *mode)?;
    }
    let shown = settings.display();
    let message = format!(
        "created {shown} with its secrets beside it.\n\n\
         Keep a copy of master-key apart from the database backups. Set public_url, then:\n\n  \
         tollhouse config check --config {shown}\n  tollhouse serve --config {shown}"
    );
    Ok(Report::new(json!({ "made": files.map(|(file, ..)| file) }), message))
}

fn set_values(mut example: String, values: &[(&str, String)]) -> String {
    for (key, value) in values {
        let line = example.find(&format!("\n#{key} = ")).expect("the example lists all settings");
        let start = line + 1;
        let end = example[start..].find('\n').map_or(example.len(), |length| start + length);
        let line = format!("{key} = {}", toml::Value::from(value.as_str()));
        example.replace_range(start..end, &line);
    }
    example
}

/// Creates a file. Fails if it exists.
pub fn write_new(file: &Path, text: &str, mode: u32) -> Result<()> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(mode).open(file);
    let line = format!("{}\n", text.trim_end());
    let written = opened.and_then(|mut made| {
        made.write_all(line.as_bytes())?;
        made.sync_all()
    });
    written.map_err(|error| Failure::refused(format!("{}: {error}", file.display())))
}
