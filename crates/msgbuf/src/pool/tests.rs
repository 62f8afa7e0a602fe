//! Tests of `pool`: classes, reuse, limits, and msgbufs that outlive their pool.

#![expect(clippy::cast_possible_truncation, reason = "tags and patterns wrap")]

mod trimming;

use super::*;
use crate::config::Hugepages;
use crate::large::MAX_CACHED;
use crate::regions;
use std::sync::mpsc;
use std::thread;

const MIB: usize = 1 << 20;

fn small_config() -> PoolConfig {
    PoolConfig {
        first_region_bytes: MAX_BLOCK,
        data_size: 4096,
        ..PoolConfig::default()
    }
}

fn pool() -> Pool {
    Pool::new(small_config()).expect("the configuration is valid")
}

fn alloc(pool: &mut Pool, len: usize) -> MsgBuf {
    pool.alloc(len).expect("the pool has room")
}

#[test]
fn options_out_of_range_make_no_pool() {
    let new = |config| Pool::new(config).map(drop);
    let config = small_config();
    assert_eq!(
        new(PoolConfig {
            data_size: 63,
            ..config
        }),
        Err(PoolError::DataSize)
    );
    let huge = PoolConfig {
        first_region_bytes: MAX_REGION + 1,
        ..config
    };
    assert_eq!(new(huge), Err(PoolError::FirstRegion));
    assert_eq!(
        new(PoolConfig {
            max_bytes: 1000,
            ..config
        }),
        Err(PoolError::FirstRegion)
    );
    assert!(
        PoolError::Alloc(AllocError::NoMemory)
            .to_string()
            .contains("no memory")
    );
}

#[test]
fn a_pool_starts_with_any_kind_of_page() {
    for (hugepages, shared) in [
        (Hugepages::Try, true),
        (Hugepages::Never, true),
        (Hugepages::Try, false),
        (Hugepages::Never, false),
    ] {
        let mut pool = Pool::new(PoolConfig {
            hugepages,
            shared,
            ..small_config()
        })
        .expect("the configuration is valid");
        assert_eq!(alloc(&mut pool, 100).len(), 100);
    }
}

#[test]
fn every_length_has_a_block_that_holds_it() {
    let mut pool = pool();
    let lens = [
        0,
        1,
        40,
        41,
        168,
        169,
        4096,
        4097,
        65_000,
        65_536,
        MIB,
        3 * MIB,
    ];
    let mut bufs: Vec<_> = lens.iter().map(|&len| alloc(&mut pool, len)).collect();
    for (tag, (buf, &len)) in bufs.iter_mut().zip(&lens).enumerate() {
        assert_eq!(buf.len(), len);
        assert!(buf.capacity() >= len);
        let capacity = if cfg!(miri) {
            len.min(10_000)
        } else {
            buf.capacity()
        };
        buf.resize(capacity).expect("the capacity is allowed");
        buf.data_mut().fill(tag as u8);
    }
    for (tag, buf) in bufs.iter().enumerate() {
        assert!(
            buf.data().iter().all(|&byte| byte == tag as u8),
            "{} bytes",
            buf.len()
        );
    }
    assert_eq!(pool.outstanding(), lens.len());
    assert_eq!(alloc(&mut pool, 5).capacity(), 40);
    assert_eq!(
        pool.alloc(MAX_MESSAGE + 1).map(drop),
        Err(AllocError::TooLarge)
    );
    assert_eq!(pool.alloc(usize::MAX).map(drop), Err(AllocError::TooLarge));
}

#[test]
fn the_block_that_came_back_last_goes_out_first() {
    let mut pool = pool();
    let (a, b) = (alloc(&mut pool, 32), alloc(&mut pool, 32));
    let (at_a, at_b) = (a.data().as_ptr(), b.data().as_ptr());
    pool.recycle(a);
    pool.recycle(b);
    let (first, second) = (alloc(&mut pool, 32), alloc(&mut pool, 32));
    assert_eq!(
        [first.data().as_ptr(), second.data().as_ptr()],
        [at_b, at_a]
    );
}

#[test]
fn use_is_counted_in_blocks_of_the_class() {
    let mut pool = pool();
    assert_eq!((pool.outstanding(), pool.bytes_in_use()), (0, 0));
    let mapped = pool.bytes_mapped();
    assert!(mapped >= MAX_BLOCK);
    let (a, b) = (alloc(&mut pool, 32), alloc(&mut pool, 2000));
    assert_eq!((pool.outstanding(), pool.bytes_in_use()), (2, 128 + 4096));
    drop(a);
    assert_eq!(pool.outstanding(), 1);
    pool.recycle(b);
    assert_eq!((pool.outstanding(), pool.bytes_in_use()), (0, 0));
    assert_eq!(pool.bytes_mapped(), mapped);
}

