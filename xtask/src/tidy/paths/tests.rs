//! Absolute paths are found; relative paths and longer names are not.

use super::*;

fn findings(text: &str) -> usize {
    check(&Tree::of(&[("a.rs", text)])).len()
}

#[test]
fn absolute_paths_are_found() {
    for part in ACCIDENTS {
        assert_eq!(findings(&format!("open(\"/{part}/x\")")), 1);
        assert_eq!(findings(&format!("cd /{part}")), 1);
    }
}

#[test]
fn other_paths_pass() {
    for part in ACCIDENTS {
        assert_eq!(
            findings(&format!(
                "target/{part}/x ../{part} $DIR/{part} /{part}ing {part}"
            )),
            0
        );
    }
    assert_eq!(findings("https://example.org/about /dev/shm /proc/self"), 0);
}
