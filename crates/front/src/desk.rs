//! The state of an endpoint whose partition also serves memcached's clients.

use std::time::{SystemTime, UNIX_EPOCH};

use dunlin_core::Nanos;
use dunlin_kv::{Figures, Host, Partition};
use dunlin_memcached::{Answer, Ledger, Operation, OperationTicket, Report, Server, Started};
use dunlin_store::Seconds;

use crate::hall::Hall;

/// A partition with the figures of memcached's commands.
#[derive(Debug)]
pub struct Desk {
    partition: Partition,
    ledger: Ledger,
}

impl Desk {
    /// Makes the state of an endpoint.
    #[must_use]
    pub fn new(partition: Partition) -> Self {
        Self {
            partition,
            ledger: Ledger::default(),
        }
    }

    /// The partition's figures at this moment.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.partition.figures()
    }

    /// Sets the clock of the table: seconds since 1970. From then on it follows the endpoint's, so
    /// no change of the system's clock lets items expire.
    pub(crate) fn on_start(&mut self, now: Nanos) {
        // A clock before 1970 is as good as that of 1970.
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        self.partition.on_clock(since_1970.unwrap_or_default(), now);
    }

    pub(crate) fn on_time(&mut self, now: Nanos) {
        self.partition.on_time(now);
    }

    pub(crate) fn time(&self, now: Nanos) -> Seconds {
        self.partition.time(now)
    }

    pub(crate) fn serve<'a>(&'a mut self, hall: &'a Hall) -> Serving<'a> {
        Serving { desk: self, hall }
    }
}

impl Host for Desk {
    fn partition(&mut self) -> &mut Partition {
        &mut self.partition
    }
}

/// A desk during the turn of a client.
pub(crate) struct Serving<'a> {
    desk: &'a mut Desk,
    hall: &'a Hall,
}

impl Serving<'_> {
    fn partition(&mut self) -> dunlin_memcached::Partition<'_> {
        self.desk.ledger.open(self.desk.partition.lend())
    }
}

impl Server for Serving<'_> {
    fn start(
        &mut self,
        _ticket: OperationTicket,
        operation: &Operation<'_>,
        now: Seconds,
        see: impl FnOnce(&Answer<'_>),
    ) -> Started {
        if matches!(operation, Operation::Report) {
            let report = Report::new(self.partition().figures(), self.hall.process(), now);
            see(&Answer::Report(&report));
        } else {
            self.partition().run(operation, now, see);
        }
        Started::Answered
    }

    fn ahead<'a>(&mut self, keys: impl Iterator<Item = &'a [u8]>) {
        self.partition().ahead(keys);
    }

    fn on_authentication(&mut self, is_known: bool) {
        self.hall.on_authentication(is_known);
    }

    fn refuses_flush(&self) -> bool {
        self.hall.refuses_flush()
    }
}