#[test]
fn a_steady_load_takes_no_more_memory() {
    let mut pool = pool();
    let round = |pool: &mut Pool| {
        let bufs: Vec<_> = (0..200).map(|i| alloc(pool, i * 40)).collect();
        for (i, buf) in bufs.into_iter().enumerate() {
            if i % 3 == 0 {
                drop(buf)
            } else {
                pool.recycle(buf)
            }
        }
    };
    round(&mut pool);
    let mapped = pool.bytes_mapped();
    for _ in 0..20 {
        round(&mut pool);
    }
    assert_eq!(pool.bytes_mapped(), mapped);
    assert_eq!(pool.outstanding(), 0);
}

#[test]
fn all_of_a_region_is_used_before_the_pool_refuses() {
    let config = PoolConfig {
        max_bytes: 3 * MAX_BLOCK,
        hugepages: Hugepages::Never,
        ..small_config()
    };
    let mut pool = Pool::new(config).expect("the configuration is valid");
    let mut bufs = vec![alloc(&mut pool, 30_000)];
    assert_eq!(pool.bytes_mapped(), MAX_BLOCK);
    // A block of 64 KiB needs another region. The second half of the first region stays free, and
    // is split later.
    bufs.push(alloc(&mut pool, 60_000));
    while let Ok(buf) = pool.alloc(32) {
        bufs.push(buf);
    }
    assert_eq!(pool.alloc(32).map(drop), Err(AllocError::Limit));
    assert_eq!(pool.bytes_mapped(), 3 * MAX_BLOCK);
    assert_eq!(pool.bytes_in_use(), 3 * MAX_BLOCK, "nothing is wasted");
    pool.recycle(bufs.pop().expect("the pool gave out many blocks"));
    assert!(pool.alloc(32).is_ok());
}

#[test]
fn a_limit_reached_with_large_blocks_does_not_lock_out_small_ones() {
    let config = PoolConfig {
        max_bytes: 2 * MAX_BLOCK,
        hugepages: Hugepages::Never,
        ..small_config()
    };
    let mut pool = Pool::new(config).expect("the configuration is valid");
    let large = [alloc(&mut pool, 60_000), alloc(&mut pool, 60_000)];
    assert_eq!(pool.alloc(32).map(drop), Err(AllocError::Limit));
    large.into_iter().for_each(|buf| pool.recycle(buf));
    let mut small: Vec<_> = (0..1024).map(|_| alloc(&mut pool, 32)).collect();
    for (tag, buf) in small.iter_mut().enumerate() {
        buf.data_mut().fill(tag as u8);
    }
    assert!(
        small
            .iter()
            .enumerate()
            .all(|(tag, buf)| buf.data() == [tag as u8; 32])
    );
    assert_eq!(pool.alloc(32).map(drop), Err(AllocError::Limit));
}

#[test]
fn large_regions_are_kept_for_the_next_message_up_to_a_bound() {
    let mut pool = pool();
    let base = pool.bytes_mapped();
    let buf = alloc(&mut pool, MIB);
    let at = buf.data().as_ptr();
    let mapped = pool.bytes_mapped();
    assert!(mapped > base + MIB);
    pool.recycle(buf);
    assert_eq!((pool.bytes_mapped(), pool.bytes_in_use()), (mapped, 0));
    let again = alloc(&mut pool, MIB - 5);
    assert_eq!(again.data().as_ptr(), at);
    drop(again);
    assert_eq!(
        alloc(&mut pool, MIB).data().as_ptr(),
        at,
        "a dropped msgbuf is reused as well"
    );

    if cfg!(miri) {
        return;
    }
    for _ in 0..2 * MAX_CACHED / MIB {
        let buf = alloc(&mut pool, MIB);
        assert_eq!(
            buf.data().as_ptr(),
            at,
            "only unused regions count towards the bound"
        );
        pool.recycle(buf);
    }
    let bufs: Vec<_> = (0..12).map(|_| alloc(&mut pool, 16 * MIB)).collect();
    bufs.into_iter().for_each(|buf| pool.recycle(buf));
    assert!(pool.bytes_mapped() <= base + MAX_CACHED + 2 * MIB);
    assert!(pool.bytes_mapped() > base + MAX_CACHED / 2);
}

