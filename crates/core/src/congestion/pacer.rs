//! The pacer: the flow of each session with congestion control, and the packets that wait for their
//! time (rule S15). `pacing.rs` decides what is sent; the pacer knows when.

use crate::config::Config;
use crate::congestion::flow::Flow;
use crate::congestion::wheel::{Entry, Wheel};
use crate::congestion::{Bypasses, BytesPerSec, Sample};
use crate::session::rtt::SAMPLE_INTERVAL;
use crate::session::table::NONE;
use crate::slab::Slab;
use crate::time::Nanos;

/// All flows of an endpoint, and the wheel that their packets wait in.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// `None`: the entry is free.
    flows: Slab<Option<Flow>>,
    wheel: Wheel,
    bypasses: Bypasses,
}

impl Pacer {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            flows: Slab::default(),
            wheel: Wheel::new(config.wheel_slot, config.wheel_horizon),
            bypasses: config.bypasses,
        }
    }

    /// Which short cuts are taken from now on.
    pub(crate) fn set_bypasses(&mut self, bypasses: Bypasses) {
        self.bypasses = bypasses;
        for flow in self.flows.iter_mut().flatten() {
            flow.set_bypasses(bypasses);
        }
    }

    /// How often a session at line rate asks for a round trip (rule S10).
    #[inline]
    pub(crate) fn sample_interval(&self) -> Nanos {
        match self.bypasses.timely {
            true => SAMPLE_INTERVAL,
            false => Nanos::ZERO,
        }
    }

    pub(crate) fn begin(&mut self, flow: Flow) -> u32 {
        let index = self.flows.take();
        *self.flows.at_mut(index) = Some(flow);
        index
    }

    /// Forgets a flow, if the session has one. What waits in the wheel leaves at its time all the
    /// same.
    pub(crate) fn end(&mut self, flow: u32) {
        if flow != NONE {
            *self.flows.at_mut(flow) = None;
            self.flows.release(flow);
        }
    }

    /// Whether the packets of a session with so many credits must wait for their time; `None`: it
    /// has no flow.
    pub(crate) fn must_pace(&self, flow: u32, credits: u32) -> Option<bool> {
        let flow = self.flow(flow)?;
        let narrow = flow.window().is_some_and(|packets| packets < credits);
        Some(narrow || flow.rate().is_some() || !self.bypasses.limiter)
    }

    /// The rate that a session is held to; `None`: that of the line.
    pub(crate) fn rate(&self, flow: u32) -> Option<BytesPerSec> {
        self.flow(flow)?.rate()
    }

    /// Packets of a large message that may be in flight; `None`: they are held to the rate.
    pub(crate) fn window(&self, flow: u32) -> Option<u32> {
        self.flow(flow)?.window()
    }

    /// An answer came. False if the session has no flow.
    #[inline]
    pub(crate) fn on_answer(&mut self, flow: u32, sample: Sample) -> bool {
        self.change(flow, |flow| flow.on_answer(sample))
    }

    /// Packets were lost. False if the session has no flow.
    pub(crate) fn on_loss(&mut self, flow: u32, now: Nanos) -> bool {
        self.change(flow, |flow| flow.on_loss(now))
    }

    /// Nothing came for too long. False if the session has no flow.
    pub(crate) fn on_timeout(&mut self, flow: u32, now: Nanos) -> bool {
        self.change(flow, |flow| flow.on_timeout(now))
    }

    /// Takes the next place for `bytes` bytes; returns its time. `None`: they may leave at once.
    pub(crate) fn reserve(&mut self, flow: u32, bytes: u32, now: Nanos) -> Option<Nanos> {
        let limited = !self.bypasses.limiter;
        let at = self.flows.get_mut(flow)?.as_mut()?.reserve(bytes, now);
        (at > now || limited).then_some(at)
    }

    /// What left has `bytes` bytes more than its place was taken for.
    pub(crate) fn charge(&mut self, flow: u32, bytes: u32) {
        self.change(flow, |flow| flow.charge(bytes));
    }

    /// A packet waits for its time.
    pub(crate) fn hold(&mut self, entry: Entry, now: Nanos) {
        self.wheel.insert(entry, now);
    }

    /// The next packet whose time has come.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<Entry> {
        self.wheel.pop_due(now)
    }

    /// When the next packet may leave. [`Nanos::MAX`]: none waits.
    pub(crate) fn next_due(&self) -> Nanos {
        self.wheel.next_due()
    }

    fn flow(&self, flow: u32) -> Option<&Flow> {
        self.flows.get(flow)?.as_ref()
    }

    #[inline]
    fn change(&mut self, flow: u32, change: impl FnOnce(&mut Flow)) -> bool {
        match self.flows.get_mut(flow) {
            Some(Some(flow)) => {
                change(flow);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
