//! Counters of packets of a device that belong to no single endpoint, or whose cause the counters
//! of the endpoint do not show. Owned by `port`.

use std::sync::atomic::{AtomicU64, Ordering};

use dunlin_packet::{REFUSALS, Refused};

/// Names of the packets that the device dropped: no descriptor was free, the pool was empty, it
/// found a fault, or it could not send.
const DROPS: [&str; 4] = [
    "rx_device_missed",
    "rx_pool_empty",
    "rx_device_faults",
    "tx_device_faults",
];

/// Names of the counters that this file owns alone.
const OWN: [&str; OWN_COUNT] = [
    "rx_unknown_port",
    "rx_neighbours",
    "tx_unanswered",
    "tx_neighbours_unsent",
    "tx_neighbour_full",
    "tx_pool_empty",
    "tx_queue_full",
    "tx_lent",
    "link_downs",
    "rx_rules",
    "rx_rules_refused",
    "device_interrupts",
];

const OWN_COUNT: usize = 12;

const COUNT: usize = DROPS.len() + OWN.len() + REFUSALS.len();

/// The names of all counters of a device.
pub(crate) const NAMES: [&str; COUNT] = {
    let mut names = [""; COUNT];
    let mut at = 0;
    while at < COUNT {
        names[at] = if at < DROPS.len() {
            DROPS[at]
        } else if at < DROPS.len() + OWN.len() {
            OWN[at - DROPS.len()]
        } else {
            REFUSALS[at - DROPS.len() - OWN.len()]
        };
        at += 1;
    }
    names
};

/// The events that this file counts alone, in the order of their names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Event {
    /// A datagram came for no endpoint of this process.
    UnknownPort,
    /// A neighbour has asked or answered.
    Neighbours,
    /// A packet waited for a neighbour that did not answer.
    Unanswered,
    /// A question or an answer did not leave: the pool had no empty packet, or the device took
    /// none.
    Unsent,
    /// A packet was dropped, because too many wait for its neighbour.
    NeighbourFull,
    /// A packet was dropped, because the pool had no empty one.
    PoolEmpty,
    /// A packet was dropped, because the queue of the device was full.
    QueueFull,
    /// The device has read the data of a packet in the msgbuf.
    Lent,
    /// The link went down.
    LinkDown,
    /// An endpoint got a queue of its own, by a rule.
    Ruled,
    /// An endpoint shares a queue with others, because no queue was free, or the device has no
    /// rules.
    Unruled,
    /// The device was opened, and has interrupts.
    Interrupts,
}

const _: () = assert!(Event::Interrupts as usize + 1 == OWN_COUNT);

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    own: [AtomicU64; OWN_COUNT],
    refused: [AtomicU64; REFUSALS.len()],
}

impl Tally {
    /// Counts a packet that was dropped for this reason.
    pub(crate) fn on_refused(&self, why: Refused) {
        add(&self.refused[why as usize], 1);
    }

    /// Counts `count` events of one kind.
    pub(crate) fn on(&self, event: Event, count: u64) {
        add(&self.own[event as usize], count);
    }

    /// The counters in the order of [`NAMES`]. `drops`: the device's own counters of drops.
    pub(crate) fn counts(&self, drops: [u64; DROPS.len()]) -> impl Iterator<Item = u64> {
        let all = self.own.iter().chain(&self.refused);
        let counts = all.map(|count| count.load(Ordering::Relaxed));
        drops.into_iter().chain(counts)
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
