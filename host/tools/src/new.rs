//! `tollhouse plugin new`: creates a plugin project that builds and passes its tests. The project
//! contains the contract and the SDK of this release, so it does not depend on this repository.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use include_dir::{Dir, DirEntry, include_dir};

use tollhouse_plugins::Manifest;

/// Templates by language, by kind, and by language and kind, and the settings of an editor.
static TEMPLATES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../templates/plugin");
static CONTRACT: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../wit");
/// The SDKs by language.
static SDKS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../plugins/sdk");
/// The dependency versions with which this release was tested; cargo removes unused ones.
const CARGO_LOCK: &str = include_str!("../../../Cargo.lock");

/// Names of files and folders of an SDK that a plugin does not need.
const EXCLUDED: [&str; 5] = ["test", "tests", "node_modules", "__pycache__", "target"];

/// The name of the SDK's own package.
const RESERVED_NAME: &str = "tollhouse-plugin";

#[derive(Clone, Copy, ValueEnum)]
pub enum TemplateKind {
    /// A payment provider with a hosted checkout page
    Provider,
    /// A payment provider whose payers confirm on a phone
    Push,
    /// The identity registers of a country
    Country,
    /// An SMS gateway
    Sms,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Language {
    Rust,
    Js,
    Python,
}

impl TemplateKind {
    /// Returns the world of the contract that the template exports.
    fn world(self) -> &'static str {
        match self {
            TemplateKind::Provider => "provider-basic",
            TemplateKind::Push => "provider-sessions-basic",
            TemplateKind::Country => "country-basic",
            TemplateKind::Sms => "sms-gateway",
        }
    }
}

/// Returns the folder of a kind or language: its value on the command line.
fn folder(value: impl ValueEnum) -> String {
    let value = value.to_possible_value().expect("each value is available");
    value.get_name().to_owned()
}

/// A project to create.
pub struct Project {
    /// The plugin's name.
    pub name: String,
    pub kind: TemplateKind,
    pub language: Language,
}

impl Project {
    /// Writes the project to a folder that is empty or does not exist.
    ///
    /// # Errors
    ///
    /// A sentence that names the required change.
    pub fn write_to(&self, folder: &Path) -> Result<(), String> {
        self.check_name().map_err(|reason| format!("{reason}; choose another name"))?;
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        if folder.exists() && fs::read_dir(folder).map_err(failed)?.next().is_some() {
            let message = "the folder is not empty; name another one with --dir";
            return Err(format!("{}: {message}", folder.display()));
        }
        for (path, bytes) in self.files() {
            let file = folder.join(path);
            fs::create_dir_all(file.parent().unwrap_or(folder)).map_err(failed)?;
            fs::write(file, bytes).map_err(failed)?;
        }
        Ok(())
    }

    /// Checks that the host and the tools of each language accept the name.
    fn check_name(&self) -> Result<(), String> {
        if !self.name.starts_with(|c: char| c.is_ascii_lowercase()) || self.name == RESERVED_NAME {
            let rule = "a plugin's name must begin with a-z and must not be";
            return Err(format!("{rule} {RESERVED_NAME}"));
        }
        let file = TEMPLATES.get_file(format!("{}/manifest.json", folder(self.kind)));
        let file = file.expect("each kind has a manifest");
        let manifest = Manifest::from_json(self.fill_template(file.contents()).as_bytes())?;
        manifest.check_country(&["identity-lookup"])
    }

    /// Returns all files of the project with their relative paths.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let (kind, language) = (&*folder(self.kind), &*folder(self.language));
        let template = |path: &str| TEMPLATES.get_dir(path).expect("each kind has a template");
        let mut files = Vec::new();
        collect_files(template(kind), Path::new(""), &mut files);
        collect_files(template(&format!("{language}/{kind}")), Path::new(""), &mut files);
        for file in template(language).files() {
            files.push((file_name(file.path()), file.contents().to_vec()));
        }
        for (_, bytes) in &mut files {
            *bytes = self.fill_template(bytes).into_bytes();
        }
        collect_files(&CONTRACT, Path::new("wit"), &mut files);
        let sdk = SDKS.get_dir(language).expect("each language has an SDK");
        collect_files(sdk, &Path::new("vendor/sdk").join(language), &mut files);
        let schema = serde_json::to_vec_pretty(&Manifest::schema()).expect("a value is JSON");
        files.push(("manifest.schema.json".into(), schema));
        collect_files(template("vscode"), Path::new(".vscode"), &mut files);
        if let Language::Rust = self.language {
            files.push(("Cargo.lock".into(), CARGO_LOCK.into()));
        }
        files
    }

    fn fill_template(&self, template: &[u8]) -> String {
        String::from_utf8_lossy(template)
            .replace("{{name}}", &self.name)
            .replace("{{title}}", &title(&self.name))
            .replace("{{crate}}", &self.name.replace('-', "_"))
            .replace("{{world}}", self.kind.world())
    }
}

/// Formats `my-bank` as `My Bank`.
fn title(name: &str) -> String {
    let parts = name.split(['-', '_']).filter(|part| !part.is_empty());
    let parts = parts.map(|part| part[..1].to_ascii_uppercase() + &part[1..]);
    parts.collect::<Vec<_>>().join(" ")
}

/// Collects the files below a folder, with their paths below `to`.
fn collect_files(from: &Dir, to: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in from.entries() {
        let path = to.join(file_name(entry.path()));
        match entry {
            _ if EXCLUDED.iter().any(|name| path.ends_with(name)) => {}
            DirEntry::Dir(folder) => collect_files(folder, &path, files),
            DirEntry::File(file) => files.push((path, file.contents().to_vec())),
        }
    }
}

fn file_name(path: &Path) -> PathBuf {
    path.file_name().map(PathBuf::from).unwrap_or_default()
}
