//! The other members of a seat, which follow the changes of its log.
//!
//! A member keeps its place. Calls in flight name it, so the place of a former member or a stranger
//! goes to another peer only when no call and no parcel of its owner is left. If messages of a peer
//! arrive before this replica knows that it has joined, the peer has no address until the log
//! brings it. A peer that has left gets no more sessions.
//!
//! A place that changes hands must not keep its session. The next peer's messages would go to the
//! previous peer's process, which refuses them, and the session would never end.

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
    /// Calls that have not ended, including those with parts of snapshots.
    pub(super) calls: u32,
    /// The peer's parcels that have not been answered.
    pub(super) parcels: Vec<Unanswered>,
    /// A session on which the peer has answered a parcel with names, and the names in its answer.
    pub(super) met: Option<(Session, Names)>,
    /// The snapshot that is being sent to the peer.
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

    /// Whether the peer waits for an answer or is being sent a snapshot.
    pub(super) const fn has_work(&self) -> bool {
        !self.parcels.is_empty() || self.sending.is_some()
    }

    fn is_unused(&self) -> bool {
        self.calls == 0 && self.parcels.is_empty() && self.sending.is_none()
    }
}

impl Seat {
    /// The lane of a member. A stranger gets one without an address.
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

    /// The lane of a stranger or former member that is no longer in use.
    pub(super) fn free_lane(&self) -> Option<usize> {
        let roster = self.node.roster();
        let is_free = |peer: &Peer| roster.get(peer.id).is_none() && peer.is_unused();
        self.peers.iter().position(is_free)
    }

    /// Gives each member of the node's roster a lane, and takes the lanes of former members away.
    #[inline]
    pub(super) fn meet(&mut self, own: u64) {
        let changes = self.node.log().roster_changes();
        if self.met != Some(changes) {
            self.follow_roster(changes, own);
        }
    }

    #[cold]
    fn follow_roster(&mut self, changes: u64, own: u64) {
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
