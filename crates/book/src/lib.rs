//! Nothing but tests: `tests/recipes` runs the programs on the pages of the book. `build.rs` makes
//! a module of each, whose child is the test with the same name.
#![forbid(unsafe_code)]
