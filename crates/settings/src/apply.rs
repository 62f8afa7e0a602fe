//! How settings reach the builders of nexus, endpoints and sessions.
//!
//! Invariant: only options that are set are written. All others, such as the address of the
//! nexus, keep the value that the builder has.

use dunlin_core::{Config, ConfigError};
use dunlin_nexus::{ConnectOptions, EndpointBuilder, Idle, Nexus, NexusBuilder, NexusError, Open};
use dunlin_transport::auto::{Auto, Options as AutoOptions};
use dunlin_transport::shm::{Options as ShmOptions, Shm};
use dunlin_transport::udp::{Options as UdpOptions, Udp};

use crate::Settings;
use crate::error::{Problem, Source};
#[cfg(feature = "dpdk")]
use crate::options::DpdkOptions;
#[cfg(feature = "server")]
use crate::options::ServerOptions;
#[cfg(feature = "channel")]
use crate::options::{ChannelOptions, PickRule};
use crate::options::{KvOptions, NexusOptions, RemoteName, ReplicaOptions, SequencerOptions};
#[cfg(feature = "xdp")]
use crate::options::{XdpMode, XdpOptions};
use crate::setting::{FieldOf, Lens};

/// A transport whose options settings can change.
pub trait Configurable: Open {
    /// Writes the options that are set into the options of an endpoint.
    fn configure(settings: &Settings, options: &mut Self::Options);
}

impl Configurable for Shm {
    fn configure(settings: &Settings, options: &mut ShmOptions) {
        settings.fill(options, |field| match field {
            FieldOf::Shm(lens) => Some(lens),
            _ => None,
        });
    }
}

impl Configurable for Udp {
    fn configure(settings: &Settings, options: &mut UdpOptions) {
        settings.fill(options, |field| match field {
            FieldOf::Udp(lens) => Some(lens),
            _ => None,
        });
    }
}

impl Configurable for Auto {
    fn configure(settings: &Settings, options: &mut AutoOptions) {
        Shm::configure(settings, &mut options.shm);
        Udp::configure(settings, &mut options.udp);
        let mut own = RemoteName::default();
        settings.fill(&mut own, |field| match field {
            FieldOf::Auto(lens) => Some(lens),
            _ => None,
        });
        // A name that is set replaces the program's transport, even if it is `udp`.
        if settings.find("auto.remote").is_some() {
            options.remote = own.remote.and_then(|name| settings.remote(&name));
        }
    }
}

#[cfg(feature = "xdp")]
impl Configurable for dunlin_xdp::AutoXdp {
    fn configure(settings: &Settings, options: &mut dunlin_xdp::AutoOptions) {
        Shm::configure(settings, &mut options.shm);
        dunlin_xdp::Xdp::configure(settings, &mut options.xdp);
    }
}

#[cfg(feature = "xdp")]
impl Configurable for dunlin_xdp::Xdp {
    fn configure(settings: &Settings, options: &mut dunlin_xdp::Options) {
        let mut own = own_of(options);
        settings.fill(&mut own, |field| match field {
            FieldOf::Xdp(lens) => Some(lens),
            _ => None,
        });
        options.interface = own.interface.unwrap_or_default();
        options.queue = own.queue;
        options.queues = own.queues;
        options.vlan = own.vlan;
        options.mode = match own.mode {
            XdpMode::Generic => dunlin_xdp::Mode::Generic,
            XdpMode::Native => dunlin_xdp::Mode::Native,
        };
        options.umem_bytes = own.umem_bytes;
        options.endpoints = own.endpoints;
        options.zero_copy = own.zero_copy;
        options.partial_sums = own.partial_sums;
        if settings.find("xdp.setup").is_some() {
            options.setup = own.setup.map(std::path::PathBuf::from);
        }
        Udp::configure(settings, &mut options.udp);
    }
}

/// The options that an endpoint has so far, without the path of a socket, which need not be text.
#[cfg(feature = "xdp")]
fn own_of(options: &dunlin_xdp::Options) -> XdpOptions {
    XdpOptions {
        interface: named(&options.interface),
        queue: options.queue,
        queues: options.queues,
        vlan: options.vlan,
        mode: match options.mode {
            dunlin_xdp::Mode::Generic => XdpMode::Generic,
            dunlin_xdp::Mode::Native => XdpMode::Native,
        },
        umem_bytes: options.umem_bytes,
        endpoints: options.endpoints,
        zero_copy: options.zero_copy,
        partial_sums: options.partial_sums,
        setup: None,
    }
}

