//! The values of an endpoint's block whose meaning is fixed: its gauges, and the numbers of a
//! session. The writer supplies the names of all other values. `writer/page.rs` writes these
//! values; a reader finds them by name.

use crate::place::{self, Whereabouts};

/// Numbers of an endpoint that may increase and decrease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gauges {
    /// Sessions.
    pub sessions: u64,
    /// Calls that have not ended.
    pub calls: u64,
    /// Bytes of msgbufs in use.
    pub pool_bytes: u64,
    /// Msgbufs in use.
    pub pool_buffers: u64,
    /// Bytes of large requests that have partly arrived.
    pub receiving_bytes: u64,
}

/// One session of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// The session's number at this endpoint.
    pub number: u32,
    /// The other endpoint, as the transport knows it.
    pub peer: u32,
    /// The session's number at the other endpoint.
    pub remote: u32,
    /// Whether the other endpoint opened it.
    pub accepted: bool,
    /// Limit of concurrent requests in each direction.
    pub window: u32,
    /// Calls that occupy a slot.
    pub in_flight: u32,
    /// Calls that wait for a slot or a credit.
    pub backlog: u32,
    /// Credits left: packets that may be sent now.
    pub credits: u32,
    /// Limit of packets in flight.
    pub credit_limit: u32,
    /// Smoothed round trip in nanoseconds; 0 if unknown.
    pub rtt_ns: u64,
    /// Smallest round trip in nanoseconds; 0 if unknown.
    pub rtt_min_ns: u64,
    /// The rate of its requests in bytes per second; 0 for line rate.
    pub rate: u64,
    /// The place of the other endpoint.
    pub place: Whereabouts,
}

impl Gauges {
    /// The names, in the order of the words.
    pub(crate) const NAMES: [&str; 5] = [
        "sessions",
        "calls",
        "pool_bytes",
        "pool_buffers",
        "receiving_bytes",
    ];

    pub(crate) const fn words(&self) -> [u64; Self::NAMES.len()] {
        let Self {
            sessions,
            calls,
            pool_bytes,
            pool_buffers,
            receiving_bytes,
        } = *self;
        [sessions, calls, pool_bytes, pool_buffers, receiving_bytes]
    }
}

impl Row {
    /// The columns, in the order of the words.
    pub(crate) const NAMES: [&str; 16] = [
        "number",
        "peer",
        "remote",
        "accepted",
        "window",
        "in_flight",
        "backlog",
        "credits",
        "credit_limit",
        "rtt_ns",
        "rtt_min_ns",
        "rate",
        place::COLUMNS[0],
        place::COLUMNS[1],
        place::COLUMNS[2],
        place::COLUMNS[3],
    ];

    pub(crate) fn words(&self) -> [u64; Self::NAMES.len()] {
        let [high, low, port, endpoint] = self.place.words();
        [
            self.number.into(),
            self.peer.into(),
            self.remote.into(),
            self.accepted.into(),
            self.window.into(),
            self.in_flight.into(),
            self.backlog.into(),
            self.credits.into(),
            self.credit_limit.into(),
            self.rtt_ns,
            self.rtt_min_ns,
            self.rate,
            high,
            low,
            port,
            endpoint,
        ]
    }
}
