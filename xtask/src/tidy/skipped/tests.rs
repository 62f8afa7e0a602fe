//! Tests in parts that cargo does not test are found, and no others.

use serde_json::json;

use super::*;

const ROOT: &str = "/r";

fn found(target: &Value, files: &[(&str, &str)]) -> Vec<(String, usize)> {
    let metadata = [json!({"packages": [{"targets": [target]}]})];
    let findings = check(Path::new(ROOT), &Tree::of(files), &metadata).unwrap();
    findings.into_iter().map(|it| (it.path, it.line)).collect()
}

fn target(kind: &str, source: &str, test: bool, doctest: bool) -> Value {
    let source = format!("{ROOT}/{source}");
    json!({"kind": [kind], "src_path": source, "test": test, "doctest": doctest})
}

const FILES: [(&str, &str); 4] = [
    ("a/src/lib.rs", "//! A.\nfn f() {}\n"),
    ("a/src/b/tests.rs", "//! B.\n\n    #[test]\nfn t() {}\n"),
    ("a/src/bin/c.rs", "proptest! {\n}\n"),
    ("a/tests/d.rs", "#[test]\nfn t() {}\n"),
];

#[test]
fn a_test_that_never_runs_is_found() {
    let own = |path: &str, line| [(path.to_owned(), line)];
    let lib = target("lib", "a/src/lib.rs", false, true);
    assert_eq!(found(&lib, &FILES), own("a/src/b/tests.rs", 3));
    let program = target("bin", "a/src/bin/c.rs", false, false);
    assert_eq!(found(&program, &FILES), own("a/src/bin/c.rs", 1));
    for tested in [
        target("lib", "a/src/lib.rs", true, true),
        // Cargo tests no code in the documentation of programs, and no examples.
        target("bin", "a/src/bin/c.rs", true, false),
        target("example", "a/src/lib.rs", false, false),
    ] {
        assert_eq!(found(&tested, &FILES), []);
    }
}

#[test]
fn code_that_is_never_tested_is_found() {
    let lib = target("proc-macro", "a/src/lib.rs", true, false);
    for (text, line) in [
        ("//! A.\n//! ```\n//! ```\n", 2),
        ("/// A.\n    /// ```no_run\n", 2),
        ("#[doc = include_str!(\"x.md\")]\n", 1),
        ("//! ```text\n//! x\n//! ```\n//! ```\n", 4),
    ] {
        let expected = [("a/src/lib.rs".to_owned(), line)];
        assert_eq!(found(&lib, &[("a/src/lib.rs", text)]), expected);
    }
    let plain = "//! The sign ``` ends code.\n//! ```text\n//! x\n//! ```\nlet fence = \"```\";\n";
    assert_eq!(found(&lib, &[("a/src/lib.rs", plain)]), []);
}

#[test]
fn parts_of_a_target_are_in_its_folder() {
    assert!(is_part("a/src/main.rs", "a/src/x/y.rs"));
    assert!(!is_part("a/src/main.rs", "a/src/bin/x.rs"));
    assert!(is_part("a/src/bin/x.rs", "a/src/bin/x/y.rs"));
    assert!(!is_part("a/src/bin/x.rs", "a/src/bin/xy.rs"));
}
