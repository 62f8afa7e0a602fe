//! Definitions in every form of list, citations in every form of sentence, and each kind of
//! mismatch between them.

use super::*;

fn findings(protocol: &str, code: &str) -> Vec<String> {
    let tree = Tree::of(&[(PROTOCOL, protocol), ("crates/core/src/slot.rs", code)]);
    check(&tree)
        .into_iter()
        .map(|finding| finding.to_string())
        .collect()
}

fn cited(text: &str) -> Vec<String> {
    let file = File {
        path: "a.rs".to_owned(),
        text: text.to_owned(),
    };
    citations(&file)
        .into_iter()
        .map(|(id, line)| format!("{}:{line}", name(id)))
        .collect()
}

#[test]
fn definitions_are_found_in_lists_headings_and_tables() {
    let text = "# Rules\n- **W1.** One.\n### W2 Two\n| W3 | three |\n* W4: four\nW5 is prose.\n";
    let found: Vec<String> = definitions(text)
        .into_iter()
        .map(|(id, _)| name(id))
        .collect();
    assert_eq!(found, ["W1", "W2", "W3", "W4"]);
}

#[test]
fn citations_are_found_in_every_form() {
    assert_eq!(cited("//! (rule W4, design §4)"), ["W4:1"]);
    assert_eq!(
        cited("// Rules W2 to W4 and S1."),
        ["W2:1", "W3:1", "W4:1", "S1:1"]
    );
    assert_eq!(
        cited("/// see rules S1, S2\n    /// or S5 (fast)"),
        ["S1:1", "S2:1", "S5:2"]
    );
    assert_eq!(
        cited("// as a rule it is\n// W4 that wins"),
        Vec::<String>::new()
    );
    assert_eq!(cited("// the rule: W4"), Vec::<String>::new());
    assert_eq!(cited("// rule W4x, rule 7, rule É1"), Vec::<String>::new());
}

#[test]
fn matching_rules_pass() {
    assert_eq!(
        findings("- **W1.** a\n- **W2.** b\n", "//! rules W1 to W2"),
        [""; 0]
    );
}

#[test]
fn an_uncited_rule_is_found() {
    let found = findings("- **W1.** a\n- **W2.** b\n", "//! rule W1");
    assert_eq!(found, ["docs/protocol.md:2: nothing cites rule W2"]);
}

#[test]
fn an_unknown_rule_is_found() {
    let found = findings("- **W1.** a\n", "//! rule W1\n// and rule W9\n");
    assert_eq!(
        found,
        ["crates/core/src/slot.rs:2: rule W9 is not in docs/protocol.md"]
    );
}

#[test]
fn a_rule_that_is_defined_twice_is_found() {
    let found = findings("- **W1.** a\n- **W1.** b\n", "//! rule W1");
    assert_eq!(
        found,
        ["docs/protocol.md:2: rule W1 is defined in line 1 already"]
    );
}

#[test]
fn a_missing_protocol_is_found() {
    let tree = Tree::of(&[("crates/wire/src/lib.rs", "//! Owns.")]);
    assert_eq!(
        check(&tree),
        [Finding::new(
            PROTOCOL,
            0,
            "the page with the rules is missing"
        )]
    );
}
