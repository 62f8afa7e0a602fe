//! Where blocks lie, and when they take memory.

use super::*;

#[test]
fn a_large_block_takes_no_memory_until_it_is_touched() {
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let before = resident();
    // SAFETY: zeros are bytes.
    let block = unsafe { Block::<u8>::zeroed(64 << 20) };
    assert!(resident() < before + (8 << 20), "its pages are touched");
    assert_eq!(block.at(0).as_ptr() as usize % ALIGN, 0);
    // SAFETY: these bytes are of the block, which is zeroed.
    let bytes = unsafe { std::slice::from_raw_parts(block.at(0).as_ptr(), block.count()) };
    assert!(bytes.iter().step_by(4096).all(|byte| *byte == 0));
}
