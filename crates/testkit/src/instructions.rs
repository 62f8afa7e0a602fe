//! Parts of the programs whose instructions `cargo xtask budget` counts: a clock that advances with
//! each reading, endpoints that read it, and turns of a client and a server in one thread. Every
//! run of such a program therefore executes the same instructions.
//!
//! Callgrind collects only inside [`counted`]. The program names the functions that it attributes
//! to each side, `client_turn` and `server_turn`.

use dunlin_core::transport::{Halves, Transport};
use dunlin_core::{Clock, Config, Endpoint, EndpointNum, Nanos};

use crate::clock::StepClock;

/// Each reading of a clock advances it by this much.
const TICK: Nanos = Nanos(100);

/// The clock of one endpoint. It begins at 0.
#[derive(Debug, Default)]
pub struct Ticks(Nanos);

impl Clock for Ticks {
    #[inline]
    fn now(&mut self) -> Nanos {
        self.0 += TICK;
        self.0
    }
}

/// The clock of several endpoints: every reading by one of them also advances it for the others.
#[derive(Clone, Debug, Default)]
pub struct SharedTicks(StepClock);

impl SharedTicks {
    /// Sets the time forward.
    pub fn pass(&self, span: Nanos) {
        self.0.pass(span);
    }
}

impl Clock for SharedTicks {
    #[inline]
    fn now(&mut self) -> Nanos {
        self.pass(TICK);
        self.0.read()
    }
}

/// An endpoint with this clock and ordinary pages.
///
/// # Panics
/// If this process has made too many endpoints.
pub fn endpoint<T: Transport, C: Clock, App>(
    app: App,
    clock: C,
    halves: Halves<T::Rx, T::Tx>,
    seed: u64,
) -> Endpoint<T, C, App> {
    let config = Config {
        hugepages: false,
        ..Config::default()
    };
    let number = EndpointNum::take().expect("they are the first");
    Endpoint::new(app, clock, halves, config, seed, None, number).expect("the options are in range")
}

/// Calls `turn` until `warm_up` operations are complete, which fill pools and rings, and then until
/// at least `count` more are. Returns the number of the operations after the warm-up. `turn`
/// returns the number of all complete operations.
///
/// # Panics
/// If they do not complete.
pub fn count(warm_up: u64, count: u64, mut turn: impl FnMut() -> u64) -> u64 {
    let begin = exchange(0, warm_up, &mut turn);
    counted(|| exchange(begin, count, &mut turn))
}

/// Runs the counted part.
#[inline(never)]
pub fn counted(work: impl FnOnce() -> u64) -> u64 {
    work()
}

/// Calls `turn` until at least `count` operations are complete in addition to `begin`; returns
/// their number.
///
/// # Panics
/// If they do not complete.
pub fn exchange(begin: u64, count: u64, mut turn: impl FnMut() -> u64) -> u64 {
    // An operation takes a few turns. Without this limit, a program would wait forever for a lost
    // one.
    for _ in 0..10 * (count + 4000) {
        let done = turn() - begin;
        if done >= count {
            return done;
        }
    }
    panic!("{count} operations do not complete");
}

/// The number at this place of the program's arguments, or `default` if there are fewer.
///
/// # Panics
/// If it is not a number.
pub fn argument(at: usize, default: u64) -> u64 {
    let text = std::env::args().nth(at + 1);
    text.map_or(default, |text| text.parse().expect("a number"))
}
