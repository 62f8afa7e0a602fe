//! Every check of the layout finds its bad example, and accepts a file that is just within all
//! limits.

use super::*;

fn findings(path: &str, text: &str) -> Vec<String> {
    let tree = Tree::of(&[(path, text)]);
    check(&tree)
        .into_iter()
        .map(|finding| finding.to_string())
        .collect()
}

#[test]
fn a_file_within_all_limits_passes() {
    let longest = format!("// {}\n", "é".repeat(COLUMNS - 3));
    let text = format!("//! Owns.\n{}", longest.repeat(FILE_LINES - 2));
    assert_eq!(
        findings("crates/core/src/slot.rs", &text),
        Vec::<String>::new()
    );
}

#[test]
fn a_file_without_an_opening_comment_is_found() {
    let found = findings("a.rs", "// Owns.\nfn f() {}\n");
    assert!(
        found.len() == 1 && found[0].starts_with("a.rs:1: a file opens"),
        "{found:?}"
    );
}

#[test]
fn a_file_at_the_limit_is_found() {
    let found = findings(
        "a.rs",
        &format!("//! Owns.\n{}", "\n".repeat(FILE_LINES - 1)),
    );
    assert_eq!(found, ["a.rs: 500 lines; a file has fewer than 500"]);
}

#[test]
fn a_file_of_c_above_its_limit_is_found() {
    assert!(findings("a.c", &"\n".repeat(C_LINES)).is_empty());
    let found = findings("a.c", &"\n".repeat(C_LINES + 1));
    assert_eq!(found, ["a.c: 401 lines; a file of C has at most 400"]);
}

#[test]
fn a_long_line_is_found_where_it_stands() {
    let found = findings(
        "a.rs",
        &format!("//! Owns.\n// {}\n", "x".repeat(COLUMNS - 2)),
    );
    assert_eq!(found, ["a.rs:2: 101 columns; a line has at most 100"]);
}

#[test]
fn names_that_say_nothing_are_found_in_files_and_folders() {
    assert_eq!(findings("src/utils.rs", "//! Owns.\n").len(), 1);
    assert_eq!(findings("src/common/ring.rs", "//! Owns.\n").len(), 1);
    assert_eq!(findings("src/commonality.rs", "//! Owns.\n").len(), 0);
}

#[test]
fn other_languages_are_left_alone() {
    assert_eq!(findings("notes.md", &"x".repeat(200)).len(), 0);
}
