//! The log and the items of a node, with which it can start again.

use crate::log::Log;
use crate::machine::Machine;
use crate::wire::Members;

/// The log and the items of a node.
#[derive(Clone, Debug)]
pub struct Image {
    log: Log,
    machine: Machine,
}

impl Image {
    /// A node of a new cluster.
    #[must_use]
    pub fn first(members: &Members) -> Self {
        let log = Log::new(members);
        let machine = Machine::new(log.base(), members.cluster());
        Self { log, machine }
    }

    /// The same node, which keeps the records of this number of clients and has none yet; for
    /// checks. All replicas of a cluster need the same number.
    #[must_use]
    pub fn remember(mut self, clients: usize) -> Self {
        self.machine.remember(clients);
        self
    }

    pub(super) fn new(log: Log, machine: &Machine) -> Self {
        let machine = machine.clone();
        Self { log, machine }
    }

    pub(super) fn open(self) -> (Log, Machine) {
        (self.log, self.machine)
    }

    /// Plants the bug that the last entries do not survive a restart.
    #[cfg(feature = "mutants")]
    pub fn lose_tail(&mut self, entries: usize) {
        self.log.lose_tail(entries, self.machine.applied());
    }
}
