//! Broken links are found, in both forms; what is no relative link is left alone.

use super::*;

fn findings(text: &str) -> Vec<String> {
    let tree = Tree::of(&[
        ("docs/protocol.md", text),
        ("README.md", ""),
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
                [h]: ../README.md\n";
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
fn a_link_out_of_the_workspace_is_found() {
    assert_eq!(findings("[a](../../README.md)").len(), 1);
}

#[test]
fn code_is_no_link() {
    assert_eq!(findings("```rust\nlet x = f[0](y);\n```\n"), [""; 0]);
}
