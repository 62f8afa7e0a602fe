//! Compares the whole crate with a simple model: a list of messages as byte vectors.
//!
//! Random operations on two pools: allocate, resize, fill, write, lend, revoke, drop here and on
//! another thread, recycle into either pool, adopt and return user memory, drop a pool before its
//! msgbufs. After each operation, no two msgbufs overlap, every message has the bytes last written
//! to it, every valid name reads the right bytes, and every other name is refused. At the end, no
//! msgbuf and no region is left.

#![expect(clippy::cast_possible_truncation, reason = "patterns wrap")]

use dunlin_msgbuf::{BufRef, MsgBuf, Pool, PoolConfig, RegionId, Stale, regions};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Op {
    Alloc {
        pool: usize,
        len: usize,
    },
    Adopt {
        pool: usize,
        len: usize,
    },
    Resize {
        at: usize,
        len: usize,
    },
    Fill {
        at: usize,
        len: usize,
        seed: u8,
    },
    Write {
        at: usize,
        seed: u8,
    },
    Lend {
        at: usize,
    },
    LendRange {
        at: usize,
        offset: usize,
        len: usize,
    },
    Header {
        at: usize,
        packet: usize,
    },
    Revoke {
        at: usize,
    },
    Drop {
        at: usize,
    },
    DropElsewhere {
        at: usize,
    },
    Recycle {
        at: usize,
        pool: usize,
    },
    IntoUser {
        at: usize,
    },
    ReplacePool {
        pool: usize,
    },
}

fn op() -> impl Strategy<Value = Op> {
    // Miri takes milliseconds for a kilobyte.
    let (medium, large): (usize, usize) = if cfg!(miri) {
        (400, 700)
    } else {
        (9000, 150_000)
    };
    let len = move || prop_oneof![8 => 0_usize..300, 3 => 0_usize..medium, 1 => 0_usize..large];
    let (at, pool) = (|| 0_usize..64, || 0_usize..2);
    prop_oneof![
        8 => (pool(), len()).prop_map(|(pool, len)| Op::Alloc { pool, len }),
        1 => (pool(), 0_usize..2000).prop_map(|(pool, len)| Op::Adopt { pool, len }),
        3 => (at(), len()).prop_map(|(at, len)| Op::Resize { at, len }),
        4 => (at(), len(), any::<u8>()).prop_map(|(at, len, seed)| Op::Fill { at, len, seed }),
        3 => (at(), any::<u8>()).prop_map(|(at, seed)| Op::Write { at, seed }),
        4 => at().prop_map(|at| Op::Lend { at }),
        3 => (at(), 0_usize..400, 0_usize..400)
            .prop_map(|(at, offset, len)| Op::LendRange { at, offset, len }),
        2 => (at(), 0_usize..4).prop_map(|(at, packet)| Op::Header { at, packet }),
        2 => at().prop_map(|at| Op::Revoke { at }),
        2 => at().prop_map(|at| Op::Drop { at }),
        1 => at().prop_map(|at| Op::DropElsewhere { at }),
        4 => (at(), pool()).prop_map(|(at, pool)| Op::Recycle { at, pool }),
        1 => at().prop_map(|at| Op::IntoUser { at }),
        1 => pool().prop_map(|pool| Op::ReplacePool { pool }),
    ]
}

struct Message {
    buf: MsgBuf,
    /// The first bytes of the message. The bytes added by growing are unspecified.
    known: Vec<u8>,
    user: bool,
    /// Valid names, with their bytes.
    names: Vec<(BufRef, Vec<u8>)>,
}

struct World {
    pools: [Pool; 2],
    messages: Vec<Message>,
    /// Names that must never be found again.
    stale: Vec<BufRef>,
    regions: BTreeSet<RegionId>,
}

fn pool(data_size: u32) -> Pool {
    let config = PoolConfig {
        data_size,
        first_region_bytes: 1 << 16,
        readable: true,
        ..PoolConfig::default()
    };
    Pool::new(config).expect("the configuration is valid")
}

fn pattern(seed: u8, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| seed.wrapping_add((i * 31) as u8))
        .collect()
}

impl World {
    fn new() -> Self {
        Self {
            pools: [pool(64), pool(1440)],
            messages: Vec::new(),
            stale: Vec::new(),
            regions: BTreeSet::new(),
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Alloc { pool, len } => {
                let buf = self.pools[pool]
                    .alloc(len)
                    .expect("the pool is far from its limit");
                assert_eq!(buf.len(), len);
                self.add(buf, Vec::new(), false);
            }
            Op::Adopt { pool, len } => {
                let known = pattern(7, len);
                let buf = self.pools[pool]
                    .adopt(known.clone())
                    .expect("there are few regions");
                self.add(buf, known, true);
            }
            Op::ReplacePool { pool: at } => self.pools[at] = pool([64, 1440][at]),
            Op::Resize { at, .. }
            | Op::Fill { at, .. }
            | Op::Write { at, .. }
            | Op::Lend { at }
            | Op::LendRange { at, .. }
            | Op::Header { at, .. }
            | Op::Revoke { at } => {
                let count = self.messages.len();
                if count > 0 {
                    let revoked = self.messages[at % count].apply(op);
                    self.stale.extend(revoked);
                }
            }
            Op::Drop { at }
            | Op::DropElsewhere { at }
            | Op::Recycle { at, .. }
            | Op::IntoUser { at } => {
                if !self.messages.is_empty() {
                    let message = self.messages.swap_remove(at % self.messages.len());
                    self.end(message, op);
                }
            }
        }
    }

