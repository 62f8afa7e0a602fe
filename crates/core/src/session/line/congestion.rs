//! The path of a session to its peer: round trips, flow and scheme, and whether packets are paced
//! (rules S8, S10).

use super::Line;
use crate::handle::FlowIdx;
use crate::scheme::Scheme;
use crate::session::marks::Marks;
use crate::session::rtt::Rtt;
use crate::time::Nanos;

/// The path of a session, as the transport describes it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathTraits {
    /// See [`Line::is_near`].
    pub(crate) near: bool,
    /// See [`Line::is_reordered`].
    pub(crate) reordered: bool,
    /// See [`Line::is_declared`].
    pub(crate) declared: bool,
}

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

    /// Notes that this flow limits the session from now on.
    pub(crate) fn begin_flow(&mut self, flow: FlowIdx) {
        debug_assert!(self.flow == FlowIdx::NONE);
        self.flow = flow;
    }

    /// Notes that only credits limit the session from now on. Returns its flow until now.
    pub(crate) fn end_flow(&mut self) -> FlowIdx {
        self.on_pacing(false);
        std::mem::replace(&mut self.flow, FlowIdx::NONE)
    }

    #[inline]
    pub(crate) fn is_paced(&self) -> bool {
        self.marks.has(Marks::PACED)
    }

    /// Notes whether the session's packets must be paced from now on.
    pub(crate) fn on_pacing(&mut self, paced: bool) {
        self.marks.set(Marks::PACED, paced);
        self.settle();
    }

    /// Whether no network lies between the sides. If none does, packets are hardly ever lost, so a
    /// request without an answer most likely waits for a CPU at the peer.
    pub(crate) fn is_near(&self) -> bool {
        self.marks.has(Marks::NEAR)
    }

    /// Whether a message's short last packet may overtake the packets before it.
    #[inline]
    pub(crate) fn is_reordered(&self) -> bool {
        self.marks.has(Marks::REORDERED)
    }

    /// Whether the transport states the round trip of the path. Only then is its line rate trusted.
    pub(crate) fn is_declared(&self) -> bool {
        self.marks.has(Marks::DECLARED)
    }

    /// Takes the transport's description of the path, now that the peer is known.
    pub(crate) fn on_path(&mut self, path: PathTraits) {
        self.marks.set(Marks::NEAR, path.near);
        self.marks.set(Marks::REORDERED, path.reordered);
        self.marks.set(Marks::DECLARED, path.declared);
    }

    pub(crate) fn scheme(&self) -> Option<Scheme> {
        self.scheme
    }

    /// Notes the scheme that the endpoint or its user has chosen.
    pub(crate) fn choose_scheme(&mut self, scheme: Option<Scheme>) {
        self.scheme = scheme;
    }
}
