//! Settings: what counts, what is refused, and that the documents list all of them.

use std::{fs, path::Path};

use tollhouse::config::describe;

/// Set to write the list of settings in `docs/OPERATING.md` anew.
const WRITE: &str = "TOLLHOUSE_WRITE_DOCS";

#[test]
fn the_documents_list_every_setting() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/OPERATING.md");
    let document = fs::read_to_string(&file).expect("a document");
    let (begin, end) = ("<!-- settings -->\n", "\n<!-- end of settings -->");
    let (before, rest) = document.split_once(begin).expect("the list's begin");
    let (listed, after) = rest.split_once(end).expect("the list's end");
    let table = describe::table();
    if std::env::var_os(WRITE).is_some() {
        let document = format!("{before}{begin}{table}{end}{after}");
        return fs::write(&file, document).expect("a document that can be written");
    }
    let hint = format!("docs/OPERATING.md lists other settings: run this test with {WRITE}=1");
    assert_eq!(listed, table, "{hint}");
}
