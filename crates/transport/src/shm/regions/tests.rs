//! Tests of `regions`: announcements on one side, known regions on the other.

use std::os::fd::AsRawFd;

use dunlin_msgbuf::{MsgBuf, Pool, PoolConfig};

use super::*;

const UNLIMITED: MapLimit = MapLimit {
    peer: u64::MAX,
    process: u64::MAX,
};

struct Line {
    told: Told,
    known: Known,
    ends: (OwnedFd, OwnedFd),
    pool: Pool,
}

impl Line {
    fn new() -> Self {
        Self {
            told: Told::default(),
            known: Known::new(UNLIMITED),
            ends: ffi::socket_pair().expect("there are descriptors"),
            pool: Pool::new(PoolConfig::default()).expect("the default works"),
        }
    }

    fn buf(&mut self, len: usize) -> MsgBuf {
        self.pool.alloc(len).expect("there is room")
    }

    fn tell(&mut self, buf: &MsgBuf) -> bool {
        self.told.tell(self.ends.0.as_raw_fd(), buf.lend())
    }

    fn listen(&mut self) -> bool {
        self.known.listen(self.ends.1.as_raw_fd())
    }

    fn say(&self, message: &[u8], fd: Option<&OwnedFd>) {
        assert!(ffi::tell(self.ends.0.as_raw_fd(), message, fd));
    }
}

#[test]
fn a_region_is_announced_once_and_found_from_then_on() {
    let mut line = Line::new();
    let (first, second) = (line.buf(64), line.buf(64));
    assert!(line.tell(&first) && line.tell(&second));
    assert_eq!(first.lend().region(), second.lend().region());
    assert!(
        line.known.find(first.lend()).is_none(),
        "the region is not announced yet"
    );
    assert!(line.listen());
    assert!(line.known.find(first.lend()).is_some());
    assert!(line.known.find(second.lend()).is_some());
    assert_eq!((line.told.regions.len(), line.known.regions.len()), (1, 1));
}

#[test]
fn memory_of_the_user_cannot_be_announced() {
    let mut line = Line::new();
    let own = line.pool.adopt(vec![0; 64]).expect("the buffer is short");
    assert!(!line.tell(&own));
}

#[test]
fn a_dead_region_is_forgotten_on_both_sides() {
    let mut line = Line::new();
    let mut other = Pool::new(PoolConfig::default()).expect("the default works");
    let doomed = other.alloc(64).expect("there is room");
    let lent = doomed.lend();
    assert!(line.tell(&doomed) && line.listen());
    assert!(line.known.find(lent).is_some());
    drop((doomed, other));
    let alive = line.buf(64);
    assert!(line.tell(&alive) && line.listen());
    assert!(line.known.find(lent).is_none());
    assert!(line.known.find(alive.lend()).is_some());
    assert_eq!((line.told.regions.len(), line.known.regions.len()), (1, 1));
}

#[test]
fn a_region_is_not_announced_while_the_line_is_full() {
    let mut line = Line::new();
    while ffi::tell(line.ends.0.as_raw_fd(), &[1], None) {}
    let buf = line.buf(64);
    assert!(!line.tell(&buf));
    assert!(line.listen());
    assert!(line.tell(&buf) && line.listen());
    assert!(line.known.find(buf.lend()).is_some());
}

#[test]
fn nonsense_is_passed_over_and_its_descriptors_closed() {
    let mut line = Line::new();
    let lent = line.buf(64).lend();
    let info = regions::info(lent.region()).expect("the region is alive");
    let (fd, extent) = (info.fd.expect("shared"), info.extent.expect("mapped"));
    let good = encode(NEW, lent.region(), extent);
    let bad = Extent {
        mapped: usize::MAX,
        ..extent
    };
    let before = std::fs::read_dir("/proc/self/fd")
        .expect("the process has such a directory")
        .count();
    for (message, fd) in [
        (&good[..], None),
        (&good[..20], Some(&fd)),
        (&[9; 64], Some(&fd)),
        (&encode(NEW, lent.region(), bad)[..], Some(&fd)),
        (&encode(GONE, RegionId(77), extent)[..GONE_LEN], None),
        (&[1], None),
    ] {
        line.say(message, fd);
    }
    assert!(line.listen());
    assert!(line.known.regions.is_empty());
    let after = std::fs::read_dir("/proc/self/fd")
        .expect("the process has such a directory")
        .count();
    assert!(after <= before + 8, "{before} descriptors, then {after}");
    line.say(&good, Some(&fd));
    assert!(line.listen() && line.known.find(lent).is_some());
}

#[test]
fn the_end_of_the_line_is_noticed() {
    let mut line = Line::new();
    assert!(line.listen());
    let (ours, theirs) = ffi::socket_pair().expect("there are descriptors");
    drop(ours);
    assert!(!line.known.listen(theirs.as_raw_fd()));
}

#[test]
fn regions_beyond_the_limits_are_not_mapped_until_others_end() {
    let mut line = Line::new();
    let buf = line.buf(64);
    let bytes = regions::info(buf.lend().region())
        .and_then(|info| info.extent)
        .expect("the region is mapped")
        .mapped as u64;
    let mut pools: Vec<_> = (0..2)
        .map(|_| Pool::new(PoolConfig::default()).expect("the default works"))
        .collect();
    let others: Vec<_> = pools
        .iter_mut()
        .map(|pool| pool.alloc(64).expect("there is room"))
        .collect();
    for limit in [
        MapLimit {
            peer: 2 * bytes,
            ..UNLIMITED
        },
        MapLimit {
            process: MAPPED.load(Ordering::Relaxed) + 2 * bytes,
            ..UNLIMITED
        },
    ] {
        let mut told = Told::default();
        line.known = Known::new(limit);
        let mut tell = |line: &mut Line, buf: &MsgBuf| {
            assert!(told.tell(line.ends.0.as_raw_fd(), buf.lend()));
            assert!(line.listen());
            line.known.find(buf.lend()).is_some()
        };
        assert!(tell(&mut line, &buf));
        assert!(tell(&mut line, &others[0]));
        assert_eq!(line.known.mapped(), 2 * bytes);
        assert!(!tell(&mut line, &others[1]));
        let first = buf.lend().region();
        line.say(&encode(GONE, first, Extent::default())[..GONE_LEN], None);
        assert!(line.listen());
        assert_eq!(line.known.mapped(), bytes);
        let again = regions::info(others[1].lend().region()).expect("it is alive");
        let (fd, extent) = (again.fd.expect("shared"), again.extent.expect("mapped"));
        line.say(&encode(NEW, others[1].lend().region(), extent), Some(&fd));
        assert!(line.listen());
        assert!(line.known.find(others[1].lend()).is_some());
    }
}
