//! Counters of packets of a device that concern no single endpoint. Owned by `port`.

use std::sync::atomic::{AtomicU64, Ordering};

use dunlin_packet::{REFUSALS, Refused};

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    refused: [AtomicU64; REFUSALS.len()],
    /// For no endpoint of this process.
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

    /// The counters with their names.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let own = [
            ("rx_unknown_port", &self.unknown_port),
            ("rx_neighbours", &self.neighbours),
            ("tx_unanswered", &self.unanswered),
            ("tx_neighbours_unsent", &self.unsent),
        ];
        let refused = REFUSALS.into_iter().zip(&self.refused);
        let all = own.into_iter().chain(refused);
        all.map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
