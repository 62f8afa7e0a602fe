//! A flow: the scheme of a session with congestion control, and the time at which its next packet
//! may leave.
//!
//! A flow lives as long as its session has a scheme. `congestion/pacer/pacing.rs` makes flows, and
//! `congestion/pacer.rs` keeps and calls them.

use super::dcqcn::Dcqcn;
use super::swift::Swift;
use super::timely::{Law, Timely};
use super::{CongestionControl, Link, Sample};
use crate::scheme::{Bypasses, BytesPerSec, Scheme};
use crate::time::Nanos;

/// A session's scheme: an enum, so that calls to the schemes of this crate need no vtable.
#[derive(Debug)]
enum Algorithm {
    Timely(Timely),
    Dcqcn(Dcqcn),
    Swift(Swift),
    /// The user's own scheme.
    Own(Box<dyn CongestionControl>),
}

/// Congestion control of one session.
#[derive(Debug)]
pub(crate) struct Flow {
    algorithm: Algorithm,
    /// The next packet may not leave before this time.
    next_send: Nanos,
    /// The scheme's rate; `None` means the line rate.
    rate: Option<BytesPerSec>,
    line_rate: BytesPerSec,
    /// The scheme's window.
    window: Option<u32>,
}

impl Flow {
    /// A flow for `scheme`; `None` for [`Scheme::None`].
    pub(crate) fn new(scheme: Scheme, link: &Link, bypasses: Bypasses) -> Option<Self> {
        let timely = |law| Algorithm::Timely(Timely::new(link, law, bypasses.timely));
        let algorithm = match scheme {
            Scheme::None => return None,
            Scheme::Timely => timely(Law::Gradient),
            Scheme::PatchedTimely => timely(Law::Patched),
            Scheme::Dcqcn => Algorithm::Dcqcn(Dcqcn::new(link)),
            Scheme::Swift => Algorithm::Swift(Swift::new(link)),
        };
        Some(Self::with(algorithm, link))
    }

    /// A flow with the user's own scheme.
    pub(crate) fn own(scheme: Box<dyn CongestionControl>, link: &Link) -> Self {
        Self::with(Algorithm::Own(scheme), link)
    }

    fn with(algorithm: Algorithm, link: &Link) -> Self {
        let mut flow = Self {
            algorithm,
            next_send: Nanos::ZERO,
            rate: None,
            line_rate: link.line_rate,
            window: None,
        };
        flow.look();
        flow
    }

    /// Copies rate and window from the scheme.
    fn look(&mut self) {
        let scheme = self.scheme();
        (self.rate, self.window) = (scheme.rate(), scheme.window());
    }

    fn scheme(&mut self) -> &mut dyn CongestionControl {
        match &mut self.algorithm {
            Algorithm::Timely(timely) => timely,
            Algorithm::Dcqcn(dcqcn) => dcqcn,
            Algorithm::Swift(swift) => swift,
            Algorithm::Own(own) => own.as_mut(),
        }
    }

    /// Gives an answer to the scheme. The common case, Timely at line rate, costs one comparison.
    #[inline]
    pub(crate) fn on_answer(&mut self, sample: Sample) {
        match &mut self.algorithm {
            Algorithm::Timely(timely) => timely.on_answer(sample),
            _ => self.scheme().on_answer(sample),
        }
        self.look();
    }

    pub(crate) fn on_wait(&mut self, packets: u32) {
        self.scheme().on_wait(packets);
        self.look();
    }

    pub(crate) fn on_loss(&mut self, now: Nanos) {
        self.scheme().on_loss(now);
        self.look();
    }

    pub(crate) fn on_timeout(&mut self, now: Nanos) {
        self.scheme().on_timeout(now);
        self.look();
    }

    pub(crate) fn on_bypasses(&mut self, bypasses: Bypasses) {
        if let Algorithm::Timely(timely) = &mut self.algorithm {
            timely.on_bypasses(bypasses.timely);
        }
    }

    /// The rate at which packets are paced; `None` means the line rate.
    pub(crate) fn rate(&self) -> Option<BytesPerSec> {
        self.rate
    }

    /// Packets of large messages that may be in flight; `None` if the rate limits them.
    #[inline]
    pub(crate) fn window(&self) -> Option<u32> {
        self.window
    }

    /// Reserves the next departure for a packet of `bytes` bytes; returns the departure time, which
    /// is `now` or later.
    pub(crate) fn reserve(&mut self, bytes: u32, now: Nanos) -> Nanos {
        self.scheme().on_time(now);
        self.look();
        let at = self.next_send.max(now);
        self.next_send = at;
        self.charge(bytes);
        at
    }

    /// Postpones the next packet by the time that `bytes` bytes take at the rate.
    pub(crate) fn charge(&mut self, bytes: u32) {
        self.next_send += self.rate.unwrap_or(self.line_rate).time_of(bytes);
    }
}

#[cfg(test)]
mod tests;
