//! The check finds broken links, in both forms, and links to headings that do not exist. It ignores
//! other text.

use super::*;

fn findings(text: &str) -> Vec<String> {
    let tree = Tree::of(&[
        ("docs/protocol.md", text),
        (
            "README.md",
            "# Top\n\n```text\n# Code\n```\n## `recv` & send: *when*? \n## Top\n",
        ),
        ("docs/rtt.svg", ""),
        ("crates/core/src/lib.rs", ""),
    ]);
    check(&tree)
        .into_iter()
        .map(|finding| finding.to_string())
        .collect()
}

#[test]
fn links_to_files_and_folders_pass() {
    let text = "[a](../README.md#top) ![b](rtt.svg \"RTT\") [c](../crates/core/) [d](./rtt.svg)\n\
                [e](https://example.org) [f](#rules) [g](mailto:a@example.org)\n\
                [h]: ../README.md\n\n# Rules\n";
    assert_eq!(findings(text), [""; 0]);
}

#[test]
fn broken_links_are_found_in_both_forms() {
    let found = findings("See [a](README.md).\n[b]: ../ARCHITECTURE.md\n");
    assert_eq!(
        found,
        [
            "docs/protocol.md:1: no file `README.md`",
            "docs/protocol.md:2: no file `../ARCHITECTURE.md`"
        ]
    );
}

#[test]
fn headings_have_the_anchors_that_forges_and_mdbook_give_them() {
    let to = |anchor: &str| findings(&format!("[a](../README.md#{anchor})\n"));
    for anchor in ["top", "top-1", "recv--send-when"] {
        assert_eq!(to(anchor), [""; 0]);
    }
    for anchor in ["Top", "top-2", "code", "recv-send-when", "#top"] {
        assert_eq!(
            to(anchor),
            [format!(
                "docs/protocol.md:1: no heading `../README.md#{anchor}`"
            )]
        );
    }
    assert_eq!(
        findings("# Here\n[a](#here) [b](#there)\n"),
        ["docs/protocol.md:2: no heading `#there`"]
    );
    // The target is not a page, so its anchors cannot be checked.
    assert_eq!(findings("[a](../crates/core/src/lib.rs#L7)\n"), [""; 0]);
}

#[test]
fn a_link_out_of_the_workspace_is_found() {
    assert_eq!(findings("[a](../../README.md)").len(), 1);
}

#[test]
fn code_is_not_a_link() {
    assert_eq!(findings("```rust\nlet x = f[0](y);\n```\n"), [""; 0]);
}
