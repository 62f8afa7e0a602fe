//! Refused words are found in strings and names of functions, and not in other code.

use super::check;
use crate::tidy::tree::Tree;

fn found(text: &str) -> Vec<(usize, String)> {
    let tree = Tree::of(&[("crates/a/src/a.rs", text)]);
    let findings: Vec<_> = tree.rust().flat_map(check).collect();
    let of = |finding: super::Finding| (finding.line, finding.what);
    findings.into_iter().map(of).collect()
}

#[test]
fn each_place_of_a_word_is_found() {
    for text in [
        "fn a() { panic!(\"Nobody waits\") }",
        "const A: &[u8] = b\"to whom\";",
        "const A: &str = r#\"\"somebody\" else\"#;",
        "fn requests_that_nobody_answers() {}",
        "trait A { fn is_told(&self); }",
        "fn a() { assert!(true, \"there are so \\\n    many\"); }",
        "fn a() { print!(\"{it}\\nwho asks\"); }",
    ] {
        assert_eq!(found(text).len(), 1, "{text}");
    }
    let text = "fn a() {}\nfn who_asks() {}\n";
    let (line, what) = &found(text)[0];
    assert_eq!(*line, 2);
    assert!(what.starts_with("\"who\": name the actor"), "{what}");
}

#[test]
fn other_code_and_comments_are_left_alone() {
    for text in [
        "/// Nobody asks.\nfn a() {}",
        "fn a() { let nobody = who(b); }",
        "fn a() { print!(\"{who} asks\"); }",
        "const A: &str = \"whole\"; fn is_so() {} fn many() {}",
        "const A: [&str; 2] = [\"so\", \"many\"];",
        "const A: char = '\\u{77}'; const B: u64 = 0x77;",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}
