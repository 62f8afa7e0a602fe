//! Tests of `buf`: lengths, lending, revocation, header slots, user memory.

use super::*;
use crate::regions::{self, Stale};
use crate::{HEADROOM, Pool, PoolConfig};

fn pool_with(data_size: u32) -> Pool {
    let first_region_bytes = 1 << 16;
    let config = PoolConfig {
        data_size,
        first_region_bytes,
        readable: true,
        ..PoolConfig::default()
    };
    Pool::new(config).expect("the configuration is valid")
}

fn pool() -> Pool {
    Pool::new(PoolConfig {
        readable: true,
        ..PoolConfig::default()
    })
    .expect("the defaults are valid")
}

fn read(buf: BufRef) -> Result<Vec<u8>, Stale> {
    let mut out = Vec::new();
    regions::read(buf, &mut out).map(|()| out)
}

/// The address at which a transport would read `buf`.
fn address(buf: BufRef) -> Option<usize> {
    // SAFETY: the test owns all of its pools and msgbufs, on this thread.
    unsafe { regions::resolve(buf) }.map(|at| at.as_ptr().addr())
}

#[test]
fn handles_are_small() {
    assert_eq!(size_of::<MsgBuf>(), size_of::<usize>());
    assert_eq!(size_of::<Option<MsgBuf>>(), size_of::<usize>());
    assert_eq!(size_of::<BufRef>(), 20);
}

#[test]
fn handles_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<MsgBuf>();
    crosses::<BufRef>();
    crosses::<Pool>();
}

#[test]
fn a_length_beyond_the_capacity_is_refused_and_changes_nothing() {
    let mut buf = pool().alloc(3).expect("there is room");
    buf.fill(b"abc").expect("three bytes fit");
    let capacity = buf.capacity();
    assert_eq!(
        buf.resize(capacity + 1),
        Err(TooLong {
            len: capacity + 1,
            capacity
        })
    );
    assert_eq!(
        buf.resize(usize::MAX),
        Err(TooLong {
            len: usize::MAX,
            capacity
        })
    );
    assert!(buf.fill(&vec![0; capacity + 1]).is_err());
    assert_eq!(buf.data(), b"abc");
    buf.resize(capacity).expect("the capacity is allowed");
    assert_eq!(buf.data().len(), capacity);
    assert!(
        TooLong {
            len: 9,
            capacity: 8
        }
        .to_string()
        .contains("9 bytes")
    );
}

#[test]
fn lent_bytes_are_found_until_they_are_revoked() {
    let mut buf = pool().alloc(5).expect("there is room");
    buf.fill(b"hello").expect("five bytes fit");
    assert!(!buf.is_lent());
    let whole = buf.lend();
    let part = buf.lend_range(1, 3).expect("the range is inside");
    assert!(buf.is_lent());
    assert_eq!(whole.generation(), part.generation());
    assert_eq!(address(whole), Some(buf.data().as_ptr().addr()));
    assert_eq!(address(part), Some(buf.data().as_ptr().addr() + 1));
    assert_eq!(part.offset(), whole.offset() + 1);
    assert_eq!(read(part).as_deref(), Ok(&b"ell"[..]));
    buf.revoke();
    assert_eq!(address(whole), None);
    assert_eq!(read(part), Err(Stale::Revoked));
    let again = buf.lend();
    assert_ne!(again.generation(), whole.generation());
    assert_eq!(read(again).as_deref(), Ok(&b"hello"[..]));
    assert_eq!(read(whole), Err(Stale::Revoked));
}

#[test]
fn writing_and_giving_back_revoke() {
    let mut pool = pool();
    let mut buf = pool.alloc(5).expect("there is room");
    let before_write = buf.lend();
    buf.data_mut()[0] = 1;
    assert_eq!(read(before_write), Err(Stale::Revoked));
    let before_fill = buf.lend();
    buf.fill(b"12345").expect("five bytes fit");
    assert_eq!(read(before_fill), Err(Stale::Revoked));
    let before_recycle = buf.lend();
    pool.recycle(buf);
    assert_eq!(read(before_recycle), Err(Stale::Revoked));
    let buf = pool.alloc(5).expect("there is room");
    let before_drop = buf.lend();
    assert_eq!(
        before_drop.offset(),
        before_recycle.offset(),
        "the block is the same"
    );
    assert_eq!(read(before_recycle), Err(Stale::Revoked));
    drop(buf);
    assert_eq!(read(before_drop), Err(Stale::Revoked));
}

