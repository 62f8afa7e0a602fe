//! Calls outside of the listed files are found, and lists of files that do not exist.

use super::*;

const LIST: &str = "# Q

| home | calls | library |
|---|---|---|
| `a/src/ffi.rs` | x | `libc` |
| `gopt/crates/h/src/sys.rs` | y | `libc` |
| `a/src/c` | z | `rustix` |
";
const CALL: &str = "//! A.

fn f() {
    // libc::getpid() is fine.
    unsafe { libc::getpid() };
}
";

fn found(files: &[(&str, &str)]) -> Vec<(String, usize)> {
    let mut all = vec![
        (PAGE, LIST),
        ("crates/a/src/ffi.rs", CALL),
        ("gopt/crates/h/src/sys/signals.rs", CALL),
        ("crates/a/src/c.rs", "//! C.\n"),
    ];
    all.extend(files);
    let findings = check(&Tree::of(&all));
    findings.into_iter().map(|it| (it.path, it.line)).collect()
}

#[test]
fn a_call_outside_of_the_homes_is_found() {
    assert_eq!(found(&[]), []);
    for path in [
        "crates/a/src/ffi/socket.rs",
        "crates/a/src/b/tests.rs",
        "crates/a/tests/b.rs",
        "crates/a/examples/b.rs",
        "crates/testkit/src/b.rs",
        "xtask/src/b.rs",
    ] {
        assert_eq!(found(&[(path, CALL)]), [], "{path}");
    }
    for path in [
        "crates/a/src/b.rs",
        "crates/a/src/ffi2.rs",
        "crates/a/src/c/d.rs",
        "gopt/crates/a/src/ffi.rs",
    ] {
        assert_eq!(found(&[(path, CALL)]), [(path.to_owned(), 5)]);
    }
    // A constant or a type is not a call.
    let names = "use libc::c_int;\nconst A: c_int = libc::EAGAIN;\nfn f(a: libc::sockaddr) {}\n";
    assert_eq!(found(&[("crates/a/src/b.rs", names)]), []);
}

#[test]
fn a_home_that_does_not_exist_is_found() {
    let files = [(PAGE, LIST), ("crates/a/src/ffi.rs", CALL)];
    let findings = check(&Tree::of(&files));
    let found: Vec<_> = findings.iter().map(|it| (&*it.path, it.line)).collect();
    assert_eq!(found, [(PAGE, 6), (PAGE, 7)]);
    assert_eq!(check(&Tree::of(&[])).len(), 1);
}
