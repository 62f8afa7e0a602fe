//! Which revision counts as the earlier one, in a repository that the test makes.

use std::path::{Path, PathBuf};

use super::{Old, git};

/// A repository with two commits, which is removed when this is dropped.
struct Repository(PathBuf);

impl Repository {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dunlin-tidy-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let repository = Self(path);
        repository.git(&["init", "--quiet"]);
        repository.commit("a.rs", "// first\n");
        repository.commit("b.md", "second\n");
        repository
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn git(&self, args: &[&str]) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
        git(&self.0, &[&who[..], args].concat()).unwrap();
    }

    fn commit(&self, file: &str, text: &str) {
        std::fs::write(self.0.join(file), text).unwrap();
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", file]);
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn without_the_commit_at_which_the_rules_begin_committed_lines_are_old() {
    let repository = Repository::new("begin");
    let (old, note) = Old::read(repository.path(), None).unwrap();
    assert!(old.has("  // first") && old.has("second") && !old.has("third"));
    assert!(note.unwrap().contains("--since"));
}

#[test]
fn lines_after_the_given_revision_are_new() {
    let repository = Repository::new("since");
    let (old, note) = Old::read(repository.path(), Some("HEAD~1")).unwrap();
    assert!(old.has("// first") && !old.has("second"));
    assert_eq!(note, None);
}

#[test]
fn a_revision_that_does_not_exist_is_an_error_with_its_name() {
    let repository = Repository::new("unknown");
    let error = Old::read(repository.path(), Some("no-such")).unwrap_err();
    assert!(format!("{error:#}").contains("no-such"), "{error:#}");
}
