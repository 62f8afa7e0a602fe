//! The messages between the processes of a run and the process that started them.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A server, as its attackers know it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    /// Its control port.
    pub(crate) address: SocketAddr,
    /// Its data ports.
    pub(crate) ports: Vec<u16>,
}

/// A message of a server.
#[derive(PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// The server listens.
    Ready(Target),
    /// Bytes of a request changed while a handler read them.
    Changed,
    /// A request reached the handler twice.
    Twice(u64),
    /// The answer to an [`Ask`].
    Counts(Counts),
}

/// Packets at a server since its start, from attackers and others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Packets that its endpoint read.
    pub(crate) read: u64,
    /// Of these, packets that it dropped, for whatever reason.
    pub(crate) refused: u64,
    /// Packets that the kernel dropped because its socket was full.
    pub(crate) lost: u64,
}

impl Counts {
    /// The packets since an earlier moment.
    pub(crate) const fn since(self, before: Self) -> Self {
        Self {
            read: self.read - before.read,
            refused: self.refused - before.refused,
            lost: self.lost.saturating_sub(before.lost),
        }
    }
}

/// The parameters of an attacker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) target: Target,
    pub(crate) seed: u64,
    /// It ends by itself after this time.
    pub(crate) span: Duration,
    /// Packets per second of a blaster, and connections per second of a flood.
    pub(crate) rates: Rates,
}

/// The pace at which the client's latency is judged: 1.7 × 10⁸ packets and 1.8 × 10⁶ connections in
/// two hours.
pub(crate) const STEADY: Rates = Rates {
    packets: 24_000,
    connections: 250,
};

/// The pace of the attackers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Rates {
    pub(crate) packets: u32,
    pub(crate) connections: u32,
}

/// The parameters of the server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Serve {
    pub(crate) address: String,
    /// Its thread polls for packets and never sleeps.
    pub(crate) spins: bool,
}

/// The work that an attacker has done, reported at its end.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Deeds {
    /// Packets that were sent to the data ports.
    pub(crate) packets: u64,
    /// Connections to the control port.
    pub(crate) connections: u64,
    /// Of these, connections that the server answered or was first to close.
    pub(crate) answered: u64,
    /// Bytes of messages to the control port.
    pub(crate) message_bytes: u64,
    /// Words written into shared memory.
    pub(crate) words: u64,
    /// Processes killed, and stopped.
    pub(crate) kills: u64,
    pub(crate) stops: u64,
    /// Faults of the server that the attacker's honest processes noticed.
    pub(crate) complaints: Vec<String>,
}

impl Deeds {
    /// Adds the work of another attacker.
    pub(crate) fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.connections += other.connections;
        self.answered += other.answered;
        self.message_bytes += other.message_bytes;
        self.words += other.words;
        self.kills += other.kills;
        self.stops += other.stops;
        self.complaints.extend(other.complaints);
    }
}

/// Asks the healthy client for its observations since the last `Ask`, a server for its counts, and
/// a watch for its longest nap.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ask;

/// The observations of the healthy client.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Stats {
    /// Calls that ended with the right answer.
    pub(crate) calls: u64,
    /// Answers that were wrong.
    pub(crate) wrong: u64,
    /// Calls that ended with an error.
    pub(crate) failed: u64,
    /// Sessions that were lost.
    pub(crate) lost: u64,
    /// New sessions that could not be made.
    pub(crate) refused: u64,
    /// How calls failed and sessions ended.
    pub(crate) reasons: Vec<String>,
    /// Latencies in nanoseconds, and how often each was measured.
    pub(crate) latencies: Vec<(u64, u64)>,
}
