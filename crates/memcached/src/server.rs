//! The server of a connection: it runs the connection's operations.

use dunlin_store::{Seconds, Table};

use crate::operation::{Answer, Operation, OperationTicket};
use crate::partition::{Ledger, Partition};
use crate::report::{Process, Report};

/// When an operation gets its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// Already: the answer was shown.
    Answered,
    /// [`Connection::on_answer`](crate::Connection::on_answer) gets its answer later.
    Later,
}

/// Runs the operations of connections.
///
/// Operations of one connection on one key take effect in the order in which they start.
pub trait Server {
    /// Runs an operation and shows its answer to `see`, or keeps a copy and answers later.
    fn start(
        &mut self,
        ticket: OperationTicket,
        operation: &Operation<'_>,
        now: Seconds,
        see: impl FnOnce(&Answer<'_>),
    ) -> Started;

    /// Announces the keys that the connection reads next.
    fn ahead<'a>(&mut self, keys: impl Iterator<Item = &'a [u8]>) {
        let _ = keys;
    }

    /// True if clients may not flush.
    fn refuses_flush(&self) -> bool {
        false
    }

    /// Notes that a client has tried to authenticate.
    fn on_authentication(&mut self, is_known: bool) {
        let _ = is_known;
    }
}

/// A server of one table, which answers everything at once.
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

    /// Takes facts about the process, for the statistics.
    pub fn on_facts(&mut self, process: Process) {
        self.process = process;
    }

    fn partition(&mut self) -> Partition<'_> {
        self.ledger.open(&mut self.table)
    }
}

impl Server for Alone {
    fn start(
        &mut self,
        _ticket: OperationTicket,
        operation: &Operation<'_>,
        now: Seconds,
        see: impl FnOnce(&Answer<'_>),
    ) -> Started {
        if matches!(operation, Operation::Report) {
            let report = Report::new(self.partition().figures(), self.process.clone(), now);
            see(&Answer::Report(&report));
            return Started::Answered;
        }
        self.partition().run(operation, now, see);
        Started::Answered
    }

    fn ahead<'a>(&mut self, keys: impl Iterator<Item = &'a [u8]>) {
        self.partition().ahead(keys);
    }

    fn on_authentication(&mut self, is_known: bool) {
        self.process.auth_attempts += 1;
        self.process.auth_failures += u64::from(!is_known);
    }
}
