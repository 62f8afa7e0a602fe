//! Files of processes that start together.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use dunlin_testkit::folder::Folder;

use super::*;

#[test]
fn a_draft_of_another_process_with_the_same_number_stays_as_it_is() {
    let folder = Folder::new("sequencer-drafts");
    let mut first = Files::open(&folder.join("")).unwrap();
    assert!(first.make(1, &[1; 100]).unwrap());
    // The other process has not removed the name of its draft yet.
    let draft = folder.join(format!("draft-{}-0", std::process::id()));
    fs::hard_link(first.path(1), &draft).unwrap();
    let mut second = Files::open(&folder.join("")).unwrap();
    assert!(!second.make(1, &[2; 50]).unwrap());
    assert!(second.make(2, &[3; 50]).unwrap());
    assert_eq!(first.read(1).unwrap(), [1; 100]);
    assert_eq!(second.read(2).unwrap(), [3; 50]);
    let names = fs::read_dir(folder.join("")).unwrap();
    assert_eq!(names.count(), 3, "only the foreign draft is left");
}

#[test]
fn the_draft_of_a_process_that_was_killed_is_removed() {
    let folder = Folder::new("sequencer-old-draft");
    let draft = folder.join(format!("draft-{}-0", std::process::id()));
    let left = File::create_new(&draft).unwrap();
    left.set_modified(std::time::SystemTime::now() - 2 * OLD)
        .unwrap();
    let mut files = Files::open(&folder.join("")).unwrap();
    assert!(files.make(1, &[1; 100]).unwrap());
    assert!(!draft.exists());
}
