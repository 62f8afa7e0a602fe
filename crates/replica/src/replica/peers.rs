//! The other members of a seat, as its log changes them.
//!
//! A peer keeps its place for good, because calls that are under way name it. One that has left
//! gets no session any more. One whose messages come before this replica knows that it has joined
//! has no address until the log brings it.

use dunlin_core::Ticket;

use super::seat::Seat;
use super::transfer::Sending;

/// Another member.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) id: u64,
    /// Calls that have not ended.
    pub(super) calls: u32,
    /// Its parcels that have not been answered.
    pub(super) tickets: Vec<Ticket>,
    /// The snapshot that it gets.
    pub(super) sending: Option<Sending>,
}

impl Peer {
    const fn new(id: u64) -> Self {
        Self {
            id,
            calls: 0,
            tickets: Vec::new(),
            sending: None,
        }
    }
}

impl Seat {
    /// The lane of a member. A stranger gets one that leads nowhere.
    pub(super) fn lane_of(&mut self, id: u64) -> usize {
        if let Some(lane) = self.peers.iter().position(|peer| peer.id == id) {
            return lane;
        }
        self.peers.push(Peer::new(id));
        self.lanes.add();
        self.peers.len() - 1
    }

    /// Gives each member of the node's roster a lane, and takes those of former members away.
    pub(super) fn meet(&mut self, own: u64) {
        if self.known.as_ref() == Some(self.node.roster()) {
            return;
        }
        let roster = self.node.roster().clone();
        for member in roster.iter().filter(|member| member.id != own) {
            let lane = self.lane_of(member.id);
            self.lanes.lead(lane, Some(&member.address));
        }
        for lane in 0..self.peers.len() {
            if roster.get(self.peers[lane].id).is_none() {
                self.lanes.lead(lane, None);
            }
        }
        self.known = Some(roster);
    }
}
