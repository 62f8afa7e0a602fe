//! Rate, order, bound and marks of a queue.

use dunlin_core::Nanos;

use super::{Cable, Departure, Full, Marking, Memory, Queue};
use crate::net::PortId;
use crate::net::frames::{End, Frame, FrameId, Frames};
use crate::rng::{Ppm, Rng};

struct Bench {
    queue: Queue,
    memory: Memory,
    frames: Frames,
}

impl Bench {
    fn new(rate: u64, memory: Memory) -> Self {
        let cable = Cable {
            rate,
            delay: Nanos(5),
            end: End::Nic,
        };
        Self {
            queue: Queue::new(cable, 0),
            memory,
            frames: Frames::default(),
        }
    }

    fn push(&mut self, size: u64, now: u64) -> Result<Option<Departure>, Full> {
        let id = self.frames.insert(Frame {
            from: PortId(0),
            to: PortId(0),
            bytes: Vec::new(),
            size,
            data: 0,
            congestion: false,
            end: End::Nic,
            next: None,
        });
        let Self {
            queue,
            memory,
            frames,
        } = self;
        queue.push(id, frames, memory, Nanos(now))
    }

    /// Lets frames leave from `departure` on; returns when they arrive.
    fn drain(&mut self, mut departure: Option<Departure>) -> Vec<u64> {
        let mut arrivals = Vec::new();
        while let Some(Departure { at, ticket }) = departure {
            let Self {
                queue,
                memory,
                frames,
            } = self;
            let (id, arrives, next) = queue.pop(ticket, frames, memory, at).unwrap();
            frames.remove(id);
            arrivals.push(arrives.0);
            departure = next;
        }
        arrivals
    }
}

fn plenty() -> Memory {
    Memory::new(1 << 40, f64::INFINITY)
}

#[test]
fn frames_leave_at_the_rate_of_the_cable() {
    let mut bench = Bench::new(1_000_000_000, plenty());
    let first = bench.push(1000, 50).unwrap();
    assert_eq!(bench.push(500, 60), Ok(None), "it waits behind the first");
    assert_eq!(bench.drain(first), [1055, 1555]);
    let first = bench.push(500, 9000).unwrap();
    assert_eq!(bench.drain(first), [9505], "an idle cable starts at once");
}

#[test]
fn rounding_to_nanoseconds_does_not_add_up() {
    // 122 bytes at 100 Gb/s take 9.76 ns.
    let mut bench = Bench::new(12_500_000_000, plenty());
    let first = bench.push(122, 0).unwrap();
    for _ in 1..1000 {
        bench.push(122, 0).unwrap();
    }
    assert_eq!(bench.drain(first).last(), Some(&(9760 + 5)));
}

#[test]
fn a_full_memory_refuses_until_frames_have_left() {
    let mut bench = Bench::new(1_000_000_000, Memory::new(2000, f64::INFINITY));
    let first = bench.push(1500, 0).unwrap();
    assert_eq!(bench.push(600, 0), Err(Full));
    assert_eq!(bench.queue.bytes(), 1500);
    bench.drain(first);
    assert_eq!((bench.queue.bytes(), bench.memory.used()), (0, 0));
    assert!(bench.push(600, 2000).is_ok());
}

#[test]
fn one_queue_gets_its_share_of_a_shared_memory() {
    // Alone it ends at alpha / (1 + alpha) of the memory (Choudhury and Hahne).
    for (alpha, share) in [(0.5, 1.0 / 3.0), (1.0, 0.5), (8.0, 8.0 / 9.0)] {
        let mut bench = Bench::new(1_000_000_000, Memory::new(1_000_000, alpha));
        while bench.push(100, 0).is_ok() {}
        let got = bench.queue.bytes() as f64 / 1e6;
        assert!((got - share).abs() < 0.001, "{got} with alpha {alpha}");
    }
}

#[test]
fn a_stall_delays_what_comes_behind() {
    let mut bench = Bench::new(1_000_000_000, plenty());
    bench.queue.stall(Nanos(0), Nanos(700));
    let first = bench.push(10, 100).unwrap();
    assert_eq!(first.unwrap().at, Nanos(710));
    bench.push(20, 100).unwrap();
    let mut late = Vec::new();
    let Bench {
        queue,
        memory,
        frames,
    } = &mut bench;
    queue.end_stall(Nanos(200), frames, memory, |at, _: FrameId| late.push(at.0));
    assert_eq!(late, [715, 735], "they come when they would have come");
    let ticket = first.unwrap().ticket;
    assert!(
        queue.pop(ticket, frames, memory, Nanos(710)).is_none(),
        "and have left already"
    );
    let next = bench.push(10, 200).unwrap();
    assert_eq!(bench.drain(next), [215], "what comes now does not wait");
}

#[test]
fn marks_grow_with_the_queue() {
    let marking = Marking {
        from: 1000,
        to: 3000,
        most: Ppm::percent(20),
    };
    let mut rng = Rng::new(1);
    let mut often = |bytes| {
        let marks = (0..20_000).filter(|_| marking.marks(bytes, &mut rng));
        marks.count() as f64 / 20_000.0
    };
    assert_eq!((often(1000), often(3001)), (0.0, 1.0));
    let (half, full) = (often(2000), often(3000));
    assert!((half - 0.1).abs() < 0.01 && (full - 0.2).abs() < 0.01);
    assert!(!Marking::NEVER.marks(u64::MAX, &mut rng));
    assert!(Marking::step(10).marks(11, &mut rng));
}
