//! Invariants of a cluster, checked while it runs: at most one leader in each term, logs that
//! match, no committed entry lost (Raft, figure 3), and the same state after each entry on all
//! replicas.

use std::collections::BTreeMap;

use dunlin_core::Ticket;
use dunlin_replica::{Log, Node, Request};

/// Term and bytes of an entry.
type Logged = (u64, Vec<u8>);

#[derive(Default)]
pub(crate) struct Judge {
    leaders: BTreeMap<u64, u64>,
    /// Committed entries by their indices.
    committed: BTreeMap<u64, Logged>,
    /// Digests of the state after an entry, by its index.
    states: BTreeMap<u64, u64>,
    /// For each replica, the last index that was compared.
    compared: BTreeMap<u64, u64>,
    /// For each replica, the last entry that it had applied when its state was compared.
    applied: BTreeMap<u64, u64>,
    /// Snapshots that each process has taken, and their sum over all processes.
    restores: BTreeMap<u64, u64>,
    snapshots: u64,
}

impl Judge {
    /// Terms that have had a leader.
    pub(crate) fn terms(&self) -> u64 {
        self.leaders.len() as u64
    }

    /// The number of times that a replica took another's snapshot.
    pub(crate) fn snapshots(&self) -> u64 {
        self.snapshots
    }

    /// The number of entries that gave a client its name.
    pub(crate) fn names(&self) -> u64 {
        let open = Request::OPEN.to_bytes();
        let names = self.committed.values().filter(|(_, bytes)| *bytes == open);
        names.count() as u64
    }

    /// The last index that a replica knew to be committed.
    pub(crate) fn last(&self) -> u64 {
        self.committed.keys().last().copied().unwrap_or(0)
    }

    /// Notes that a replica starts again, perhaps with another log.
    pub(crate) fn on_restart(&mut self, id: u64) {
        self.compared.remove(&id);
        self.applied.remove(&id);
        self.restores.remove(&id);
    }

    /// Checks a replica.
    ///
    /// # Errors
    /// The broken invariant, in words.
    pub(crate) fn check(&mut self, id: u64, node: &Node<Ticket>) -> Result<(), String> {
        if node.leads() {
            self.check_leader(id, node)?;
        }
        if node.contradictions() > 0 {
            return Err(format!(
                "messages of other replicas contradict the log of replica {id}"
            ));
        }
        let log = node.log();
        let compared = self.compared.get(&id).copied().unwrap_or(log.base());
        let before = self.restores.insert(id, node.restores()).unwrap_or(0);
        self.snapshots += node.restores() - before;
        let from = compared.max(log.base());
        for index in from + 1..=node.committed() {
            let own = entry(log, index).ok_or_else(|| {
                format!("replica {id} has committed entry {index} and does not have it")
            })?;
            let known = self.committed.entry(index).or_insert_with(|| own.clone());
            if *known != own {
                return Err(format!(
                    "entry {index}: replica {id} has committed {own:?}, another one {known:?}"
                ));
            }
        }
        self.compared.insert(id, node.committed().max(from));
        self.check_state(id, node)
    }

    fn check_state(&mut self, id: u64, node: &Node<Ticket>) -> Result<(), String> {
        let applied = node.applied();
        if self.applied.insert(id, applied) == Some(applied) {
            return Ok(());
        }
        let own = node.digest();
        match *self.states.entry(applied).or_insert(own) == own {
            true => Ok(()),
            false => Err(format!(
                "replica {id} has another state after entry {applied} than another replica"
            )),
        }
    }

    fn check_leader(&mut self, id: u64, node: &Node<Ticket>) -> Result<(), String> {
        let term = node.term();
        let newest = self.leaders.keys().last().is_none_or(|last| term > *last);
        let leader = *self.leaders.entry(term).or_insert(id);
        if leader != id {
            return Err(format!("term {term} has the leaders {leader} and {id}"));
        }
        if !newest {
            return Ok(());
        }
        for (index, known) in self.committed.range(node.log().base() + 1..) {
            let own = entry(node.log(), *index);
            if own.as_ref() != Some(known) {
                return Err(format!(
                    "leader {id} of term {term} has {own:?} as entry {index}, not {known:?}"
                ));
            }
        }
        Ok(())
    }
}

fn entry(log: &Log, index: u64) -> Option<Logged> {
    let (term, bytes) = log.at(index)?;
    Some((term, bytes.to_vec()))
}