/// A name, unless it is empty.
#[cfg(any(feature = "xdp", feature = "dpdk"))]
fn named(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(feature = "dpdk")]
impl Configurable for dunlin_dpdk::AutoDpdk {
    fn configure(settings: &Settings, options: &mut dunlin_dpdk::AutoOptions) {
        Shm::configure(settings, &mut options.shm);
        dunlin_dpdk::Dpdk::configure(settings, &mut options.dpdk);
    }
}

#[cfg(feature = "dpdk")]
impl Configurable for dunlin_dpdk::Dpdk {
    fn configure(settings: &Settings, options: &mut dunlin_dpdk::Options) {
        let mut own = DpdkOptions {
            device: named(&options.device),
        };
        settings.fill(&mut own, |field| match field {
            FieldOf::Dpdk(lens) => Some(lens),
            _ => None,
        });
        options.device = own.device.unwrap_or_default();
        Udp::configure(settings, &mut options.udp);
    }
}

impl Settings {
    /// A nexus with these settings; later calls of the builder have priority.
    #[must_use]
    pub fn nexus(&self) -> NexusBuilder {
        let options = self.nexus_options();
        let builder = Nexus::builder()
            .any_port(options.any_port)
            .without_unix(options.without_unix)
            .hidden(options.hidden)
            .insight_tcp(options.insight_tcp)
            .allow_peers(options.allow_peers)
            .limits(options.plane)
            .worker_options(options.workers);
        match options.advertise {
            Some(ip) => builder.advertise(ip),
            None => builder,
        }
    }

    /// The address at which the nexus listens: `nexus.listen`.
    #[must_use]
    pub fn listen(&self) -> String {
        self.nexus_options().listen
    }

    /// Starts a nexus with these settings at `nexus.listen`.
    ///
    /// # Errors
    /// As for [`NexusBuilder::bind`].
    pub fn bind(&self) -> Result<Nexus, NexusError> {
        self.nexus().bind(self.listen())
    }

    /// An endpoint with these settings; later calls of the builder have priority.
    #[must_use]
    pub fn endpoint<T: Configurable>(&self, nexus: &Nexus) -> EndpointBuilder<T> {
        self.fill_builder(nexus.endpoint_builder())
    }

    fn fill_builder<T: Configurable>(&self, builder: EndpointBuilder<T>) -> EndpointBuilder<T> {
        let builder = builder
            .config(|config| self.fill_endpoint(config))
            .transport(|options| T::configure(self, options));
        match self.find("endpoint.idle") {
            None => builder,
            Some(_) => builder.idle(self.idle()),
        }
    }

    /// A hub with these settings: its nexus and endpoints have the options `nexus.*` and
    /// `endpoint.*`, and its channels `channel.*`. It listens at `channel.listen`. Later calls of
    /// the builder have priority.
    #[cfg(feature = "channel")]
    pub fn hub(&self) -> dunlin_hub::HubBuilder {
        let mut options = ChannelOptions::default();
        self.fill(&mut options, |field| match field {
            FieldOf::Channel(lens) => Some(lens),
            _ => None,
        });
        let settings = self.clone();
        dunlin_hub::Hub::builder()
            .listen(options.listen)
            .nexus(self.nexus())
            .endpoint(move |builder| settings.fill_builder(builder))
            .options(dunlin_hub::ChannelOptions {
                threads: options.threads,
                queue: options.queue,
                patience: options.patience,
                deadline: options.deadline,
                lookup: options.lookup,
                endpoints_per_server: options.endpoints_per_server,
                pick: match options.pick {
                    PickRule::RoundRobin => dunlin_hub::Pick::RoundRobin,
                    PickRule::LeastOfTwo => dunlin_hub::Pick::LeastOfTwo,
                    PickRule::Hash => dunlin_hub::Pick::Hash,
                },
                attempts: options.attempts,
                pause: dunlin_hub::Backoff {
                    least: options.pause_least.into(),
                    first: options.pause_first.into(),
                    factor: options.pause_factor,
                    most: options.pause_most.into(),
                },
                hedge: options.hedge,
            })
    }

    /// A server with these settings: its nexus and endpoints have the options `nexus.*` and
    /// `endpoint.*`. Pass its address, [`Self::listen`], to `serve` or `start`. Later calls of the
    /// builder have priority.
    #[cfg(feature = "server")]
    pub fn server(&self) -> dunlin_server::ServerBuilder {
        let (options, settings) = (self.server_options(), self.clone());
        let bytes = options.max_message.map(|bytes| bytes as usize);
        let calls = options.max_calls.map(|calls| calls as usize);
        let limits = dunlin_server::Limits::default().max_message(bytes);
        let limits = limits.max_calls(calls).timeout(options.timeout);
        dunlin_server::Server::builder()
            .nexus(self.nexus())
            .any_port(self.nexus_options().any_port)
            .endpoint(move |builder| settings.fill_builder(builder))
            .threads(options.threads)
            .drain_delay(options.drain_delay)
            .drain_timeout(options.drain_timeout)
            .health(options.health)
            .health_stuck(options.health_stuck)
            .limits(limits)
    }