#[test]
fn only_bytes_of_the_message_are_lent() {
    let buf = pool().alloc(10).expect("there is room");
    assert!(buf.lend_range(0, 10).is_some());
    assert!(buf.lend_range(10, 0).is_some_and(BufRef::is_empty));
    assert!(buf.lend_range(0, 11).is_none());
    assert!(buf.lend_range(11, 0).is_none());
    assert!(buf.lend_range(usize::MAX, 2).is_none());
}

#[test]
fn an_empty_reference_and_an_empty_message_have_no_bytes() {
    assert!(BufRef::EMPTY.is_empty());
    assert_eq!(read(BufRef::EMPTY), Ok(Vec::new()));
    assert_eq!(address(BufRef::EMPTY), None);
    let buf = pool().alloc(0).expect("there is room");
    assert!(buf.is_empty() && buf.data().is_empty() && buf.lend().is_empty());
}

#[test]
fn header_slots_lie_around_the_data_with_headroom() {
    let mut pool = pool_with(100);
    for len in [0, 100, 101, 1000, if cfg!(miri) { 2000 } else { 70_000 }] {
        let mut buf = pool.alloc(len).expect("there is room");
        buf.data_mut().fill(0xAA);
        let data = buf.data().as_ptr().addr();
        let packets = len.div_ceil(100).max(1);
        let slots: Vec<_> = (0..packets)
            .map(|packet| buf.header_ref(packet).expect("the message has that packet"))
            .collect();
        assert_eq!(buf.header_ref(packets), None);
        assert_eq!(address(slots[0]), Some(data - dunlin_wire::HEADER_LEN));
        assert_eq!(data % 64, 24, "the header begins a cache line");
        let mut behind: Vec<_> = slots[1..]
            .iter()
            .filter_map(|&slot| address(slot))
            .collect();
        assert_eq!(behind.len(), packets - 1);
        behind.sort_unstable();
        let mut end = data + buf.capacity();
        for slot in behind {
            assert!(
                slot >= end + HEADROOM,
                "there is room in front of the header"
            );
            end = slot + dunlin_wire::HEADER_LEN;
        }
        assert!(
            slots
                .iter()
                .all(|slot| slot.len() == dunlin_wire::HEADER_LEN)
        );
        buf.revoke();
        assert!(slots.iter().all(|&slot| address(slot).is_none()));
    }
}

#[test]
fn user_memory_is_lent_and_given_back() {
    let mut pool = pool();
    let mut buf = pool
        .adopt(vec![1, 2, 3, 4])
        .expect("four bytes are not too long");
    assert_eq!(buf.capacity(), 4);
    let lent = buf.lend();
    assert_eq!(lent.offset(), 0);
    assert_eq!(read(lent).as_deref(), Ok(&[1, 2, 3, 4][..]));
    assert_eq!(buf.header_ref(0), None);
    buf.data_mut()[3] = 9;
    buf.resize(3).expect("three bytes fit");
    let lent = buf.lend();
    assert_eq!(pool.outstanding(), 0, "user memory does not count");
    assert_eq!(
        buf.into_user().expect("the memory is the user's"),
        [1, 2, 3]
    );
    assert_eq!(read(lent), Err(Stale::Revoked));
    assert!(regions::info(lent.region()).is_none());
}

#[test]
fn user_memory_is_freed_with_its_msgbuf_in_every_way() {
    let mut pool = pool();
    let dropped = pool
        .adopt(Box::<[u8]>::from([1, 2]))
        .expect("two bytes are not too long");
    let recycled = pool
        .adopt(vec![0; 100])
        .expect("100 bytes are not too long");
    let survivor = pool.adopt(Vec::new()).expect("no bytes are not too long");
    let regions = [dropped.lend(), recycled.lend(), survivor.lend()].map(BufRef::region);
    drop(dropped);
    pool.recycle(recycled);
    drop(pool);
    assert!(survivor.data().is_empty());
    std::thread::spawn(move || drop(survivor))
        .join()
        .expect("the thread does not panic");
    assert!(
        regions
            .iter()
            .all(|&region| regions::info(region).is_none())
    );
}

#[test]
fn pool_memory_is_not_the_users() {
    let mut pool = pool();
    let mut buf = pool.alloc(3).expect("there is room");
    buf.fill(b"abc").expect("three bytes fit");
    let buf = buf.into_user().expect_err("the memory is the pool's");
    assert_eq!(buf.data(), b"abc");
    assert_eq!(pool.outstanding(), 1);
}
