//! The conditions that a scenario must meet, checked before any of it is built.
//!
//! Invariant: a scenario that passes can be built, if there is enough memory. Faults name keys of
//! scenario files, so that the command line can show the line. Called by `scenario` and by the
//! command line.

use std::fmt;

use dunlin_core::Nanos;

use super::{Load, Partners, Scenario};
use crate::world::net::NetConfig;
use crate::world::rng::Ppm;

/// The reason why a scenario does not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// A key of the scenario is wrong.
    Key {
        /// The key, with dots between its parts.
        key: String,
        /// The error and its remedy.
        what: String,
    },
    /// An invariant was broken: a bug of the simulator or the library.
    Broken(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { key, what } => write!(f, "{key}: {what}"),
            Self::Broken(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Wrong {}

impl Wrong {
    /// A key is wrong.
    pub fn new(key: &str, what: impl Into<String>) -> Self {
        Self::Key {
            key: key.to_owned(),
            what: what.into(),
        }
    }

    pub(super) fn broken(what: &str) -> Self {
        Self::Broken(what.to_owned())
    }
}

/// Longest run: more virtual time than any user simulates.
const LONGEST: Nanos = Nanos::from_secs(3600);
/// The most points of the series over time.
const MOST_POINTS: u64 = 1 << 22;
/// Fastest cable, in bytes per second: the time of a byte is counted in whole picoseconds.
const FASTEST: u64 = 1_000_000_000_000;
/// The most cables from one rack to all spines together.
const MOST_WAYS: usize = 1 << 12;
/// Approximate bytes of an endpoint without sessions.
const ENDPOINT_BYTES: u64 = 400_000;
/// Bytes of one side of a session: its entries in all tables, without its slots.
const SESSION_BYTES: u64 = 128 + 400;
/// Bytes of a slot, in both directions.
const SLOT_BYTES: u64 = 16;

impl Scenario {
    /// Checks all conditions, except that there is enough memory.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub fn check(&self) -> Result<(), Wrong> {
        positive("end_ms", self.end.0)?;
        if self.warm_up >= self.end {
            return Err(Wrong::new("warm_up_ms", "must be less than end_ms"));
        }
        if self.end > LONGEST {
            return Err(Wrong::new("end_ms", "must be at most an hour"));
        }
        positive("sample_us", self.sample_every.0)?;
        if self.sample_every > self.end {
            return Err(Wrong::new("sample_us", "must not be more than end_ms"));
        }
        if self.end.0 / self.sample_every.0 > MOST_POINTS {
            let what = format!("makes more than {MOST_POINTS} points; set a longer time");
            return Err(Wrong::new("sample_us", what));
        }
        self.check_network()?;
        self.check_times()?;
        self.check_faults()?;
        let endpoint = self.endpoint.check();
        endpoint.map_err(|why| Wrong::new("endpoint", why.to_string()))?;
        if self.loads.is_empty() {
            return Err(Wrong::new("load", "there must be at least one"));
        }
        for (index, load) in self.loads.iter().enumerate() {
            let fault = load.fault(self.hosts, &self.endpoint, self.end);
            if let Some((key, what)) = fault {
                return Err(Wrong::new(&format!("load.{index}.{key}"), what));
            }
        }
        Ok(())
    }

    fn check_network(&self) -> Result<(), Wrong> {
        let NetConfig { fabric, .. } = &self.net;
        if self.hosts < 2 {
            return Err(Wrong::new("network.hosts", "there must be at least two"));
        }
        self.check_rate("network.gbps", self.net.line_rate)?;
        positive("network.rx_queue", self.net.rx_queue)?;
        let frame = u64::from(self.net.data_size) + 128;
        if self.net.data_size < dunlin_msgbuf::MIN_DATA_SIZE {
            let least = dunlin_msgbuf::MIN_DATA_SIZE;
            return Err(Wrong::new(
                "network.packet_bytes",
                format!("must be at least {least}"),
            ));
        }
        for (key, bytes) in [
            ("network.nic_kb", self.net.nic_bytes),
            ("switch.buffer_kb", fabric.buffer_bytes),
        ] {
            if bytes < frame {
                return Err(Wrong::new(key, "has no room for a packet"));
            }
        }
        if fabric.alpha.is_nan() || fabric.alpha <= 0.0 {
            return Err(Wrong::new("switch.alpha", "must be above 0"));
        }
        if fabric.marking.from > fabric.marking.to {
            let what = "must not be above switch.mark_all_kb";
            return Err(Wrong::new("switch.mark_from_kb", what));
        }
        positive("network.racks", fabric.racks as u64)?;
        if fabric.racks > self.hosts {
            return Err(Wrong::new(
                "network.racks",
                "is more than the number of hosts",
            ));
        }
        if fabric.racks > 1 && fabric.neighbours >= self.hosts {
            let what = "puts all hosts into one rack";
            return Err(Wrong::new("network.neighbours", what));
        }
        if fabric.racks > 1 {
            positive("network.spines", fabric.spines as u64)?;
            positive("network.uplinks", fabric.uplinks as u64)?;
            self.check_rate("network.uplink_gbps", fabric.uplink_rate)?;
            positive("network.neighbours", fabric.neighbours as u64)?;
            let cables = fabric.spines.checked_mul(fabric.uplinks);
            if cables.is_none_or(|cables| cables > MOST_WAYS) {
                let what = format!("make more than {MOST_WAYS} cables from a rack to the spines");
                return Err(Wrong::new("network.uplinks", what));
            }
        }
        Ok(())
    }

    fn check_rate(&self, key: &str, rate: u64) -> Result<(), Wrong> {
        positive(key, rate)?;
        if rate > FASTEST {
            return Err(Wrong::new(key, "must be at most 8000"));
        }
        let packet = u128::from(self.net.data_size) * 1_000_000_000 / u128::from(rate);
        match packet >= u128::from(self.end.0) {
            true => Err(Wrong::new(key, "a packet takes as long as the whole run")),
            false => Ok(()),
        }
    }

    /// Checks that no time is longer than the run, so that no sum of times overflows.
    fn check_times(&self) -> Result<(), Wrong> {
        let (net, cpu) = (&self.net, &self.net.cpu);
        for (key, time) in [
            ("network.cable_ns", net.cable),
            ("network.dma_ns", net.dma.1),
            ("switch.latency_ns", net.fabric.latency),
            ("cpu.iteration_ns", cpu.iteration),
            ("cpu.packet_ns", cpu.packet),
            ("cpu.rpc_ns", self.rpc_cost),
            ("cpu.kilobyte_ns", cpu.kilobyte),
            ("faults.reorder_us", self.faults.reorder_by),
            ("faults.spike_us", self.faults.spike_by),
        ] {
            if time >= self.end {
                return Err(Wrong::new(key, "takes as long as the whole run"));
            }
        }
        Ok(())
    }

    fn check_faults(&self) -> Result<(), Wrong> {
        let faults = &self.faults;
        for (key, rate) in [
            ("faults.loss_ppm", faults.loss),
            ("faults.burst_ppm", faults.burst),
            ("faults.duplicate_ppm", faults.duplicate),
            ("faults.reorder_ppm", faults.reorder),
            ("faults.spike_ppm", faults.spike),
        ] {
            if rate.0 > Ppm::ALWAYS.0 {
                return Err(Wrong::new(key, "must be at most a million"));
            }
        }
        Ok(())
    }

    /// Number of sides of sessions, and of endpoints.
    pub fn sizes(&self) -> (u64, u64) {
        let mut sizes = (0, 0);
        for load in &self.loads {
            let per_host = load.endpoints as u64;
            let (clients, servers) = (load.clients.len() as u64, load.servers.len() as u64);
            let both = load
                .clients
                .clone()
                .filter(|host| load.servers.contains(host));
            let both = both.count() as u64;
            sizes.0 += 2 * match load.partners {
                Partners::Drawn => clients * servers * per_host * per_host - both * per_host,
                Partners::Fixed => clients * per_host,
            };
            sizes.1 += (clients + servers - both) * per_host;
        }
        sizes
    }

    /// Approximate bytes of memory that the run takes.
    pub fn memory(&self) -> u64 {
        let (sides, endpoints) = self.sizes();
        let windows = self.loads.iter().map(|load| load.session.window);
        let window = u64::from(windows.max().unwrap_or(0));
        let tables = sides * (SESSION_BYTES + window * SLOT_BYTES) + endpoints * ENDPOINT_BYTES;
        let messages = |load: &Load| {
            let clients = (load.clients.len() * load.endpoints) as u64;
            let bytes = u64::from(load.request_bytes) + u64::from(load.response_bytes);
            // Message buffers take no more memory than the bytes that can cross a cable by the end
            // of the run.
            let crossed = u128::from(self.net.line_rate) * u128::from(self.end.0) / 1_000_000_000;
            let hosts = load.clients.len().min(load.servers.len()) as u128;
            let crossed = u64::try_from(crossed * hosts).unwrap_or(u64::MAX);
            (clients * u64::from(load.in_flight))
                .saturating_mul(2 * bytes)
                .min(2 * crossed)
        };
        tables + self.loads.iter().map(messages).sum::<u64>()
    }
}

fn positive(key: &str, value: impl Into<u64>) -> Result<(), Wrong> {
    match value.into() {
        0 => Err(Wrong::new(key, "must be above 0")),
        _ => Ok(()),
    }
}
