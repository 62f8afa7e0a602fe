//! One seed, from beginning to end: first safety under faults, then liveness without them. At the
//! end, no resource may be left in use (design §13).
//!
//! Invariant: the result of [`run_seed`] depends only on its arguments. A failed run is repeated
//! with the trace on, and the failure names the command that replays it. Called by `bin/seeds` and
//! by tests.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dunlin_core::{Check, Config, Nanos};

use crate::cluster::mutants::Mutant;
use crate::cluster::panics;
use crate::cluster::plan::Plan;
use crate::cluster::{Counts, Overdue, Phase, RpcCluster, RpcNode};
use crate::world::net::{Net, NetCounters, NetHandle, PortId};
use crate::world::record::{Fact, Recorder, See};
use crate::world::rng::Rng;
use crate::world::trace::Trace;
use crate::world::{Act, Node, World};

/// How to run a seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The planted bug of every endpoint.
    pub mutant: Option<Mutant>,
    /// Whether to keep a trace.
    pub trace: bool,
    /// Whether endpoints skip the checks of their laws.
    pub lawless: bool,
}

/// Figures of a run without a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// How its calls ended.
    pub calls: Counts,
    /// Frames by their fate.
    pub frames: NetCounters,
    /// Addresses that were proven to processes of the last phase (rule C13).
    pub proofs: u64,
    /// Sessions of these processes whose deadline passed before they were open, by handshake stage.
    pub overdue: Overdue,
    /// Iterations of event loops.
    pub iterations: u64,
    /// How long it took, in virtual time.
    pub virtual_time: Nanos,
    /// A number that changes with any change of the run.
    pub digest: u64,
}

impl Fact for Report {
    fn show(&self, see: &mut impl See) {
        see.kind("over");
        see.text("report", format_args!("{self:?}"));
    }

    fn words(&self) -> String {
        format!("the run is over: {self:?}")
    }
}

/// A run in which a checker found a fault.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The planted bug, if there was one.
    pub mutant: Option<Mutant>,
    /// A description of the fault.
    pub what: String,
    /// The end of the trace; empty if no trace was kept.
    pub trace: String,
}

impl Failure {
    /// The last `count` lines of the trace.
    pub fn last_lines(&self, count: usize) -> impl Iterator<Item = &str> {
        self.trace
            .lines()
            .skip(self.trace.lines().count().saturating_sub(count))
    }

    /// The one command that runs it again.
    pub fn replay(&self) -> String {
        match self.mutant {
            Some(mutant) => {
                format!(
                    "cargo xtask seeds --seed {} --mutant {}",
                    self.seed,
                    mutant.name()
                )
            }
            None => format!("cargo xtask seeds --seed {}", self.seed),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} failed: {}", self.seed, self.what)?;
        write!(f, "replay it with: {}", self.replay())
    }
}

impl std::error::Error for Failure {}

/// Runs a seed. If it fails, runs it again for the trace.
///
/// # Errors
/// The first broken invariant.
pub fn run_seed(seed: u64, options: Options) -> Result<Report, Box<Failure>> {
    let failure = match run_once(seed, options) {
        Err(failure) if !options.trace => failure,
        finished => return finished,
    };
    match run_once(
        seed,
        Options {
            trace: true,
            ..options
        },
    ) {
        Err(traced) => Err(traced),
        Ok(_) => {
            let what = format!("{}; not reproduced: a fault of the simulator", failure.what);
            Err(Box::new(Failure { what, ..*failure }))
        }
    }
}

fn run_once(seed: u64, options: Options) -> Result<Report, Box<Failure>> {
    run_recorded(seed, Plan::draw(seed), options, &Recorder::default())
}

/// Runs a seed once, perhaps with a variant of its plan, and records the run.
pub(crate) fn run_recorded(
    seed: u64,
    plan: Plan,
    options: Options,
    record: &Recorder,
) -> Result<Report, Box<Failure>> {
    let mut run = Run::new(seed, plan, options, record);
    let result = panics::quietly(|| catch_unwind(AssertUnwindSafe(|| run.go())));
    let what = match result {
        Ok(Ok(())) => {
            run.end_record();
            return Ok(run.report());
        }
        Ok(Err(what)) => what,
        Err(_) => format!("panic: {}", panics::last()),
    };
    let trace = match run.net.try_borrow() {
        Ok(net) => net.trace.to_string(),
        Err(_) => String::new(),
    };
    // A value may panic again when it is dropped after its code has panicked once.
    let _ = panics::quietly(|| catch_unwind(AssertUnwindSafe(|| drop(run))));
    Err(Box::new(Failure {
        seed,
        mutant: options.mutant,
        what,
        trace,
    }))
}

struct Run {
    seed: u64,
    plan: Plan,
    net: NetHandle,
    world: World<RpcCluster>,
    attacker: Rng,
}

