//! A descriptor that has become another file is not opened as a counters file.

use std::process::Command;

use super::*;

#[test]
fn a_named_pipe_in_place_of_a_file_is_neither_waited_for_nor_taken() {
    let path = std::env::temp_dir().join(format!("dunlin-find-{}", std::process::id()));
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
    assert!(made.success());
    // To open a named pipe that has no writer waits for one.
    let taken = open(&path, "/memfd:another (deleted)");
    let itself = open(&path, path.to_str().expect("text"));
    fs::remove_file(&path).expect("it exists");
    assert!(taken.is_none() && itself.is_some());
}
