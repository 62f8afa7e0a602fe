//! The cost of reading a clock: the time stamp counter, and the clock of the standard library.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::ticks;
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;

/// Reads the clocks.
pub(crate) const ROLE: Role = Role::new("clock", run);

/// Number of reads between two checks of the elapsed time.
const BLOCK: u32 = 10_000;

const METRICS: [Metric; 2] = [
    Metric {
        name: "tick_read",
        unit: "ns",
        against: Against::Baseline(0),
    },
    Metric {
        name: "instant_read",
        unit: "ns",
        against: Against::Baseline(1),
    },
];

/// The cost of clock reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock;

impl Probe for Clock {
    fn name(&self) -> &'static str {
        "clock reads"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let mut process = Process::spawn(ROLE, Seats::pick().client, &span)?;
        Ok(process.receive::<Vec<f64>>(patience(span))?.into())
    }
}

/// Reads each clock for half of the span.
///
/// # Errors
/// The parent has ended.
pub(crate) fn run(parent: &Parent) -> anyhow::Result<()> {
    let span: Duration = parent.receive()?;
    let tick = ns_per_call(span / 2, || {
        black_box(ticks::now());
    });
    let instant = ns_per_call(span / 2, || {
        black_box(Instant::now());
    });
    parent.say(&[tick, instant])
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a run are far below 2^53"
)]
fn ns_per_call(span: Duration, mut call: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut calls = 0.0;
    while begin.elapsed() < span {
        for _ in 0..BLOCK {
            call();
        }
        calls += f64::from(BLOCK);
    }
    begin.elapsed().as_nanos() as f64 / f64::max(calls, 1.0)
}
