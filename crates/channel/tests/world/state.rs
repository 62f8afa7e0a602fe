//! The world of a run: its time, its due events, its servers, and the driver of the channel.

use std::collections::BTreeMap;

use dunlin_core::{Nanos, Rng};

use crate::draw::Draw;
use crate::driver::{self, Driver};
use crate::plan::{CHAOS, Plan};
use crate::servers::{Fault, Server};
use dunlin_channel::Config;

/// An event at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Call,
    Cancel(usize),
    Strike(Fault),
    /// News for the driver.
    Driver(driver::Event),
}

pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) now: Nanos,
    pub(crate) events: BTreeMap<(Nanos, u64), Event>,
    pub(crate) sequence: u64,
    pub(crate) actions: u64,
    pub(crate) steps: u64,
    pub(crate) plan: Plan,
    pub(crate) servers: Vec<Server>,
    pub(crate) driver: Driver,
}

impl World {
    pub(crate) fn new(seed: u64, change: impl FnOnce(&mut Config)) -> Self {
        let mut rng = Rng::new(seed);
        let mut plan = Plan::draw(&mut rng);
        change(&mut plan.config);
        let count = 1 + rng.below(4);
        let servers = (0..count).map(|at| Server::draw(at, &mut rng)).collect();
        let driver = Driver::new(plan.config, rng.next_u64());
        let mut world = Self {
            rng,
            now: Nanos::ZERO,
            events: BTreeMap::new(),
            sequence: 0,
            actions: 0,
            steps: 0,
            plan,
            servers,
            driver,
        };
        world.draw_events();
        world
    }

    fn draw_events(&mut self) {
        let mut at = Nanos::ZERO;
        for _ in 0..self.plan.calls {
            at += Nanos(self.rng.next_u64() % (2 * self.plan.gap.0));
            self.schedule(at, Event::Call);
        }
        for _ in 0..self.plan.faults {
            let at = Nanos(self.rng.next_u64() % CHAOS.0);
            let server = self.rng.index(self.servers.len());
            let fault = Fault::draw(server, &mut self.rng);
            self.schedule(at, Event::Strike(fault));
        }
        self.schedule(CHAOS, Event::Strike(Fault::Heal));
    }

    pub(crate) fn schedule(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        self.events.insert((at.max(self.now), self.sequence), event);
    }
}
