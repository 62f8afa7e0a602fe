//! The rate at which two processes can pass messages of one cache line in one direction.

use std::hint;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::cells::{LINE, Reader, Shape, Writer};
use super::sys::Shared;
use super::{plausible, sys};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::work;
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;

/// Writes cells into the ring.
pub(crate) const WRITE: Role = Role::new("ring-write", write);

/// Reads the cells, and counts them.
pub(crate) const READ: Role = Role::new("ring-read", read);

/// Bytes of a cell.
#[expect(clippy::cast_possible_truncation, reason = "a cache line has 64 bytes")]
pub(crate) const CELL_SIZE: u32 = LINE as u32;

/// A cell holds the sequence number and seven words. The ring is larger than a first-level cache
/// and smaller than a second-level cache.
const SHAPE: Shape = Shape {
    cells: 2048,
    size: LINE - 8,
};

/// Messages between two checks of the time.
const BLOCK: u64 = 1 << 14;

const METRICS: [Metric; 1] = [Metric {
    name: "messages_per_s",
    unit: "1/s",
    against: Against::Baseline(0),
}];

/// Measures how many messages pass through a ring of cache lines per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring;

#[derive(Serialize, Deserialize)]
struct Params {
    memory: String,
    span: Duration,
}

impl Probe for Ring {
    fn name(&self) -> &'static str {
        "raw shared-memory ring"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let (_memory, name) = sys::create_shared(SHAPE.bytes())?;
        let params = Params { memory: name, span };
        let seats = Seats::pick();
        let _writer = Process::spawn(WRITE, seats.client, &params)?;
        let mut reader = Process::spawn(READ, seats.server, &params)?;
        Ok(vec![reader.receive(patience(span))?].into())
    }

    fn is_plausible(&self, medians: &[f64]) -> bool {
        plausible::ring(medians[0])
    }
}

/// Writes until the parent kills it.
///
/// # Errors
/// The memory cannot be mapped.
pub(crate) fn write(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let memory = Shared::map(&params.memory, SHAPE.bytes())?;
    // SAFETY: this process alone writes the lane; the reader has the same shape.
    let mut writer = unsafe { Writer::new(&memory, 0, SHAPE) };
    for counter in 0.. {
        while !writer.write(|out| work::fill(out, counter)) {
            hint::spin_loop();
        }
    }
    Ok(())
}

/// Reads and checks messages for the span, and counts them from the second block on.
///
/// # Errors
/// A message is not the expected one, or the memory cannot be mapped.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
pub(crate) fn read(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let memory = Shared::map(&params.memory, SHAPE.bytes())?;
    // SAFETY: this process alone reads the lane; the writer has the same shape.
    let mut reader = unsafe { Reader::new(&memory, 0, SHAPE) };
    ensure!(
        read_block(&mut reader, 0),
        "a message differs from the one that was sent"
    );
    let begin = Instant::now();
    let mut counter = BLOCK;
    while begin.elapsed() < params.span {
        ensure!(
            read_block(&mut reader, counter),
            "a message differs from the one that was sent"
        );
        counter += BLOCK;
    }
    parent.say(&((counter - BLOCK) as f64 / begin.elapsed().as_secs_f64()))
}

/// Reads one block whose first message has number `first`; true if all its messages were right.
fn read_block(reader: &mut Reader<'_>, first: u64) -> bool {
    let mut is_right = true;
    for counter in first..first + BLOCK {
        is_right &= loop {
            match reader.read(|bytes| work::is_request(bytes, counter)) {
                Some(is_right) => break is_right,
                None => hint::spin_loop(),
            }
        };
    }
    is_right
}
