//! The processes of `store`: one holds a table, the other reads random cache lines.

use std::time::Duration;

use dunlin_store::{Mode, Region};
use serde::{Deserialize, Serialize};

use crate::harness::items::{self, Draws, Items, Mix};
use harness::process::{Parent, Role};
use harness::sys;

/// Holds a table, and operates on it.
pub(super) const HOLD: Role = Role::new("store-hold", hold);

/// Reads random lines of memory of the same size.
pub(super) const LINES: Role = Role::new("store-lines", lines);

/// How long to wait until a table is filled. Even slow machines fill more than 10 MiB a second.
pub(super) const FILLING: Duration = Duration::from_secs(300);

/// Numbers of lines that are fetched together. The best rate counts.
const GROUPS: [usize; 4] = [8, 16, 32, 64];

/// Lines that are drawn together, between the stretches that are timed.
const DRAWN: usize = 1 << 14;

/// A measurement of a table.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) mix: Mix,
    pub(super) batch: usize,
    pub(super) span: Duration,
}

/// Fills a table, and then answers each order with the operations per second.
///
/// # Errors
/// There is no memory, or the parent has ended.
fn hold(parent: &Parent) -> anyhow::Result<()> {
    let (items, is_cache): (Items, bool) = parent.receive()?;
    let mode = if is_cache { Mode::Cache } else { Mode::Store };
    let mut table = items::make(items, mode)?;
    parent.say(&())?;
    loop {
        let Order { mix, batch, span } = parent.receive()?;
        parent.say(&items::rate(&mut table, items, mix, batch, span)?)?;
    }
}

/// Answers each span with the lines per second.
///
/// # Errors
/// There is no memory, or the parent has ended.
fn lines(parent: &Parent) -> anyhow::Result<()> {
    let bytes: usize = parent.receive()?;
    let mut memory = Region::new(bytes)?;
    // A hypervisor might store equal pages only once.
    for (number, page) in memory.chunks_mut(4096).enumerate() {
        page[..8].copy_from_slice(&number.to_le_bytes());
    }
    parent.say(&())?;
    let places = u32::try_from(memory.len() / 64)?;
    let mut draws = Draws::new(Mix::ALL_GETS, places, 3);
    loop {
        let span: Duration = parent.receive()?;
        let mut best: f64 = 0.0;
        for group in GROUPS {
            let span = span / u32::try_from(GROUPS.len())?;
            best = best.max(rate(&memory, &mut draws, places, group, span)?);
        }
        parent.say(&best)?;
    }
}

/// Lines per second of processor time, if they are fetched in groups of `group`. Time for draws
/// does not count.
fn rate(
    memory: &Region,
    draws: &mut Draws,
    places: u32,
    group: usize,
    span: Duration,
) -> anyhow::Result<f64> {
    let (mut sum, mut lines, mut took) = (0_u64, 0, Duration::ZERO);
    let mut drawn: Vec<&u8> = Vec::with_capacity(DRAWN);
    while took < span {
        drawn.clear();
        drawn.extend((0..DRAWN).map(|_| &memory[draws.below(places) as usize * 64]));
        let start = sys::thread_time()?;
        for group in drawn.chunks(group) {
            for line in group {
                gopt::prefetch_now(&raw const **line, gopt::T0);
            }
            for line in group {
                sum = sum.wrapping_add(u64::from(**line));
            }
        }
        took += sys::thread_time()?.saturating_sub(start);
        lines += DRAWN;
    }
    std::hint::black_box(sum);
    #[expect(clippy::cast_precision_loss, reason = "counts of a run are small")]
    Ok(lines as f64 / took.as_secs_f64())
}
