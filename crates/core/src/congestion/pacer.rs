//! The pacer: the flows of each session with congestion control, and the packets that wait for
//! their departure (rule S15). `pacing.rs` decides which packets leave; the pacer decides when.

use crate::config::Config;
use crate::congestion::flow::Flow;
use crate::congestion::wheel::{Paced, Wheel};
use crate::congestion::{Sample, Way};
use crate::handle::FlowIdx;
use crate::scheme::{Bypasses, BytesPerSec};
use crate::session::rtt::{SAMPLE_INTERVAL, calm_interval};
use crate::slab::Slab;
use crate::time::Nanos;

/// The flows of a session, one for each direction.
#[derive(Debug)]
struct Flows {
    out: Flow,
    /// The flow of the other direction; `None` if `out` serves both.
    back: Option<Flow>,
}

impl Flows {
    fn at(&self, way: Way) -> &Flow {
        match (way, &self.back) {
            (Way::Back, Some(back)) => back,
            _ => &self.out,
        }
    }

    fn at_mut(&mut self, way: Way) -> &mut Flow {
        match (way, &mut self.back) {
            (Way::Back, Some(back)) => back,
            _ => &mut self.out,
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Flow> {
        std::iter::once(&mut self.out).chain(&mut self.back)
    }
}

/// All flows of an endpoint, and the wheel in which their packets wait.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// `None`: the entry is free.
    flows: Slab<FlowIdx, Option<Flows>>,
    wheel: Wheel,
    bypasses: Bypasses,
    /// Time between two round-trip samples of a session without a flow.
    calm_interval: Nanos,
}

impl Pacer {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            flows: Slab::default(),
            wheel: Wheel::new(config.wheel_slot, config.wheel_horizon),
            bypasses: config.bypasses,
            calm_interval: calm_interval(0),
        }
    }

    /// Adapts the interval between samples to the endpoint's number of sessions.
    pub(crate) fn on_sessions(&mut self, live: usize) {
        self.calm_interval = calm_interval(live);
    }

    /// Sets the bypasses of all flows from now on.
    pub(crate) fn set_bypasses(&mut self, bypasses: Bypasses) {
        self.bypasses = bypasses;
        let flows = self.flows.iter_mut().flatten();
        for flow in flows.flat_map(Flows::all) {
            flow.on_bypasses(bypasses);
        }
    }

    /// Time between two round-trip samples (rule S10) of a session at line rate with this flow, or
    /// of a session without a flow.
    #[inline]
    pub(crate) fn sample_interval(&self, flow: FlowIdx) -> Nanos {
        match (self.bypasses.timely, flow) {
            (true, FlowIdx::NONE) => self.calm_interval,
            (true, _) => SAMPLE_INTERVAL,
            (false, _) => Nanos::ZERO,
        }
    }

    /// Adds the flows of a session. `back`: `None` if both directions share one flow.
    pub(crate) fn begin(&mut self, out: Flow, back: Option<Flow>) -> FlowIdx {
        let index = self.flows.take();
        *self.flows.at_mut(index) = Some(Flows { out, back });
        index
    }

    /// The number of sessions with flows.
    pub(crate) fn live(&self) -> usize {
        self.flows.live()
    }

    pub(crate) fn has(&self, flow: FlowIdx) -> bool {
        self.flow(flow, Way::Out).is_some()
    }

    /// Forgets a flow, if the session has one. Its packets in the wheel still leave on time.
    pub(crate) fn end(&mut self, flow: FlowIdx) {
        if flow != FlowIdx::NONE {
            *self.flows.at_mut(flow) = None;
            self.flows.release(flow);
        }
    }

    /// Whether the requests of a session with `credits` credits must be paced; `None` if it has no
    /// flow.
    pub(crate) fn must_pace(&self, flow: FlowIdx, credits: u32) -> Option<bool> {
        let flow = self.flow(flow, Way::Out)?;
        let narrow = flow.window().is_some_and(|packets| packets < credits);
        Some(narrow || flow.rate().is_some() || !self.bypasses.limiter)
    }

    /// The rate at which a session's packets are paced; `None` means the line rate.
    pub(crate) fn rate(&self, flow: FlowIdx, way: Way) -> Option<BytesPerSec> {
        self.flow(flow, way)?.rate()
    }

    /// Packets of large messages that may be in flight. `None`: only the rate limits them. 0: the
    /// rate limits them, and at most one may be in flight.
    pub(crate) fn window(&self, flow: FlowIdx, way: Way) -> Option<u32> {
        self.flow(flow, way)?.window()
    }

    /// Whether no packet may leave while another one is in flight.
    pub(crate) fn is_below_one(&self, flow: FlowIdx, way: Way) -> bool {
        self.window(flow, way) == Some(0)
    }

    /// Whether only credits limit the packets.
    pub(crate) fn is_free(&self, flow: FlowIdx, way: Way) -> bool {
        self.rate(flow, way).is_none() && self.bypasses.limiter
    }

    /// Gives an answer to the scheme. False if the session has no flow.
    #[inline]
    pub(crate) fn on_answer(&mut self, flow: FlowIdx, way: Way, sample: Sample) -> bool {
        self.change(flow, way, |flow| flow.on_answer(sample))
    }

    /// Tells the scheme that packets were lost. False if the session has no flow.
    pub(crate) fn on_loss(&mut self, flow: FlowIdx, way: Way, now: Nanos) -> bool {
        self.change(flow, way, |flow| flow.on_loss(now))
    }

    /// Informs the scheme that packets that had waited for a thread have arrived. False if the
    /// session has no flow.
    pub(crate) fn on_wait(&mut self, flow: FlowIdx, way: Way, packets: u32) -> bool {
        self.change(flow, way, |flow| flow.on_wait(packets))
    }

    /// Tells the scheme that a timeout has passed without an answer. False if the session has no
    /// flow.
    pub(crate) fn on_timeout(&mut self, flow: FlowIdx, way: Way, now: Nanos) -> bool {
        self.change(flow, way, |flow| flow.on_timeout(now))
    }

    /// Reserves the next departure for `bytes` bytes. Returns its time, or `None` if they may leave
    /// now.
    pub(crate) fn reserve(
        &mut self,
        flow: FlowIdx,
        way: Way,
        bytes: u32,
        now: Nanos,
    ) -> Option<Nanos> {
        let limited = !self.bypasses.limiter;
        let flows = self.flows.get_mut(flow)?.as_mut()?;
        let at = flows.at_mut(way).reserve(bytes, now);
        (at > now || limited).then_some(at)
    }

    /// Charges the flow for `bytes` bytes that left in addition to the reserved ones.
    pub(crate) fn charge(&mut self, flow: FlowIdx, way: Way, bytes: u32) {
        self.change(flow, way, |flow| flow.charge(bytes));
    }

    /// Puts a packet that must wait for its time into the wheel.
    pub(crate) fn hold(&mut self, entry: Paced, now: Nanos) {
        self.wheel.insert(entry, now);
    }

    /// The next packet whose time has come.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<Paced> {
        self.wheel.pop_due(now)
    }

    /// When the next packet may leave; [`Nanos::MAX`] if none waits.
    pub(crate) fn next_due(&self) -> Nanos {
        self.wheel.next_due()
    }

    fn flow(&self, flow: FlowIdx, way: Way) -> Option<&Flow> {
        Some(self.flows.get(flow)?.as_ref()?.at(way))
    }

    #[inline]
    fn change(&mut self, flow: FlowIdx, way: Way, change: impl FnOnce(&mut Flow)) -> bool {
        match self.flows.get_mut(flow) {
            Some(Some(flows)) => {
                change(flows.at_mut(way));
                true
            }
            _ => false,
        }
    }
}

mod pacing;
#[cfg(test)]
mod tests;
