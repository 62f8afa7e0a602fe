//! The content of statistics: figures of all partitions, and facts about the process from the front
//! end.

use std::time::Duration;

use dunlin_store::Seconds;

use crate::figures::Figures;

/// Facts about the process and its connections.
#[derive(Clone, Default, Debug)]
pub struct Process {
    /// The process number.
    pub pid: u32,
    /// When it has started.
    pub started: Seconds,
    /// Processor time in user mode.
    pub user_time: Duration,
    /// Processor time in the kernel.
    pub system_time: Duration,
    /// The most connections that may be open.
    pub max_connections: u64,
    /// Connections since the start.
    pub total_connections: u64,
    /// Connections that were refused because there were too many.
    pub rejected_connections: u64,
    /// Bytes read from clients.
    pub bytes_read: u64,
    /// Bytes written to clients.
    pub bytes_written: u64,
    /// Attempts to authenticate, including those that failed.
    pub auth_attempts: u64,
    /// Attempts that failed.
    pub auth_failures: u64,
    /// Memory for items, in bytes.
    pub memory: u64,
    /// Threads that serve.
    pub threads: u64,
    /// True if `flush_all` is refused.
    pub refuses_flush: bool,
    /// The longest value that a client may write, if that is shorter than the table's longest.
    pub most_value: Option<u64>,
    /// Connections now.
    pub connections: Vec<ConnectionFacts>,
    /// Further settings, as name and value.
    pub settings: Vec<(&'static str, String)>,
}

/// A line of `stats conns`.
#[derive(Clone, Debug)]
pub struct ConnectionFacts {
    /// The client's number. Here memcached shows the number of its descriptor.
    pub number: u64,
    /// The client's address.
    pub address: String,
    /// The time of its last command.
    pub last_command: Seconds,
}

/// Everything that `stats` can show.
#[derive(Clone, Debug)]
pub struct Report {
    figures: Figures,
    process: Process,
    now: Seconds,
}

impl Report {
    /// A report at `now`.
    #[must_use]
    pub fn new(figures: Figures, process: Process, now: Seconds) -> Self {
        Self {
            figures,
            process,
            now,
        }
    }

    pub(crate) fn figures(&self) -> &Figures {
        &self.figures
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    pub(crate) fn now(&self) -> Seconds {
        self.now
    }
}
