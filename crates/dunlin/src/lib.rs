//! Dunlin: microsecond RPCs for datacenters. The same program runs over shared memory on one
//! host, over kernel UDP anywhere, and in a simulator.
//!
//! One [`Nexus`] per process listens for other processes. Each thread that serves or calls has an
//! endpoint, an [`Rpc`]: handlers are registered on it by request type, calls are issued on
//! sessions, and all work happens in [`Rpc::run_once`].
//!
//! ```
//! use dunlin::{Done, Nexus, ReqType, Rpc, Shm, Tag};
//!
//! const REVERSE: ReqType = ReqType(1);
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let nexus = Nexus::bind("127.0.0.1:0")?;
//! let address = nexus.address();
//! let server_nexus = nexus.clone();
//! let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
//! let stopped = stop.clone();
//! let server = std::thread::spawn(move || {
//!     let mut rpc: Rpc<Shm, ()> = server_nexus.endpoint_builder().index(7).build(()).unwrap();
//!     rpc.on(REVERSE, |(), request, cx| {
//!         let answer: Vec<u8> = request.data().iter().rev().copied().collect();
//!         request.reply(cx, answer.len(), |out| out.copy_from_slice(&answer));
//!     });
//!     rpc.run_until(|_| stopped.load(std::sync::atomic::Ordering::Relaxed));
//! });
//!
//! let mut rpc: Rpc<Shm, Option<Done>> = nexus.endpoint(None)?;
//! rpc.on_completion(|app, done, _| *app = Some(done));
//! let options = dunlin::ConnectOptions { endpoint: Some(7), ..Default::default() };
//! let session = rpc.connect_with(address, &options)?;
//! let mut request = rpc.buf(5)?;
//! request.data_mut().copy_from_slice(b"hello");
//! let response = rpc.buf(64)?;
//! rpc.call(session, REVERSE, request, response, Tag(0))?;
//! rpc.run_until(|rpc| rpc.app().is_some());
//! let done = rpc.app_mut().take().unwrap();
//! assert!(done.result.is_ok());
//! assert_eq!(done.response.data(), b"olleh");
//! stop.store(true, std::sync::atomic::Ordering::Relaxed);
//! server.join().unwrap();
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

#[cfg(doctest)]
mod book;

pub use dunlin_local::{
    Call, Caller, Events, Failed, Local, NotConnected, OwnedRequest, Reply, ServiceRequest, Sleep,
    Tasks,
};

#[cfg(feature = "channel")]
pub use dunlin_hub::{
    Answer, Channel, ChannelBuilder, ChannelError, ChannelOptions, ChannelState, Hub, HubBuilder,
    HubError, Outgoing, Permit, TypedCall, Watch,
};

#[cfg(feature = "server")]
pub use dunlin_server::{
    Drained, HealthEndpoint, HealthError, HealthState, LimitedRpc, Limits, Running, ServeError,
    Server, ServerBuilder, ServerThread, ask_health,
};
#[cfg(all(feature = "server", feature = "tower"))]
pub use dunlin_server::{Handlers, Handling, Inbound, serve_layered};

#[cfg(feature = "reflect")]
pub use dunlin_server::{ReflectError, Reflector};

#[cfg(feature = "send")]
pub use dunlin_offload::{Offload, OffloadedRequest, Spawn};

/// Every option that an operator tunes, from a file, from the environment, and from the program.
#[cfg(feature = "settings")]
pub use dunlin_settings as settings;
#[cfg(feature = "settings")]
pub use dunlin_settings::Settings;

/// The key-value service: its protocol, handlers and client.
#[cfg(feature = "kv")]
pub use dunlin_kv as kv;
/// The replicated key-value store: replicas, and their client.
#[cfg(feature = "replica")]
pub use dunlin_replica as replica;

/// The ordered index: its protocol, handlers and clients.
#[cfg(feature = "index")]
pub use dunlin_index as index;

/// The sequencer: its protocol, server and clients.
#[cfg(feature = "sequencer")]
pub use dunlin_sequencer as sequencer;

/// Typed services: the attribute and the types that its code uses, codecs, and errors.
pub use dunlin_service as service;
pub use dunlin_service::Error as AsyncError;
#[cfg(feature = "service")]
pub use dunlin_service::service;

pub use dunlin_control::{
    AddError, ConnectFailure, FailedConnect, HeartbeatConfig, PlaneConfig, PlaneCounters,
};
pub use dunlin_core::config::MAX_BATCH;
pub use dunlin_core::{
    BackgroundRequest, Batch, BatchFn, BatchItem, Bypasses, BytesPerSec, CallError, CallErrorKind,
    CallId, CallOptions, Clock, CloseReason, CompletionFn, Config, ConfigError, CongestionControl,
    Counters, Cx, DeferredRequest, DispatchFn, Done, Drops, GivenUpFn, HandleError, Nanos,
    OpenError, Peer, Progress, Request, Rng, RpcError, Sample, Scheme, Session, SessionEvent,
    SessionFn, SessionInfo, SessionOptions, Tag, Ticket, TimerFn, TimerToken,
};
#[cfg(feature = "dpdk")]
pub use dunlin_dpdk::{AutoDpdk, Dpdk};
pub use dunlin_msgbuf::{AllocError, MsgBuf, TooLong};
#[doc(inline)]
pub use dunlin_nexus::Rpc;
pub use dunlin_nexus::{
    ConnectError, ConnectOptions, DEFAULT_PORT, EndpointBuilder, EndpointError, FailedFn, Idle,
    InsightTcp, Nexus, NexusBuilder, NexusError, Open, Pulse, Reach, Resolve, TscClock,
    WorkerOptions,
};
pub use dunlin_transport::auto::Auto;
pub use dunlin_transport::shm::Shm;
pub use dunlin_transport::udp::Udp;
pub use dunlin_wire::control::RefuseCode;
pub use dunlin_wire::{ErrorCode, Ran, ReqType};
#[cfg(feature = "xdp")]
pub use dunlin_xdp::{AutoXdp, Xdp};

/// Parts of the options and of the states of a [`Channel`].
#[cfg(feature = "channel")]
pub mod channel {
    pub use dunlin_hub::{
        AddressError, AddressState, Backoff, Counters, Notice, Pick, Reasons, Retry, State, key_of,
    };
    #[cfg(feature = "tower")]
    pub use dunlin_hub::{Through, ThroughCall, ThroughError};
}

/// Spans of calls and requests, and their connection to a library that exports them.
#[cfg(feature = "tracing")]
pub mod spans {
    pub use dunlin_service::TraceParent;
    pub use dunlin_service::spans::{Traces, TracesSet, set_traces};
}

/// Options of the transports.
pub mod transport {
    #[cfg(feature = "dpdk")]
    pub use dunlin_dpdk::{
        AutoOptions as AutoDpdkOptions, Options as DpdkOptions, Site as DpdkSite,
        library as dpdk_library,
    };
    pub use dunlin_transport::auto::{
        OpenRemote, OpenedRemote, Options as AutoOptions, RemoteOptions,
    };
    pub use dunlin_transport::counters::Counters;
    pub use dunlin_transport::networks::{Networks, NoNetwork};
    pub use dunlin_transport::shm::{OpenError as ShmOpenError, Options as ShmOptions};
    pub use dunlin_transport::udp::{Ecn, Options as UdpOptions};
    #[cfg(feature = "xdp")]
    pub use dunlin_xdp::{
        AutoOptions as AutoXdpOptions, Mode as XdpMode, Options as XdpOptions, setup as xdp_setup,
    };
}
