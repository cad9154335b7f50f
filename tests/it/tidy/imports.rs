//! Who may import whom: `main -> lib -> http -> */api -> flows -> {*/store, plugins, events} -> store -> leaves`.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::{UseTree, visit::Visit};

use super::{Text, assert_none, texts};

/// Pure, without I/O.
const LEAVES: [&str; 9] =
    ["clock", "email", "listing", "money", "phone", "random", "rate", "seal", "tls"];
/// One per noun.
const SLICES: [&str; 22] = [
    "audit",
    "cards",
    "charges",
    "companies",
    "events",
    "idempotency",
    "identity",
    "loans",
    "mandates",
    "master_key",
    "messages",
    "notifications",
    "operator_events",
    "otp",
    "payments",
    "plans",
    "providers",
    "recollections",
    "recordings",
    "streams",
    "users",
    "wallet",
];
/// What of `http` reads a request, answers it and describes both.
const REQUESTS: [&str; 9] =
    ["Caller", "Get", "Run", "answer", "body", "fields", "openapi", "path", "query"];
/// What of `http` is set up by an operator.
const SETTINGS: [&str; 3] = ["Endpoint", "Limits", "TlsFiles"];

/// Crates that are named only in these rooms.
const FRAMEWORKS: [(&str, &[&str]); 28] = [
    ("axum", &["http", "*/api"]),
    ("tower", &["http"]),
    ("tower_http", &["http"]),
    ("hyper", &["http"]),
    ("hyper_util", &["http"]),
    ("tokio_rustls", &["http"]),
    ("governor", &["rate"]),
    ("sqlx", &["store"]),
    ("deadpool", &["smtp", "store"]),
    ("lettre", &["smtp"]),
    ("askama", &["bench", "messages"]),
    ("csv", &["users"]),
    ("object_store", &["files"]),
    ("regex", &["plugins"]),
    ("ed25519_dalek", &["plugins"]),
    ("oci_client", &["cli"]),
    ("docker_credential", &["cli"]),
    ("wasmtime", &["plugins"]),
    ("wasmtime_wasi", &["plugins"]),
    ("wasmparser", &["plugins"]),
    ("wit_parser", &["plugins"]),
    ("reqwest", &["cli", "egress", "telemetry"]), // the collector of traces may be anywhere
    ("prometheus_client", &["telemetry"]),
    ("opentelemetry", &["telemetry"]),
    ("opentelemetry_http", &["telemetry"]),
    ("opentelemetry_otlp", &["telemetry"]),
    ("opentelemetry_sdk", &["telemetry"]),
    ("tracing_opentelemetry", &["telemetry"]),
];

/// A module of the host, as the segments of its path: `payments`, `api`.
type Module = Vec<String>;

fn module_of(file: &Text) -> Module {
    let path = file.path.strip_prefix("host/").expect("a file of the host");
    path.trim_end_matches(".rs").split('/').map(str::to_owned).collect()
}

/// Whether what belongs to no layer below may be used by `from`: the first segments of `crate::…`.
fn may_use(from: &[String], to: &str) -> bool {
    let leaf = LEAVES.contains(&to);
    let slice = SLICES.contains(&to);
    let low = leaf || to == "telemetry";
    let base = low
        || ["app", "error", "store", "jobs", "plugins", "egress", "files", "smtp"].contains(&to);
    match (from[0].as_str(), from.get(1).map(String::as_str)) {
        ("main" | "lib" | "app", _) => true,
        ("error", _) => ["rate", "seal", "store"].contains(&to),
        ("config", _) => {
            let used = [
                "egress", "http", "money", "otp", "phone", "plugins", "random", "seal", "smtp",
                "store", "users",
            ];
            to == "telemetry" || used.contains(&to)
        }
        ("telemetry", _) => leaf,
        ("egress" | "files" | "smtp", _) => low,
        ("store", _) => low,
        ("monitor", Some("store")) => low || to == "store",
        ("jobs", Some("store")) => leaf || to == "store",
        ("jobs", _) => low || ["app", "error", "store"].contains(&to),
        ("plugins", Some("api")) => base || ["audit", "http", "monitor"].contains(&to),
        ("plugins", _) => low || ["egress", "error", "store"].contains(&to),
        ("http", None) => base || slice,
        ("http", _) => {
            let used = [
                "app",
                "companies",
                "error",
                "http",
                "idempotency",
                "identity",
                "jobs",
                "monitor",
                "plugins",
                "recordings",
            ];
            low || used.contains(&to)
        }
        (name, _) if LEAVES.contains(&name) => leaf,
        (_, Some("store")) => leaf || to == "store",
        (_, Some("api")) => base || slice || to == "http",
        _ => base || slice,
    }
}

