//! Maximum lengths of files and functions.

use syn::{spanned::Spanned, visit::Visit};

use super::{assert_none, texts};

const MAX_FILE_LINES: usize = 520;
const MAX_FUNCTION_LINES: usize = 70;
const RUST: [&str; 5] = ["benches", "host", "plugins", "sandbox", "tests"];

/// Name and lines of each function.
#[derive(Default)]
struct Functions(Vec<(String, usize)>);

impl Functions {
    fn note(&mut self, name: &syn::Ident, body: &syn::Block) {
        let span = body.span();
        self.0.push((name.to_string(), span.end().line - span.start().line + 1));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(&item.sig.ident, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.sig.ident, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }
}

#[test]
fn files_and_functions_are_short() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for file in texts(&RUST, "rs") {
        let lines = file.text.lines().count();
        if lines > MAX_FILE_LINES {
            wrong.push(format!("{}: {lines} lines", file.path));
        }
        let mut functions = Functions::default();
        functions.visit_file(&syn::parse_file(&file.text).expect("Rust"));
        seen += functions.0.len();
        let long = functions.0.into_iter().filter(|(_, lines)| *lines > MAX_FUNCTION_LINES);
        wrong.extend(long.map(|(name, lines)| format!("{}: {name}: {lines} lines", file.path)));
    }
    assert!(seen > 500, "only {seen} functions were found");
    assert_none(&wrong, "too long:");
}

#[test]
fn no_comment_postpones_work() {
    let words =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
    let mut wrong = Vec::new();
    for extension in ["rs", "sql", "wit", "toml", "md", "json", "css"] {
        for file in texts(&[""], extension) {
            for (n, line) in file.text.lines().enumerate() {
                let mut parts = line.split(|c: char| !c.is_ascii_alphanumeric());
                if parts.any(|part| words.contains(&part)) {
                    wrong.push(format!("{}:{}: {}", file.path, n + 1, line.trim()));
                }
            }
        }
    }
    assert_none(&wrong, "postponed work:");
}
