//! The rate at which one core copies memory, inside its second-level cache and beyond.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::plausible;
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::work;
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;

/// Copies memory.
pub(crate) const ROLE: Role = Role::new("copy", run);

const METRICS: [Metric; 1] = [Metric {
    name: "copied",
    unit: "GB/s",
    against: Against::Baseline(0),
}];

/// The rate of copies of `size` bytes. The process copies between several pairs of buffers in turn:
/// the bytes of a single pair might still be in a cache when it copies them again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) size: u32,
    pub(crate) pairs: u32,
}

/// The longest time to fill a pair of buffers, in ns per byte of one buffer.
const NANOS_PER_BYTE: u64 = 8;

impl Probe for Copy {
    fn name(&self) -> &'static str {
        "memcpy"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let mut process =
            Process::spawn(ROLE, Seats::pick().client, &(self.size, self.pairs, span))?;
        let filling = NANOS_PER_BYTE * u64::from(self.size) * u64::from(self.pairs);
        let limit = patience(span) + Duration::from_nanos(filling);
        Ok(vec![process.receive(limit)?].into())
    }

    fn is_plausible(&self, medians: &[f64]) -> bool {
        plausible::copy(medians[0])
    }
}

/// Copies for the span. Every copy begins with a fresh word; the last copy is checked in full.
///
/// # Errors
/// The copy differs from its source.
#[expect(
    clippy::cast_precision_loss,
    reason = "bytes of a run are far below 2^53"
)]
pub(crate) fn run(parent: &Parent) -> anyhow::Result<()> {
    let (size, pairs, span): (u32, u32, Duration) = parent.receive()?;
    let mut buffers: Vec<_> = (0..pairs)
        .map(|_| {
            let mut from = vec![0; size as usize];
            work::fill(&mut from, 1);
            (from.clone(), from)
        })
        .collect();
    let begin = Instant::now();
    let mut copies: u64 = 0;
    while begin.elapsed() < span {
        for (from, to) in &mut buffers {
            work::fill(&mut from[..8], copies);
            black_box(&mut to[..]).copy_from_slice(black_box(from));
            copies += 1;
        }
    }
    let took = begin.elapsed();
    let (mut from, mut to) = buffers.swap_remove(0);
    work::fill(&mut from, copies);
    to.copy_from_slice(&from);
    ensure!(
        work::is_request(&to, copies),
        "a copy differs from its source"
    );
    parent.say(&(copies as f64 * f64::from(size) / took.as_secs_f64() / 1e9))
}
