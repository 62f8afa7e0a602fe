//! Changes of the members by joint consensus (Raft dissertation §4.3).
//!
//! A process that joins is a learner first: it gets the log and does not vote. When it has caught
//! up, the leader begins a change that makes it a voter, and that also covers all other members
//! that should become voters or leave. Until the change is complete, an entry needs a majority of
//! the old voters and one of the new voters. The leader completes the change as soon as it has
//! applied it; a new leader does so as well. So a change is completed without further commands,
//! even if leaders change.

use raft::eraftpb::{Entry, Message, MessageType};
use raft::{ProgressState, StateRole};

use super::Node;
use crate::wire::change::{Change, entry_of};
use crate::wire::{MAX_SEATS, Member, Roster};

/// A learner has caught up if it lacks at most this number of entries.
const LAG: u64 = 100;

/// Orders that a leader has not carried out.
#[derive(Debug, Default)]
pub(super) struct Orders {
    joining: Vec<Member>,
    leaving: Vec<u64>,
}

impl Orders {
    const fn are_none(&self) -> bool {
        self.joining.is_empty() && self.leaving.is_empty()
    }
}

impl<A> Node<A> {
    /// Makes another node the leader. If `to` is 0, takes a node that answers and whose log is as
    /// complete as any other's. Writes are refused as busy until that node leads, or for an
    /// election timeout.
    pub fn hand_over(&mut self, to: u64) {
        self.take_late();
        let own = self.raft.raft.id;
        let others = self.raft.raft.prs().iter().filter(|it| *it.0 != own);
        // A learner cannot lead.
        let voters = self.raft.raft.prs().conf().voters();
        let answering = others.filter(|(id, other)| other.recent_active && voters.contains(**id));
        let newest = answering.max_by_key(|(_, other)| other.matched);
        let to = if to == 0 {
            newest.map(|it| *it.0)
        } else {
            Some(to)
        };
        if let Some(to) = to {
            // The next leader does not wait for this one's lease.
            self.lease.give_up(self.term());
            self.raft.transfer_leader(to);
        }
    }