#[test]
#[cfg_attr(miri, ignore = "the messages are far too large")]
fn the_last_region_beyond_the_bound_is_kept_and_no_other() {
    let config = PoolConfig {
        hugepages: Hugepages::Never,
        ..PoolConfig::default()
    };
    let mut pool = Pool::new(config).expect("the configuration is valid");
    let base = pool.bytes_mapped();
    let [first, second] = [0, 1].map(|_| alloc(&mut pool, MAX_CACHED + 1));
    let at = second.data().as_ptr();
    pool.recycle(first);
    pool.recycle(second);
    let mapped = pool.bytes_mapped() - base;
    assert!((MAX_CACHED..4 * MAX_CACHED).contains(&mapped), "{mapped}");
    let again = alloc(&mut pool, 2 * MAX_CACHED);
    assert_eq!(again.data().as_ptr(), at);
    pool.recycle(again);
    assert_eq!(pool.bytes_mapped() - base, mapped);
    // A region of another class replaces the first.
    let other = alloc(&mut pool, 3 * MAX_CACHED);
    assert_ne!(other.data().as_ptr(), at);
    let mapped = pool.bytes_mapped() - mapped;
    pool.recycle(other);
    assert_eq!(pool.bytes_mapped(), mapped);
}

#[test]
fn cached_large_regions_make_room_for_others() {
    let config = PoolConfig {
        max_bytes: 4 * MIB,
        hugepages: Hugepages::Never,
        ..small_config()
    };
    let mut pool = Pool::new(config).expect("the configuration is valid");
    let big = alloc(&mut pool, 2 * MIB);
    assert_eq!(pool.alloc(2 * MIB).map(drop), Err(AllocError::Limit));
    pool.recycle(big);
    let others = [
        alloc(&mut pool, MIB),
        alloc(&mut pool, MIB),
        alloc(&mut pool, MIB),
    ];
    assert!(pool.bytes_mapped() <= 4 * MIB);
    assert_eq!(others.len(), 3);
}

#[test]
fn a_msgbuf_of_another_pool_returns_to_that_pool() {
    let (mut ours, mut theirs) = (pool(), pool());
    let small = alloc(&mut theirs, 32);
    let large = alloc(&mut theirs, MIB);
    let at = small.data().as_ptr();
    ours.recycle(small);
    ours.recycle(large);
    assert_eq!((ours.outstanding(), theirs.outstanding()), (0, 0));
    assert_ne!(alloc(&mut ours, 32).data().as_ptr(), at);
    assert_eq!((ours.bytes_in_use(), theirs.bytes_in_use()), (0, 0));
}

#[test]
fn msgbufs_dropped_on_another_thread_are_reused() {
    let config = PoolConfig {
        max_bytes: MAX_BLOCK,
        hugepages: Hugepages::Never,
        ..small_config()
    };
    let mut pool = Pool::new(config).expect("the configuration is valid");
    for _ in 0..3 {
        let mut bufs = Vec::new();
        while let Ok(buf) = pool.alloc(1000) {
            bufs.push(buf);
        }
        assert_eq!(bufs.len(), MAX_BLOCK / 2048);
        thread::spawn(move || drop(bufs))
            .join()
            .expect("the thread does not panic");
        assert_eq!(pool.outstanding(), 0);
    }
}

#[test]
fn regions_live_until_the_last_msgbuf_is_gone() {
    let mut pool = pool();
    let mut bufs: Vec<_> = [32, 5000, MIB]
        .iter()
        .map(|&len| alloc(&mut pool, len))
        .collect();
    let ids: Vec<_> = bufs.iter().map(|buf| buf.lend().region()).collect();
    drop(alloc(&mut pool, 2 * MIB));
    drop(pool);
    for buf in &mut bufs {
        let len = buf.len().min(10_000);
        buf.data_mut()[..len].fill(3);
    }
    assert!(ids.iter().all(|&id| regions::info(id).is_some()));
    let small = bufs.remove(0);
    thread::spawn(move || drop(bufs))
        .join()
        .expect("the thread does not panic");
    assert!(regions::info(ids[0]).is_some());
    assert!(
        regions::info(ids[2]).is_none(),
        "a large region is freed with its only msgbuf"
    );
    assert!(small.data().iter().all(|&byte| byte == 3));
    drop(small);
    assert!(ids.iter().all(|&id| regions::info(id).is_none()));
}

