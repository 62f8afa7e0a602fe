//! Alignment of blocks, and when they take memory.

use super::*;

/// Bytes of the pages that lie entirely in the block and that the kernel has allocated.
fn resident(block: &Block<u8>) -> usize {
    // SAFETY: asks for a number.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
    let begin = block.at(0).as_ptr().addr().next_multiple_of(page);
    let end = block.at(block.count()).as_ptr().addr() / page * page;
    let mut pages = vec![0_u8; (end - begin) / page];
    let first = block.at(0).as_ptr().with_addr(begin).cast();
    // SAFETY: the range is of the block and begins with a page, and `pages` has a byte for each.
    let answer = unsafe { libc::mincore(first, end - begin, pages.as_mut_ptr()) };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
    pages.iter().filter(|byte| **byte & 1 == 1).count() * page
}

#[test]
#[cfg_attr(miri, ignore = "it asks the kernel for pages")]
fn a_large_block_takes_no_memory_until_it_is_touched() {
    // SAFETY: zeros are bytes.
    let block = unsafe { Block::<u8>::zeroed(64 << 20) };
    // Pages may be huge, and the allocator writes next to the block.
    assert!(resident(&block) < 8 << 20, "its pages are touched");
    assert_eq!(block.at(0).as_ptr() as usize % ALIGN, 0);
    // SAFETY: these bytes are of the block, which is zeroed.
    let bytes = unsafe { std::slice::from_raw_parts(block.at(0).as_ptr(), block.count()) };
    assert!(bytes.iter().step_by(4096).all(|byte| *byte == 0));
    // Written pages take memory.
    for at in (0..16 << 20).step_by(4096) {
        // SAFETY: it is a byte of the block, to which nothing refers now.
        unsafe { block.at(at).write(1) };
    }
    assert!(resident(&block) >= 15 << 20, "the pages are not counted");
}
