//! Citations in every form, and each kind of mismatch between them and the page.

use super::*;

const PAGE: &str = "# The design\n## 1 Users\n## Reasons\n## 8 Memory\n### 9 Below\n";

fn findings(page: &str, code: &str) -> Vec<String> {
    let tree = Tree::of(&[(DESIGN, page), ("crates/core/src/slot.rs", code)]);
    let findings = check(&tree);
    findings.iter().map(ToString::to_string).collect()
}

fn cited(text: &str) -> Vec<String> {
    let file = File {
        path: "a.rs".to_owned(),
        text: text.to_owned(),
    };
    let cited = citations(&file).into_iter();
    cited
        .map(|(section, line)| format!("{section}:{line}"))
        .collect()
}

#[test]
fn citations_are_found_in_every_form() {
    assert_eq!(cited("//! (design §4; eRPC §5)"), ["4:1"]);
    assert_eq!(
        cited("//! One (rule W4, design §9,\n//! §12)."),
        ["9:1", "12:2"]
    );
    assert_eq!(cited("// Design §17, as eRPC §3"), ["17:1"]);
    assert_eq!(
        cited("// By design, §3 of the paper."),
        Vec::<String>::new()
    );
    assert_eq!(
        cited("let a = \"design §3\"; // `design §8`"),
        Vec::<String>::new()
    );
}

#[test]
fn a_citation_names_a_section_of_the_page() {
    assert_eq!(findings(PAGE, "//! (design §1, §8)"), Vec::<String>::new());
    assert_eq!(
        findings(PAGE, "//! One.\n//! (design §8, §9)"),
        ["crates/core/src/slot.rs:2: docs/design.md has no section \"9\""]
    );
    assert_eq!(findings(PAGE, "//! (design §)").len(), 1);
}

#[test]
fn a_number_is_used_once() {
    let page = "## 1 Users\n## 1 Aims\n";
    assert_eq!(
        findings(page, ""),
        ["docs/design.md:2: section 1 is in line 1 already"]
    );
}

#[test]
fn the_page_must_be_there() {
    let tree = Tree::of(&[("a.rs", "//! (design §1)")]);
    assert_eq!(check(&tree).len(), 1);
}
