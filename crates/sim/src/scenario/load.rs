//! A load: its clients, their partners, its times and its messages; and the checks of these
//! settings.
//!
//! Invariant: faults name keys of scenario files. Called by `scenario` and its `check`.

use std::ops::Range;

use dunlin_core::{Config, ConfigError, Nanos, SessionOptions};

/// Clients that keep servers busy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// The load's name in the report.
    pub name: String,
    /// Hosts with clients.
    pub clients: Range<usize>,
    /// Hosts with servers. An endpoint on a host with clients and servers is both, and does not
    /// call itself.
    pub servers: Range<usize>,
    /// Number of endpoints on each of these hosts; each has its own thread.
    pub endpoints: usize,
    /// Partners of a client.
    pub partners: Partners,
    /// Options of its sessions.
    pub session: SessionOptions,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response_bytes: u32,
    /// The most requests that a client has in flight.
    pub in_flight: u32,
    /// When a client's requests begin.
    pub arrivals: Arrivals,
    /// Earliest time at which a client begins.
    pub start: Nanos,
    /// The clients' starts are spread over this time.
    pub spread: Nanos,
    /// From this time on clients begin no requests, not even those that have arrived and wait.
    /// [`Nanos::MAX`]: they never stop.
    pub stop: Nanos,
}

/// The partners of a client of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Partners {
    /// Any server, drawn for each request; the client has a session to each of them.
    #[default]
    Drawn,
    /// One server, drawn before the run. With as many servers as clients, each client has its own.
    Fixed,
}

/// When a client's requests begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrivals {
    /// A closed loop: when all requests of a batch have ended, the next batch begins after an
    /// exponentially distributed pause.
    Closed {
        /// Requests that begin together.
        batch: u32,
        /// The mean of the pauses.
        think: Nanos,
    },
    /// An open loop: requests arrive as a Poisson process, whether or not others have ended. A
    /// request that finds `in_flight` others in flight waits; the wait is part of its latency.
    Open {
        /// The mean of the times between two arrivals.
        gap: Nanos,
    },
}

impl Default for Arrivals {
    /// A load in which each client sends one request after another.
    fn default() -> Self {
        Self::Closed {
            batch: 1,
            think: Nanos::ZERO,
        }
    }
}

/// The most endpoints. Endpoints and frames have 32-bit numbers.
const MOST_ENDPOINTS: usize = 1 << 20;
/// The most arrivals of an open loop, over all clients: more than any run can complete.
const MOST_ARRIVALS: u128 = 1 << 32;

/// A key of a load, and its fault.
type Fault = (&'static str, String);

impl Load {
    /// The first key that does not fit a scenario with `hosts` hosts, these options and this end.
    pub(super) fn fault(&self, hosts: usize, endpoint: &Config, end: Nanos) -> Option<Fault> {
        self.fault_of_hosts(hosts)
            .or_else(|| self.fault_of_session(endpoint))
            .or_else(|| self.fault_of_messages(endpoint))
            .or_else(|| self.fault_of_times(end))
    }

    fn fault_of_hosts(&self, all: usize) -> Option<Fault> {
        let outside = |hosts: &Range<usize>| hosts.is_empty() || hosts.end > all;
        let there_are = format!("must be among the hosts 0 to {}", all - 1);
        let servers = self.servers.len().saturating_mul(self.endpoints);
        let clients = self.clients.len().saturating_mul(self.endpoints);
        let sessions = servers.saturating_add(clients);
        let both =
            self.clients.end.min(self.servers.end) > self.clients.start.max(self.servers.start);
        if outside(&self.clients) {
            Some(("clients", there_are))
        } else if outside(&self.servers) {
            Some(("servers", there_are))
        } else if self.endpoints == 0 {
            Some(("endpoints", "must be above 0".to_owned()))
        } else if sessions > MOST_ENDPOINTS {
            let what = format!(
                "there are {sessions}, but at most a million are allowed; take fewer hosts"
            );
            Some(("endpoints", what))
        } else if servers == 1 && both {
            let what = "the only server would have to call itself";
            Some(("servers", what.to_owned()))
        } else {
            None
        }
    }

    fn fault_of_session(&self, endpoint: &Config) -> Option<Fault> {
        let most = self.session.window + endpoint.backlog;
        if let Err(why) = self.session.check() {
            let key = match why {
                ConfigError::Window(_) => "window",
                _ => "credits",
            };
            Some((key, why.to_string()))
        } else if self.in_flight == 0 {
            Some(("in_flight", "must be above 0".to_owned()))
        } else if self.in_flight > most {
            let what = format!(
                "must be at most {most}: {} in the session's window and {} that wait for it; \
                 take more clients",
                self.session.window, endpoint.backlog
            );
            Some(("in_flight", what))
        } else {
            None
        }
    }

    fn fault_of_messages(&self, endpoint: &Config) -> Option<Fault> {
        // A request begins and ends with a word.
        let (least, most) = (2 * 8, endpoint.max_message);
        let what = format!("must be from {least} to {most}");
        for (key, bytes) in [
            ("request_bytes", self.request_bytes),
            ("response_bytes", self.response_bytes),
        ] {
            if !(least..=most).contains(&bytes) {
                return Some((key, what));
            }
        }
        None
    }

    fn fault_of_times(&self, end: Nanos) -> Option<Fault> {
        let clients = (self.clients.len() * self.endpoints) as u128;
        let begins = Nanos(self.start.0.saturating_add(self.spread.0));
        if begins >= end {
            return Some(("start_us", "begins after the end of the run".to_owned()));
        }
        if self.stop <= begins {
            let what = "must be after start_us and spread_us";
            return Some(("stop_us", what.to_owned()));
        }
        if self.stop != Nanos::MAX && self.stop >= end {
            let what = "has no effect, because the run ends before; leave it out";
            return Some(("stop_us", what.to_owned()));
        }
        match self.arrivals {
            Arrivals::Closed { batch, .. } if batch == 0 || batch > self.in_flight => {
                Some(("batch", "must be from 1 to in_flight".to_owned()))
            }
            Arrivals::Closed { think, .. } if think >= end => {
                Some(("think_us", "takes as long as the whole run".to_owned()))
            }
            Arrivals::Open { gap } if gap >= end => {
                let what = "is so low that a client may have nothing to do in the whole run";
                Some(("rate_per_s", what.to_owned()))
            }
            Arrivals::Open { gap }
                if u128::from(end.0) * clients > MOST_ARRIVALS * u128::from(gap.0) =>
            {
                let what = "asks for more than four billion requests in the run";
                Some(("rate_per_s", what.to_owned()))
            }
            _ => None,
        }
    }
}
