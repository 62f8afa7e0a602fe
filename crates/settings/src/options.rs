//! The options of a nexus as one struct with fields, because the nexus's builder has no such
//! struct. The options of channels, servers, key-value servers, sequencers, replicas and `xdp` are
//! here as well, because their crates belong to features that a program may lack, and a file may
//! set these options even then.

use std::net::IpAddr;
use std::time::Duration;

use dunlin_control::PlaneConfig;
use dunlin_nexus::{DEFAULT_PORT, InsightTcp, WorkerOptions};
use dunlin_transport::networks::Networks;

/// Options of a [`NexusBuilder`](dunlin_nexus::NexusBuilder), and the address where it listens.
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

/// The transport of an `auto` endpoint for peers of other hosts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RemoteName {
    /// `None`: UDP.
    pub(super) remote: Option<String>,
}

/// Options of a [`HubBuilder`](dunlin_hub::HubBuilder) and its channels.
#[derive(Clone, Debug)]
pub(super) struct ChannelOptions {
    pub(super) listen: String,
    pub(super) threads: usize,
    pub(super) queue: usize,
    pub(super) patience: Duration,
    pub(super) deadline: Option<Duration>,
    pub(super) lookup: Duration,
    pub(super) endpoints_per_server: usize,
    pub(super) pick: PickRule,
    pub(super) attempts: u8,
    pub(super) pause_least: Duration,
    pub(super) pause_first: Duration,
    pub(super) pause_factor: u32,
    pub(super) pause_most: Duration,
    pub(super) hedge: Option<Duration>,
}

/// The rule by which a channel picks one of the ready servers for a call, as `dunlin_channel::Pick`
/// has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PickRule {
    RoundRobin,
    LeastOfTwo,
    Hash,
}

/// Options of a [`ServerBuilder`](dunlin_server::ServerBuilder).
#[derive(Clone, Debug)]
pub(super) struct ServerOptions {
    pub(super) threads: usize,
    pub(super) drain_delay: Duration,
    pub(super) drain_timeout: Duration,
    pub(super) health: bool,
    pub(super) health_stuck: Duration,
    pub(super) max_message: Option<u32>,
    pub(super) max_calls: Option<u32>,
    pub(super) timeout: Option<Duration>,
}

/// Options of a server of the key-value service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KvOptions {
    /// Bytes for all items, taken at the start.
    pub memory: u64,
    /// The behaviour of a table whose memory is used up.
    pub mode: KvMode,
    /// Threads, each with a partition of the keys.
    pub threads: u16,
    /// The address at which memcached's clients connect.
    pub memcached: Option<String>,
    /// The path of a UNIX socket at which memcached's clients connect.
    pub memcached_socket: Option<String>,
    /// The most of memcached's clients at a time.
    pub max_connections: u64,
    /// A file with the names and passwords of memcached's clients. Without it, they need none.
    pub auth_file: Option<String>,
    /// Whether memcached's clients may flush the table.
    pub flush_all: bool,
}

/// The behaviour of a key-value table whose memory is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KvMode {
    /// Its oldest items leave.
    Cache,
    /// Writes fail.
    Store,
}

/// Options of a sequencer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SequencerOptions {
    /// Numbers of a sequence that are reserved on the disk together.
    pub block: u64,
    /// How long a server may give numbers after it last saw that no other server has taken over.
    pub lease: Duration,
}

/// Options of a replica, except options that only its command has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicaOptions {
    /// The shortest time without a leader after which a replica asks for votes. Heartbeats come
    /// five times as often.
    pub election: Duration,
    /// The most bytes of entries in one message to a follower.
    pub append_bytes: u64,
    /// The most messages with entries that a follower has not answered.
    pub appends: usize,
    /// The most operations of clients in flight at a leader.
    pub operations: usize,
    /// Applied entries that the log keeps.
    pub kept_entries: u64,
    /// Bytes of entries that the log keeps.
    pub kept_bytes: u64,
    /// Whether a leader answers gets without a majority while no other replica can lead.
    pub lease_reads: bool,
    /// Bytes of a snapshot, or of the items for the disk, that a replica makes before it looks for
    /// other work.
    pub slice_bytes: usize,
    /// Bytes of a part of a snapshot.
    pub piece_bytes: usize,
    /// The first pause after a session with another replica could not be made.
    pub least_pause: Duration,
    /// The longest pause.
    pub most_pause: Duration,
}

/// Options of the transport `xdp`, except the options of its socket, which are `udp.*`.
#[derive(Clone, Debug)]
pub(super) struct XdpOptions {
    pub(super) interface: Option<String>,
    pub(super) queue: u32,
    pub(super) queues: u32,
    pub(super) vlan: Option<u16>,
    pub(super) mode: XdpMode,
    pub(super) umem_bytes: u64,
    pub(super) endpoints: u32,
    pub(super) zero_copy: bool,
    pub(super) partial_sums: bool,
    pub(super) setup: Option<String>,
}

/// Options of the transport `dpdk`, except the options of its datagrams, which are `udp.*`.
#[derive(Clone, Debug, Default)]
pub(super) struct DpdkOptions {
    pub(super) device: Option<String>,
}

/// Where the kernel runs the program that steers packets to an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum XdpMode {
    Generic,
    Native,
}

impl Default for XdpOptions {
    fn default() -> Self {
        Self {
            interface: None,
            queue: 0,
            queues: 1,
            vlan: None,
            mode: XdpMode::Generic,
            umem_bytes: 64 << 20,
            endpoints: 4,
            zero_copy: false,
            partial_sums: true,
            setup: None,
        }
    }
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            listen: "0.0.0.0:0".to_owned(),
            threads: 1,
            queue: 4096,
            patience: Duration::from_secs(5),
            deadline: None,
            lookup: Duration::from_secs(30),
            endpoints_per_server: 4,
            pick: PickRule::LeastOfTwo,
            attempts: 3,
            pause_least: Duration::from_millis(1),
            pause_first: Duration::from_millis(10),
            pause_factor: 10,
            pause_most: Duration::from_millis(100),
            hedge: None,
        }
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            drain_delay: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
            health: true,
            health_stuck: Duration::from_secs(1),
            max_message: None,
            max_calls: None,
            timeout: None,
        }
    }
}

impl Default for KvOptions {
    fn default() -> Self {
        Self {
            memory: 1 << 30,
            mode: KvMode::Cache,
            threads: 1,
            memcached: None,
            memcached_socket: None,
            max_connections: 1024,
            auth_file: None,
            flush_all: true,
        }
    }
}

impl Default for SequencerOptions {
    fn default() -> Self {
        Self {
            block: 1_000_000,
            lease: Duration::from_secs(1),
        }
    }
}

impl Default for ReplicaOptions {
    fn default() -> Self {
        Self {
            election: Duration::from_millis(75),
            append_bytes: 256 << 10,
            appends: 8,
            operations: 4096,
            kept_entries: 100_000,
            kept_bytes: 64 << 20,
            lease_reads: false,
            slice_bytes: 256 << 10,
            piece_bytes: 256 << 10,
            least_pause: Duration::from_millis(1),
            most_pause: Duration::from_millis(200),
        }
    }
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
