//! Programs that must not compile (design §11): the types carry the rules of ownership, so the
//! compiler refuses a program that breaks one, before it can corrupt a message.
//!
//! The compiler's message is pinned in a file next to each program. After a change of the
//! toolchain, `TRYBUILD=overwrite cargo test -p dunlin-misuse` renews it; read the
//! difference.

#[test]
fn programs_that_break_the_rules_of_ownership_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/compile_fail/*.rs");
}