    /// The members after the last entry that was applied.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        self.log().roster()
    }

    /// Adds a member, if this node leads.
    pub fn on_join(&mut self, member: Member) {
        self.orders.joining.push(member);
    }

    /// Removes another member, if this node leads.
    pub fn on_leave(&mut self, id: u64) {
        self.orders.leaving.push(id);
    }

    /// Proposes the next change of the members, if one is due and none is under way.
    pub(super) fn change_members(&mut self) {
        if self.orders.are_none() && self.is_settled() {
            return;
        }
        if self.raft.raft.state != StateRole::Leader {
            self.orders = Orders::default();
            return;
        }
        let raft = &self.raft.raft;
        if !raft.commit_to_current_term() || raft.has_pending_conf() {
            return;
        }
        if let Some(change) = self.next_change() {
            let message = Message {
                msg_type: MessageType::MsgPropose,
                from: self.raft.raft.id,
                entries: vec![entry_of(0, 0, &change.to_bytes())].into(),
                ..Message::default()
            };
            // If Raft does not take the change now, it is proposed again as long as it is due.
            let _ = self.raft.step(message);
        }
    }

    /// Whether no member joins or leaves. Looks at the members only after they have changed.
    fn is_settled(&mut self) -> bool {
        let changes = self.log().roster_changes();
        let is_known = self.settled == Some(changes);
        if !is_known && self.roster().is_settled() {
            self.settled = Some(changes);
        }
        self.settled == Some(changes)
    }

    fn next_change(&mut self) -> Option<Change> {
        let roster = self.raft.store().roster();
        if roster.is_joint() {
            return Some(Change::Complete);
        }
        let orders = &mut self.orders;
        orders.joining.retain(|it| roster.get(it.id).is_none());
        orders.leaving.retain(|it| roster.get(*it).is_some());
        if let Some(member) = orders.joining.first()
            && roster.iter().count() < MAX_SEATS
        {
            return Some(Change::Join(member.clone()));
        }
        let promote = self.caught_up();
        let mut remove = self.orders.leaving.clone();
        let roster = self.roster();
        let learns = |id: u64| roster.part(id).is_some_and(|part| part.is_learner);
        let learners = roster
            .iter()
            .filter(|it| learns(it.id) && !remove.contains(&it.id));
        if learners.count() > promote.len() {
            // Members leave in the change that promotes their replacements. So a learner that never
            // catches up must be removed as well.
            remove.retain(|id| learns(*id));
            if remove.is_empty() {
                return None;
            }
        }
        let votes = |id: u64| roster.part(id).is_some_and(|part| part.is_voter);
        let left = roster
            .iter()
            .filter(|it| votes(it.id) && !remove.contains(&it.id));
        if left.count() + promote.len() == 0 {
            // A cluster without voters could not decide anything.
            remove.clear();
        }
        let is_due = !promote.is_empty() || !remove.is_empty();
        is_due.then_some(Change::Begin { promote, remove })
    }

    /// The learners that have caught up.
    fn caught_up(&self) -> Vec<u64> {
        let (roster, last) = (self.roster(), self.log().last());
        let learners = self.raft.raft.prs().iter().filter(|(id, progress)| {
            let is_learner = roster.part(**id).is_some_and(|part| part.is_learner);
            let has_log = progress.state != ProgressState::Snapshot && progress.matched > 0;
            is_learner && has_log && progress.recent_active && progress.matched + LAG >= last
        });
        let mut learners: Vec<u64> = learners.map(|it| *it.0).collect();
        // Raft keeps learners in no particular order.
        learners.sort_unstable();
        learners.retain(|id| !self.orders.leaving.contains(id));
        learners
    }

    /// Applies a change of the members.
    pub(super) fn apply_change(&mut self, entry: &Entry) {
        let Ok(change) = Change::decode(&entry.context) else {
            return;
        };
        #[cfg(feature = "mutants")]
        if self.options.shows(crate::options::Mutant::HalfOfJoint) {
            return self.apply_half(change);
        }
        // Raft refuses a change that does not fit, in the same way on all nodes.
        if let Ok(conf) = self.raft.apply_conf_change(&change.to_raft()) {
            let joined = match change {
                Change::Join(member) => Some(member),
                _ => None,
            };
            self.raft.mut_store().on_change(joined, &conf);
        }
        self.resign_if_removed();
    }

    /// Stops leading if this node is no longer a member. An earlier leader may have removed this
    /// node, and lost its lead before the change was complete. Raft would let the removed node go
    /// on leading, and end the process when it counts an entry for itself.
    fn resign_if_removed(&mut self) {
        let raft = &mut self.raft.raft;
        if raft.state == StateRole::Leader && raft.prs().get(raft.id).is_none() {
            let term = raft.term;
            raft.become_follower(term, raft::INVALID_ID);
        }
    }

    /// Switches to the new voters at once, as if the old ones did not count, for a planted bug.
    #[cfg(feature = "mutants")]
    fn apply_half(&mut self, change: Change) {
        use raft::eraftpb::ConfChangeV2;
        let changes: Vec<ConfChangeV2> = match &change {
            Change::Begin { .. } => {
                let all = change.to_raft();
                let single = |it: &_| ConfChangeV2 {
                    changes: vec![Clone::clone(it)].into(),
                    ..ConfChangeV2::default()
                };
                all.changes.iter().map(single).collect()
            }
            _ => vec![change.to_raft()],
        };
        let mut joined = match change {
            Change::Join(member) => Some(member),
            _ => None,
        };
        for change in changes {
            if let Ok(conf) = self.raft.apply_conf_change(&change) {
                self.raft.mut_store().on_change(joined.take(), &conf);
            }
        }
    }
}
