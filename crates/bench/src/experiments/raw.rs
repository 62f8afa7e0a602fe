//! `raw`: the speed of this machine without the library. Many experiments use these figures as
//! baselines.

use std::time::Duration;

use crate::baselines::{self, clock, copy, exchange, ring, shm_rtt, udp_rate, udp_rtt};
use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::transport::Transport;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "raw",
    about: "The machine itself: round trips, rates, copies, clocks",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: baselines::ROLES,
    usual_time: Duration::from_secs(20),
    section: Some(Section {
        title: "The machine itself",
        text: "The parts of the baselines: round trips of cache lines and datagrams, rates, \
               copies, and clocks, without the library.",
    }),
    ..Experiment::BASE
};

/// Bytes of the packets whose round trips are measured.
const RTT_SIZES: [u32; 5] = [8, 32, 64, 256, 1024];

/// How many datagrams one write is cut into; 1: no segmentation.
const SEGMENTS: [u32; 3] = [1, 8, 64];

/// Two buffers of the first size fit into a second-level cache; two of the second size fit into no
/// cache.
const COPY_SIZES: [u32; 2] = [256 << 10, 8 << 20];

/// The baselines of shared memory and of UDP, if these transports are chosen, and the baselines
/// that use no transport.
pub(crate) fn cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    let params = |size: u32| [("size", u64::from(size))];
    if transports.contains(&Transport::Shm) {
        for size in RTT_SIZES {
            cases.push(Case::new(
                "raw",
                "shm",
                &params(size),
                shm_rtt::ShmRtt { size },
            ));
        }
        cases.push(Case::new(
            "raw",
            "shm",
            &params(ring::CELL_SIZE),
            ring::Ring,
        ));
        cases.extend(exchange::cases());
    }
    if transports.contains(&Transport::Udp) {
        for size in RTT_SIZES {
            cases.push(Case::new(
                "raw",
                "udp",
                &params(size),
                udp_rtt::UdpRtt {
                    size,
                    is_connected: false,
                },
            ));
        }
        let size = 32;
        cases.push(Case::new(
            "raw",
            "udp",
            &[("size", u64::from(size)), ("connected", 1)],
            udp_rtt::UdpRtt {
                size,
                is_connected: true,
            },
        ));
        for segments in SEGMENTS {
            let params = [
                ("size", u64::from(udp_rate::SIZE)),
                ("segments", segments.into()),
            ];
            cases.push(Case::new(
                "raw",
                "udp",
                &params,
                udp_rate::UdpRate {
                    segments,
                    size: udp_rate::SIZE,
                },
            ));
        }
    }
    for size in COPY_SIZES {
        cases.push(Case::new(
            "raw",
            "none",
            &params(size),
            copy::Copy { size, pairs: 1 },
        ));
    }
    cases.push(Case::new::<u32>("raw", "none", &[], clock::Clock));
    cases
}
