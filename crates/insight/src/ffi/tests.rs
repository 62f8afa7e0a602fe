//! Tests of `ffi`: written words appear in the file, and the file keeps its size.

use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use super::*;

#[test]
fn written_words_can_be_read_through_the_file() {
    let shared = SharedWords::new(c"dunlin-test", 1024).unwrap();
    shared.words()[1023].store(7, Ordering::Relaxed);
    let mut word = [0; 8];
    shared.file().read_exact_at(&mut word, 1023 * 8).unwrap();
    assert_eq!(u64::from_ne_bytes(word), 7);
    shared.file().write_all_at(&9_u64.to_ne_bytes(), 0).unwrap();
    assert_eq!(shared.words()[0].load(Ordering::Relaxed), 9);
}

#[test]
fn the_size_cannot_be_changed() {
    let shared = SharedWords::new(c"dunlin-test", 1024).unwrap();
    let path = format!("/proc/self/fd/{}", shared.file().as_raw_fd());
    let file = File::options().read(true).write(true).open(path).unwrap();
    assert!(file.set_len(0).is_err());
    assert!(file.set_len(1 << 20).is_err());
    assert_eq!(file.metadata().unwrap().len(), 8192);
}
