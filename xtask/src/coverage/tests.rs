//! The list of files whose coverage is measured.

use std::path::Path;

/// Without this test, a moved file would be noticed only after everything has been built and run.
#[test]
fn the_receive_path_names_files_that_exist() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.parent().expect("xtask lies in the workspace");
    for file in super::RECEIVE_PATH {
        assert!(root.join(file).is_file(), "no such file: {file}");
    }
}
