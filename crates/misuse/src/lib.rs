//! No code: `tests/compile_fail` has programs that must not compile. They are in their own crate
//! because the test compiles all dependencies of its crate again, in a separate folder, and the
//! tests of `dunlin` depend on two hundred packages.
