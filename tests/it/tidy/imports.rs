//! Imports inside the application: areas form layers, and stores do not import requests. Between
//! crates the compiler enforces the direction.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::{UseTree, visit::Visit};

use super::{Text, assert_none, texts};

/// The areas of the application, and those that each may use.
const AREAS: [(&str, &[&str]); 9] = [
    ("state", &[]),
    ("operations", &["state"]),
    ("tenants", &["operations", "state"]),
    ("messaging", &["operations", "state", "tenants"]),
    ("webhooks", &["operations", "state", "tenants"]),
    ("customers", &["messaging", "operations", "state", "tenants"]),
    ("identity", &["customers", "messaging", "operations", "state", "tenants"]),
    ("money", &["customers", "messaging", "operations", "state", "tenants", "webhooks"]),
    ("lending", &["customers", "messaging", "money", "operations", "state", "tenants", "webhooks"]),
];
const ROOT: &str = "host/app/src";

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

    /// Adds paths in macro calls, which are tokens only.
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

fn used_by(area: &str) -> Option<&'static [&'static str]> {
    AREAS.iter().find(|(name, _)| *name == area).map(|(_, used)| *used)
}

#[test]
fn areas_use_only_the_areas_below_them() {
    let mut wrong = Vec::new();
    for file in texts(&[ROOT], "rs") {
        let area = file.path[ROOT.len() + 1..].split('/').next().unwrap_or_default().to_owned();
        let Some(used) = used_by(&area) else { continue };
        for path in Paths::of(&file).0.iter().filter(|path| path[0] == "crate") {
            let Some(to) = path.get(1).filter(|to| **to != area) else { continue };
            if !used.contains(&to.as_str()) {
                wrong.push(format!("{}: {}", file.path, path.join("::")));
            }
        }
    }
    assert_none(&wrong, "imports of areas that are not below:");
}

#[test]
fn stores_do_not_import_the_http_layer() {
    let is_store = |file: &Text| file.path.ends_with("/store.rs") || file.path.contains("/store/");
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in texts(&[ROOT], "rs").iter().filter(|file| is_store(file)) {
        seen += 1;
        for path in Paths::of(file).0 {
            if ["axum", "tollhouse_http"].contains(&&*path[0]) {
                wrong.push(format!("{}: {}", file.path, path.join("::")));
            }
        }
    }
    assert!(seen > 15, "only {seen} stores were found");
    assert_none(&wrong, "stores that import the HTTP layer:");
}

#[test]
fn folders_of_the_host_have_at_most_a_dozen_entries() {
    let mut folders: std::collections::BTreeMap<String, BTreeSet<String>> = Default::default();
    for file in texts(&["host"], "rs") {
        let parts: Vec<&str> = file.path.split('/').collect();
        for n in 1..parts.len() {
            folders.entry(parts[..n].join("/")).or_default().insert(parts[n].to_owned());
        }
    }
    let crowded = folders.iter().filter(|(_, entries)| entries.len() > 12);
    let crowded: Vec<String> =
        crowded.map(|(folder, entries)| format!("{folder}: {}", entries.len())).collect();
    assert_none(&crowded, "folders with more than 12 entries:");
}
