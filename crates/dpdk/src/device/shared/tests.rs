//! Regions of pools that come and go, before a device that must keep the living ones.

use dunlin_msgbuf::{MsgBuf, Pool, PoolConfig};

use super::*;

/// A device: the addresses of the memory that it may read, and how often it got and lost some.
#[derive(Debug, Default)]
struct Device {
    open: Vec<usize>,
    asked: usize,
    taken: usize,
    refuses: bool,
}

impl Device {
    fn share(&mut self, Memory(base, len): Memory, on: bool) -> bool {
        assert!(len > 0);
        let known = self.open.iter().position(|it| *it == base.addr());
        self.asked += usize::from(on);
        self.taken += usize::from(!on);
        match (known, on) {
            (None, true) if !self.refuses => self.open.push(base.addr()),
            (Some(at), false) => drop(self.open.swap_remove(at)),
            _ => return false,
        }
        true
    }
}

/// A pool with a lent msgbuf.
fn pool() -> (Pool, MsgBuf) {
    let mut pool = Pool::new(PoolConfig::default()).expect("memory for a region");
    let mut buf = pool.alloc(64).expect("a new pool has room");
    buf.fill(&[7; 64]).expect("it fits");
    (pool, buf)
}

fn look(shared: &mut Shared, device: &mut Device, buf: &mut MsgBuf) -> bool {
    let name = buf.lend();
    let base = buf.data().as_ptr().wrapping_sub(name.offset() as usize);
    shared.may_read(name.region(), base.cast_mut().cast(), |memory, on| {
        device.share(memory, on)
    })
}

/// A device may have packets of both regions, so neither is taken away for a moment.
#[test]
fn regions_that_take_turns_are_shared_once() {
    let (mut shared, mut device) = (Shared::default(), Device::default());
    let mut pools = [pool(), pool()];
    for _ in 0..3 {
        for (_, buf) in &mut pools {
            assert!(look(&mut shared, &mut device, buf));
        }
    }
    assert_eq!((device.asked, device.taken), (2, 0));
}

#[test]
fn a_region_that_has_gone_makes_room_for_another() {
    let (mut shared, mut device) = (Shared::default(), Device::default());
    let mut kept = pool();
    assert!(look(&mut shared, &mut device, &mut kept.1));
    for _ in 0..3 {
        let (_pool, mut buf) = pool();
        assert!(look(&mut shared, &mut device, &mut buf));
        assert_eq!(device.open.len(), 2, "the last one is gone");
    }
}

#[test]
fn no_region_is_taken_from_a_device_that_may_still_read_one_of_them() {
    let (mut shared, mut device) = (Shared::default(), Device::default());
    let (first, mut buf) = pool();
    assert!(look(&mut shared, &mut device, &mut buf));
    drop((first, buf));
    shared.on_owed();
    let (_pool, mut buf) = pool();
    // The second region may have the addresses of the first one; then its bytes are copied.
    look(&mut shared, &mut device, &mut buf);
    assert_eq!((device.asked, device.taken), (2, 0));
}

#[test]
fn a_device_that_refuses_a_region_is_asked_once() {
    let (mut shared, mut device) = (Shared::default(), Device::default());
    device.refuses = true;
    let (_pool, mut buf) = pool();
    assert!(!look(&mut shared, &mut device, &mut buf));
    assert!(!look(&mut shared, &mut device, &mut buf));
    assert_eq!(device.asked, 1);
}
