//! Records of latencies: for each load, of all its RPCs and round trips; for each endpoint, of its
//! own RPCs.
//!
//! Invariant: RPCs that end before the warm-up is over go to the opening, the others to the steady
//! stage. Called by `node`.

use std::cell::RefCell;
use std::rc::Rc;

use dunlin_core::Nanos;
use hdrhistogram::{Counter, Histogram};

/// Number of stages of a run: the opening, and the part that counts.
pub(super) const STAGES: usize = 2;
/// Three digits: no quantile is wrong by more than a thousandth.
const DIGITS: u8 = 3;
/// Two digits for the records of a single endpoint, because there may be thousands of endpoints: no
/// quantile is wrong by more than a hundredth.
const OWN_DIGITS: u8 = 2;
/// The longest time that is recorded; a longer one is recorded as this time.
const LONGEST_NS: u64 = 60_000_000_000;

/// The time of an RPC that succeeded. `whole`: from the call (in an open loop, from its arrival) to
/// its continuation. `across` ends, and `back` begins, when the server answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Took {
    pub(super) whole: Nanos,
    pub(super) across: Nanos,
    pub(super) back: Nanos,
}

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
    pub(super) latency: Ways<u64>,
    pub(super) rtt: Histogram<u64>,
}

impl Stats {
    pub(super) fn new(warm_up: Nanos) -> SharedStats {
        let stage = StageStats {
            completed: 0,
            failed: 0,
            latency: Ways::new(histogram),
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
    pub(super) fn on_end(&mut self, now: Nanos, took: &Took) {
        let stage = self.stage(now);
        stage.completed += 1;
        stage.latency.record(took);
    }

    /// Records an RPC that failed.
    pub(super) fn on_failure(&mut self, now: Nanos) {
        self.stage(now).failed += 1;
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

/// Latencies of one endpoint's RPCs, stage by stage. They take no memory before the first RPC ends.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    warm_up: Nanos,
    stages: [Option<Ways<u32>>; STAGES],
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
    pub(super) fn on_end(&mut self, now: Nanos, took: &Took) {
        let times = &mut self.stages[usize::from(now >= self.warm_up)];
        times
            .get_or_insert_with(|| Ways::new(own_histogram))
            .record(took);
    }

    /// Records an RPC that failed.
    pub(super) fn on_failure(&mut self, now: Nanos) {
        self.failed[usize::from(now >= self.warm_up)] += 1;
    }

    /// The times of a stage, if there are any.
    pub(super) fn of(&self, stage: usize) -> Option<&Ways<u32>> {
        self.stages[stage].as_ref()
    }

    /// The number of a stage's RPCs that failed.
    pub(super) fn failed(&self, stage: usize) -> u64 {
        self.failed[stage]
    }
}

/// Records of the times of RPCs, and of their two parts.
#[derive(Clone, Debug)]
pub(super) struct Ways<C: Counter> {
    pub(super) whole: Histogram<C>,
    pub(super) across: Histogram<C>,
    pub(super) back: Histogram<C>,
}

impl<C: Counter> Ways<C> {
    fn new(histogram: fn() -> Histogram<C>) -> Self {
        Self {
            whole: histogram(),
            across: histogram(),
            back: histogram(),
        }
    }

    fn record(&mut self, took: &Took) {
        for (times, time) in [
            (&mut self.whole, took.whole),
            (&mut self.across, took.across),
            (&mut self.back, took.back),
        ] {
            let time = time.0.min(LONGEST_NS);
            times.record(time).expect("it has room for this, or grows");
        }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are in order")
}

fn own_histogram() -> Histogram<u32> {
    let mut times = Histogram::new(OWN_DIGITS).expect("two digits are few");
    times.auto(true);
    times
}
