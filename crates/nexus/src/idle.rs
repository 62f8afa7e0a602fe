//! Idling of an endpoint's thread (design §10): it spins, or spins for a while and then blocks in
//! one epoll over the transport's descriptors and the doorbell. The control thread, the workers and
//! dropped requests ring the doorbell.
//!
//! No wake-up is lost: the endpoint arms the transport before it polls it for the last time, and
//! the doorbell has its own protocol (`doorbell.rs`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use dunlin_core::Nanos;

use crate::doorbell::Doorbell;
use crate::ffi::{Epoll, Events, Interest};

/// How a thread waits while its endpoint has nothing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// The thread always spins: lowest latency, but it uses a whole core.
    Spin,
    /// The thread spins for a while, then blocks: the first packet after that costs a wake-up.
    Adaptive {
        /// How long the thread spins. For the answer to its first request after a block, it spins
        /// up to four times as long, but not beyond 200 µs: the peer has to be woken, too.
        spin: Duration,
    },
}

impl Idle {
    /// The same mode, but with at least this time of spinning.
    pub(crate) fn at_least(self, least: Duration) -> Self {
        match self {
            Self::Spin => Self::Spin,
            Self::Adaptive { spin } => Self::Adaptive {
                spin: spin.max(least),
            },
        }
    }
}

impl Default for Idle {
    /// 50 µs of spinning. That is ten times the cost of a wake-up. So a busy endpoint never blocks,
    /// and a server that gets one request per millisecond spins for a twentieth of its time.
    fn default() -> Self {
        Self::Adaptive {
            spin: Duration::from_micros(50),
        }
    }
}

/// How many times as long a thread spins for the answer to its first request after a block, and the
/// time beyond which this makes no spin longer. A processor that has halted may take 100 µs to wake
/// up, above all in a virtual machine. If the thread blocked meanwhile, the answer would have to
/// wake it, too.
const PATIENT: u64 = 4;
const MAX_PATIENCE: Nanos = Nanos::from_micros(200);

/// Iterations without frames between two readings of the clock; a power of two.
const LOOK_EVERY: u32 = 64;

const _: () = assert!(LOOK_EVERY.is_power_of_two());

/// `quiet` counts from here after the doorbell was rung, which is no packet. No thread spins for as
/// many iterations before it blocks.
const RUNG: u32 = 1 << 31;

/// A block shorter than this costs more than it saves.
pub(crate) const MIN_BLOCK: Nanos = Nanos::from_micros(10);

/// The longest block. A program that checks after each iteration whether it should end notices a
/// signal within this time. Twenty wake-ups a second cost about 0.1 % of a core.
const MAX_BLOCK: Nanos = Nanos::from_millis(50);

/// Facts about an endpoint that gets no frames, by which its sleeper decides whether to block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// The present time.
    pub(crate) now: Nanos,
    /// The number of requests that the endpoint has sent so far.
    pub(crate) requests: u64,
}

/// Decides when an endpoint's thread blocks, and blocks it.
pub(crate) struct Sleeper {
    /// How long the thread spins before it blocks; `None`: it never blocks.
    spin: Option<Nanos>,
    quiet: u32,
    quiet_since: Nanos,
    /// The number of requests that the endpoint had sent at the last look.
    requests: u64,
    /// Whether the thread has sent a request after a block, and no packet has come since.
    is_patient: bool,
    /// The value from which `quiet` counts. Usually 0. After a block, until the thread has given
    /// way, it is so high that the first iteration without frames looks at the clock.
    first: u32,
    epoll: Epoll,
    events: Events,
    doorbell: Arc<Doorbell>,
}

const BELL: u64 = 0;
const TRANSPORT: u64 = 1;