#[test]
fn a_msgbuf_whose_pool_is_gone_can_be_given_to_another_pool() {
    let mut pool_a = pool();
    let buf = alloc(&mut pool_a, 32);
    let id = buf.lend().region();
    drop(pool_a);
    pool().recycle(buf);
    assert!(regions::info(id).is_none());
}

/// Threads receive a stream of msgbufs, check them and drop them, while the pool reuses the
/// returned ones. The pool is dropped in the middle of the stream.
#[test]
fn threads_may_drop_msgbufs_while_the_pool_is_dropped() {
    let rounds = if cfg!(miri) { 3 } else { 50 };
    for round in 0..rounds {
        let mut pool = pool();
        let (to_a, at_a) = mpsc::sync_channel::<(u8, MsgBuf)>(64);
        let (to_b, at_b) = mpsc::sync_channel::<(u8, MsgBuf)>(64);
        let check = |bufs: mpsc::Receiver<(u8, MsgBuf)>| {
            for (tag, mut buf) in bufs {
                assert!(buf.data().iter().all(|&byte| byte == tag));
                buf.data_mut().fill(!tag);
            }
        };
        let mut ids = Vec::new();
        thread::scope(|scope| {
            scope.spawn(move || check(at_a));
            scope.spawn(move || check(at_b));
            for i in 0..if cfg!(miri) { 20 } else { 300_usize } {
                let tag = (i + round) as u8;
                let mut buf = alloc(&mut pool, 32 + (i * 37) % 3000);
                buf.data_mut().fill(tag);
                ids.push(buf.lend().region());
                let to = if i % 2 == 0 { &to_a } else { &to_b };
                to.send((tag, buf)).expect("the thread receives");
            }
            drop(pool);
            drop((to_a, to_b));
        });
        assert!(
            ids.iter().all(|&id| regions::info(id).is_none()),
            "regions are left"
        );
    }
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn large_msgbufs_lie_in_hugepages_unless_they_are_switched_off() {
    use crate::sys::tests::descriptor::{gathered, system_collapses};
    let in_hugepages = |hugepages| {
        let config = PoolConfig {
            hugepages,
            ..PoolConfig::default()
        };
        let mut pool = Pool::new(config).expect("memory is available");
        let mut buf = pool.alloc(4 << 20).expect("memory is available");
        buf.data_mut().fill(1);
        let first_page = buf.data().as_ptr().map_addr(|addr| addr & !0xfff);
        let base = std::ptr::NonNull::new(first_page.cast_mut()).expect("a msgbuf has an address");
        gathered(base)
    };
    assert_eq!(in_hugepages(Hugepages::Never), 0);
    // Hugepages that were set aside are not transparent hugepages, and do not count as such.
    let set_aside = std::fs::read_to_string("/proc/sys/vm/nr_hugepages");
    if system_collapses() && set_aside.is_ok_and(|pages| pages.trim() == "0") {
        assert!(in_hugepages(Hugepages::Try) >= 2 << 20);
    }
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn a_message_in_parts_takes_memory_as_its_parts_come_and_lies_in_hugepages() {
    use crate::sys::tests::descriptor::{gathered, system_collapses};
    let mut pool = Pool::new(PoolConfig::default()).expect("memory is available");
    let mut buf = pool.alloc_for_parts(8 << 20).expect("memory is available");
    let first_page = buf.data().as_ptr().map_addr(|addr| addr & !0xfff);
    let base = std::ptr::NonNull::new(first_page.cast_mut()).expect("a msgbuf has an address");
    assert_eq!(gathered(base), 0, "nothing has arrived");
    let mut seen = Vec::new();
    for part in 0..8 {
        let (start, end) = (part * MIB, (part + 1) * MIB);
        buf.prepare(end);
        assert!(buf.data()[start + 1..end].iter().all(|&byte| byte == 0));
        buf.data_mut()[start..end].fill(part as u8 + 1);
        seen.push(gathered(base));
    }
    let right = |(part, bytes): (usize, &[u8])| bytes.iter().all(|&byte| byte == part as u8 + 1);
    assert!(
        buf.data().chunks(MIB).enumerate().all(right),
        "no part is lost"
    );
    let set_aside = std::fs::read_to_string("/proc/sys/vm/nr_hugepages");
    if system_collapses() && set_aside.is_ok_and(|pages| pages.trim() == "0") {
        assert!(seen[0] <= 2 * MIB && seen[7] >= 4 * MIB, "{seen:?}");
    }
}
