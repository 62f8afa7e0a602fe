//! Names of files that do not exist are found.

use super::{Tree, check};

fn found(text: &str) -> Vec<String> {
    let tree = Tree::of(&[
        ("crates/core/src/session/slot.rs", text),
        ("docs/gopt.md", ""),
    ]);
    check(&tree)
        .into_iter()
        .map(|finding| finding.what)
        .collect()
}

#[test]
fn a_name_without_a_file_is_a_finding() {
    for text in [
        "// See `work.rs`.",
        "// See (session/tables.rs).",
        "// Drawn in ../gop.md",
        "// In docs/session/slot.rs:",
        "// Not lot.rs.",
    ] {
        assert_eq!(found(text).len(), 1, "{text}");
    }
}

#[test]
fn names_and_ends_of_paths_that_exist_are_no_findings() {
    for text in [
        "// See `slot.rs`, session/slot.rs, and crates/core/src/session/slot.rs.",
        "// `slot.rs:12` and ../../docs/gopt.md",
        "// All `*.rs`, `x_{a,b}.rs`, <name>.rs; https://docs.rs/a/b.rs, docs.rs, a/.rs",
        "let a = \"work.rs\";",
    ] {
        assert_eq!(found(text), Vec::<String>::new(), "{text}");
    }
}