impl Sleeper {
    /// Makes a sleeper. `fds`: the descriptors that the transport makes readable while it is armed.
    pub(crate) fn new(idle: Idle, doorbell: Arc<Doorbell>, fds: &[RawFd]) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(doorbell.as_raw_fd(), BELL, Interest::Read)?;
        for fd in fds {
            epoll.add(*fd, TRANSPORT, Interest::Read)?;
        }
        let spin = match idle {
            Idle::Spin => None,
            Idle::Adaptive { spin } => Some(Nanos::from(spin)),
        };
        let events = Events::new();
        Ok(Self {
            spin,
            quiet: 0,
            quiet_since: Nanos::ZERO,
            requests: 0,
            is_patient: false,
            first: 0,
            epoll,
            events,
            doorbell,
        })
    }

    /// Notes that a packet has come.
    #[inline]
    pub(crate) fn on_activity(&mut self) {
        self.quiet = self.first;
    }

    /// Notes that the doorbell was rung. After a block, the second iteration reads the clock,
    /// because the first one may send the request of another thread.
    pub(crate) fn on_bell(&mut self) {
        self.quiet = RUNG + self.first.saturating_sub(1);
    }

    /// Notes an iteration without frames. True if the thread has spun for long enough. Calls `look`
    /// only once in `LOOK_EVERY` iterations.
    #[inline]
    pub(crate) fn on_quiet(&mut self, look: impl FnOnce() -> Look) -> bool {
        self.quiet = self.quiet.wrapping_add(1);
        self.quiet.is_multiple_of(LOOK_EVERY) && self.has_spun(look())
    }

    /// The thread spins anew after it has sent a request, because an answer comes sooner than the
    /// kernel would wake the thread.
    #[cold]
    fn has_spun(&mut self, look: Look) -> bool {
        let Some(spin) = self.spin else { return false };
        let Look { now, requests } = look;
        let has_come = self.quiet == LOOK_EVERY;
        let has_sent = requests != self.requests;
        if has_come || has_sent || self.quiet == RUNG + LOOK_EVERY {
            (self.quiet_since, self.requests) = (now, requests);
            let has_slept = self.give_way();
            self.is_patient = !has_come && (self.is_patient || has_slept && has_sent);
        }
        let longest = match self.is_patient {
            true => spin.times(PATIENT).min(spin.max(MAX_PATIENCE)),
            false => spin,
        };
        now.since(self.quiet_since) >= longest
    }

    /// Lets another thread of this processor run, once after each block. The kernel expects that a
    /// thread which sends a packet to a sleeping peer then sleeps itself, so it often wakes the
    /// peer's thread on this processor, even if another one is idle. There, the peer would wait
    /// until this thread has spun. True if the thread has slept.
    fn give_way(&mut self) -> bool {
        let has_slept = std::mem::take(&mut self.first) != 0;
        if has_slept {
            std::thread::yield_now();
        }
        has_slept
    }

    /// Blocks until a descriptor is readable, the doorbell is rung, or `span` has passed. The
    /// transport must be armed.
    pub(crate) fn block(&mut self, span: Nanos) {
        let mut signalled = false;
        if self.doorbell.sleep() {
            let timeout = Some(span.min(MAX_BLOCK).into());
            // The only possible errors are a wrong descriptor and wrong memory; both would be bugs.
            let waited = self.epoll.wait(&mut self.events, timeout);
            debug_assert!(waited.is_ok(), "{waited:?}");
            signalled = self.events.iter().any(|ready| ready.token == BELL);
            // The second iteration without frames reads the clock, because the first one may send a
            // request. So does the first iteration after frames.
            (self.quiet, self.first) = (2 * LOOK_EVERY - 2, LOOK_EVERY - 1);
        }
        self.doorbell.wake(signalled);
    }

    /// Announces a wait for the descriptor ([`AsFd`]) in another event loop. False: the doorbell
    /// has been rung, so the caller must not wait. In both cases it must call [`Self::unpark`]
    /// afterwards.
    pub(crate) fn park(&mut self) -> bool {
        self.doorbell.sleep()
    }

    /// Ends the wait that [`Self::park`] announced.
    pub(crate) fn unpark(&mut self) {
        let waited = self.epoll.wait(&mut self.events, Some(Duration::ZERO));
        debug_assert!(waited.is_ok(), "{waited:?}");
        let signalled = self.events.iter().any(|ready| ready.token == BELL);
        self.doorbell.wake(signalled);
        self.on_activity();
    }
}

impl AsFd for Sleeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests;