    fn add(&mut self, buf: MsgBuf, known: Vec<u8>, user: bool) {
        self.regions.insert(buf.lend().region());
        let mut message = Message {
            buf,
            known,
            user,
            names: Vec::new(),
        };
        message.buf.revoke();
        self.messages.push(message);
    }

    fn end(&mut self, message: Message, how: Op) {
        self.stale
            .extend(message.names.iter().map(|&(name, _)| name));
        match how {
            Op::DropElsewhere { .. } => {
                std::thread::spawn(move || drop(message.buf))
                    .join()
                    .expect("the thread does not panic");
            }
            Op::Recycle { pool, .. } => self.pools[pool].recycle(message.buf),
            Op::IntoUser { .. } => match message.buf.into_user() {
                Ok(memory) => {
                    assert!(message.user);
                    let known = message.known.len();
                    assert_eq!(memory[..known], message.known);
                }
                Err(buf) => {
                    assert!(!message.user);
                    assert_eq!(buf.data()[..message.known.len()], message.known);
                }
            },
            _ => drop(message.buf),
        }
    }

    fn check(&self) {
        let mut spans: Vec<_> = self.messages.iter().map(Message::span).collect();
        spans.sort_unstable();
        for pair in spans.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "two msgbufs overlap");
        }
        let mut out = Vec::new();
        for message in &self.messages {
            assert_eq!(message.buf.data()[..message.known.len()], message.known);
            for (name, bytes) in &message.names {
                out.clear();
                assert_eq!(regions::read(*name, &mut out), Ok(()));
                assert_eq!(out[..bytes.len()], *bytes);
                assert_eq!(out.len(), name.len());
            }
        }
        for &name in self.stale.iter().filter(|name| !name.is_empty()) {
            assert_eq!(
                regions::read(name, &mut out),
                Err(Stale::Revoked),
                "{name:?}"
            );
        }
    }

    /// Drops everything, and checks that no region is left.
    fn finish(self) {
        let Self {
            mut pools,
            messages,
            regions,
            ..
        } = self;
        for (i, message) in messages.into_iter().enumerate() {
            if i % 2 == 0 {
                drop(message.buf)
            } else {
                pools[i % 4 / 2].recycle(message.buf)
            }
        }
        for pool in &mut pools {
            assert_eq!((pool.outstanding(), pool.bytes_in_use()), (0, 0));
        }
        drop(pools);
        for id in regions {
            assert!(regions::info(id).is_none(), "{id:?} is left");
        }
    }
}

impl Message {
    /// Applies an operation that the msgbuf survives; returns the names that became stale.
    fn apply(&mut self, op: Op) -> Vec<BufRef> {
        let len = self.buf.len();
        match op {
            Op::Resize { len, .. } => {
                if self.buf.resize(len).is_ok() {
                    self.known.truncate(len);
                } else {
                    assert!(len > self.buf.capacity());
                }
            }
            Op::Fill { len, seed, .. } => {
                let bytes = pattern(seed, len);
                if self.buf.fill(&bytes).is_ok() {
                    self.known = bytes;
                    return self.forget_names();
                }
                assert!(len > self.buf.capacity());
            }
            Op::Write { seed, .. } => {
                self.known = pattern(seed, len);
                self.buf.data_mut().copy_from_slice(&self.known);
                return self.forget_names();
            }
            Op::Lend { .. } => {
                let name = self.buf.lend();
                self.names.push((name, self.known.clone()));
            }
            Op::LendRange {
                offset, len: part, ..
            } => match self.buf.lend_range(offset, part) {
                Some(name) => {
                    let end = (offset + part).min(self.known.len());
                    self.names
                        .push((name, self.known[offset.min(end)..end].to_vec()));
                }
                None => assert!(offset + part > len),
            },
            Op::Header { packet, .. } => match self.buf.header_ref(packet) {
                Some(name) => self.names.push((name, Vec::new())),
                None => assert!(self.user || packet > 0),
            },
            _ => {
                self.buf.revoke();
                return self.forget_names();
            }
        }
        Vec::new()
    }

    fn forget_names(&mut self) -> Vec<BufRef> {
        self.names.drain(..).map(|(name, _)| name).collect()
    }

    /// The addresses that no other msgbuf may use: the data, and before it the first header and its
    /// headroom.
    fn span(&self) -> (usize, usize) {
        let data = self.buf.data().as_ptr().addr();
        let front = if self.user { 0 } else { 88 };
        (data - front, data + self.buf.capacity())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 200 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn msgbufs_agree_with_the_model(
        ops in prop::collection::vec(op(), 1..if cfg!(miri) { 40 } else { 200 }),
    ) {
        let mut world = World::new();
        for op in ops {
            world.apply(op);
            world.check();
        }
        world.finish();
    }
}
