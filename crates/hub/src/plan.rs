//! A channel's addresses and options, from the builder to the channel's thread.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use dunlin_channel::Config;
use dunlin_core::Nanos;

use crate::error::ChannelError;

/// Names are looked up again after this time.
const LOOKUP: Nanos = Nanos::from_secs(30);

/// Options that an operator tunes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelOptions {
    /// Endpoint threads of a hub.
    pub threads: usize,
    /// Calls of one channel that have not ended, or whose requests a server may still hold; a
    /// further one fails with [`ChannelError::Full`].
    pub queue: usize,
    /// Time for which a call waits for a server to be ready; zero: it fails immediately.
    pub patience: Duration,
    /// The deadline of calls that have none of their own; `None`: there is no limit.
    pub deadline: Option<Duration>,
}

impl Default for ChannelOptions {
    /// One thread, 4096 calls, 5 s of patience, no deadline.
    fn default() -> Self {
        Self {
            threads: 1,
            queue: 4096,
            patience: Duration::from_secs(5),
            deadline: None,
        }
    }
}

/// A channel before it is opened.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) addresses: Vec<String>,
    pub(crate) config: Config,
}

impl Plan {
    /// The options of a channel's machine.
    pub(crate) fn new(options: &ChannelOptions) -> Self {
        let config = Config {
            patience: options.patience.into(),
            // Deadlines count from a call's first poll, so its caller sets them.
            deadline: None,
            calls: options.queue,
            ..Config::DEFAULT
        };
        Self {
            addresses: Vec::new(),
            config,
        }
    }

    /// Checks the addresses, and decides whether they must be looked up.
    pub(crate) fn check(&mut self) -> Result<(), ChannelError> {
        if self.addresses.is_empty() {
            return Err(ChannelError::NoAddress);
        }
        let wrong = self.addresses.iter().find(|address| !is_address(address));
        if let Some(wrong) = wrong {
            return Err(ChannelError::Address(wrong.clone()));
        }
        if self.addresses.iter().any(|address| is_name(address)) {
            self.config.lookup = Some(LOOKUP);
        }
        Ok(())
    }

    /// The addresses in the form that the machine gets. Looks up the names among them, which may
    /// take long. `None`: no name has an address.
    pub(crate) fn look_up(addresses: &[String]) -> Option<Vec<String>> {
        let found: Vec<String> = addresses
            .iter()
            .filter_map(|address| address.to_socket_addrs().ok())
            .flatten()
            .map(|address| address.to_string())
            .collect();
        (!found.is_empty()).then_some(found)
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
