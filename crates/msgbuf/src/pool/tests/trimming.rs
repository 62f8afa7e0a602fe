//! Tests that a pool returns memory to the system after load.

use super::*;

#[test]
fn trimming_gives_unused_regions_back_and_keeps_those_in_use() {
    let mut pool = pool();
    let first = pool.bytes_mapped();
    let mut bufs: Vec<MsgBuf> = (0..8000).map(|_| alloc(&mut pool, 32)).collect();
    let full = pool.bytes_mapped();
    assert!(full >= 8000 * MIN_BLOCK);

    // A msgbuf in the middle keeps its region and the older ones.
    let kept = bufs.swap_remove(1200);
    let regions = pool.regions.len();
    bufs.into_iter().for_each(|buf| pool.recycle(buf));
    pool.trim();
    assert!(pool.bytes_mapped() < full / 2 && pool.regions.len() < regions);
    assert!(kept.is_from(&pool.home) && pool.outstanding() == 1);
    let again: Vec<MsgBuf> = (0..8000).map(|_| alloc(&mut pool, 32)).collect();
    let mut places: Vec<_> = again.iter().map(|buf| buf.data().as_ptr()).collect();
    places.push(kept.data().as_ptr());
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 8001, "no two msgbufs share a block");

    // Dropped msgbufs count as well.
    drop((again, kept));
    pool.trim();
    assert_eq!(pool.bytes_mapped(), first);
    assert_eq!(pool.free[0].len(), 512, "the first region has these blocks");
}

#[test]
fn trimming_replaces_a_first_region_of_which_much_was_carved() {
    let mut pool = Pool::new(PoolConfig::default()).expect("the default is valid");
    let id = |pool: &Pool| pool.regions[0].get().id;
    let before = id(&pool);
    for (count, stays) in [(1000, true), (2000, false)] {
        let bufs: Vec<MsgBuf> = (0..count).map(|_| alloc(&mut pool, 32)).collect();
        drop(bufs);
        pool.trim();
        assert_eq!(id(&pool) == before, stays, "{count}");
        assert_eq!((pool.regions.len(), pool.bytes_mapped()), (1, MIB));
    }
    assert!(regions::info(before).is_none(), "the first region is freed");
    assert_eq!(alloc(&mut pool, 32).data().len(), 32);
}
