//! Expressions mean what SPDX says, and broken ones are errors.

use super::*;

fn licences() -> Vec<String> {
    ["MIT", "Zlib", "BSD-2-Clause WITH note"]
        .map(str::to_owned)
        .into()
}

#[test]
fn an_expression_is_met_by_allowed_licences_alone() {
    for allowed in [
        "MIT",
        "GPL-3.0 OR MIT",
        "GPL-3.0/MIT",
        "MIT AND Zlib",
        "(GPL-3.0 OR MIT) AND Zlib",
        "GPL-3.0 AND GPL-2.0 OR MIT",
        "BSD-2-Clause WITH note",
    ] {
        assert!(is_allowed(allowed, &licences()).unwrap(), "{allowed}");
    }
    for refused in [
        "GPL-3.0",
        "GPL-3.0 AND MIT",
        "MIT AND (GPL-3.0 OR GPL-2.0)",
        "MIT WITH note",
        "BSD-2-Clause",
        "mit",
    ] {
        assert!(!is_allowed(refused, &licences()).unwrap(), "{refused}");
    }
}

#[test]
fn a_broken_expression_is_an_error() {
    for broken in [
        "", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT Zlib", "MIT WITH", "()",
    ] {
        assert!(is_allowed(broken, &licences()).is_err(), "{broken}");
    }
}
