//! Rate, order, bound and marks of a queue.

use dunlin_core::Nanos;

use super::{Cable, Full, Marking, Memory, Queue};
use crate::world::net::frames::End;
use crate::world::rng::{Ppm, Rng};

struct Bench {
    queue: Queue,
    memory: Memory,
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
        }
    }

    fn push(&mut self, size: u64, now: u64) -> Result<u64, Full> {
        let arrives = self.queue.push(size, &mut self.memory, Nanos(now));
        arrives.map(|at| at.0)
    }

    fn settle(&mut self, now: u64) -> (u64, u64) {
        self.queue.settle(&mut self.memory, Nanos(now));
        (self.queue.bytes(), self.memory.used())
    }
}

fn plenty() -> Memory {
    Memory::new(1 << 40, f64::INFINITY)
}

#[test]
fn frames_leave_at_the_rate_of_the_cable() {
    let mut bench = Bench::new(1_000_000_000, plenty());
    assert_eq!(bench.push(1000, 50), Ok(1055));
    assert_eq!(bench.push(500, 60), Ok(1555), "it waits behind the first");
    assert_eq!(bench.settle(1049).0, 1500);
    assert_eq!(bench.settle(1050).0, 500);
    assert_eq!(
        bench.push(500, 9000),
        Ok(9505),
        "an idle cable starts at once"
    );
}

#[test]
fn rounding_errors_do_not_accumulate() {
    // 122 bytes at 100 Gb/s take 9.76 ns.
    let mut bench = Bench::new(12_500_000_000, plenty());
    let last = (0..1000).map(|_| bench.push(122, 0)).last();
    assert_eq!(last, Some(Ok(9760 + 5)));
}

#[test]
fn a_full_memory_refuses_until_frames_have_left() {
    let mut bench = Bench::new(1_000_000_000, Memory::new(2000, f64::INFINITY));
    assert!(bench.push(1500, 0).is_ok());
    assert_eq!(bench.push(600, 1499), Err(Full));
    assert!(bench.push(600, 1500).is_ok());
    assert_eq!(bench.settle(2100), (0, 0));
}

#[test]
fn one_queue_gets_its_share_of_a_shared_memory() {
    // A lone queue can take alpha / (1 + alpha) of the memory (Choudhury and Hahne).
    for (alpha, share) in [(0.5, 1.0 / 3.0), (1.0, 0.5), (8.0, 8.0 / 9.0)] {
        let mut bench = Bench::new(1_000_000_000, Memory::new(1_000_000, alpha));
        while bench.push(100, 0).is_ok() {}
        let got = bench.queue.bytes() as f64 / 1e6;
        assert!((got - share).abs() < 0.001, "{got} with alpha {alpha}");
    }
}

#[test]
fn a_stall_delays_later_frames() {
    let mut bench = Bench::new(1_000_000_000, plenty());
    bench.queue.stall(Nanos(0), Nanos(700));
    assert_eq!(bench.push(10, 100), Ok(715));
    bench.queue.end_stall(&mut bench.memory, Nanos(200));
    assert_eq!(bench.settle(200), (0, 0), "the queue is empty again");
    assert_eq!(bench.push(10, 200), Ok(215));
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
