//! The run of a seed: a phase with faults, then a phase without them, in which every address must
//! serve again and every call must end.
//!
//! Invariant: the result of [`run_seed`] depends only on its arguments. Called by `bin/seeds` and
//! by tests.

use std::fmt;
use std::rc::Rc;

use dunlin_channel::Counters;
use dunlin_core::Nanos;

use super::faults::Fault;
use super::plan::{CHAOS, END, Plan, SETTLE};
use super::shares::Judged;
use super::stage::{Event, Members, Stage, process};
use crate::world::net::{FaultRates, Net, PortId};
use crate::world::rng::Rng;
use crate::world::{Act, World};

/// How to run a seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The planted bug of every channel, or of every other process.
    #[cfg(feature = "mutants")]
    pub mutant: Option<super::bug::Mutant>,
}

/// Figures of a run without a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Counters, summed over its channels.
    pub counters: Counters,
    /// Judgements of shares.
    pub judged: Judged,
    /// Iterations of event loops.
    pub iterations: u64,
    /// A number that changes with any change of the run.
    pub digest: u64,
}

/// A run in which a checker found a fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The option of `seeds` that repeats it; empty if a script repeats it.
    pub option: &'static str,
    /// A description of the fault.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} failed: {}", self.seed, self.what)?;
        match self.option {
            "" => Ok(()),
            option => write!(
                f,
                "\nreplay it with: cargo xtask seeds {option} --seed {}",
                self.seed
            ),
        }
    }
}

impl std::error::Error for Failure {}

/// Runs a seed.
///
/// # Errors
/// The first broken invariant.
pub fn run_seed(seed: u64, options: Options) -> Result<Report, Failure> {
    let mut run = Run::new(seed, options);
    match run.go() {
        Ok(()) => Ok(run.report()),
        Err(what) => Err(Failure {
            seed,
            option: "--channel",
            what,
        }),
    }
}

/// A world in progress.
pub(super) struct Run {
    seed: u64,
    plan: Plan,
    stage: Stage,
    /// Faults strike until this time.
    chaos: Nanos,
}

/// The stage takes clients' orders at least at this interval.
const STEP: Nanos = Nanos::from_micros(500);

