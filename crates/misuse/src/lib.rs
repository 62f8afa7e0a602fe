//! No code: `tests/compile_fail` has programs that must not compile. They are in a crate of their
//! own because the test compiles the crate's dependencies again, in a folder of its own, and those
//! of `dunlin`'s tests are two hundred packages.
