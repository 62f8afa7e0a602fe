//! Faults of processes, networks and disks.

use dunlin_core::Nanos;
use dunlin_replica::{Image, Node};
use dunlin_sim::world::Act;
use dunlin_sim::{HostId, PortId};

use super::{CHAOS, Event, Stage};
use crate::processes::Process;
#[cfg(feature = "mutants")]
use crate::sum::Bug;

impl Stage {
    pub(super) fn plan_fault(&mut self) {
        let at = Nanos(self.rng.below(CHAOS.0));
        self.schedule(at, Event::Strike);
    }

    /// Begins a fault; half of the faults hit the leader.
    pub(super) fn strike(&mut self) {
        let until = self.world.now() + Nanos::from_micros(self.rng.log_between(20_000, 400_000));
        let any = self.rng.index(self.replicas);
        let aims = self.rng.one_in(2);
        let leader = self.leader().filter(|_| aims);
        let victim = leader.unwrap_or(any);
        let host = HostId(victim);
        let kinds = if self.world.cluster.disks.is_empty() {
            6
        } else {
            9
        };
        match self.rng.below(kinds) {
            8 => self.fill(victim, until),
            // Only for a running replica: a process that starts would end at once, and be started
            // again.
            6 | 7 if self.replica(victim).is_some() => self.world.cluster.disks[victim].fail_next(),
            0 | 1 => self.crash(victim),
            2 => self.pause(host, until),
            3 => {
                self.sum.cuts += 1;
                self.world.act(Act::Unplug(host));
                self.schedule(until, Event::Act(Act::Plug(host)));
            }
            4 => {
                // When the replica resumes, it has an old clock, and is cut off from the others for
                // a while.
                self.pause(host, until);
                self.cut(victim, until + Nanos::from_millis(100));
            }
            _ => self.cut(victim, until),
        }
    }

    fn pause(&mut self, host: HostId, until: Nanos) {
        self.sum.pauses += 1;
        self.world.act(Act::Pause(host));
        self.schedule(until, Event::Act(Act::Resume(host)));
    }

    fn fill(&mut self, victim: usize, until: Nanos) {
        self.sum.full_disks += 1;
        self.world.cluster.disks[victim].fill(true);
        self.schedule(until, Event::Room(victim));
    }

    /// Crashes the replicas whose disks have failed.
    pub(super) fn end_failed(&mut self) {
        for port in 0..self.replicas {
            let node = self.world.node(PortId(port));
            if let Some(Process::Replica(node)) = node
                && node.has_ended
            {
                self.sum.failed_disks += 1;
                self.crash(port);
            }
        }
    }

    /// The replica that leads in the highest term.
    pub(super) fn leader(&mut self) -> Option<usize> {
        let mut leader = None;
        for port in 0..self.replicas {
            let term = self.replica(port).and_then(|rpc| {
                let node = rpc.app().node()?;
                node.leads().then_some(node.term())
            });
            leader = leader.max(term.map(|term| (term, port)));
        }
        leader.map(|(_, port)| port)
    }

    /// Cuts a replica, and some others with it, off from the rest, in one direction or in both.
    pub(super) fn cut(&mut self, victim: usize, until: Nanos) {
        self.sum.cuts += 1;
        let rng = &mut self.rng;
        let is_near = |port| port == victim || rng.one_in(3);
        let is_near: Vec<bool> = (0..self.replicas).map(is_near).collect();
        let (out, back) = *self.rng.pick(&[(true, true), (true, false), (false, true)]);
        for near in (0..self.replicas).filter(|it| is_near[*it]).map(HostId) {
            for far in (0..self.replicas).filter(|it| !is_near[*it]).map(HostId) {
                if out {
                    self.world.act(Act::Block(near, far));
                    self.schedule(until, Event::Act(Act::Unblock(near, far)));
                }
                if back {
                    self.world.act(Act::Block(far, near));
                    self.schedule(until, Event::Act(Act::Unblock(far, near)));
                }
            }
        }
    }

    fn crash(&mut self, victim: usize) {
        if self.replica(victim).is_none() {
            return;
        }
        self.kill(victim);
        self.sum.restarts += 1;
        let down = Nanos::from_micros(self.rng.log_between(100, 400_000));
        self.schedule(self.world.now() + down, Event::Start(victim));
    }

    /// Ends the process of a running replica. Its peers learn that soon.
    pub(super) fn kill(&mut self, victim: usize) {
        let Some(rpc) = self.replica(victim) else {
            return;
        };
        let image = rpc.app().node().map(Node::image);
        match self.world.cluster.disks.get_mut(victim) {
            Some(disk) => disk.crash(),
            None => self.world.cluster.images[victim] = image.map(|it| self.survivor(it)),
        }
        self.world.act(Act::Crash(PortId(victim)));
        let now = self.world.now();
        let ties = std::mem::take(&mut self.ties);
        for tie in ties {
            match tie.ends.iter().position(|(port, ..)| port.0 == victim) {
                Some(dead) => {
                    let (port, life, session) = tie.ends[1 - dead];
                    let at = now + Nanos(self.rng.below(5_000_000));
                    self.schedule(at, Event::Lost(port, life, session));
                }
                None => self.ties.push(tie),
            }
        }
    }

    /// The log and items that survive a crash.
    fn survivor(&mut self, image: Image) -> Image {
        #[cfg(feature = "mutants")]
        if self.bug == Bug::LostTail {
            let mut image = image;
            image.lose_tail(self.rng.index(4));
            return image;
        }
        let _ = self.bug;
        image
    }
}
