//! The path of a session to its peer: round trips, flow and scheme, and whether packets are paced
//! (rules S8, S10).

use super::Line;
use crate::handle::FlowIdx;
use crate::scheme::Scheme;
use crate::session::marks::Marks;
use crate::session::rtt::Rtt;
use crate::time::Nanos;

impl Line {
    #[inline]
    pub(crate) fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// Takes a measured round trip, already without the server's residence.
    #[inline]
    pub(crate) fn on_round_trip(&mut self, rtt: Nanos) {
        self.rtt.on_sample(rtt);
    }

    /// Takes an upper bound of a round trip.
    pub(crate) fn on_round_trip_within(&mut self, bound: Nanos) {
        self.rtt.on_bound(bound);
    }

    /// Takes the time from a packet to its answer, if the answer states no residence.
    pub(crate) fn on_wait(&mut self, took: Nanos) {
        self.rtt.on_wait(took);
    }

    /// Takes the time that a request stayed in the server.
    #[inline]
    pub(crate) fn on_residence(&mut self, residence_ns: u64) {
        self.rtt.on_residence(residence_ns);
    }

    /// Whether a request that leaves now asks for a round-trip sample (rule S10). If it does, the
    /// next sample is due after `interval`.
    #[inline]
    pub(crate) fn ask_for_sample(&mut self, now: Nanos, interval: Nanos) -> bool {
        let due = now >= self.sample_due || self.is_paced();
        if due {
            self.sample_due = now + interval;
            self.settle();
        }
        due
    }

    #[inline]
    pub(crate) fn flow(&self) -> FlowIdx {
        self.flow
    }

    /// Gives the session another flow; returns the old one.
    pub(crate) fn set_flow(&mut self, flow: FlowIdx) -> FlowIdx {
        std::mem::replace(&mut self.flow, flow)
    }

    #[inline]
    pub(crate) fn is_paced(&self) -> bool {
        self.marks.has(Marks::PACED)
    }

    pub(crate) fn set_paced(&mut self, paced: bool) {
        self.marks.set(Marks::PACED, paced);
        self.settle();
    }

    /// Whether no network lies between the sides. If none does, packets are hardly ever lost, so a
    /// request without an answer most likely waits for a CPU at the peer.
    pub(crate) fn is_near(&self) -> bool {
        self.marks.has(Marks::NEAR)
    }

    pub(crate) fn set_near(&mut self, near: bool) {
        self.marks.set(Marks::NEAR, near);
    }

    /// Whether a message's short last packet may overtake the packets before it.
    #[inline]
    pub(crate) fn is_reordered(&self) -> bool {
        self.marks.has(Marks::REORDERED)
    }

    pub(crate) fn set_reordered(&mut self, reordered: bool) {
        self.marks.set(Marks::REORDERED, reordered);
    }

    /// Whether the transport states the round trip of the path. Only then is its line rate trusted.
    pub(crate) fn is_declared(&self) -> bool {
        self.marks.has(Marks::DECLARED)
    }

    pub(crate) fn set_declared(&mut self, declared: bool) {
        self.marks.set(Marks::DECLARED, declared);
    }

    pub(crate) fn scheme(&self) -> Option<Scheme> {
        self.scheme
    }

    pub(crate) fn set_scheme(&mut self, scheme: Option<Scheme>) {
        self.scheme = scheme;
    }
}
