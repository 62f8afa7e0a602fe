//! A cluster of endpoints with a workload and checkers, which the simulated world runs to test the
//! protocol (design §13).
//!
//! Each process issues calls of every kind to the others and serves theirs. Sessions go both ways,
//! end, and are opened again. The ledger records all of this and knows in which ways each call may
//! end. Called by `run`.

mod app;
mod commands;
mod control;
pub mod differential;
mod fact;
mod handlers;
mod judge;
mod ledger;
mod message;
pub mod mutants;
mod node;
mod pacing;
mod panics;
mod peering;
pub mod plan;
pub mod run;
mod ways;
mod workers;

use dunlin_control::Overdue;
use dunlin_core::{Config, Nanos};

pub use handlers::PlannedPanic;
pub use ledger::{Counts, Phase};
pub use message::Kind;
pub use node::RpcNode;

use crate::cluster::plan::{NEVER_FORGET, Plan};
use crate::world::net::NetHandle;
use crate::world::record::Recorder;
use crate::world::rng::Rng;
use crate::world::{Cluster, ProcessId};
use ledger::{Allowed, Shared};

/// Starts the processes of a plan and keeps their record.
#[derive(Debug)]
pub struct RpcCluster {
    plan: Plan,
    config: Config,
    seeds: Rng,
    shared: Shared,
}

impl RpcCluster {
    /// A cluster for `plan` whose endpoints have `config`. `traced`: keep notes for a trace.
    /// `record` gets the facts of its processes.
    pub(crate) fn new(
        plan: Plan,
        config: Config,
        seed: u64,
        traced: bool,
        record: Recorder,
    ) -> Self {
        let shared = Shared::new(
            Allowed {
                anything: plan.insider,
                shortage: plan.tight,
                forgetting: plan.endpoint.response_hold < NEVER_FORGET,
            },
            traced,
            record,
        );
        Self {
            plan,
            config,
            seeds: Rng::new(seed),
            shared,
        }
    }

    /// The current phase of the run.
    pub fn phase(&self) -> Phase {
        self.shared.lock().phase
    }

    /// Begins a phase of the run. `lossy`: packets may still be lost in it.
    pub fn set_phase(&mut self, phase: Phase, lossy: bool) {
        let mut ledger = self.shared.lock();
        ledger.phase = phase;
        ledger.lossy = lossy;
    }

    /// Notes that from `at` on, no process has a reason to declare another one dead.
    pub fn trust_from(&mut self, at: Nanos) {
        self.shared.lock().trusted_from = at;
    }

    /// The number of calls that have not ended.
    pub fn pending(&self) -> usize {
        self.shared.lock().pending()
    }

    /// A description of the calls that have not ended.
    pub fn stuck(&self) -> String {
        self.shared.lock().stuck()
    }

    /// How calls have ended so far.
    pub fn counts(&self) -> Counts {
        self.shared.lock().counts
    }

    /// The first invariant that a checker found broken.
    pub fn take_violation(&mut self) -> Option<String> {
        self.shared.lock().take_violation()
    }
}

impl Cluster for RpcCluster {
    type Node = RpcNode;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> RpcNode {
        let rng = self.seeds.fork();
        let (config, shared) = (self.config.clone(), self.shared.clone());
        let mut node = RpcNode::boot(net, process, &self.plan, config, shared, rng);
        let phase = self.phase();
        node.begin(phase);
        node
    }

    fn on_end(&mut self, process: ProcessId) {
        self.shared.lock().end_process(process);
    }
}
