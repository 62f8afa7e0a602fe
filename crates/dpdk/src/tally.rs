//! Counters of packets of a device that concern no single endpoint. Owned by `port`.

use std::sync::atomic::{AtomicU64, Ordering};

use dunlin_packet::{REFUSALS, Refused};

/// Names of the counters that this file owns alone.
const OWN: [&str; 4] = [
    "rx_unknown_port",
    "rx_neighbours",
    "tx_unanswered",
    "tx_neighbours_unsent",
];

/// The name of the packets that the device dropped.
const MISSED: &str = "rx_device_missed";

/// The names of all counters of a device.
pub(crate) const NAMES: [&str; 1 + OWN.len() + REFUSALS.len()] = {
    let mut names = [MISSED; 1 + OWN.len() + REFUSALS.len()];
    let mut at = 0;
    while at < OWN.len() {
        names[1 + at] = OWN[at];
        at += 1;
    }
    while at < OWN.len() + REFUSALS.len() {
        names[1 + at] = REFUSALS[at - OWN.len()];
        at += 1;
    }
    names
};

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    refused: [AtomicU64; REFUSALS.len()],
    /// Packets for a port at which no endpoint is.
    unknown_port: AtomicU64,
    /// Questions and answers of neighbours that were received.
    neighbours: AtomicU64,
    /// Packets that waited for a neighbour in vain.
    unanswered: AtomicU64,
    /// Questions and answers that did not leave: no packet was empty, or the device took none.
    unsent: AtomicU64,
}

impl Tally {
    /// Counts a packet that was dropped for this reason.
    pub(crate) fn on_refused(&self, why: Refused) {
        add(&self.refused[why as usize], 1);
    }

    /// Counts a packet for a port at which no endpoint is.
    pub(crate) fn on_unknown_port(&self) {
        add(&self.unknown_port, 1);
    }

    /// Counts a question or an answer of a neighbour.
    pub(crate) fn on_message(&self) {
        add(&self.neighbours, 1);
    }

    /// Counts packets that waited for a neighbour in vain.
    pub(crate) fn on_unanswered(&self, count: u64) {
        add(&self.unanswered, count);
    }

    /// Counts questions and answers that did not leave.
    pub(crate) fn on_unsent(&self, count: u64) {
        add(&self.unsent, count);
    }

    /// The counters in the order of [`NAMES`]. `missed`: packets that the device had to drop.
    pub(crate) fn counts(&self, missed: u64) -> impl Iterator<Item = u64> {
        let own = [
            &self.unknown_port,
            &self.neighbours,
            &self.unanswered,
            &self.unsent,
        ];
        let all = own.into_iter().chain(&self.refused);
        let counts = all.map(|count| count.load(Ordering::Relaxed));
        std::iter::once(missed).chain(counts)
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
