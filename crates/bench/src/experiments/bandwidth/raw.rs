//! Baselines for the experiment `bandwidth`, in its unit: copies of the same bytes in memory, full
//! datagrams, and bare packets of AF_XDP or DPDK.

use std::time::Duration;

use super::{METRICS, Messages};
use crate::baselines::copy::Copy;
use crate::baselines::frames::bulk::FrameBulk;
use crate::baselines::udp_rate::UdpRate;
use crate::harness::link::Kind;
use crate::harness::probe::{Measurement, Metric, Probe};
use crate::harness::subject::JUMBO;

/// Bytes of a datagram: as much data as a packet of the library has over UDP.
const DATAGRAM: u16 = 1440;

/// Bytes of data in a packet of the library over a device whose MTU is 1500: the MTU less the
/// library's longest header and the headers of IPv4 and UDP.
const IN_MTU: u32 = 1500 - 20 - 8 - 56;

/// Datagrams in one write to the kernel: as many as fit into 64 KiB.
const SEGMENTS: u32 = 45;

/// Copies of messages, with one buffer for each message in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory(pub(super) Messages);

/// Bare packets, each with as much data as a packet of the library. They are read from, and written
/// to, as much memory as these messages have.
pub(super) fn packets(kind: Kind, messages: Messages) -> FrameBulk {
    let data = match kind {
        Kind::Xdp(_) | Kind::Kernel => JUMBO,
        Kind::Dpdk => IN_MTU,
    };
    FrameBulk {
        data,
        buffer: u64::from(messages.size) * u64::from(messages.inflight),
        kind,
    }
}

/// Full datagrams one way, with segmentation by the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagrams;

impl Probe for Memory {
    fn name(&self) -> &'static str {
        "memcpy"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let Messages { size, inflight } = self.0;
        let pairs = inflight;
        let mut copied = Copy { size, pairs }.measure(span)?;
        // Gigabytes become gigabits.
        copied.values[0] *= 8.0;
        Ok(copied)
    }
}

impl Probe for Datagrams {
    fn name(&self) -> &'static str {
        "raw UDP datagrams"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let mut rate = UdpRate {
            segments: SEGMENTS,
            size: DATAGRAM,
        }
        .measure(span)?;
        rate.values[0] *= f64::from(DATAGRAM) * 8.0 / 1e9;
        Ok(rate)
    }
}
