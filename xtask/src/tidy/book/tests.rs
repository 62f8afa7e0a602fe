//! The check finds pages missing from the contents, links out of the book, and Rust code that no
//! test compiles.

use super::*;

fn findings(contents: &str, doctests: &str) -> Vec<String> {
    findings_with(contents, doctests, "no code")
}

fn findings_with(contents: &str, doctests: &str, decisions: &str) -> Vec<String> {
    let tree = Tree::of(&[
        ("docs/SUMMARY.md", contents),
        ("docs/poll.md", "# Poll\n\n```rust\nfn f() {}\n```\n"),
        ("docs/decisions/README.md", decisions),
        ("docs/results.svg", ""),
        ("README.md", "```sh\nls\n```\n"),
        ("crates/dunlin/src/book.rs", doctests),
    ]);
    check(&tree)
        .into_iter()
        .map(|finding| finding.to_string())
        .collect()
}

#[test]
fn a_book_of_known_pages_passes() {
    let contents = "- [Poll](poll.md)\n- [Decisions](decisions/README.md)\n";
    let doctests = "#[doc = include_str!(\"../../../docs/poll.md\")]";
    assert_eq!(findings(contents, doctests), [""; 0]);
}

#[test]
fn pages_without_a_link_and_code_without_a_test_are_findings() {
    assert_eq!(
        findings("- [Poll](poll.md)\n", ""),
        [
            "docs/decisions/README.md: not in docs/SUMMARY.md",
            "docs/poll.md:3: no test compiles this: name the page in a module of doctests",
        ]
    );
    let none = check(&Tree::of(&[("README.md", "")]));
    assert_eq!(none.len(), 1);
    assert_eq!(none[0].what, "the book has no contents");
}

#[test]
fn a_page_of_another_workspace_is_compiled_there() {
    let page = ("gopt/docs/gopt.md", "```rust\nfn f() {}\n```\n");
    let doctest = "include_str!(\"../../../docs/gopt.md\")";
    let found = |place| {
        let tree = Tree::of(&[("docs/SUMMARY.md", ""), page, (place, doctest)]);
        check(&tree).len()
    };
    assert_eq!(found("gopt/crates/gopt/src/lib.rs"), 0);
    assert_eq!(
        found("crates/dunlin/src/book.rs"),
        1,
        "of the other workspace"
    );
}

#[test]
fn links_out_of_the_book_are_findings() {
    let contents = "- [Poll](poll.md)\n- [Decisions](decisions/README.md)\n";
    let doctests = "include_str!(\"../../../docs/poll.md\")";
    let links = "[a](../poll.md#poll) [b](#b) [c](../results.svg)\n\
                 [d](../../README.md) [e](../SUMMARY.md)\n";
    let broken = ["../../README.md", "../SUMMARY.md"].map(|target| {
        format!(
            "docs/decisions/README.md:2: `{target}` is not in the book, where this link is broken"
        )
    });
    assert_eq!(findings_with(contents, doctests, links), broken);
}
