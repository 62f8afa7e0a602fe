//! Programs that must not compile (design §11): the types carry the rules of ownership, so the
//! compiler refuses a program that breaks one, before it can corrupt a message.
//!
//! A file next to each program holds the expected message of the compiler. After a change of the
//! toolchain, `TRYBUILD=overwrite cargo test -p dunlin-misuse` rewrites these files; read the
//! difference.

#[test]
fn programs_that_break_the_rules_of_ownership_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/compile_fail/*.rs");
}