    /// The time after which a thread counts as stuck, for the health of a program that runs its
    /// threads itself: `server.health_stuck`; `None` if `server.health` is off.
    #[cfg(feature = "server")]
    #[must_use]
    pub fn health(&self) -> Option<std::time::Duration> {
        let options = self.server_options();
        options.health.then_some(options.health_stuck)
    }

    #[cfg(feature = "server")]
    fn server_options(&self) -> ServerOptions {
        let mut options = ServerOptions::default();
        self.fill(&mut options, |field| match field {
            FieldOf::Server(lens) => Some(lens),
            _ => None,
        });
        options
    }

    /// Options of a server of the key-value service: `kv.*`.
    #[must_use]
    pub fn kv(&self) -> KvOptions {
        let mut options = KvOptions::default();
        self.fill(&mut options, |field| match field {
            FieldOf::Kv(lens) => Some(lens),
            _ => None,
        });
        options
    }

    /// Options of a sequencer: `sequencer.*`.
    #[must_use]
    pub fn sequencer(&self) -> SequencerOptions {
        let mut options = SequencerOptions::default();
        self.fill(&mut options, |field| match field {
            FieldOf::Sequencer(lens) => Some(lens),
            _ => None,
        });
        options
    }

    /// Options of a replica: `replica.*`.
    #[must_use]
    pub fn replica(&self) -> ReplicaOptions {
        let mut options = ReplicaOptions::default();
        self.fill(&mut options, |field| match field {
            FieldOf::Replica(lens) => Some(lens),
            _ => None,
        });
        options
    }

    /// Options for new sessions: `session.*`.
    #[must_use]
    pub fn connect_options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        self.fill(&mut options, |field| match field {
            FieldOf::Session(lens) => Some(lens),
            _ => None,
        });
        options
    }

    /// The behaviour of a thread while its endpoint has nothing to do: `endpoint.idle`.
    #[must_use]
    pub fn idle(&self) -> Idle {
        let mut idle = Idle::default();
        self.fill(&mut idle, |field| match field {
            FieldOf::Idle(lens) => Some(lens),
            _ => None,
        });
        idle
    }

    fn nexus_options(&self) -> NexusOptions {
        let mut options = NexusOptions::default();
        self.fill(&mut options, |field| match field {
            FieldOf::Nexus(lens) => Some(lens),
            _ => None,
        });
        options
    }

    fn fill_endpoint(&self, config: &mut Config) {
        self.fill(config, |field| match field {
            FieldOf::Endpoint(lens) => Some(lens),
            _ => None,
        });
    }

    fn fill<S>(&self, options: &mut S, pick: impl Fn(FieldOf) -> Option<Lens<S>>) {
        for set in &self.set {
            if let Some(lens) = pick(set.setting.field) {
                let written = lens(options).write(&set.value);
                // A test makes sure that no row's range exceeds its field.
                debug_assert!(written.is_ok(), "{set:?}");
            }
        }
    }

    /// The contradiction between options of an endpoint, if they have one.
    pub(super) fn check_endpoint(&self) -> Option<Problem> {
        let mut config = Config {
            failure_timeout: self.nexus_options().plane.heartbeat.timeout,
            ..Config::default()
        };
        self.fill_endpoint(&mut config);
        let error = config.check().err()?;
        let involved: &[&str] = match error {
            ConfigError::Wheel { .. } => &["endpoint.wheel_slot", "endpoint.wheel_horizon"],
            // A pair in the table reports this contradiction.
            ConfigError::Budget { .. } => return None,
            ConfigError::ResponseHold { .. } => &[
                "endpoint.response_hold",
                "endpoint.rto_floor",
                "endpoint.rto_initial",
                "endpoint.probe_max",
                "endpoint.failure_timeout",
                "nexus.heartbeat.timeout",
            ],
            _ => &[],
        };
        let mut set = involved.iter().filter_map(|name| self.find(name));
        let source = set.next().map_or(Source::Default, |set| set.source.clone());
        let also: Vec<String> = set.map(|set| self.place(set.setting)).collect();
        let also = match also.is_empty() {
            true => String::new(),
            false => format!("; together with {}", also.join(", ")),
        };
        Some(Problem {
            source,
            what: format!("{error}{also}"),
        })
    }
}
