//! `tollhouse plugin new`: a plugin's project that builds and passes as it is. It holds the contract and the SDK of this release,
//! so that it needs nothing of this repository.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use include_dir::{Dir, DirEntry, include_dir};
use serde_json::json;
use tollhouse::plugins::Manifest;

use super::{Failure, Report};

/// What all kinds have in a language, what all languages have of a kind, and what only the two together have.
static TEMPLATES: Dir = include_dir!("$CARGO_MANIFEST_DIR/templates/plugin");
static CONTRACT: Dir = include_dir!("$CARGO_MANIFEST_DIR/wit");
static SDK_RUST: Dir = include_dir!("$CARGO_MANIFEST_DIR/plugins/sdk");
static SDK_JS: Dir = include_dir!("$CARGO_MANIFEST_DIR/plugins/sdk-js");
static SDK_PYTHON: Dir = include_dir!("$CARGO_MANIFEST_DIR/plugins/sdk-python");
/// The versions that this release was tested with; cargo takes out what a plugin does not use.
const LOCK: &str = include_str!("../../../Cargo.lock");

/// Of an SDK, what its author needs and a plugin's does not; and what only a used folder has.
const LEFT_OUT: [&str; 5] = ["test", "tests", "node_modules", "__pycache__", "target"];
/// The name of the SDK's own package.
const TAKEN: &str = "tollhouse-plugin";

#[derive(Args)]
#[command(after_help = "Example:\n  tollhouse plugin new acme --kind provider --lang rust")]
pub struct New {
    /// What the plugin is called: a-z first, then also 0-9, _ and -
    name: String,
    /// What it is for
    #[arg(long)]
    kind: Kind,
    /// What it is written in
    #[arg(long)]
    lang: Language,
    /// Where it goes: a folder that is empty or not there yet; by default one of the plugin's name
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Provider,
    Country,
    Sms,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    Rust,
    Js,
    Python,
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Kind::Provider => "provider",
            Kind::Country => "country",
            Kind::Sms => "sms",
        }
    }

    /// What of the contract the template exports.
    fn world(self) -> &'static str {
        match self {
            Kind::Provider => "provider-basic",
            Kind::Country => "country-basic",
            Kind::Sms => "sms-gateway",
        }
    }
}

impl Language {
    fn folder(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::Js => "js",
            Language::Python => "python",
        }
    }

    fn sdk(self) -> &'static Dir<'static> {
        match self {
            Language::Rust => &SDK_RUST,
            Language::Js => &SDK_JS,
            Language::Python => &SDK_PYTHON,
        }
    }
}

impl New {
    pub fn run(self) -> Result<Report, Failure> {
        self.check_name()?;
        let folder = self.dir.clone().unwrap_or_else(|| PathBuf::from(&self.name));
        let failed = |error: io::Error| Failure::Usage(format!("{}: {error}", folder.display()));
        if folder.exists() && fs::read_dir(&folder).map_err(failed)?.next().is_some() {
            let message = "the folder is not empty; name another one with --dir";
            return Err(Failure::Usage(format!("{}: {message}", folder.display())));
        }
        for (path, bytes) in self.files() {
            write(&folder.join(path), &bytes).map_err(failed)?;
        }
        let said = format!(
            "{} is made in {}; its README.md says how to build, test and check it",
            self.name,
            folder.display()
        );
        Ok(Report::new(json!({ "name": self.name, "folder": folder }), said))
    }

    /// A name that the host will take, and the tools of each language.
    fn check_name(&self) -> Result<(), Failure> {
        let refused = |reason: String| Failure::Usage(format!("{reason}; choose another name"));
        if !self.name.starts_with(|c: char| c.is_ascii_lowercase()) || self.name == TAKEN {
            let reason = format!("a plugin's name must begin with a-z, and not be {TAKEN}");
            return Err(refused(reason));
        }
        let manifest = self.manifest().map_err(refused)?;
        manifest.check_country(&["identity-lookup"]).map_err(refused)
    }

    fn manifest(&self) -> Result<Manifest, String> {
        let file = TEMPLATES.get_file(format!("{}/manifest.json", self.kind.folder()));
        let file = file.expect("each kind has a manifest");
        Manifest::from_json(self.filled(file.contents()).as_bytes())
    }

    /// All files of the project, by their paths in it.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let (kind, language) = (self.kind.folder(), self.lang.folder());
        let template = |path: &str| TEMPLATES.get_dir(path).expect("a template of each kind");
        let mut files = Vec::new();
        collect(template(kind), Path::new(""), &mut files);
        collect(template(&format!("{language}/{kind}")), Path::new(""), &mut files);
        for file in template(language).files() {
            files.push((name_of(file.path()), file.contents().to_vec()));
        }
        for (_, bytes) in &mut files {
            *bytes = self.filled(bytes).into_bytes();
        }
        collect(&CONTRACT, Path::new("wit"), &mut files);
        collect(self.lang.sdk(), Path::new("vendor/sdk"), &mut files);
        if let Language::Rust = self.lang {
            files.push(("Cargo.lock".into(), LOCK.into()));
        }
        files
    }

    fn filled(&self, template: &[u8]) -> String {
        String::from_utf8_lossy(template)
            .replace("{{name}}", &self.name)
            .replace("{{title}}", &title(&self.name))
            .replace("{{crate}}", &self.name.replace('-', "_"))
            .replace("{{world}}", self.kind.world())
    }
}

/// `my-bank` as `My Bank`.
fn title(name: &str) -> String {
    let parts = name.split(['-', '_']).filter(|part| !part.is_empty());
    let parts = parts.map(|part| part[..1].to_ascii_uppercase() + &part[1..]);
    parts.collect::<Vec<_>>().join(" ")
}

/// The files below a folder, as they will lie below `to`.
fn collect(from: &Dir, to: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in from.entries() {
        let path = to.join(name_of(entry.path()));
        match entry {
            _ if LEFT_OUT.iter().any(|name| path.ends_with(name)) => {}
            DirEntry::Dir(folder) => collect(folder, &path, files),
            DirEntry::File(file) => files.push((path, file.contents().to_vec())),
        }
    }
}

fn name_of(path: &Path) -> PathBuf {
    path.file_name().map(PathBuf::from).unwrap_or_default()
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}
