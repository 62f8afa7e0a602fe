//! The options of a nexus as one struct with fields; the nexus's builder has no such struct.

use std::net::IpAddr;

use dunlin_control::PlaneConfig;
use dunlin_nexus::{DEFAULT_PORT, InsightTcp, WorkerOptions};
use dunlin_transport::networks::Networks;

/// Options of a [`NexusBuilder`](dunlin_nexus::NexusBuilder), and the address to listen at.
#[derive(Clone, Debug)]
pub(super) struct NexusOptions {
    pub(super) listen: String,
    pub(super) any_port: bool,
    pub(super) without_unix: bool,
    pub(super) hidden: bool,
    pub(super) insight_tcp: InsightTcp,
    pub(super) advertise: Option<IpAddr>,
    pub(super) allow_peers: Networks,
    pub(super) plane: PlaneConfig,
    pub(super) workers: WorkerOptions,
}

impl Default for NexusOptions {
    fn default() -> Self {
        Self {
            listen: format!("127.0.0.1:{DEFAULT_PORT}"),
            any_port: false,
            without_unix: false,
            hidden: false,
            insight_tcp: InsightTcp::default(),
            advertise: None,
            allow_peers: Networks::default(),
            plane: PlaneConfig::default(),
            workers: WorkerOptions::default(),
        }
    }
}
