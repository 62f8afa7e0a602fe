//! Counts and resource use of one process of an experiment, as the process reports them to the
//! parent: figures for rows, and signs that something went wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use dunlin::{Counters, Open, Rpc};
use serde::{Deserialize, Serialize};

use harness::sys;

/// The report of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Side {
    /// When the process read this, on the clock that all processes share.
    pub(crate) at: Duration,
    /// Processor time of all of its threads.
    pub(crate) processor: Duration,
    /// Bytes of resident memory, without the code of the program.
    pub(crate) resident: u64,
    /// Bytes of message buffers in use.
    pub(crate) region: u64,
    /// The median time of slow handlers, in ns.
    pub(crate) handler: Option<f64>,
    /// Counters that are not 0, of endpoint, transport and control plane.
    pub(crate) counters: BTreeMap<String, u64>,
}

/// Counters that stay 0 unless something goes wrong.
const ALARMING: [&str; 12] = [
    "retransmissions",
    "responses_resent",
    "handler_panics",
    "unanswered",
    "drops",
    "tx_dropped_full",
    "tx_dropped_stale",
    "tx_dropped_peer",
    "tx_dropped_size",
    "tx_dropped_error",
    "rx_overflow",
    "rx_corrupt",
];

impl Side {
    /// Reads everything now.
    ///
    /// # Errors
    /// The system does not report this process's use of resources.
    pub(crate) fn read<T: Open, App>(rpc: &mut Rpc<T, App>) -> anyhow::Result<Self> {
        let mut counters = endpoint_counters(rpc.counters());
        counters.extend(transport_counters(&rpc.transport_counters()));
        counters.retain(|(_, count)| *count != 0);
        Ok(Self {
            at: sys::monotonic_time()?,
            processor: sys::processor_time()?,
            resident: sys::resident_data_bytes()?,
            region: rpc.pool_use().0 as u64,
            handler: None,
            counters: counters
                .into_iter()
                .map(|(name, count)| (name.to_owned(), count))
                .collect(),
        })
    }

    /// The count of this name; 0 if the report does not list it.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Bytes of resident memory and of message buffers together, for the experiment `sessions`.
    pub(crate) fn memory(&self) -> u64 {
        self.resident + self.region
    }

    /// A description of the unexpected events that were counted, if there were any.
    pub(crate) fn alarm(&self, side: &str) -> Option<String> {
        let counts = ALARMING.iter().map(|name| (name, self.count(name)));
        let alarming: Vec<String> = counts
            .filter(|(_, count)| *count != 0)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        (!alarming.is_empty()).then(|| format!("{side}: {}", alarming.join(", ")))
    }

    /// Writes everything in one line.
    pub(crate) fn line(&self, side: &str) -> String {
        let counters = self.counters.iter();
        let counters: String = counters
            .map(|(name, count)| format!(", {count} {name}"))
            .collect();
        format!(
            "{side}: {:.3} s of processor time, {} KiB resident, {} KiB of regions{counters}",
            self.processor.as_secs_f64(),
            self.resident >> 10,
            self.region >> 10,
        )
    }
}

fn endpoint_counters(it: &Counters) -> Vec<(&'static str, u64)> {
    vec![
        ("requests_sent", it.requests_sent),
        ("requests_received", it.requests_received),
        ("completions", it.completions),
        ("retransmissions", it.retransmissions),
        ("probes", it.probes),
        ("cancels", it.cancels),
        ("credit_returns", it.credit_returns),
        ("responses_resent", it.responses_resent),
        ("handler_panics", it.handler_panics),
        ("unanswered", it.unanswered),
        ("stalls", it.stalls),
        ("rtt_samples", it.rtt_samples),
        ("rtt_away", it.rtt_away),
        ("drops", it.drops.total()),
        ("dropped_session", it.drops.session),
        ("dropped_stale", it.drops.stale),
        ("dropped_future", it.drops.future),
        ("dropped_busy", it.drops.busy),
        ("dropped_unexpected", it.drops.unexpected),
        ("dropped_revoked", it.drops.revoked),
    ]
}

fn transport_counters(it: &dunlin::transport::Counters) -> Vec<(&'static str, u64)> {
    vec![
        ("tx_packets", it.tx_packets),
        ("tx_dropped_full", it.tx_dropped_full),
        ("tx_dropped_stale", it.tx_dropped_stale),
        ("tx_dropped_peer", it.tx_dropped_peer),
        ("tx_dropped_size", it.tx_dropped_size),
        ("tx_dropped_error", it.tx_dropped_error),
        ("rx_packets", it.rx_packets),
        ("rx_overflow", it.rx_overflow),
        ("rx_corrupt", it.rx_corrupt),
        ("wakeups_sent", it.wakeups_sent),
        ("wakeups_received", it.wakeups_received),
        ("syscalls", it.syscalls),
    ]
}
