//! The log and the items of a node, from which it can start again.

use super::items;
use crate::log::Log;
use crate::machine::Machine;
#[cfg(feature = "disk")]
use crate::wire::change::Change;
use crate::wire::{Malformed, Members, Roster};
use crate::work::Remains;

/// Items from a restored backup, with which a new cluster begins.
#[derive(Clone, Debug)]
pub struct Restored {
    remains: Remains,
    machine: Machine,
    digest: u64,
}

impl Restored {
    /// Takes the items that a disk has kept.
    ///
    /// # Errors
    /// The items are of another version of the format, or their entry is not the one that their
    /// place names.
    pub fn new(mut remains: Remains) -> Result<Self, Malformed> {
        let (applied, image) = remains.items.take().ok_or(Malformed)?;
        let (_, items) = items::split(&image)?;
        let mut machine = Machine::new(0, 0);
        machine.restore(items)?;
        let digest = machine.digest().max(1);
        match machine.applied() == applied {
            true => Ok(Self {
                remains,
                machine,
                digest,
            }),
            false => Err(Malformed),
        }
    }

    /// A digest, which is not 0. Replicas with the same digest begin with the same items.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// The last entry that the items contain.
    #[must_use]
    pub const fn applied(&self) -> u64 {
        self.machine.applied()
    }

    /// The number of keys that have an item.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.machine.keys()
    }

    /// The image of a node of a new cluster that begins with the items.
    pub(crate) fn into_image(self, roster: Roster) -> Image {
        let mut machine = self.machine;
        machine.belong(roster.cluster());
        let log = Log::resume(roster, self.remains);
        Image { log, machine }
    }

    #[cfg(feature = "disk")]
    pub(crate) fn into_machine(self) -> Machine {
        self.machine
    }
}

/// The log and the items of a node.
#[derive(Clone, Debug)]
pub struct Image {
    log: Log,
    machine: Machine,
}

impl Image {
    /// The image of a node of a new cluster.
    #[must_use]
    pub fn first(members: &Members) -> Self {
        Self::of(Roster::first(members))
    }

    /// The image of a node with this roster and without a log: a node of a new cluster, or one that
    /// joins.
    #[must_use]
    pub fn of(roster: Roster) -> Self {
        let cluster = roster.cluster();
        let log = Log::new(roster);
        let machine = Machine::new(log.base(), cluster);
        Self { log, machine }
    }

    /// The image of a node that began with this roster and continues with the data that its disk
    /// has kept.
    ///
    /// # Errors
    /// The items are of another version of the format, or their entry is not the one that their
    /// place names.
    pub fn resume(mut roster: Roster, mut remains: Remains) -> Result<Self, Malformed> {
        let found = remains.items.take();
        let mut machine = Machine::new(remains.base.0, roster.cluster());
        if let Some((applied, image)) = found {
            let (members, items) = items::split(&image)?;
            // The members in restored items are those of an older cluster.
            if members.has_voters() {
                roster = members;
            }
            machine.restore(items)?;
            if machine.applied() != applied {
                return Err(Malformed);
            }
        }
        let log = Log::resume(roster, remains);
        Ok(Self { log, machine })
    }

    /// Applies all entries of the log, even those that are not known to be committed, and returns
    /// the items.
    ///
    /// # Errors
    /// An entry is of another version of the protocol.
    #[cfg(feature = "disk")]
    pub(crate) fn finish(self) -> Result<Machine, Malformed> {
        let mut machine = self.machine;
        for index in machine.applied() + 1..=self.log.last() {
            let (_, entry) = self.log.at(index).ok_or(Malformed)?;
            let is_change = Change::decode(entry).is_ok();
            machine.apply(index, if is_change { b"" } else { entry })?;
        }
        Ok(machine)
    }

    /// Limits the records to this number of clients, and drops those that exist; for checks. All
    /// replicas of a cluster need the same number.
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