/// A frame that was delayed when the faults ended arrives within its delay plus this time.
const LATE: Nanos = Nanos::from_millis(5);
/// Every call ends within this time after the end of the faults.
const SETTLE_LIMIT: Nanos = Nanos::from_secs(4);
/// Calls over a sound network all end within this time.
const CALM_LIMIT: Nanos = Nanos::from_secs(8);
/// All resources are returned within this time after the sessions have ended.
const CLOSE_LIMIT: Nanos = Nanos::from_secs(2);
/// A process that has not issued its calls after this time lacks memory or sessions.
const TIGHT_PATIENCE: Nanos = Nanos::from_millis(50);
/// After the faults, every process answers a request within this time.
const SILENCE: Nanos = Nanos::from_millis(30);
const STEP: Nanos = Nanos::from_millis(2);
/// Interval at which losses are looked for in the calm phase.
const CALM_STEP: Nanos = Nanos::from_micros(100);

impl Run {
    fn new(seed: u64, mut plan: Plan, options: Options, record: &Recorder) -> Self {
        plan.mutant = options.mutant;
        if options.lawless {
            plan.endpoint.check = Check::Never;
        }
        // These streams are independent of each other and of the plan's, so that more draws from
        // one do not change the others.
        let mut seeds = Rng::new(!seed);
        let net = Net::new(
            plan.net.clone(),
            seeds.next_u64(),
            Trace::new(options.trace),
        );
        net.borrow_mut().record = record.clone();
        let config = endpoint_config(&plan, options);
        let (seed_of_cluster, record) = (seeds.next_u64(), record.clone());
        let cluster = RpcCluster::new(plan.clone(), config, seed_of_cluster, options.trace, record);
        let mut world = World::new(&net, cluster, seeds.next_u64());
        for processes in &plan.hosts {
            let host = world.add_host();
            for _ in 0..*processes {
                world.add_port(host);
            }
        }
        for port in 0..world.ports() {
            world.act(Act::Boot(PortId(port)));
        }
        Self {
            seed,
            plan,
            net,
            world,
            attacker: Rng::new(seeds.next_u64()),
        }
    }

    fn go(&mut self) -> Result<(), String> {
        self.chaos()?;
        self.note_states();
        self.settle()?;
        if !self.plan.insider {
            self.calm()?;
        }
        self.note_states();
        self.close()
    }

    /// Runs the planned faults and attacks.
    fn chaos(&mut self) -> Result<(), String> {
        {
            let mut net = self.net.borrow_mut();
            net.set_rates(self.plan.rates);
            if !self.plan.attacks.is_empty() {
                net.tap().start();
            }
        }
        for (at, act) in &self.plan.acts {
            self.world.at(*at, *act);
        }
        for (index, (at, _)) in self.plan.attacks.iter().enumerate() {
            self.world.at(*at, Act::Ask(index as u64));
        }
        let end = self.plan.chaos_end;
        self.advance_to(end)
    }

    /// Ends the faults: pending calls must end.
    fn settle(&mut self) -> Result<(), String> {
        self.world.cluster.set_phase(Phase::Settle, true);
        self.each(|node| node.begin(Phase::Settle));
        self.world.act(Act::Heal);
        let (start, limit) = (self.world.now(), self.world.now() + SETTLE_LIMIT);
        let rates = self.plan.rates;
        let quiet = start + rates.reorder_by.max(rates.spike_by) + LATE;
        let trusted = quiet + self.plan.endpoint.failure_timeout + SILENCE;
        self.world.cluster.trust_from(trusted);
        self.advance_to(quiet)?;
        // Calls that an insider has attacked must also end, if only with an error.
        while self.world.cluster.pending() != 0 || !self.is_quiet() {
            if self.world.now() > limit {
                return Err(format!("after the faults: {}", self.unrest()));
            }
            self.advance(STEP)?;
        }
        Ok(())
    }

    /// Makes new calls over a sound network, which must succeed.
    fn calm(&mut self) -> Result<(), String> {
        let before = self.losses();
        self.world.cluster.set_phase(Phase::Calm, false);
        self.each(|node| node.begin(Phase::Calm));
        let (start, limit) = (self.world.now(), self.world.now() + CALM_LIMIT);
        while self.left_to_issue(start) != 0
            || self.world.cluster.pending() != 0
            || !self.is_quiet()
        {
            if self.world.now() > limit {
                let left = self.left_to_issue(start);
                return Err(format!("calm: {left} calls not issued, {}", self.unrest()));
            }
            self.advance(CALM_STEP)?;
            let lossy = self.losses() != before;
            self.world.cluster.set_phase(Phase::Calm, lossy);
        }
        Ok(())
    }

    /// Ends the sessions. No resource may be left in use.
    fn close(&mut self) -> Result<(), String> {
        self.world.cluster.set_phase(Phase::Close, true);
        let limit = self.world.now() + CLOSE_LIMIT;
        loop {
            self.each(RpcNode::disconnect_all);
            self.advance(STEP)?;
            let left = self.leftovers();
            if left.is_empty() {
                break;
            }
            if self.world.now() > limit {
                return Err(format!("left over at the end: {left}"));
            }
        }
        self.each(|node| node.flush());
        self.check()
    }

    fn each(&mut self, mut visit: impl FnMut(&mut RpcNode)) {
        for port in (0..self.world.ports()).map(PortId) {
            if let Some(node) = self.world.node(port) {
                visit(node);
            }
            self.world.poke(port);
        }
    }

