//! Measures tables without a server. A store grows and is then written over: how many bytes of its
//! region do its items take? A cache is filled: how many items does it lose before its log wraps?

use std::time::Duration;

use anyhow::Context;
use dunlin_store::{Config, Mode, Region, Seconds, Seed, Table, Write};

use super::servers::resident_mib;
use crate::harness::items::{self, Draws, Items, Mix, VALUE};
use crate::harness::probe::{Measurement, Metric, Probe, SET_UP};
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;
use harness::signal;

/// Grows a store, and reports bytes per item.
pub(super) const GROW: Role = Role::new("store-grow", grow);

/// Writes over a cache, and reports the items that were lost.
pub(super) const LAP: Role = Role::new("store-lap", lap);

/// How long to wait for a report.
const PATIENCE: Duration = Duration::from_secs(600);

/// Items between two looks at the figures.
const STEP: u32 = 1000;

/// Values that replace others have up to this many bytes.
const LONGEST: u32 = 128;

/// The time of every call: nothing expires here.
const NOW: Seconds = Seconds(1);

/// Bytes of the region in use for an item.
pub(super) struct Growth {
    pub(super) items_mib: u32,
}

const GROWTH: [Metric; 3] = [
    Metric::alone("region_bytes_worst", "B"),
    Metric::alone("region_bytes_grown", "B"),
    Metric::alone("region_bytes_rewritten", "B"),
];

/// Items that a cache loses.
pub(super) struct Laps {
    pub(super) items_mib: u32,
}

const LAPS: [Metric; 2] = [
    Metric::alone("lost_percent", "%"),
    Metric::alone("over_memory_percent", "%"),
];

/// Asks a process for the values of a case of this size.
fn ask(role: Role, items_mib: u32) -> anyhow::Result<Measurement> {
    let mut process = Process::spawn(role, Seats::pick().client, &items_mib)?;
    let values: Vec<f64> = process.receive(PATIENCE)?;
    Ok(values.into())
}

impl Probe for Growth {
    fn name(&self) -> &'static str {
        "a store that grows"
    }

    fn metrics(&self) -> &'static [Metric] {
        &GROWTH
    }

    fn overhead(&self) -> Duration {
        SET_UP + Duration::from_millis(40) * self.items_mib
    }

    fn is_timed(&self) -> bool {
        false
    }

    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        ask(GROW, self.items_mib)
    }
}

impl Probe for Laps {
    fn name(&self) -> &'static str {
        "a cache that is written over"
    }

    fn metrics(&self) -> &'static [Metric] {
        &LAPS
    }

    fn overhead(&self) -> Duration {
        SET_UP + Duration::from_millis(40) * self.items_mib
    }

    fn is_timed(&self) -> bool {
        false
    }

    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        ask(LAP, self.items_mib)
    }
}

/// Writes items into a store. Then, once per item, deletes an item or writes it with another
/// length. Then writes all of them again. Reports the bytes per item at the worst moment of the
/// growth, after it, and at the end.
///
/// # Errors
/// There is no memory.
fn grow(parent: &Parent) -> anyhow::Result<()> {
    let items = Items::of_mib(parent.receive()?, VALUE);
    // Values with other lengths take up to 232 bytes with their headers, and at any time half of
    // the items have such a value.
    let mut table = make(2 * items.table_bytes(), Mode::Store)?;
    let mut worst: f64 = 0.0;
    for number in 0..items.count {
        set(&mut table, number, VALUE)?;
        // While a table has few items, most of its bytes are the index with which it began.
        if number.is_multiple_of(STEP) && table.stats().splits > 0 {
            signal::check()?;
            worst = worst.max(bytes_an_item(&table));
        }
    }
    let grown = bytes_an_item(&table);
    let mut draws = Draws::new(Mix::ALL_GETS, items.count, 3);
    for turn in 0..items.count {
        let number = draws.below(items.count);
        if draws.below(2) == 0 {
            let bytes = items::key(number);
            let key = table.key(&bytes).context("a key of 16 bytes is allowed")?;
            // The item may be gone already.
            let _ = table.delete(&key, None, NOW);
        } else {
            set(&mut table, number, draws.below(LONGEST + 1) as usize)?;
        }
        if turn.is_multiple_of(STEP) {
            signal::check()?;
        }
    }
    for number in 0..items.count {
        set(&mut table, number, VALUE)?;
    }
    parent.say(&vec![worst, grown, bytes_an_item(&table)])
}

/// Writes items into a cache until its log wraps, and counts the items that are lost. Then writes
/// twice as many, and compares the growth of this process with the region.
///
/// # Errors
/// There is no memory.
fn lap(parent: &Parent) -> anyhow::Result<()> {
    let items_mib: u32 = parent.receive()?;
    let before = resident_mib(std::process::id())?;
    let mut table = make((items_mib as usize) << 20, Mode::Cache)?;
    let mut count = 0;
    while table.stats().laps == 0 {
        set(&mut table, count, VALUE)?;
        count += 1;
    }
    let lost = u64::from(count) - table.stats().items;
    for number in count..3 * count {
        set(&mut table, number, VALUE)?;
        if number.is_multiple_of(STEP) {
            signal::check()?;
        }
    }
    let resident = resident_mib(std::process::id())? - before;
    #[expect(clippy::cast_precision_loss, reason = "counts of a run are small")]
    let lost = 100.0 * lost as f64 / f64::from(count);
    let over = 100.0 * (resident / f64::from(items_mib) - 1.0);
    parent.say(&vec![lost, over])
}

fn make(bytes: usize, mode: Mode) -> anyhow::Result<Table> {
    let mut region =
        Region::new(bytes).with_context(|| format!("cannot get {bytes} bytes of memory"))?;
    region.touch(|_| true);
    let config = Config {
        mode,
        seed: Seed::new([0x5eed, 1]),
        first_version: 1,
    };
    Ok(Table::new(region, config)?)
}

fn set(table: &mut Table, number: u32, len: usize) -> anyhow::Result<()> {
    let bytes = items::key(number);
    let key = table.key(&bytes).context("a key of 16 bytes is allowed")?;
    let value = [7; LONGEST as usize];
    table.write(&key, &Write::set(&value[..len]), NOW)?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run are small")]
fn bytes_an_item(table: &Table) -> f64 {
    let stats = table.stats();
    stats.used_bytes as f64 / stats.items as f64
}