/// Whether a module below another room's root may be named.
fn may_enter(from: &[String], to: &[String]) -> bool {
    let api = from.get(1).is_some_and(|room| room == "api");
    match to[0].as_str() {
        "http" => {
            let name = to[1].as_str();
            let settings = from[0] == "config" && SETTINGS.contains(&name);
            from[0] == "http" || api && REQUESTS.contains(&name) || settings
        }
        // What spans are called is one vocabulary for all rooms.
        "telemetry" => to[1] == "spans",
        _ => from == ["http"] && to[1] == "api",
    }
}

fn matches(rooms: &[&str], module: &[String]) -> bool {
    rooms.iter().any(|room| match room.strip_prefix("*/") {
        Some(name) => module.len() >= 2 && module[1] == name,
        None => module[0] == *room,
    })
}

/// Every path that a file names from a root: `crate::…`, or another crate's.
#[derive(Default)]
struct Paths(BTreeSet<Vec<String>>);

impl Paths {
    fn of(file: &Text) -> Paths {
        let mut paths = Paths::default();
        paths.visit_file(&syn::parse_file(&file.text).expect("Rust"));
        paths
    }

    fn add_tree(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree),
            UseTree::Name(name) => drop(self.0.insert(with(&name.ident))),
            UseTree::Rename(name) => drop(self.0.insert(with(&name.ident))),
            UseTree::Glob(_) => drop(self.0.insert(before.to_owned())),
            UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.add_tree(before, item))
            }
        }
    }

    /// Paths inside of macro calls, which are tokens only.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if colons == 2 => path.push(name.to_string()),
                TokenTree::Ident(name) => path = vec![name.to_string()],
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons = if colons == 2 { 1 } else { colons + 1 };
                    continue;
                }
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                _ => path.clear(),
            }
            colons = 0;
            if path.len() > 1 {
                self.0.insert(path.clone());
            }
        }
    }
}

fn is_for_tests(item: &syn::Item) -> bool {
    let syn::Item::Mod(module) = item else { return false };
    module.ident == "tests" && module.attrs.iter().any(|a| a.path().is_ident("cfg"))
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_for_tests(item) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.insert(path.segments.iter().map(|s| s.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.add_tokens(item.tokens.clone());
    }
}

#[test]
fn imports_go_one_way() {
    let files = texts(&["host"], "rs");
    let modules: BTreeSet<Module> = files.iter().map(module_of).collect();
    let mut wrong = Vec::new();
    for file in &files {
        let from = module_of(file);
        for path in Paths::of(file).0 {
            let Some((root, to)) = path.split_first() else { continue };
            if root != "crate" || to.is_empty() || to[0] == from[0] && from[0] != "http" {
                continue;
            }
            let enters = to.len() > 1 && (modules.contains(&to[..2]) || to[0] == "http");
            if !may_use(&from, &to[0]) || enters && to[0] != from[0] && !may_enter(&from, to) {
                wrong.push(format!("{}: {}", file.path, path.join("::")));
            }
        }
    }
    assert_none(&wrong, "imports that go the wrong way, or into another room than its root:");
}

#[test]
fn the_table_of_routes_is_the_only_one_that_names_handlers() {
    let file = texts(&["host/http.rs"], "rs").remove(0);
    let paths = Paths::of(&file).0;
    let handlers = paths.iter().filter(|path| path.len() == 3 && path[1] == "api").count();
    assert!(handlers > 20, "the table of routes is read as {handlers} handlers");
}

#[test]
fn frameworks_stay_in_their_rooms() {
    let mut wrong = Vec::new();
    for file in texts(&["host"], "rs") {
        let module = module_of(&file);
        for path in Paths::of(&file).0 {
            let room = FRAMEWORKS.iter().find(|(name, _)| path.len() > 1 && path[0] == *name);
            if room.is_some_and(|(_, rooms)| !matches(rooms, &module)) {
                wrong.push(format!("{}: {}", file.path, path.join("::")));
            }
        }
    }
    assert_none(&wrong, "crates that are named outside of their rooms:");
}
