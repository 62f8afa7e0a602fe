//! The server of a connection: its thread's partition, and facts about the process.

use dunlin_store::{MAX_VALUE, Table};

use crate::partition::{Ledger, Partition};
use crate::report::Process;

/// The position of this thread's partition among the partitions of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Its number.
    pub number: u16,
    /// The number of partitions.
    pub of: u16,
}

impl Standing {
    /// The only partition.
    pub const ALONE: Self = Self { number: 0, of: 1 };

    /// The numbers of the other partitions.
    pub fn others(self) -> impl Iterator<Item = u16> {
        (0..self.of).filter(move |number| *number != self.number)
    }
}

/// Serves connections on the thread of a partition.
pub trait Server {
    /// The partition of this thread.
    fn partition(&mut self) -> Partition<'_>;

    /// The position of this partition among all.
    fn standing(&self) -> Standing {
        Standing::ALONE
    }

    /// The partition that has this key.
    fn owner(&self, key: &[u8]) -> u16 {
        let _ = key;
        self.standing().number
    }

    /// The facts for statistics.
    fn process(&self) -> Process;

    /// Whether clients may not flush.
    fn refuses_flush(&self) -> bool {
        false
    }

    /// The longest value that a client may write, in bytes. The ledgers of all partitions have the
    /// same limit.
    fn most_value(&self) -> usize {
        MAX_VALUE
    }

    /// Resets the counts of connections and their bytes.
    fn on_reset(&mut self) {}

    /// Notes that a client has tried to authenticate.
    fn on_authentication(&mut self, is_known: bool) {
        let _ = is_known;
    }
}

/// A server with one table.
#[derive(Debug)]
pub struct Alone {
    table: Table,
    ledger: Ledger,
    process: Process,
}

impl Alone {
    /// A server with this table.
    #[must_use]
    pub fn new(table: Table, process: Process) -> Self {
        Self {
            table,
            ledger: Ledger::default(),
            process,
        }
    }

    /// The same server, whose clients may write values of at most this number of bytes.
    #[must_use]
    pub fn with_most_value(self, most: usize) -> Self {
        Self {
            ledger: Ledger::with_most_value(most),
            process: Process {
                most_value: Some(most as u64),
                ..self.process
            },
            ..self
        }
    }
}

impl Server for Alone {
    fn partition(&mut self) -> Partition<'_> {
        self.ledger.open(&mut self.table)
    }

    fn process(&self) -> Process {
        self.process.clone()
    }

    fn most_value(&self) -> usize {
        let most = self.process.most_value;
        most.map_or(MAX_VALUE, |most| usize::try_from(most).unwrap_or(MAX_VALUE))
    }

    fn on_reset(&mut self) {
        self.process.auth_attempts = 0;
        self.process.auth_failures = 0;
    }

    fn on_authentication(&mut self, is_known: bool) {
        self.process.auth_attempts += 1;
        self.process.auth_failures += u64::from(!is_known);
    }
}
