//! Where congestion control meets the protocol (design §7): a scheme sees samples, marks and
//! timeouts of one session and says at what rate it may send. The schemes are not here.
//!
//! A session without a scheme costs one comparison. Only request packets are paced; CR and RESP
//! never are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Debug;

use crate::time::Nanos;

/// Bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BytesPerSec(pub u64);

impl BytesPerSec {
    /// Time that `bytes` take at this rate.
    pub fn time_of(self, bytes: u32) -> Nanos {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.0.max(1));
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// What a scheme learns from one answer.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Round trip without the server's residence; `None` if it could not be measured.
    pub rtt: Option<Nanos>,
    /// The request met congestion on its way (ECN echo).
    pub congestion: bool,
    /// When the answer came.
    pub now: Nanos,
}

/// A congestion control scheme for one session.
pub trait CongestionControl: Debug + Send {
    /// An answer came.
    fn on_answer(&mut self, sample: Sample);
    /// A packet counts as lost.
    fn on_timeout(&mut self, now: Nanos);
    /// The rate from now on; `None`: unlimited, send at once (the rate limiter bypass, eRPC
    /// §5.2.2).
    fn rate(&self) -> Option<BytesPerSec>;
}

/// A session's scheme with its pacing.
#[derive(Debug)]
struct Control {
    scheme: Box<dyn CongestionControl>,
    /// The next packet may leave then.
    next_send: Nanos,
    /// The session stands in the queue for that time.
    waits: bool,
}

/// The schemes of the sessions that have one, and the sessions that wait for their time.
#[derive(Debug, Default)]
pub(crate) struct Controls {
    by_session: BTreeMap<u32, Control>,
    waiting: BinaryHeap<Reverse<(Nanos, u32)>>,
}

impl Controls {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_session.is_empty()
    }

    pub(crate) fn set(&mut self, session: u32, scheme: Box<dyn CongestionControl>) {
        self.by_session.insert(
            session,
            Control {
                scheme,
                next_send: Nanos::ZERO,
                waits: false,
            },
        );
    }

    pub(crate) fn remove(&mut self, session: u32) {
        self.by_session.remove(&session);
    }

    pub(crate) fn on_answer(&mut self, session: u32, sample: Sample) {
        if let Some(control) = self.by_session.get_mut(&session) {
            control.scheme.on_answer(sample);
        }
    }

    pub(crate) fn on_timeout(&mut self, session: u32, now: Nanos) {
        if let Some(control) = self.by_session.get_mut(&session) {
            control.scheme.on_timeout(now);
        }
    }

    /// True if the session may send `bytes` now. If not, it is remembered for its time.
    pub(crate) fn admit(&mut self, session: u32, bytes: u32, now: Nanos) -> bool {
        let Some(control) = self.by_session.get_mut(&session) else {
            return true;
        };
        let Some(rate) = control.scheme.rate() else {
            return true;
        };
        if control.next_send > now {
            if !control.waits {
                control.waits = true;
                self.waiting.push(Reverse((control.next_send, session)));
            }
            return false;
        }
        control.next_send = now + rate.time_of(bytes);
        true
    }

    /// The next session whose time has come.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<u32> {
        let Reverse((at, _)) = self.waiting.peek()?;
        if *at > now {
            return None;
        }
        let Reverse((_, session)) = self.waiting.pop()?;
        if let Some(control) = self.by_session.get_mut(&session) {
            control.waits = false;
        }
        Some(session)
    }

    /// When the next session's time comes.
    pub(crate) fn next_due(&self) -> Nanos {
        self.waiting
            .peek()
            .map_or(Nanos::MAX, |Reverse((at, _))| *at)
    }
}
