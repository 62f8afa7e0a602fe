//! Tests of `peer`: the part of a region that another process sees, and the names that it refuses.

use super::*;
use crate::{MsgBuf, Pool, PoolConfig, RegionInfo, regions};

fn pool() -> Pool {
    Pool::new(PoolConfig::default()).expect("the default is valid")
}

fn filled(pool: &mut Pool, len: usize, byte: u8) -> MsgBuf {
    let mut buf = pool.alloc(len).expect("the pool has room");
    buf.data_mut().fill(byte);
    buf
}

fn map(info: &RegionInfo) -> PeerRegion {
    let fd = info.fd.as_ref().expect("the region is shared");
    PeerRegion::map(fd, info.extent.expect("it is mapped")).expect("the extent is sound")
}

/// The name as another process decodes it.
fn told(name: BufRef) -> BufRef {
    BufRef::from_bytes(name.to_bytes())
}

#[cfg(all(target_os = "linux", not(miri)))]
mod mapped {
    use super::*;

    #[test]
    fn lent_bytes_are_copied_from_small_and_large_blocks() {
        for len in [64, 5000, 100_000] {
            let mut pool = pool();
            let buf = filled(&mut pool, len, 7);
            let lent = buf.lend_range(10, len - 20).expect("the range is inside");
            let info = regions::info(lent.region()).expect("the region is alive");
            let region = map(&info);
            let mut copy = vec![0; len];
            let found = region.find(told(lent)).expect("the range is inside");
            assert_eq!(found.len(), len - 20);
            assert!(found.copy_to(&mut copy));
            assert!(copy[..len - 20].iter().all(|&byte| byte == 7) && copy[len - 20] == 0);
        }
    }

    #[test]
    fn withdrawn_bytes_do_not_count() {
        let mut pool = pool();
        let mut buf = filled(&mut pool, 64, 7);
        let lent = buf.lend();
        let region = map(&regions::info(lent.region()).expect("the region is alive"));
        assert!(region.find(lent).expect("inside").copy_to(&mut [0; 64]));
        buf.data_mut()[0] = 8;
        assert!(!region.find(lent).expect("inside").copy_to(&mut [0; 64]));
        // When the block is lent again, it has another generation.
        let again = buf.lend();
        assert!(!region.find(lent).expect("inside").copy_to(&mut [0; 64]));
        assert!(region.find(again).expect("inside").copy_to(&mut [0; 64]));
    }

    #[test]
    fn a_mapping_outlives_the_region() {
        let mut pool = pool();
        let buf = filled(&mut pool, 1 << 20, 7);
        let lent = buf.lend();
        let region = map(&regions::info(lent.region()).expect("the region is alive"));
        drop(buf);
        drop(pool);
        assert!(!regions::is_alive(lent.region()));
        let mut copy = vec![0; 1 << 20];
        assert!(!region.find(lent).expect("inside").copy_to(&mut copy));
    }

    #[test]
    fn names_that_lead_out_of_the_region_find_nothing() {
        let mut pool = pool();
        let lent = filled(&mut pool, 64, 7).lend();
        let info = regions::info(lent.region()).expect("the region is alive");
        let region = map(&info);
        let extent = info.extent.expect("the region is mapped");
        let as_u32 = |n: usize| u32::try_from(n).expect("a region is short");
        let (bytes, blocks) = (as_u32(extent.bytes), as_u32(extent.generations));
        assert!(
            region
                .find(BufRef {
                    offset: bytes - 64,
                    ..lent
                })
                .is_some()
        );
        assert!(
            region
                .find(BufRef {
                    offset: bytes - 63,
                    ..lent
                })
                .is_none()
        );
        assert!(
            region
                .find(BufRef {
                    offset: u32::MAX,
                    len: u32::MAX,
                    ..lent
                })
                .is_none()
        );
        assert!(
            region
                .find(BufRef {
                    block: blocks - 1,
                    ..lent
                })
                .is_some()
        );
        assert!(
            region
                .find(BufRef {
                    block: blocks,
                    ..lent
                })
                .is_none()
        );
    }

    #[test]
    fn sizes_and_descriptors_are_checked() {
        let mut pool = pool();
        let lent = filled(&mut pool, 64, 7).lend();
        let info = regions::info(lent.region()).expect("the region is alive");
        let (fd, extent) = (info.fd.expect("shared"), info.extent.expect("mapped"));
        let map = |extent| PeerRegion::map(&fd, extent).map(drop);
        assert_eq!(map(extent), Ok(()));
        let longer = extent.mapped + 4096;
        assert_eq!(
            map(Extent {
                mapped: longer,
                ..extent
            }),
            Err(MapError::Descriptor)
        );
        assert_eq!(
            map(Extent {
                bytes: extent.mapped,
                ..extent
            }),
            Err(MapError::Extent)
        );
        assert_eq!(
            map(Extent {
                bytes: extent.bytes - 1,
                ..extent
            }),
            Err(MapError::Extent)
        );
        assert_eq!(
            map(Extent {
                generations: usize::MAX,
                ..extent
            }),
            Err(MapError::Extent)
        );
        let unsealed =
            OwnedFd::from(std::fs::File::open("/proc/self/exe").expect("the file exists"));
        assert_eq!(
            PeerRegion::map(&unsealed, extent).map(drop),
            Err(MapError::Descriptor)
        );
    }

    #[test]
    fn a_copy_that_counts_is_never_torn() {
        let mut pool = pool();
        let mut buf = filled(&mut pool, 4096, 0);
        let region = map(&regions::info(buf.lend().region()).expect("the region is alive"));
        let named = std::sync::Mutex::new(buf.lend());
        let over = std::sync::atomic::AtomicBool::new(false);
        let good = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut copy = [0; 4096];
                while !over.load(Ordering::Relaxed) {
                    let name = *named.lock().expect("no thread panics with the lock");
                    if region.find(name).expect("inside").copy_to(&mut copy) {
                        assert!(
                            copy.iter().all(|&byte| byte == copy[0]),
                            "the copy mixes two messages"
                        );
                        good.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            for round in 0..200_000_u32 {
                buf.data_mut().fill(round.to_le_bytes()[0]);
                *named.lock().expect("no thread panics with the lock") = buf.lend();
                // Now and then, the message stays until it has been copied, so that both threads
                // make progress even on a busy machine.
                let seen = good.load(Ordering::Relaxed);
                while round % 1000 == 0
                    && good.load(Ordering::Relaxed) == seen
                    && !reader.is_finished()
                {
                    std::thread::yield_now();
                }
            }
            over.store(true, Ordering::Relaxed);
            reader.join().expect("no copy is torn");
        });
        assert!(
            good.into_inner() >= 200,
            "each message that stayed was copied"
        );
    }
}

#[test]
fn a_name_travels_as_it_is() {
    let mut pool = pool();
    let lent = filled(&mut pool, 64, 7).lend();
    assert_eq!(told(lent), lent);
    assert_eq!(lent.to_bytes()[..4], lent.region().0.to_le_bytes());
}

#[test]
fn bytes_of_this_process_can_stand_for_those_of_another() {
    let generation = AtomicU32::new(3);
    let bytes = PeerBytes::of(b"hello", &generation, 3);
    let mut copy = [0; 8];
    assert!(bytes.copy_to(&mut copy) && &copy == b"hello\0\0\0");
    assert!(!bytes.copy_to(&mut [0; 4]), "`to` is too short");
    generation.store(4, Ordering::Relaxed);
    assert!(!bytes.copy_to(&mut copy), "withdrawn");
    assert!(!bytes.is_empty() && bytes.len() == 5);
}