    fn advance(&mut self, span: Nanos) -> Result<(), String> {
        self.advance_to(self.world.now() + span)
    }

    fn advance_to(&mut self, end: Nanos) -> Result<(), String> {
        while let Some(number) = self.world.run_until(end) {
            self.attack(number);
        }
        self.check()
    }

    fn check(&mut self) -> Result<(), String> {
        if let Some(what) = self.net.borrow().violation() {
            return Err(what.to_owned());
        }
        self.world.cluster.take_violation().map_or(Ok(()), Err)
    }

    fn attack(&mut self, number: u64) {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(&(_, attack)) = self.plan.attacks.get(index) else {
            return;
        };
        let mut net = self.net.borrow_mut();
        let (ports, data_size) = (self.world.ports(), self.plan.net.data_size);
        if let Some((to, bytes)) = net
            .tap()
            .forge(attack, ports, data_size, &mut self.attacker)
        {
            net.note(|| format!("{attack:?} to {}", to.0));
            net.inject(to, &bytes);
        }
    }

    /// Whether no session has packets or calls in flight or waiting, and all credits are back.
    fn is_quiet(&mut self) -> bool {
        (0..self.world.ports()).all(|port| {
            self.world
                .node(PortId(port))
                .is_none_or(|node| node.busy_session().is_none())
        })
    }

    /// Number of calls of the calm phase, which began at `start`, that have not been issued. Calls
    /// do not count if their process may never be able to issue them, because memory or sessions
    /// are short.
    fn left_to_issue(&mut self, start: Nanos) -> u32 {
        if self.plan.tight && self.world.now().since(start) > TIGHT_PATIENCE {
            return 0;
        }
        let ports = (0..self.world.ports()).map(PortId);
        ports
            .map(|port| self.world.node(port).map_or(0, |node| node.left_to_issue()))
            .sum()
    }

    /// Describes why the world is not quiet.
    fn unrest(&mut self) -> String {
        let mut out = self.world.cluster.stuck();
        for port in 0..self.world.ports() {
            if let Some(busy) = self
                .world
                .node(PortId(port))
                .and_then(|node| node.busy_session())
            {
                out.push_str(&format!(" port {port} has {busy:?}"));
            }
        }
        out
    }

    fn leftovers(&mut self) -> String {
        let mut out = String::new();
        if self.world.cluster.pending() != 0 {
            out.push_str(&self.world.cluster.stuck());
        }
        for port in 0..self.world.ports() {
            let Some(node) = self.world.node(PortId(port)) else {
                continue;
            };
            let (sessions, bufs) = node.in_use();
            let (_, budget) = node.receiving();
            if sessions != 0 || bufs != 0 || budget != 0 {
                out.push_str(&format!(
                    " port {port}: {sessions} sessions, {bufs} msgbufs, {budget} bytes of budget;"
                ));
            }
            if let Some(left) = node.left() {
                out.push_str(&format!(" port {port}: {left};"));
            }
        }
        match self.net.borrow().descriptors() {
            0 => out,
            open => out + &format!(" {open} descriptors are open"),
        }
    }

    /// Number of packets lost although no faults strike. Bounded queues still overflow, and an
    /// endpoint that receives a packet for a session that is not connected yet drops the rest of
    /// the frame (rule W11).
    fn losses(&mut self) -> u64 {
        let ports = (0..self.world.ports()).map(PortId);
        let unknown: u64 = ports
            .map(|port| {
                self.world
                    .node(port)
                    .map_or(0, |node| node.unknown_sessions())
            })
            .sum();
        let counters = self.net.borrow().counters;
        unknown + counters.queue_full + counters.nic_full + counters.rx_full
    }

    /// Records the visible state of all endpoints.
    fn note_states(&mut self) {
        for port in (0..self.world.ports()).map(PortId) {
            if let Some(node) = self.world.node(port) {
                node.note_state();
            }
        }
    }

    /// Records how the run ends.
    fn end_record(&mut self) {
        for port in (0..self.world.ports()).map(PortId) {
            if let Some(node) = self.world.node(port) {
                node.on_end();
            }
        }
        let report = self.report();
        let net = self.net.borrow();
        net.record.note_world(net.now(), &report);
    }

    fn report(&mut self) -> Report {
        let (mut proofs, mut overdue) = (0, Overdue::default());
        self.each(|node| {
            proofs += node.proofs();
            overdue.add(node.overdue());
        });
        let net = self.net.borrow();
        Report {
            seed: self.seed,
            calls: self.world.cluster.counts(),
            frames: net.counters,
            proofs,
            overdue,
            iterations: self.world.iterations(),
            virtual_time: net.now(),
            digest: net.digest(),
        }
    }
}

#[cfg(feature = "mutants")]
fn endpoint_config(plan: &Plan, options: Options) -> Config {
    Config {
        mutant: options.mutant.and_then(Mutant::in_core),
        ..plan.endpoint.clone()
    }
}

#[cfg(not(feature = "mutants"))]
fn endpoint_config(plan: &Plan, _options: Options) -> Config {
    plan.endpoint.clone()
}

#[cfg(test)]
mod tests;
