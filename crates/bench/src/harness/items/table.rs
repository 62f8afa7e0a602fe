//! Makes a table that holds the items, and measures the rate of operations on it in this thread.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dunlin_store::{BATCH, Config, Key, Mode, Region, Seconds, Seed, Table, Write};

use super::{Draws, Items, KEY, Mix, Operation, fill, key};
use harness::{signal, sys};

/// Operations in one timed stretch. All of them are drawn before it begins.
const DRAWN: usize = 1 << 14;

/// Makes a table and writes all items into it.
///
/// # Errors
/// [`signal::Interrupted`]; or there is no memory.
pub(crate) fn make(items: Items, mode: Mode) -> anyhow::Result<Table> {
    let bytes = items.table_bytes();
    let mut region =
        Region::new(bytes).with_context(|| format!("cannot get {bytes} bytes of memory"))?;
    region.touch(|_| true);
    let config = Config {
        mode,
        seed: Seed::new([0x5eed, 1]),
        first_version: 1,
    };
    let mut table = Table::new(region, config)?;
    let mut value = vec![0; items.value];
    for number in 0..items.count {
        if number.is_multiple_of(1 << 20) {
            signal::check()?;
        }
        let bytes = key(number);
        let key = table.key(&bytes).context("a key of 16 bytes is allowed")?;
        fill(&mut value, number);
        let written = table.write(&key, &Write::set(&value), now());
        written.map_err(|error| anyhow::anyhow!("item {number}: {error:?}"))?;
    }
    Ok(table)
}

/// Measures operations per second over `span`. `batch` is the number of operations in a batch, at
/// most [`BATCH`]; with one, nothing is fetched ahead. Each value that is found is copied, as if
/// into a response. Only processor time of this thread counts: the thread never waits, so any other
/// time belongs to other programs. Draws happen outside of the measured time.
///
/// # Errors
/// The system does not report processor time; or more than 1 % of the gets found nothing.
pub(crate) fn rate(
    table: &mut Table,
    items: Items,
    mix: Mix,
    batch: usize,
    span: Duration,
) -> anyhow::Result<f64> {
    let mut draws = Draws::new(mix, items.count, 7);
    let mut value = vec![0; items.value];
    let before = table.stats();
    let (mut operations, mut took) = (0, Duration::ZERO);
    let mut drawn = Vec::with_capacity(DRAWN);
    while took < span {
        drawn.clear();
        drawn.extend((0..DRAWN).map(|_| {
            let operation = draws.draw();
            (key(operation.number), operation)
        }));
        let now = now();
        let mut keys = Vec::with_capacity(BATCH);
        let start = sys::thread_time()?;
        for batch in drawn.chunks(batch.clamp(1, BATCH)) {
            keys.clear();
            keys.extend(batch.iter().map(|(bytes, _)| hashed(table, bytes)));
            run(table, &mut keys, batch, &mut value, now)?;
        }
        took += sys::thread_time()?.saturating_sub(start);
        operations += DRAWN;
    }
    let stats = table.stats();
    let (gets, hits) = (stats.gets - before.gets, stats.hits - before.hits);
    // All items fit, but the index of a cache may have dropped a few.
    ensure!(
        hits >= gets - gets / 100,
        "{hits} of {gets} gets found an item"
    );
    #[expect(clippy::cast_precision_loss, reason = "counts of a run are small")]
    Ok(operations as f64 / took.as_secs_f64())
}

/// The time that all tables of this process get. As in a service, it advances, so the measured gets
/// also record accesses: a get writes to its item if the recorded access is too old.
fn now() -> Seconds {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let since = BEGUN.get_or_init(Instant::now).elapsed().as_secs();
    Seconds(1 + u32::try_from(since).unwrap_or(u32::MAX - 1))
}

#[inline]
fn run(
    table: &mut Table,
    keys: &mut [Key<'_>],
    batch: &[([u8; KEY], Operation)],
    value: &mut [u8],
    now: Seconds,
) -> anyhow::Result<()> {
    if batch.len() > 1 {
        table.ahead(keys);
    }
    for (key, (_, operation)) in keys.iter().zip(batch) {
        if operation.is_get {
            if let Some(item) = table.get(key, now) {
                item.value().copy_from(0, value);
            }
        } else {
            fill(value, operation.number);
            let written = table.write(key, &Write::set(value), now);
            written.map_err(|error| anyhow::anyhow!("a set: {error:?}"))?;
        }
    }
    std::hint::black_box(value);
    Ok(())
}

#[inline]
fn hashed<'a>(table: &Table, bytes: &'a [u8; KEY]) -> Key<'a> {
    table.key(bytes).expect("16 bytes are allowed")
}
