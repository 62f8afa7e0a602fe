//! The check finds refused words anywhere in new lines, and only there.

use super::{Old, Tree, check};

fn found(text: &str, old: &str) -> Vec<(usize, String)> {
    let path = if text.starts_with('#') {
        "docs/a.md"
    } else {
        "a.rs"
    };
    let findings = check(&Tree::of(&[(path, text)]), &Old::of(old));
    findings
        .into_iter()
        .map(|finding| (finding.line, finding.what))
        .collect()
}

#[test]
fn each_phrase_is_found_in_comments_and_pages() {
    for (text, phrase) in [
        ("//! Nobody calls it.\n", "nobody"),
        ("/// For whoever asks.\n", "whoever"),
        ("let a = 1; // who asks\n", "who"),
        ("# A\nsomebody else\n", "somebody"),
        ("// There are so many.\n", "so many"),
        ("// Calls and their like.\n", "their like"),
        ("// It is told.\n", "is told"),
        ("// It hears.\n", "hears"),
        ("// It says of a peer\n", "says of"),
    ] {
        let found = found(text, "");
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(
            found[0].1.starts_with(&format!("\"{phrase}\"")),
            "{found:?}"
        );
    }
}

#[test]
fn a_phrase_is_found_across_a_line_break_if_one_of_the_lines_is_new() {
    let text = "// There are so\n// many of them.\n";
    assert_eq!(found(text, "// There are so").len(), 1);
    assert_eq!(found(text, "// many of them.").len(), 1);
    assert_eq!(found(text, text), []);
    assert_eq!(
        found("// There are so\nlet a = 1;\n// many of them.\n", ""),
        []
    );
}

#[test]
fn old_lines_code_and_parts_of_words_are_left_alone() {
    assert_eq!(found("    // Nobody.\n", "// Nobody."), []);
    assert_eq!(found("// The function `who` and a whole.\n", ""), []);
    assert_eq!(found("let nobody = 5;\n", ""), []);
    assert_eq!(found("# A\n```\nnobody\n```\n", ""), []);
}

#[test]
fn only_the_first_line_of_a_doc_comment_may_not_open_with_what() {
    let text = "/// What it is.\n/// What follows.\nfn a() {}\n// What is next.\n";
    let found = found(text, "");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, 1);
}
