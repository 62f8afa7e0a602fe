//! Changes of the members.

use dunlin_replica::{Order, Roster};
use dunlin_sim::PortId;

use super::{Stage, id_of, member};

impl Stage {
    /// The members that a replica knows.
    pub(super) fn roster(&mut self, port: usize) -> Option<Roster> {
        let node = self.replica(port)?.app().node()?;
        Some(node.roster().clone())
    }

    /// Makes some processes join and some members leave, but never the leader.
    pub(super) fn change_members(&mut self) {
        let Some(leader) = self.leader() else {
            return;
        };
        let Some(roster) = self.roster(leader) else {
            return;
        };
        let count = 1 + self.rng.index(2);
        let all = 0..self.replicas;
        let spares: Vec<usize> = all.filter(|it| self.is_spare(*it)).take(count).collect();
        for spare in &spares {
            self.join(*spare, leader, &roster);
        }
        let voters = roster
            .iter()
            .filter(|it| roster.part(it.id).is_some_and(|it| it.is_voter));
        let others: Vec<u64> = voters
            .map(|it| it.id)
            .filter(|id| *id != id_of(leader))
            .collect();
        // At least three members are left.
        let most = (others.len() + 1 + spares.len()).saturating_sub(3).min(2);
        for id in others.into_iter().take(self.rng.index(most + 1)) {
            self.order(leader, Order::Leave(id));
        }
    }

    fn is_spare(&mut self, port: usize) -> bool {
        self.replica(port)
            .is_some_and(|rpc| rpc.app().node().is_none())
    }

    pub(super) fn join(&mut self, spare: usize, leader: usize, roster: &Roster) {
        let roster = roster.for_joining(member(spare));
        let seated = self
            .replica(spare)
            .map(|rpc| rpc.app_mut().on_join(roster.clone()));
        assert_eq!(seated, Some(Ok(())), "a spare has no seat");
        self.world.cluster.rosters[spare] = Some(roster);
        self.world.poke(PortId(spare));
        self.order(leader, Order::Join(member(spare)));
    }

    pub(super) fn order(&mut self, leader: usize, order: Order) {
        if let Some(rpc) = self.replica(leader) {
            // It may no longer lead.
            let _ = rpc.app_mut().on_order(order);
            self.world.poke(PortId(leader));
        }
    }
}
