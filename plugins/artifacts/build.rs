//! Compiles every plugin of this repository to a component. It runs a nested cargo with its own
//! target folder, because the outer cargo locks its target folder while this script runs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const TARGET: &str = "wasm32-wasip2";
const PROFILE: &str = "plugin";

/// A folder of plugins, the constant that lists them, and its documentation.
const KINDS: [(&str, &str, &str); 2] = [
    ("plugins", "BUILT_IN", "The built-in plugins."),
    ("tests/guests", "GUESTS", "The plugins for tests only."),
];

fn main() {
    if let Err(sentence) = run() {
        println!("cargo::error={sentence}");
        // Cargo shows the compiler's output only if the script fails.
        std::process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let root = fs::canonicalize(Path::new(&env_var("CARGO_MANIFEST_DIR")?).join("../.."))
        .map_err(|error| format!("the repository's root cannot be found: {error}"))?;
    let out = PathBuf::from(env_var("OUT_DIR")?);
    for source in ["plugins", "tests/guests", "wit", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let mut kinds = Vec::new();
    for (folder, list, doc) in KINDS {
        kinds.push((list, doc, find_plugins(&root.join(folder))?));
    }
    let names: Vec<&str> = kinds.iter().flat_map(|(.., names)| names).map(String::as_str).collect();
    ensure_target(&out)?;
    let built = compile(&root, &target_dir(&out), &names)?;
    for name in &names {
        let (from, to) = (built.join(format!("{name}.wasm")), out.join(format!("{name}.wasm")));
        fs::copy(&from, to)
            .map_err(|error| format!("the component {} is missing: {error}", from.display()))?;
    }
    fs::write(out.join("components.rs"), generate_source(&kinds, &names))
        .map_err(|error| format!("components.rs cannot be written: {error}"))
}

fn env_var(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("{name} is not set: only cargo runs this"))
}

/// Returns the names of the folders with a package and a manifest, in order.
fn find_plugins(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder)
        .map_err(|error| format!("the folder {} cannot be read: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.join("manifest.json").exists() && path.join("Cargo.toml").exists())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    match names.iter().find(|name| !is_identifier(name)) {
        None => Ok(names),
        Some(name) => Err(format!(
            "the plugin folder {} must be renamed: lower-case letters, digits and _ only, a letter first, as its package",
            folder.join(name).display()
        )),
    }
}

/// Returns whether the name is valid for a constant, for a file that cargo writes and for a macro
/// argument.
fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Returns `target/plugins`, one folder for all profiles of the outer cargo. `OUT_DIR` is
/// `target/PROFILE/build/PACKAGE/out`.
fn target_dir(out: &Path) -> PathBuf {
    out.ancestors().nth(4).unwrap_or(out).join("plugins")
}

fn ensure_target(out: &Path) -> Result<(), String> {
    if has_target() {
        return Ok(());
    }
    println!(
        "cargo::warning=the Rust target {TARGET} is missing: running `rustup target add {TARGET}`"
    );
    // A file that never exists: cargo repeats a warning until the script runs again, so the next
    // build must run it.
    println!("cargo::rerun-if-changed={}", out.join("target-was-missing").display());
    let reason = match Command::new("rustup").args(["target", "add", TARGET]).output() {
        Ok(_) if has_target() => return Ok(()),
        Ok(output) if output.status.success() => "rustc does not find it".to_owned(),
        Ok(output) => one_line(&output.stderr),
        Err(error) => format!("rustup cannot be run: {error}"),
    };
    Err(format!(
        "plugins need the Rust target {TARGET}, which could not be added: run `rustup target add {TARGET}` ({reason})"
    ))
}

/// Joins text into one line, because cargo takes one line per error.
fn one_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has_target() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output =
        Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    output.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success()
            && fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some())
    })
}

/// Runs cargo and returns the folder of the components.
fn compile(root: &Path, target_dir: &Path, names: &[&str]) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    remove_outer_cargo_env(&mut cargo);
    cargo.args(["build", "--quiet", "--lib", "--profile", PROFILE, "--target", TARGET]);
    cargo.arg("--manifest-path").arg(root.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(target_dir);
    names.iter().for_each(|name| {
        cargo.args(["--package", name]);
    });
    // The outer cargo interprets this script's standard output.
    let output =
        cargo.output().map_err(|error| format!("cargo cannot be run for the plugins: {error}"))?;
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        return Err("the plugins do not compile; the compiler's output is below".into());
    }
    Ok(target_dir.join(TARGET).join(PROFILE))
}

/// Removes variables that the outer cargo, clippy or a coverage tool sets for the host's code: they
/// would change the components, or recompile them in every build. Access to registries and the
/// jobserver are kept.
fn remove_outer_cargo_env(cargo: &mut Command) {
    const KEPT_PREFIXES: [&str; 7] = [
        "CARGO_HOME", "CARGO_HTTP_", "CARGO_MAKEFLAGS", "CARGO_NET_", "CARGO_REGISTR",
        "CARGO_SOURCE_", "CARGO_TERM_",
    ];
    const REMOVED_VARIABLES: [&str; 12] = [
        "DEBUG", "HOST", "LLVM_PROFILE_FILE", "NUM_JOBS", "OPT_LEVEL", "OUT_DIR", "PROFILE",
        "RUSTC_LINKER", "RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER", "RUSTFLAGS", "TARGET",
    ];
    for (name, _) in env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        let of_cargo = name.starts_with("CARGO") || name.starts_with("DEP_");
        let kept = KEPT_PREFIXES.iter().any(|kept| name.starts_with(kept));
        if (of_cargo && !kept) || REMOVED_VARIABLES.contains(&name) {
            cargo.env_remove(name);
        }
    }
}

/// Generates the constants and the macro.
fn generate_source(kinds: &[(&str, &str, Vec<String>)], names: &[&str]) -> String {
    let mut code = String::new();
    for (list, doc, of_kind) in kinds {
        for name in of_kind {
            let _ = writeln!(
                code,
                "/// The component `{name}`.\npub const {}: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.wasm\"));",
                name.to_uppercase()
            );
        }
        let entries: Vec<String> = of_kind
            .iter()
            .map(|name| format!("Component {{ name: \"{name}\", wasm: {} }}", name.to_uppercase()))
            .collect();
        let _ = writeln!(
            code,
            "/// {doc}\npub const {list}: &[Component] = &[{}];",
            entries.join(", ")
        );
    }
    let calls: Vec<String> = names.iter().map(|name| format!("$mac!({name});")).collect();
    let _ = writeln!(
        code,
        "/// Calls a macro with the name of each component, as an identifier.\n#[macro_export]\nmacro_rules! foreach_component {{ ($mac:ident) => {{ {} }}; }}",
        calls.join(" ")
    );
    code
}
