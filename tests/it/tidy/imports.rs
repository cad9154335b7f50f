//! Who may import whom: `app -> tools -> plugins -> platform`, `app -> http -> platform`, and inside
//! of `app` from area to area.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::{UseTree, visit::Visit};

use super::{Text, assert_none, texts};

/// The crates of the host, and those that each may use.
const CRATES: [(&str, &[&str]); 5] = [
    ("platform", &[]),
    ("http", &["platform"]),
    ("plugins", &["platform"]),
    ("tools", &["platform", "plugins"]),
    ("app", &["platform", "http", "plugins"]),
];

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

/// Imports that break the rule. The list only gets shorter.
const OPEN: &[(&str, &str)] = &[];

/// A module of the host, as the segments of its path: `app`, `money`, `payments`.
type Module = Vec<String>;

fn module_of(file: &Text) -> Module {
    let path = file.path.strip_prefix("host/").expect("a file of the host");
    let names = path.trim_end_matches(".rs").split('/');
    names.filter(|name| !["src", "mod", "lib"].contains(name)).map(str::to_owned).collect()
}

/// The rooms of an import that breaks the rule: `platform::telemetry`, `app::operations`.
fn broken(from: &[String], to: &[String]) -> Option<(String, String)> {
    let (crate_from, crate_to) = (from.first()?, to.first()?);
    let uses = |table: &[(&str, &[&str])], from: &str, to: &str| {
        table.iter().any(|(name, used)| *name == from && used.contains(&to))
    };
    let rooms = || (from[..from.len().min(2)].join("::"), to[..to.len().min(2)].join("::"));
    if crate_from != crate_to {
        let is_crate = CRATES.iter().any(|(name, _)| name == crate_to);
        return (is_crate && !uses(&CRATES, crate_from, crate_to)).then(rooms);
    }
    let (area_from, area_to) = (from.get(1)?, to.get(1)?);
    let are_areas =
        [area_from, area_to].iter().all(|area| AREAS.iter().any(|(name, _)| name == area));
    let is_broken = crate_from == "app" && area_from != area_to && are_areas;
    (is_broken && !uses(&AREAS, area_from, area_to)).then(rooms)
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
    let mut found = BTreeSet::new();
    for file in texts(&["host"], "rs").iter().filter(|file| file.path.contains("/src/")) {
        let from = module_of(file);
        for path in Paths::of(file).0.iter().filter(|path| path[0] == "crate") {
            found.extend(broken(&from, &path[1..]));
        }
    }
    let open: BTreeSet<_> =
        OPEN.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    let new: Vec<String> =
        found.difference(&open).map(|(from, to)| format!("{from} -> {to}")).collect();
    assert_none(&new, "imports that go the wrong way:");
    let gone: Vec<String> =
        open.difference(&found).map(|(from, to)| format!("{from} -> {to}")).collect();
    assert_none(&gone, "no longer there, so not open any more:");
}

/// The SQL of a slice knows neither requests nor plugins.
#[test]
fn stores_know_the_database_only() {
    let mut wrong = Vec::new();
    for file in texts(&["host/app"], "rs").iter().filter(|file| file.path.contains("/store")) {
        for path in Paths::of(file).0 {
            let is_above = ["http", "plugins", "state"]
                .iter()
                .any(|room| path.iter().skip(1).take(2).any(|name| name == room));
            if path[0] == "crate" && is_above {
                wrong.push(format!("{}: {}", file.path, path.join("::")));
            }
        }
    }
    assert_none(&wrong, "stores that import what does not concern them:");
}
