//! The probes of one message's tail (rule S8): when no later packet can show that the last ones are
//! lost, the client sends the last one again, or asks for it again. `transfers/silence.rs` decides
//! when, and `transfers/sending.rs` learns from the answers.
//!
//! Called by `transfer/scoreboard.rs`.

use crate::time::Nanos;

/// If this many probes in a row were answered sooner than any packet before, the scoreboard
/// believes the last answer.
const EARLY_PROBES: u8 = 2;

/// Probes with one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    packet: u32,
    /// When the packet last left before the first probe.
    first: Nanos,
    /// When the last probe left.
    last: Nanos,
}

impl Probe {
    /// When the packet last left before its first probe.
    pub(super) fn first_sent(&self) -> Nanos {
        self.first
    }

    /// Whether the last probe is the newest copy of the packet, which left at `sent`.
    pub(super) fn is_last(&self, sent: Nanos) -> bool {
        self.last == sent
    }
}

/// The probes of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probes {
    /// The number of probes since a packet last arrived.
    asks: u8,
    /// Probes in a row that were answered sooner than any packet before.
    early: u8,
    /// The last packet that was a probe.
    probed: Option<Probe>,
}

impl Probes {
    /// Notes a probe with this packet, which leaves again now and left at `sent` before. Returns
    /// the number of probes in a row.
    pub(super) fn on_probe(&mut self, packet: u32, sent: Nanos, now: Nanos) -> u8 {
        self.asks = self.asks.saturating_add(1);
        let before = self.probed.filter(|probe| probe.packet == packet);
        self.probed = Some(Probe {
            packet,
            first: before.map_or(sent, |probe| probe.first),
            last: now,
        });
        self.asks
    }

    /// Notes that a packet has arrived.
    pub(super) fn on_arrival(&mut self) {
        self.asks = 0;
    }

    /// Whether each packet that was sent as a probe has arrived.
    pub(super) fn is_none(&self) -> bool {
        self.probed.is_none()
    }

    /// Notes an arrival of packets that were sent only once, and none of which was a probe.
    pub(super) fn on_arrivals(&mut self) {
        (self.asks, self.early) = (0, 0);
    }

    /// Whether the tail was probed, and no packet has arrived since.
    pub(super) fn asks(&self) -> bool {
        self.asks != 0
    }

    /// The probes with this packet, which has arrived.
    pub(super) fn take_probe(&mut self, packet: u32) -> Option<Probe> {
        self.probed.take_if(|probe| probe.packet == packet)
    }

    /// Whether the answer to this packet, which came after `took`, came so soon that it must belong
    /// to an earlier copy. If several probes in a row are answered that early, the path has in fact
    /// become faster, and the scoreboard believes the answers. Otherwise, the client would probe
    /// the rest of the message packet by packet, each after a longer time. `once`: the packet left
    /// only once. `least`: the shortest possible round trip.
    pub(super) fn is_early(&mut self, packet: u32, once: bool, took: Nanos, least: Nanos) -> bool {
        if once || took >= least {
            self.early = 0;
            return false;
        }
        let probed = self.probed.is_some_and(|probe| probe.packet == packet);
        self.early += u8::from(probed && self.early < EARLY_PROBES);
        !probed || self.early < EARLY_PROBES
    }
}

#[cfg(test)]
mod tests;
