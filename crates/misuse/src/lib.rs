//! No code: `tests/compile_fail` has programs that must not compile. They are in their own crate
//! because their test needs few libraries, and the tests of `dunlin` need two hundred packages.
