//! Directories that are made, also if an earlier start was killed while it made them.

use super::*;
use dunlin_testkit::folder::Folder;

/// Makes a directory, and ends with an error before sync `killed`. Returns the directories whose
/// names were synced.
fn synced(path: &Path, killed: usize) -> Vec<String> {
    let mut all = Vec::new();
    let made = make_with(path, &mut |folder| {
        if all.len() == killed {
            return Err(ErrorKind::Interrupted.into());
        }
        all.push(folder.file_name().unwrap().display().to_string());
        sync_names(folder)
    });
    assert_eq!(made.is_err(), all.len() == killed, "{made:?}");
    all
}

#[test]
fn each_made_name_is_synced_in_its_parent() {
    let folder = Folder::new("made-names");
    fs::create_dir(folder.join("top")).unwrap();
    let all = synced(&folder.join("top/a/b"), usize::MAX);
    assert_eq!(
        all[1..],
        ["top", "a"],
        "the first one has the name of `top`"
    );
    assert!(folder.join("top/a/b").is_dir());
}

#[test]
fn the_next_start_syncs_the_name_that_a_killed_one_has_left() {
    let folder = Folder::new("killed-names");
    fs::create_dir(folder.join("top")).unwrap();
    let path = folder.join("top/a/b");
    // After two syncs, `b` is made, but its name is not synced.
    assert_eq!(synced(&path, 2).len(), 2);
    assert!(path.is_dir());
    assert_eq!(synced(&path, usize::MAX), ["a"]);
    // After one sync, only `a` is made.
    fs::remove_dir_all(folder.join("top/a")).unwrap();
    assert_eq!(synced(&path, 1).len(), 1);
    assert_eq!(synced(&path, usize::MAX), ["top", "a"]);
}

#[test]
fn a_parent_that_may_not_be_read_is_only_needed_for_a_new_name() {
    let folder = Folder::new("unreadable-names");
    for kind in UNSYNCED {
        let (path, mut refuse) = (folder.join("a"), |_: &Path| Err(kind.into()));
        make_with(&path, &mut refuse).unwrap_err();
        assert!(!path.exists(), "the next start would not mind the refusal");
        fs::create_dir(&path).unwrap();
        make_with(&path, &mut refuse).unwrap();
        fs::remove_dir(&path).unwrap();
    }
    fs::create_dir(folder.join("a")).unwrap();
    let mut fail = |_: &Path| Err(ErrorKind::StorageFull.into());
    make_with(&folder.join("a"), &mut fail).unwrap_err();
}

#[test]
fn a_file_in_the_way_is_an_error() {
    let folder = Folder::new("file-for-names");
    fs::write(folder.join("a"), b"").unwrap();
    make(&folder.join("a")).unwrap_err();
    make(&folder.join("a/b")).unwrap_err();
}

#[test]
fn a_single_name_is_in_the_working_directory() {
    let mut all = Vec::new();
    let made = make_with(Path::new("src"), &mut |folder| {
        all.push(folder.to_owned());
        sync_names(folder)
    });
    made.unwrap();
    assert_eq!(all, [Path::new("")]);
    make(Path::new("")).unwrap();
    make(Path::new("/")).unwrap();
}
