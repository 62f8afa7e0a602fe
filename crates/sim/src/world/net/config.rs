//! The configuration of a network: rates, delays, memory, and a thread's costs for moving frames.
//!
//! Used by `net` and its parts; plans, scenarios and tests set it.

use std::ops::Range;

use dunlin_core::Nanos;
use dunlin_core::transport::LANE_PACKET;

use super::fabric::Fabric;

/// The properties of the network. Times are in nanoseconds, rates in bytes per second.
#[derive(Clone, Debug)]
pub struct NetConfig {
    /// Rate of the cable of every host.
    pub line_rate: u64,
    /// Time that a bit needs from one end of a cable to the other.
    pub cable: Nanos,
    /// The most bytes that wait in a NIC.
    pub nic_bytes: u64,
    /// Whether frames wait in their endpoint's queue while the NIC has no room, and endpoints take
    /// turns, as with a real NIC. If not, the NIC drops such frames.
    pub nic_waits: bool,
    /// Whether hosts know the round trip of an empty network. If not, they measure it.
    pub tells_base_rtt: bool,
    /// The switches.
    pub fabric: Fabric,
    /// Bytes that a frame takes on a cable in addition to its own: headers of lower layers,
    /// checksum, gap.
    pub frame_overhead: u32,
    /// The most frames that a port holds for its endpoint.
    pub rx_queue: u32,
    /// The most data bytes in one packet.
    pub data_size: u32,
    /// Packets to the same port from one burst share a frame of up to this many bytes.
    pub frame_bytes: usize,
    /// The shortest and the longest time until a burst is read from memory.
    pub dma: (Nanos, Nanos),
    /// How endpoints hand packets over.
    pub hand_over: HandOver,
    /// Cost of moving frames, for the endpoint's thread.
    pub cpu: CpuCosts,
    /// Bytes of a frame that undetected damage may hit; see `faults::damage`.
    pub reach: Range<usize>,
    /// Describes a frame for the trace, because the network itself cannot read it.
    pub describe: fn(&[u8]) -> String,
}

/// How endpoints hand packets over to their NIC.
#[derive(Clone, Copy, Debug)]
pub struct HandOver {
    /// Longest packet that is staged, in bytes.
    pub longest_staged: usize,
    /// Whether staged packets that are alike are handed over as a row, without a list of them.
    pub rows: bool,
    /// Whether the data of every packet is copied when it is handed over, so that its msgbuf is
    /// needed no longer. If not, the NIC reads it later.
    pub at_once: bool,
}

/// Costs of an endpoint's thread.
#[derive(Clone, Copy, Debug)]
pub struct CpuCosts {
    /// For an iteration of its event loop.
    pub iteration: Nanos,
    /// For each packet or frame, sent or received.
    pub packet: Nanos,
    /// For 1024 bytes received or sent.
    pub kilobyte: Nanos,
}

impl Default for NetConfig {
    /// A rack at 10 Gb/s with 1 µs between any two hosts.
    fn default() -> Self {
        Self {
            line_rate: 1_250_000_000,
            cable: Nanos(500),
            nic_bytes: 1 << 20,
            nic_waits: false,
            tells_base_rtt: true,
            fabric: Fabric::default(),
            frame_overhead: 0,
            rx_queue: 1024,
            data_size: 1024,
            frame_bytes: 1472,
            dma: (Nanos(200), Nanos(2000)),
            hand_over: HandOver {
                longest_staged: LANE_PACKET,
                rows: true,
                at_once: false,
            },
            cpu: CpuCosts {
                iteration: Nanos(50),
                packet: Nanos(50),
                kilobyte: Nanos(100),
            },
            reach: 0..0,
            describe: |bytes| format!("{} bytes", bytes.len()),
        }
    }
}
