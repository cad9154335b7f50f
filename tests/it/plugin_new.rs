//! `tollhouse plugin new` creates self-contained projects. `tests/outside/templates.test.js` builds
//! and installs them.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use tollhouse_plugins::{Manifest, PluginKind};

use crate::command_line::{ProgramOutput, program, program_output};

const KINDS: [(&str, PluginKind); 4] = [
    ("provider", PluginKind::Provider),
    ("push", PluginKind::Provider),
    ("country", PluginKind::Country),
    ("sms", PluginKind::Sms),
];
/// Each language with the folder of its SDK and the source file of its plugins.
const LANGUAGES: [(&str, &str, &str); 3] = [
    ("rust", "plugins/sdk/rust", "src/lib.rs"),
    ("js", "plugins/sdk/js", "plugin.js"),
    ("python", "plugins/sdk/python", "plugin.py"),
];

/// Runs the command in this folder.
fn create(folder: &Path, name: &str, kind: &str, language: &str) -> ProgramOutput {
    let arguments = ["plugin", "new", name, "--kind", kind, "--lang", language];
    program_output(program(&arguments).current_dir(folder).output().unwrap())
}

/// All files below a folder by their relative paths, except in folders with these names.
fn files(folder: &Path, left_out: &[&str]) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap_or_default();
            if path.is_file() {
                let text = fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), text);
            } else if !left_out.iter().any(|other| name == *other) {
                folders.push(path);
            }
        }
    }
    found
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_project_of_every_kind_and_language_has_a_valid_manifest() {
    for (kind_name, kind) in KINDS {
        for (language, _, source) in LANGUAGES {
            let folder = tempfile::tempdir().unwrap();
            let created = create(folder.path(), "sea_bank", kind_name, language);
            assert_eq!(
                created.success_output(),
                "created sea_bank in sea_bank; its README.md explains how to build, test and check it\n"
            );
            let files = files(&folder.path().join("sea_bank"), &["vendor", "wit"]);
            let text = |path: &str| files.get(Path::new(path)).unwrap_or_else(|| panic!("{path}"));
            let manifest = Manifest::from_json(text("manifest.json").as_bytes()).unwrap();
            manifest.check_country(&["identity-lookup"]).unwrap();
            assert_eq!((&*manifest.name, &*manifest.display_name), ("sea_bank", "Sea Bank"));
            assert_eq!(manifest.kind, kind);
            assert!(text("manifest.json").contains("\"answers\""), "{kind_name}");
            assert!(text(source).contains("Fault") || text(source).contains("faults"));
            assert!(text("README.md").contains("tollhouse plugin check"), "{language}");
            assert!(text(".gitignore").contains('/'), "{language}");
            for path in [".vscode/extensions.json", ".vscode/settings.json"] {
                let settings: Value = serde_json::from_str(text(path)).unwrap();
                assert!(settings.to_string().contains("wit"), "{path}");
            }
            for (path, text) in &files {
                assert!(!text.contains("{{"), "{path:?}");
                assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "{path:?}");
            }
        }
    }
}

#[test]
fn a_project_contains_the_contract_and_the_sdk_of_this_release() {
    for (language, sdk, _) in LANGUAGES {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), "acme", "sms", language).success_output();
        let project = folder.path().join("acme");
        assert_eq!(files(&project.join("wit"), &[]), files(&repository().join("wit"), &[]));
        let left_out = ["test", "tests", "node_modules", "__pycache__", "target"];
        let sdk = files(&repository().join(sdk), &left_out);
        assert!(sdk.len() > 10, "{language}");
        // Cargo does not notice a new file in that folder: after adding one, touch
        // host/tools/src/new.rs.
        assert_eq!(files(&project.join("vendor/sdk").join(language), &[]), sdk, "{language}");
    }
}

