//! Circles are found through `use`, through paths and through re-exports.

use super::{KNOWN, Tree, check, list};

/// The places that the check reports for a crate with these files, if the list of known circles is
/// empty.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<(String, &str)> = files
        .iter()
        .map(|(path, text)| (format!("crates/a/src/{path}"), *text))
        .collect();
    let mut files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), *text))
        .collect();
    if !files.iter().any(|(path, _)| path.ends_with("lib.rs")) {
        files.push(("crates/a/src/lib.rs", ""));
    }
    list(&Tree::of(&files))
        .lines()
        .map(|line| line.replace("crates/a/src/", ""))
        .collect()
}

#[test]
fn folders_that_need_each_other_are_found() {
    for back in [
        "use crate::one::Thing;",
        "use {std::fmt, crate::{one::{self, Thing}}};",
        "fn a(b: &crate::one::Thing) {}",
        "fn a() { super::super::one::run() }",
        "use crate::one::*;",
        "use crate::Thing;",
    ] {
        let found = found(&[
            ("lib.rs", "mod one; mod two; pub use one::Thing;"),
            ("one.rs", "mod thing; pub use thing::Thing;"),
            ("one/thing.rs", "use crate::two::deep::Other;"),
            ("two.rs", "pub mod deep;"),
            ("two/deep.rs", back),
        ]);
        assert_eq!(found, ["between one/", "between two/"], "{back}");
    }
}

#[test]
fn a_need_in_one_direction_is_not_a_circle() {
    let found = found(&[
        (
            "lib.rs",
            "mod one; mod two; pub use one::Thing; pub use two::Other;",
        ),
        (
            "one.rs",
            "mod thing; pub use thing::Thing; use std::collections::BTreeMap;",
        ),
        (
            "one/thing.rs",
            "use crate::Other; use super::super::two; use one::a;",
        ),
        ("two.rs", "mod deep; pub use deep::Other;"),
        (
            "two/deep.rs",
            "#[cfg(test)] use crate::one::Thing; #[cfg(test)] mod tests; pub struct Other;",
        ),
        ("two/deep/tests.rs", "use crate::one::Thing;"),
        ("bin/tool.rs", "use crate::one::Thing;"),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

/// A module within a file is part of the file, so its names count as the file's own.
#[test]
fn a_module_within_a_file_takes_its_names_from_that_file() {
    let with = |inner: &str| {
        let text = format!("use crate::one::Thing; struct Own; mod inner {{ {inner} }}");
        found(&[
            ("lib.rs", "mod one; mod two; pub use one::Thing;"),
            ("one.rs", "mod thing; pub use thing::Thing;"),
            ("one/thing.rs", "use crate::two::Own;"),
            ("two.rs", &text.replace("use crate::one::Thing;", "")),
        ])
    };
    assert_eq!(with("use super::Own;"), Vec::<String>::new());
    for up in ["use super::super::one::Thing;", "use super::super::one::*;"] {
        assert_eq!(with(up), ["between one/", "between two.rs"], "{up}");
    }
}

/// A path that only limits a visibility is not a use of that module.
#[test]
fn a_visibility_is_not_a_use() {
    let with = |item: &str| {
        found(&[
            ("lib.rs", "mod one; mod two;"),
            ("one.rs", "mod thing; use crate::two::Other;"),
            ("one/thing.rs", ""),
            ("two.rs", item),
        ])
    };
    assert_eq!(
        with("pub(in crate::one) struct Other;"),
        Vec::<String>::new()
    );
    let tuple = "struct Other(pub (u8, crate::one::Thing));";
    assert_eq!(with(tuple), ["between one/", "between two.rs"]);
}

#[test]
fn a_folder_and_a_file_of_the_root_must_not_need_each_other() {
    let found = found(&[
        ("one.rs", "mod thing;"),
        ("one/thing.rs", "use crate::time::Nanos;"),
        ("time.rs", "use crate::one::Thing;"),
    ]);
    assert_eq!(found, ["between one/", "between time.rs"]);
}

#[test]
fn a_circle_of_three_files_is_allowed_and_one_of_four_is_not() {
    let ring = |n: usize| {
        let text = |i: usize| format!("use super::f{};", (i + 1) % n);
        let files: Vec<(String, String)> =
            (0..n).map(|i| (format!("one/f{i}.rs"), text(i))).collect();
        let mut files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        files.push(("one.rs", ""));
        found(&files)
    };
    assert_eq!(ring(3), Vec::<String>::new());
    assert_eq!(
        ring(4),
        [
            "within one/f0.rs",
            "within one/f1.rs",
            "within one/f2.rs",
            "within one/f3.rs"
        ]
    );
}

#[test]
fn the_list_has_exactly_the_known_circles() {
    let with = |known: &str| {
        let tree = Tree::of(&[
            (KNOWN, known),
            ("crates/a/src/lib.rs", ""),
            ("crates/a/src/one.rs", "mod x;"),
            ("crates/a/src/one/x.rs", "use crate::two;"),
            ("crates/a/src/two.rs", "use crate::one::x;"),
        ]);
        let findings = check(&tree);
        findings
            .into_iter()
            .map(|finding| format!("{finding}"))
            .collect::<Vec<_>>()
    };
    let all = "between crates/a/src/one/\nbetween crates/a/src/two.rs\n";
    assert_eq!(with(all), Vec::<String>::new());
    let new = with("between crates/a/src/one/\n");
    assert_eq!(new.len(), 1);
    let way = "crates/a/src/two.rs → crates/a/src/one/ → crates/a/src/two.rs";
    assert!(new[0].contains(way), "{new:?}");
    let gone = with(&format!("{all}within crates/a/src/three.rs\n"));
    assert_eq!(gone.len(), 1);
    assert!(
        gone[0].contains("`within crates/a/src/three.rs` is in no circle"),
        "{gone:?}"
    );
}
