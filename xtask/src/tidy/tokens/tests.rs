//! Every check of the tokens finds its bad example, inside macros too, and nothing in strings.

use super::*;

fn findings(path: &str, text: &str) -> Vec<String> {
    let tree = Tree::of(&[(path, text)]);
    check(&tree)
        .into_iter()
        .map(|finding| finding.to_string())
        .collect()
}

/// A function of `lines` lines.
fn function(lines: usize) -> String {
    format!("fn long() {{\n{}}}\n", "    call();\n".repeat(lines - 2))
}

#[test]
fn a_function_below_the_limit_passes() {
    assert_eq!(
        findings("a.rs", &function(FUNCTION_LINES - 1)),
        Vec::<String>::new()
    );
}

#[test]
fn a_function_at_the_limit_is_found_where_it_begins() {
    let text = format!(
        "struct S;\nimpl S {{\n#[inline]\n{}}}\n",
        function(FUNCTION_LINES)
    );
    let found = findings("a.rs", &text);
    assert_eq!(
        found,
        ["a.rs:4: `long` has 70 lines; a function has fewer than 70"]
    );
}

#[test]
fn a_long_function_inside_a_macro_is_found() {
    let found = findings("a.rs", &format!("proptest! {{\n{}}}\n", function(80)));
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_method_without_a_body_does_not_take_the_next_one() {
    let text = format!("trait T {{\nfn short(&self);\n{}}}\n", function(60));
    assert_eq!(findings("a.rs", &text), Vec::<String>::new());
}

#[test]
fn a_function_pointer_is_not_a_function() {
    let text = format!(
        "static F: fn(u8) = g;\nmod m {{\n{}}}\n",
        "const A: u8 = 0;\n".repeat(90)
    );
    assert_eq!(findings("a.rs", &text), Vec::<String>::new());
}

#[test]
fn macros_for_unfinished_work_are_found() {
    for word in UNFINISHED {
        let found = findings("a.rs", &format!("fn f() {{ g({word}!()) }}"));
        assert_eq!(found, [format!("a.rs:1: `{word}!` marks unfinished work")]);
    }
}

#[test]
fn unwrap_is_found_only_outside_tests() {
    let text = "fn f() { assert!(g().unwrap()); }";
    assert_eq!(findings("crates/core/src/slot.rs", text).len(), 1);
    assert_eq!(findings("crates/core/src/slot/tests.rs", text).len(), 0);
    assert_eq!(findings("crates/core/tests/pair.rs", text).len(), 0);
    assert_eq!(findings("crates/shm/src/loom_tests.rs", text).len(), 0);
}

#[test]
fn words_in_strings_comments_and_longer_names_pass() {
    let text = "/// Never todo!().\nfn f() { g(\"x.unwrap() dbg!\"); h.unwrap_or(1); } // todo!()";
    assert_eq!(findings("a.rs", text), Vec::<String>::new());
}

#[test]
fn inline_tests_are_found() {
    let found = findings("a.rs", "#[cfg(test)]\nmod tests { fn f() {} }");
    assert_eq!(
        found,
        ["a.rs:2: the tests `tests` must be in a file of their own"]
    );
    assert_eq!(findings("a.rs", "#[cfg(test)]\nmod tests;").len(), 0);
}

#[test]
fn text_that_is_not_rust_is_found() {
    assert_eq!(findings("a.rs", "fn f( {").len(), 1);
}
