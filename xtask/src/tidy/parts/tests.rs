//! The check finds state that is visible outside its part; values and proofs may be visible.

use super::{PLAIN_EVENTS, PLAIN_FUNCTIONS, Part, Tree, check_parts};

const PART: Part = Part {
    path: "crates/core/src/pacer",
    values: &["Moment", "Known"],
    owners: &["Line"],
};

fn found(code: &str) -> Vec<String> {
    let text = format!("struct Moment; struct Known; struct Line; {code}");
    let tree = Tree::of(&[("crates/core/src/pacer/wheel.rs", &text)]);
    let findings = check_parts(&tree, &[PART]);
    findings.into_iter().map(|finding| finding.what).collect()
}

#[test]
fn fields_that_others_see_are_found() {
    for code in [
        "struct A { a: u8, pub b: u8 }",
        "pub struct A<T>(pub(super) T) where T: Copy;",
        "struct A { pub(crate) a: Map<u8, [u8; 2]> }",
    ] {
        let found = found(code);
        assert_eq!(found.len(), 1, "{code}");
        assert!(found[0].contains("`A`"), "{found:?}");
    }
}

#[test]
fn a_part_that_is_a_file_has_the_files_of_its_folder() {
    let part = Part {
        path: "crates/core/src/pacer.rs",
        values: &[],
        owners: &[],
    };
    let code = "struct A { pub a: u8 }";
    for (path, count) in [
        ("crates/core/src/pacer.rs", 1),
        ("crates/core/src/pacer/wheel.rs", 1),
        ("crates/core/src/pacers.rs", 0),
    ] {
        let tree = Tree::of(&[("crates/core/src/pacer.rs", ""), (path, code)]);
        assert_eq!(
            check_parts(&tree, std::slice::from_ref(&part)).len(),
            count,
            "{path}"
        );
    }
}

#[test]
fn functions_that_give_state_away_are_found() {
    for code in [
        "impl A { pub(crate) fn slot(&mut self) -> &mut Slot { self.find() } }",
        "impl A { pub fn slot<'a>(&'a mut self) -> Option<(u8, &'a mut Slot)> { self.find() } }",
        "pub(super) const unsafe fn slot(a: &mut A) -> &mut Slot where A: Copy { a.find() }",
    ] {
        let found = found(code);
        assert_eq!(found.len(), 1, "{code}");
        assert!(found[0].contains("`slot`"), "{found:?}");
    }
}

#[test]
fn private_state_and_visible_values_and_proofs_are_no_findings() {
    for code in [
        "struct A { a: u8 } impl A { fn slot(&mut self) -> &mut Slot { self.find() } }",
        "pub(crate) struct A { a: u8 } impl A { pub(crate) fn on_a(&mut self, b: &mut B) {} }",
        "impl A { pub fn with(&mut self, f: impl Fn(&mut B) -> u8) -> Option<&B> { f() } }",
        "impl<'a> Known<'a> { pub(crate) fn slot(self) -> &'a mut Slot { self.find() } }",
        "struct Unit;",
    ] {
        assert_eq!(found(code), Vec::<String>::new(), "{code}");
    }
    let open = "struct Moment { pub now: u64 } struct Known; struct Line;";
    let tree = Tree::of(&[
        ("crates/core/src/pacer.rs", ""),
        ("crates/core/src/pacer/a.rs", open),
    ]);
    assert_eq!(check_parts(&tree, &[PART]), []);
}

#[test]
fn an_owner_may_be_lent_and_keeps_its_own_state() {
    let code = "impl A { pub fn at(&mut self) -> Option<&mut Line> { self.find() } }";
    assert_eq!(found(code), Vec::<String>::new());
    let code = "impl A { pub fn at<'a>(&'a mut self) -> (&'a mut Line, &mut u8) { self.find() } }";
    assert_eq!(found(code).len(), 1);
    let code = "impl Line { pub fn rtt_mut(&mut self) -> &mut Rtt { &mut self.rtt } }";
    assert_eq!(found(code).len(), 1);
    let text = "struct Moment; struct Known; struct Line { pub a: u8 }";
    let tree = Tree::of(&[("crates/core/src/pacer/line.rs", text)]);
    assert_eq!(check_parts(&tree, &[PART]).len(), 1);
}

#[test]
fn more_than_ten_functions_that_only_get_or_set_are_found() {
    let plain = |n: usize| -> String {
        let get = |n| format!("impl A {{ pub fn get{n}(&self) -> &u8 {{ &self.a.0 }} }}");
        let set = "impl A { pub fn set(&mut self, a: u8) { self.a = a; } }";
        let more = "impl A { pub fn more(&self) -> u8 { self.a + 1 } fn own(&self) { self.a } }";
        let gets: String = (1..n).map(get).collect();
        format!("{gets}{set}{more}")
    };
    assert_eq!(found(&plain(10)), Vec::<String>::new());
    let found = found(&plain(11));
    assert_eq!(found.len(), 11);
    assert!(
        found[0].contains("`get1` only gets a field; all parts have 11"),
        "{found:?}"
    );
    assert!(found[10].contains("`set` only sets"), "{found:?}");
}

#[test]
fn setters_of_an_owner_are_found_and_its_questions_are_not() {
    let code = "impl Line { pub fn set_near(&mut self, near: bool) { self.mark(near); } }";
    let named = found(code);
    assert_eq!(named.len(), 1);
    assert!(
        named[0].contains("`set_near` sets state of an owner"),
        "{named:?}"
    );
    let events = |n: usize| -> String {
        let on = |n| format!("impl Line {{ pub fn on_{n}(&mut self, a: u8) {{ self.a = a; }} }}");
        (0..n).map(on).collect()
    };
    let question = "impl Line { pub fn a(&self) -> u8 { self.a } }".repeat(PLAIN_FUNCTIONS + 1);
    let code = events(PLAIN_EVENTS) + &question;
    assert_eq!(found(&code), Vec::<String>::new());
    let beyond = found(&events(PLAIN_EVENTS + 1));
    assert_eq!(beyond.len(), PLAIN_EVENTS + 1);
    assert!(
        beyond[0].contains("`on_0` only sets a field; all owners have"),
        "{beyond:?}"
    );
}

#[test]
fn listed_parts_and_types_must_exist() {
    let tree = Tree::of(&[("crates/core/src/pacers.rs", "struct A { pub a: u8 }")]);
    let findings = check_parts(&tree, &[PART]);
    let found: Vec<String> = findings.into_iter().map(|finding| finding.what).collect();
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[0].contains("does not exist") && found[1].contains("`Moment`"));
}

#[test]
fn tests_of_a_part_may_break_its_rules() {
    let tree = Tree::of(&[
        (
            "crates/core/src/pacer.rs",
            "struct Moment; struct Known; struct Line;",
        ),
        ("crates/core/src/pacer/tests.rs", "struct A { pub a: u8 }"),
    ]);
    assert_eq!(check_parts(&tree, &[PART]), []);
}
