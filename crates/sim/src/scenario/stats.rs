//! Records of latencies: for each load, those of all its RPCs and round trips; for each endpoint,
//! those of its own RPCs.
//!
//! Invariant: RPCs that end before the warm-up is over go to the opening, the others to the steady
//! stage. Called by `node`.

use std::cell::RefCell;
use std::rc::Rc;

use dunlin_core::Nanos;
use hdrhistogram::Histogram;

/// Number of stages of a run: the opening, and the part that counts.
pub(super) const STAGES: usize = 2;
/// Three digits: no quantile is wrong by more than a thousandth.
const DIGITS: u8 = 3;
/// Two digits for the records of a single endpoint, because there may be thousands of endpoints: no
/// quantile is wrong by more than a hundredth.
const OWN_DIGITS: u8 = 2;
/// Longer times count as this.
const LONGEST_NS: u64 = 60_000_000_000;

/// Shared by the endpoints of one load.
pub(super) type SharedStats = Rc<RefCell<Stats>>;

/// Records of one load.
#[derive(Debug)]
pub(super) struct Stats {
    warm_up: Nanos,
    pub(super) stages: [StageStats; STAGES],
    /// The first breach of an invariant.
    pub(super) violation: Option<String>,
}

/// Records of one stage.
#[derive(Clone, Debug)]
pub(super) struct StageStats {
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) latency: Histogram<u64>,
    pub(super) rtt: Histogram<u64>,
}

impl Stats {
    pub(super) fn new(warm_up: Nanos) -> SharedStats {
        let stage = StageStats {
            completed: 0,
            failed: 0,
            latency: histogram(),
            rtt: histogram(),
        };
        Rc::new(RefCell::new(Self {
            warm_up,
            stages: [stage.clone(), stage],
            violation: None,
        }))
    }

    fn stage(&mut self, now: Nanos) -> &mut StageStats {
        &mut self.stages[usize::from(now >= self.warm_up)]
    }

    /// Records the end of an RPC.
    pub(super) fn on_end(&mut self, now: Nanos, took: Nanos, failed: bool) {
        let stage = self.stage(now);
        if failed {
            stage.failed += 1;
        } else {
            stage.completed += 1;
            stage.latency.saturating_record(took.0);
        }
    }

    /// Records a measured round trip.
    pub(super) fn on_rtt(&mut self, now: Nanos, rtt: Nanos) {
        self.stage(now).rtt.saturating_record(rtt.0);
    }

    /// Notes the breach of an invariant.
    pub(super) fn violate(&mut self, what: &str) {
        self.violation.get_or_insert_with(|| what.to_owned());
    }
}

/// Latencies of the RPCs of one endpoint, stage by stage. They take no memory before the first RPC
/// ends.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    warm_up: Nanos,
    stages: [Option<Histogram<u32>>; STAGES],
    failed: [u64; STAGES],
}

impl Latencies {
    pub(super) fn new(warm_up: Nanos) -> Self {
        Self {
            warm_up,
            stages: [None, None],
            failed: [0; STAGES],
        }
    }

    /// Records the end of an RPC.
    pub(super) fn on_end(&mut self, now: Nanos, took: Nanos, failed: bool) {
        let stage = usize::from(now >= self.warm_up);
        if failed {
            self.failed[stage] += 1;
            return;
        }
        let place = &mut self.stages[stage];
        let times = place.get_or_insert_with(|| {
            let mut times = Histogram::new(OWN_DIGITS).expect("two digits are few");
            times.auto(true);
            times
        });
        let took = took.0.min(LONGEST_NS);
        times.record(took).expect("it grows as it must");
    }

    /// The times of a stage, if there are any.
    pub(super) fn of(&self, stage: usize) -> Option<&Histogram<u32>> {
        self.stages[stage].as_ref()
    }

    /// RPCs of a stage that failed.
    pub(super) fn failed(&self, stage: usize) -> u64 {
        self.failed[stage]
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are in order")
}