impl Run {
    fn new(seed: u64, options: Options) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::draw(seed, &mut rng);
        #[cfg(feature = "mutants")]
        let (mutant, bug) = options.mutant.map_or((None, None), |it| it.parts());
        #[cfg(feature = "mutants")]
        let plan = Plan {
            channel: dunlin_channel::Config {
                mutant,
                ..plan.channel
            },
            bug,
            ..plan
        };
        #[cfg(not(feature = "mutants"))]
        let Options {} = options;
        Self::of(seed, plan, CHAOS, rng)
    }

    /// Makes the run of this plan. Faults strike until the time `chaos`.
    pub(super) fn of(seed: u64, plan: Plan, chaos: Nanos, mut rng: Rng) -> Self {
        let net = Net::sound(rng.next_u64());
        net.borrow_mut().set_rates(plan.rates);
        let members = Members {
            plan: plan.clone(),
            desk: Rc::default(),
            ledger: Rc::default(),
            rng: rng.fork(),
        };
        let mut world = World::new(&net, members, rng.next_u64());
        for _ in 0..plan.servers.len() + plan.clients {
            let host = world.add_host();
            let port = world.add_port(host);
            world.act(Act::Boot(port));
        }
        let stage = Stage::new(world, plan.servers.len(), rng);
        Self {
            seed,
            plan,
            stage,
            chaos,
        }
    }

    fn go(&mut self) -> Result<(), String> {
        let servers = self.plan.servers.len();
        for _ in 0..self.plan.faults {
            let at = Nanos(self.stage.rng.below(CHAOS.0));
            let fault = Fault::draw(servers, &mut self.stage.rng);
            self.stage.schedule(at, Event::Strike(fault));
        }
        if let Some((server, at)) = self.plan.leaves {
            let leave = Event::Strike(Fault::List(server, false));
            self.stage.schedule(at, leave);
        }
        self.run_until(CHAOS)?;
        self.stage
            .world
            .net()
            .borrow_mut()
            .set_rates(FaultRates::NONE);
        self.stage.heal();
        self.run_until(SETTLE)?;
        self.each(|channel| channel.ill().map_or(Ok(()), Err))?;
        if self.stage.rng.one_in(2) {
            for port in self.clients() {
                if let Some(client) = self.stage.client(port) {
                    client.close();
                }
                self.stage.world.poke(port);
            }
        }
        self.run_until(END)?;
        self.each(|channel| match channel.under_way() {
            0 => Ok(()),
            left => Err(format!("{left} attempts have not ended")),
        })?;
        for port in self.clients() {
            let client = self.stage.client(port);
            client.and_then(|it| it.left_over()).map_or(Ok(()), Err)?;
        }
        let now = self.stage.world.now();
        self.each(|channel| channel.judge_shares(now))?;
        self.stage.world.cluster.ledger.borrow_mut().check_all();
        self.check()
    }

    fn clients(&self) -> impl Iterator<Item = PortId> + use<> {
        let servers = self.plan.servers.len();
        (servers..servers + self.plan.clients).map(PortId)
    }

    /// Number of calls that clients will begin.
    pub(super) fn not_begun(&mut self) -> usize {
        let mut to_begin = 0;
        for port in self.clients() {
            let channels = self.stage.channels(port).iter();
            to_begin += channels.map(|it| it.to_begin()).sum::<usize>();
        }
        to_begin
    }

    /// The number of calls that have not begun or not ended, and of attempts in flight.
    pub(super) fn left(&mut self) -> usize {
        let mut left = self.stage.world.cluster.ledger.borrow().open();
        for port in self.clients() {
            let channels = self.stage.channels(port).iter();
            left += channels
                .map(|it| it.to_begin() + it.under_way())
                .sum::<usize>();
        }
        left
    }

    /// The world, between two steps.
    pub(super) fn stage(&mut self) -> &mut Stage {
        &mut self.stage
    }

    fn each(
        &mut self,
        mut visit: impl FnMut(&mut super::client::Channel) -> Result<(), String>,
    ) -> Result<(), String> {
        for port in self.clients() {
            self.stage
                .channels(port)
                .iter_mut()
                .try_for_each(&mut visit)?;
        }
        Ok(())
    }

    pub(super) fn run_until(&mut self, end: Nanos) -> Result<(), String> {
        while self.stage.world.now() < end {
            let now = self.stage.world.now();
            let next = self.stage.next().unwrap_or(end).max(now);
            let step = next.min(now + STEP).min(end);
            self.stage.world.run_until(step);
            self.each(|channel| {
                channel.check(step);
                Ok(())
            })?;
            self.check()?;
            self.stage.take_orders();
            while let Some(event) = self.stage.due(self.stage.world.now()) {
                self.on_event(event);
            }
        }
        Ok(())
    }

    fn on_event(&mut self, event: Event) {
        let stage = &mut self.stage;
        match event {
            Event::Strike(fault) if stage.world.now() < self.chaos => stage.strike(fault),
            // The world is now without faults, so none strikes.
            Event::Strike(_) => {}
            Event::Connect(client, line, server) => stage.connect(client, line, server),
            Event::LookedUp(client, channel) => stage.look_up(client, channel),
            Event::Lost(at, reason) => stage.lose(at, reason),
            Event::Draining(at) => {
                let made = stage.sessions[at];
                let server = process(made.server, made.life);
                if let Some(client) = stage.client(made.client).filter(|_| made.is_open) {
                    client.on_draining(made.line, server);
                }
                stage.world.poke(made.client);
            }
            Event::Ended(server, life, far) => stage.end_far(server, life, far),
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(what) = self.stage.world.net().borrow().violation() {
            return Err(what.to_owned());
        }
        let mut ledger = self.stage.world.cluster.ledger.borrow_mut();
        ledger.take_violation().map_or(Ok(()), Err)
    }

    pub(super) fn report(&mut self) -> Report {
        let (mut counters, mut judged) = (Counters::default(), Judged::default());
        for port in self.clients() {
            for channel in self.stage.channels(port) {
                counters = counters.plus(&channel.counters());
                judged = judged.plus(channel.judged());
            }
        }
        Report {
            seed: self.seed,
            counters,
            judged,
            iterations: self.stage.world.iterations(),
            digest: self.stage.world.net().borrow().digest(),
        }
    }
}

#[cfg(test)]
mod tests;
