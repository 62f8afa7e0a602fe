//! `raw`: the speed of this machine without the library. Many experiments use these figures as
//! baselines.

use std::time::Duration;

use crate::baselines::{self, clock, copy, exchange, ring, shm_rtt, udp_rate, udp_rtt};
use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::transport::Transport;
use crate::harness::work::SIZES;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "raw",
    about: "The machine itself: round trips, rates, copies, clocks",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: baselines::ROLES,
    usual_time: Duration::from_secs(30),
    section: Some(Section {
        title: "The machine itself",
        text: "The parts of the baselines: round trips of cache lines and datagrams, rates, \
               copies, and clocks, without the library.",
    }),
    ..Experiment::BASE
};

/// How many datagrams one write is cut into, in rows with segmentation.
const SEGMENTS: [u32; 2] = [8, 64];

/// Bytes of the messages of the rows that vary something other than the size.
const USUAL_SIZE: u16 = 32;

/// Two buffers of the first size fit into a second-level cache; two of the second size fit into no
/// cache.
const COPY_SIZES: [u32; 2] = [256 << 10, 8 << 20];

/// The baselines of shared memory and of UDP, if these transports are chosen, and the baselines
/// that use no transport.
pub(crate) fn cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    if transports.contains(&Transport::Shm) {
        cases.extend(SIZES.map(|size| {
            let size = u32::from(size);
            Case::new("raw", "shm", &params(size), shm_rtt::ShmRtt { size })
        }));
        let ring = &params(ring::CELL_SIZE);
        cases.push(Case::new("raw", "shm", ring, ring::Ring));
        cases.extend(SIZES.into_iter().flat_map(exchange::cases));
    }
    if transports.contains(&Transport::Udp) {
        cases.extend(SIZES.map(|size| udp_round_trip(size, false)));
        cases.push(udp_round_trip(USUAL_SIZE, true));
        cases.extend(SIZES.map(|size| udp_rate(size, 1)));
        let segmented = SEGMENTS.map(|segments| udp_rate(USUAL_SIZE, segments));
        cases.extend(segmented);
    }
    cases.extend(COPY_SIZES.map(|size| {
        let copy = copy::Copy { size, pairs: 1 };
        Case::new("raw", "none", &params(size), copy)
    }));
    cases.push(Case::new::<u32>("raw", "none", &[], clock::Clock));
    cases
}

const fn params(size: u32) -> [(&'static str, u32); 1] {
    [("size", size)]
}

fn udp_round_trip(size: u16, is_connected: bool) -> Case {
    let size = u32::from(size);
    let params = [("size", size), ("connected", 1)];
    let params = if is_connected {
        &params[..]
    } else {
        &params[..1]
    };
    Case::new("raw", "udp", params, udp_rtt::UdpRtt { size, is_connected })
}

/// The rate of the datagrams of RPCs of `size` bytes.
fn udp_rate(size: u16, segments: u32) -> Case {
    let size = udp_rate::datagram(size);
    let params = [("size", size.into()), ("segments", segments)];
    Case::new("raw", "udp", &params, udp_rate::UdpRate { segments, size })
}
