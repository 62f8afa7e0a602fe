//! Nothing but tests: `tests/recipes` runs the programs on the pages of the book. `build.rs` makes
//! a module of each program, and the test with the name of the program is a child of that module.
#![forbid(unsafe_code)]
