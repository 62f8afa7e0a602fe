//! A channel's addresses and options, from the builder to the channel's thread.

use std::net::SocketAddr;
use std::time::Duration;

use dunlin_channel::{Backoff, Config, Pick, Retry};
use dunlin_core::Nanos;
use dunlin_wire::control::EndpointIndex;

use crate::error::ChannelError;
use crate::resolve::{Resolver, Sources};

/// Options that an operator tunes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelOptions {
    /// Endpoint threads of a hub.
    pub threads: usize,
    /// Calls of one channel that have not ended, or whose requests a server may still hold; a
    /// further one fails with [`ChannelError::Full`]. At least one.
    pub queue: usize,
    /// Time for which a call waits for a server to be ready; zero: it fails immediately.
    pub patience: Duration,
    /// The deadline of calls that have none of their own; `None`: there is no limit.
    pub deadline: Option<Duration>,
    /// Time after which a channel looks names up and asks the program's resolvers again.
    pub lookup: Duration,
    /// Endpoints of one server, from the first, to which a channel connects for calls that name no
    /// endpoint; at least one.
    pub endpoints_per_server: usize,
    /// The rule by which one of the ready servers gets a call.
    pub pick: Pick,
    /// Attempts at one call, including the first one and hedges: 1 to 3, and at least 2 with
    /// [`Self::hedge`].
    pub attempts: u8,
    /// The pause before a repeat.
    pub pause: Backoff,
    /// Time after which an idempotent call without an answer is sent to a second server as well;
    /// `None`: it is not.
    pub hedge: Option<Duration>,
}

impl Default for ChannelOptions {
    /// One thread, 4096 calls, 5 s of patience, no deadline, 30 s between look-ups, four endpoints,
    /// the less busy of two servers, three attempts with pauses of 1 to 100 ms, no hedges.
    fn default() -> Self {
        Self {
            threads: 1,
            queue: 4096,
            patience: Duration::from_secs(5),
            deadline: None,
            lookup: Duration::from_secs(30),
            endpoints_per_server: Config::DEFAULT.endpoints_per_server as usize,
            pick: Config::DEFAULT.pick,
            attempts: Config::DEFAULT.retry.attempts,
            pause: Config::DEFAULT.retry.pause,
            hedge: None,
        }
    }
}

/// A channel before it is opened.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) addresses: Vec<String>,
    /// The resolvers of the program; after [`Self::check`], also a resolver for each name.
    pub(crate) resolvers: Vec<Resolver>,
    pub(crate) config: Config,
    /// The only endpoint to which the channel connects for calls that name none.
    pub(crate) endpoint: Option<u16>,
    lookup: Nanos,
}

impl Plan {
    /// The options of a channel's machine.
    pub(crate) fn new(options: &ChannelOptions) -> Self {
        let endpoints = options.endpoints_per_server.max(1);
        let config = Config {
            endpoints_per_server: u32::try_from(endpoints).unwrap_or(u32::MAX),
            links_per_server: endpoints.max(Config::DEFAULT.links_per_server),
            patience: options.patience.into(),
            // Deadlines count from a call's first poll, so its caller sets them.
            deadline: None,
            calls: options.queue,
            pick: options.pick,
            retry: Retry {
                attempts: options.attempts,
                pause: options.pause,
            },
            hedge: options.hedge.map(Nanos::from),
            // A link is a trunk, which opens more sessions by itself.
            links_per_endpoint: 1,
            ..Config::DEFAULT
        };
        Self {
            addresses: Vec::new(),
            resolvers: Vec::new(),
            config,
            endpoint: None,
            lookup: options.lookup.into(),
        }
    }

    /// Checks the addresses, the endpoint and the options, and replaces the names among the
    /// addresses by resolvers.
    pub(crate) fn check(&mut self) -> Result<(), ChannelError> {
        if self.addresses.is_empty() && self.resolvers.is_empty() {
            return Err(ChannelError::NoAddress);
        }
        if self.endpoint == Some(EndpointIndex::ANY.0) {
            return Err(ChannelError::Endpoint);
        }
        self.check_options()?;
        let wrong = self.addresses.iter().find(|address| !is_address(address));
        if let Some(wrong) = wrong {
            return Err(ChannelError::Address(wrong.clone()));
        }
        let names = self.addresses.extract_if(.., |address| is_name(address));
        let names = names.map(|name| Resolver::of_name(&name));
        self.resolvers.extend(names);
        if !self.resolvers.is_empty() {
            self.config.lookup = Some(self.lookup);
        }
        Ok(())
    }

    /// Refuses options with which the channel could make no call, and those that contradict each
    /// other.
    fn check_options(&self) -> Result<(), ChannelError> {
        let Config { calls, hedge, .. } = self.config;
        match self.config.retry.attempts {
            _ if calls == 0 => Err(ChannelError::NoQueue),
            0 => Err(ChannelError::NoAttempt),
            _ if !self.config.retry.pause.grows() => Err(ChannelError::NoGrowth),
            1 if hedge.is_some() => Err(ChannelError::NeverHedges),
            _ => Ok(()),
        }
    }

    /// The sources of the channel's addresses.
    pub(crate) fn sources(self) -> Sources {
        Sources::new(self.addresses, self.resolvers)
    }
}

fn is_address(address: &str) -> bool {
    !is_name(address)
        || address.rsplit_once(':').is_some_and(|(host, port)| {
            let is_host = !host.is_empty() && !host.contains([':', '/']);
            is_host && port.parse::<u16>().is_ok()
        })
}

/// It must be looked up.
fn is_name(address: &str) -> bool {
    address.parse::<SocketAddr>().is_err()
}

#[cfg(test)]
mod tests;
