//! Only comments may change.

use super::super::tree::File;
use super::compare;

fn compared(before: &str, after: &str) -> Option<(usize, String)> {
    let after = File {
        path: "a.rs".to_owned(),
        text: after.to_owned(),
    };
    let finding = compare("a.rs", Some(before), Some(&after));
    finding.map(|finding| (finding.line, finding.what))
}

#[test]
fn comments_of_all_kinds_may_change() {
    let before = "//! Old.\n/// Old.\nfn a() { b(1) } // Old.\n";
    let after = "//! New\n//! header.\n\nfn a() {\n    /* New. */ b(1)\n}\n";
    assert_eq!(compared(before, after), None);
}

#[test]
fn every_other_change_is_found_with_its_line() {
    let before = "/// A.\nfn a() { b(1) }\n";
    for (after, line, new) in [
        ("/// B.\nfn a() { b(2) }\n", 2, "`2` was `1`"),
        ("fn a() { b[1] }\n", 1, "`[` was `(`"),
        ("fn a() { b(1); }\n", 1, "`;` was `}`"),
        (
            "fn a() { b(1) }\n// C.\nfn c() {}\n",
            3,
            "`fn` was `the end",
        ),
        ("#[inline]\nfn a() { b(1) }\n", 1, "`#` was `fn`"),
        ("#[doc(hidden)]\nfn a() { b(1) }\n", 1, "`#` was `fn`"),
    ] {
        let (at, what) = compared(before, after).unwrap();
        assert_eq!(at, line, "{after}");
        assert!(what.contains(new), "{what}");
    }
}

#[test]
fn text_in_literals_is_code() {
    assert!(compared("f(\"// a\");", "f(\"// b\");").is_some());
}

#[test]
fn files_that_come_and_go_are_found() {
    let file = File {
        path: "a.rs".to_owned(),
        text: String::new(),
    };
    assert!(compare("a.rs", None, Some(&file)).is_some());
    assert!(compare("a.rs", Some(""), None).is_some());
}
