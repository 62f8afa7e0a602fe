//! The memory of this process.

use super::resident_data_bytes;

#[test]
fn memory_that_was_written_counts_as_resident() {
    const WRITTEN: usize = 32 << 20;
    let before = resident_data_bytes().unwrap();
    let memory = std::hint::black_box(vec![1_u8; WRITTEN]);
    let after = resident_data_bytes().unwrap();
    // Another test may free some memory meanwhile.
    assert!(after > before + WRITTEN as u64 / 2);
    drop(memory);
}
