//! A second type with a listed name is found, and nothing else.

use super::*;

fn found(second: &str) -> usize {
    let first = "//! A.\n\npub(crate) struct Place(u64);\n";
    let second = format!("//! B.\n\n{second}\n");
    let tree = Tree::of(&[("a/src/lib.rs", first), ("b/src/b.rs", &second)]);
    let findings = check(&tree);
    let is_there = |it: &Finding| it.path == "b/src/b.rs" && it.what.contains("a/src/lib.rs:3");
    assert!(findings.iter().all(is_there), "{findings:?}");
    findings.len()
}

#[test]
fn a_second_type_of_a_name_is_found() {
    for second in [
        "struct Place;",
        "pub enum Place {}",
        "    pub(in crate::a) struct Place<'a>(&'a u8);",
        "pub(super) type Place = (u8, u8);",
        "trait Place: Copy {}",
        "use a::Item as Place;",
        "use a::{Item as Place, Other};",
    ] {
        assert_eq!(found(second), 1, "{second}");
    }
    assert_eq!(found("struct Place;\nenum Place {}"), 2);
}

#[test]
fn other_uses_of_a_name_are_not_definitions() {
    for second in [
        "struct TakenPlace;",
        "use a::Place;",
        "use a::Place as Spot;",
        "// struct Place;",
        "fn f(place: Place) -> u64 { place as u64 }",
        "    type Place = u8;",
        "struct Entry;",
    ] {
        assert_eq!(found(second), 0, "{second}");
    }
}
