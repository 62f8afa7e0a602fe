//! A file belongs to the innermost workspace that contains it.

use super::*;

#[test]
fn a_file_belongs_to_the_workspace_around_it() {
    assert_eq!(of("gopt/crates/gopt/src/lib.rs"), "gopt");
    assert_eq!(of("gopt/README.md"), "gopt");
    for path in ["crates/core/src/lib.rs", "gopt.md", "README.md"] {
        assert_eq!(of(path), "", "{path}");
    }
}
