//! The calls of a client process: of a client that blocks, or of an async one. Their histories must
//! not differ in kind.

use dunlin_core::Nanos;
use dunlin_hub::Hub;
use dunlin_kv::store::Delta;
use dunlin_kv::{Channels, Connections, FleetOptions, Options, ServerError, Store};
use dunlin_nexus::Nexus;
use dunlin_testkit::wait::block_on;
use dunlin_transport::auto::Auto;

pub(super) enum Calls {
    Blocking(Box<Connections<Auto>>),
    Async(Channels),
}

const OPTIONS: FleetOptions = FleetOptions {
    client: Options {
        deadline: Nanos::from_secs(10),
        ..Options::DEFAULT
    },
    ..FleetOptions::DEFAULT
};

/// Channels that several tasks can share.
pub(super) fn channels(servers: &[&str]) -> Channels {
    let hub = Hub::builder().listen("127.0.0.1:0").start().unwrap();
    Channels::open(&hub, servers.iter().copied(), OPTIONS).unwrap()
}

impl Calls {
    pub(super) fn blocking(servers: &[&str]) -> Self {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let builder = nexus.endpoint_builder::<Auto>();
        let builder = builder.config(|config| config.pool_bytes = 64 << 20);
        let kv = Connections::open(builder, servers.iter().copied(), OPTIONS);
        Self::Blocking(Box::new(kv.unwrap()))
    }

    pub(super) fn store(&mut self, store: &Store<'_>) -> Result<u64, ServerError> {
        match self {
            Self::Blocking(kv) => kv.store(store),
            Self::Async(kv) => block_on(kv.store(store)),
        }
    }

    pub(super) fn delete(&mut self, key: &[u8]) -> Result<(), ServerError> {
        match self {
            Self::Blocking(kv) => kv.delete(key, None),
            Self::Async(kv) => block_on(kv.delete(key, None)),
        }
    }

    pub(super) fn count(&mut self, key: &[u8]) -> Result<(u64, u64), ServerError> {
        match self {
            Self::Blocking(kv) => kv.count(key, Delta::Up(1)),
            Self::Async(kv) => block_on(kv.count(key, Delta::Up(1))),
        }
    }

    /// The value of an item, and its version.
    pub(super) fn get(&mut self, key: &[u8]) -> Result<Option<(Vec<u8>, u64)>, ServerError> {
        Ok(match self {
            Self::Blocking(kv) => kv
                .get(key)?
                .map(|found| (found.value().to_vec(), found.version())),
            Self::Async(kv) => block_on(kv.get(key))?.map(|item| (item.value, item.version)),
        })
    }
}