#[test]
fn a_rust_project_uses_the_dependency_versions_of_this_release() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), "sea-bank", "provider", "rust").success_output();
    let table = |path: &Path| -> toml::Table {
        toml::from_str(&fs::read_to_string(path.join("Cargo.toml")).unwrap()).unwrap()
    };
    let (ours, theirs) = (table(repository()), table(&folder.path().join("sea-bank")));
    let dependencies = theirs["workspace"]["dependencies"].as_table().unwrap();
    for (name, version) in dependencies {
        assert_eq!(version, &ours["workspace"]["dependencies"][name], "{name}");
    }
    assert_eq!(theirs["workspace"]["package"], ours["workspace"]["package"]);
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    let lock = read(folder.path().join("sea-bank/Cargo.lock"));
    assert_eq!(lock, read(repository().join("Cargo.lock")));
    // Cargo names the file after the crate, whose name has no dash.
    let readme = read(folder.path().join("sea-bank/README.md"));
    assert!(readme.contains("plugin check target/wasm32-wasip2/release/sea_bank.wasm"), "{readme}");
}

#[test]
fn a_name_that_the_host_would_reject_is_rejected() {
    let long = "x".repeat(41);
    let letters = "the manifest's name must be 1 to 40 characters of a-z, 0-9, _ and -";
    let begin = "a plugin's name must begin with a-z and must not be tollhouse-plugin";
    for (name, kind, reason) in [
        ("bank!", "provider", letters),
        (&long, "sms", letters),
        ("Bank", "sms", begin),
        ("1st", "sms", begin),
        ("tollhouse-plugin", "sms", begin),
        (
            "south-sea",
            "country",
            "a country cannot have the name south-sea: names with a hyphen, identity and uid are not allowed",
        ),
        (
            "uid",
            "country",
            "a country cannot have the name uid: names with a hyphen, identity and uid are not allowed",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let refused = create(folder.path(), name, kind, "js");
        let expected = format!("tollhouse: {reason}; choose another name");
        assert_eq!(refused.failure(), (2, &*expected), "{name}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn missing_arguments_are_read_from_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    if Command::new("script").arg("--version").output().is_err() {
        let text = "skipped: the prompts of plugin new need script (util-linux)\n";
        // The test runner captures `eprintln!`, but not this.
        let _ = io::stderr().write_all(text.as_bytes());
        return;
    }
    // `script` runs its command on a pseudo-terminal.
    let at_terminal = |typed: &str| {
        let mut script = Command::new("script")
            .args(["-qec", r#""$PROGRAM" plugin new"#, "/dev/null"])
            .env("PROGRAM", env!("CARGO_BIN_EXE_tollhouse"))
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        script.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        let ended = program_output(script.wait_with_output().unwrap());
        (ended.code, ended.out)
    };
    let (code, shown) = at_terminal("acme\npush\njs\n");
    assert_eq!(code, 0, "{shown}");
    let kinds = "Kind (provider, push, country, sms): ";
    for prompt in ["Name of the plugin: ", kinds, "Programming language (rust, js, python): "] {
        assert!(shown.contains(prompt), "{shown}");
    }
    assert!(folder.path().join("acme/plugin.js").exists());

    let (code, shown) = at_terminal("other\nbank\n");
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("--kind must be one of provider, push, country, sms"), "{shown}");
    assert!(!folder.path().join("other").exists());
}

#[test]
fn existing_files_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes"), "mine").unwrap();
    let here = |dir: &str| {
        let arguments =
            ["plugin", "new", "acme", "--kind", "sms", "--lang", "python", "--dir", dir];
        program_output(program(&arguments).current_dir(folder.path()).output().unwrap())
    };
    let expected = "tollhouse: .: the folder is not empty; name another one with --dir";
    assert_eq!(here(".").failure(), (2, expected));
    let file = here("notes");
    let (code, error) = file.failure();
    assert!(code == 2 && error.starts_with("tollhouse: notes: "), "{error}");
    assert_eq!(files(folder.path(), &[]).len(), 1);

    here("a/new/one").success_output();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    here("empty").success_output();
    assert!(empty.join("plugin.py").exists());
}

#[test]
fn missing_arguments_are_rejected_without_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, message) in [
        (&["plugin", "new"][..], "tollhouse: NAME is required"),
        (
            &["plugin", "new", "acme"],
            "tollhouse: --kind (provider, push, country, sms) is required",
        ),
        (
            &["plugin", "new", "acme", "--kind", "sms"],
            "tollhouse: --lang (rust, js, python) is required",
        ),
    ] {
        let refused =
            program_output(program(arguments).current_dir(folder.path()).output().unwrap());
        assert_eq!(refused.failure(), (2, message));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
