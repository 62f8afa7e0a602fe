//! The other members of a seat, as its log changes them.
//!
//! A member keeps its place. Calls that are under way name it, so the place of a former member, or
//! of a stranger, goes to another peer only when no call and no parcel of its owner is left. A peer
//! whose messages come before this replica knows that it has joined has no address until the log
//! brings it. One that has left gets no session any more.
//!
//! A place that changes hands must not keep its session: the next peer's messages would go to the
//! process of the one before, which refuses them, and the session would never end.

use dunlin_core::Session;

use super::lives::Lives;
use super::parcels::Unanswered;
use super::seat::Seat;
use super::transfer::Sending;
use crate::wire::Names;

/// Another member.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) id: u64,
    /// Calls that have not ended, those with parts of snapshots included.
    pub(super) calls: u32,
    /// Its parcels that have not been answered.
    pub(super) parcels: Vec<Unanswered>,
    /// A session on which it has answered a parcel with names, and the names in its answer.
    pub(super) met: Option<(Session, Names)>,
    /// The snapshot that it gets.
    pub(super) sending: Option<Sending>,
    pub(super) lives: Lives,
}

impl Peer {
    fn new(id: u64) -> Self {
        Self {
            id,
            calls: 0,
            parcels: Vec::new(),
            met: None,
            sending: None,
            lives: Lives::default(),
        }
    }

    /// Whether it waits for an answer, or gets a snapshot.
    pub(super) const fn has_work(&self) -> bool {
        !self.parcels.is_empty() || self.sending.is_some()
    }

    fn is_unused(&self) -> bool {
        self.calls == 0 && self.parcels.is_empty() && self.sending.is_none()
    }
}

impl Seat {
    /// The lane of a member. A stranger gets one that leads nowhere.
    pub(super) fn lane_of(&mut self, id: u64) -> usize {
        if let Some(lane) = self.peers.iter().position(|peer| peer.id == id) {
            return lane;
        }
        if let Some(lane) = self.free_lane() {
            self.peers[lane] = Peer::new(id);
            self.ended.extend(self.lanes.clear(lane));
            return lane;
        }
        self.peers.push(Peer::new(id));
        self.lanes.add();
        self.peers.len() - 1
    }

    /// The lane of a stranger or a former member that nothing names any more.
    pub(super) fn free_lane(&self) -> Option<usize> {
        let roster = self.node.roster();
        let is_free = |peer: &Peer| roster.get(peer.id).is_none() && peer.is_unused();
        self.peers.iter().position(is_free)
    }

    /// Gives each member of the node's roster a lane, and takes those of former members away.
    pub(super) fn meet(&mut self, own: u64) {
        let changes = self.node.log().roster_changes();
        if self.met == Some(changes) {
            return;
        }
        let roster = self.node.roster().clone();
        for member in roster.iter().filter(|member| member.id != own) {
            let lane = self.lane_of(member.id);
            self.ended.extend(self.lanes.lead(lane, &member.address));
        }
        for lane in 0..self.peers.len() {
            if roster.get(self.peers[lane].id).is_none() {
                self.lanes.stop(lane);
            }
        }
        self.met = Some(changes);
    }
}
