//! The items of all rows, the rate of gets by the tree's own crate, and the costs of gets and scans
//! directly on an index.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::ensure;
use dunlin::Rng;
use dunlin::index::{Index, Range, Start};
use scc::{Guard, TreeIndex};

use harness::sys;

/// Items of an index. A build with debug assertions has fewer, because its figures mean nothing.
pub(super) const ITEMS: u32 = match cfg!(debug_assertions) {
    true => 100_000,
    false => 1_000_000,
};

/// Items whose values a scan sums.
pub(super) const SCANNED: u32 = 128;

/// Bytes of a key, and of a value.
pub(super) const KEY: usize = 8;

/// How long it takes to fill an index.
pub(super) const FILLING: Duration = Duration::from_millis(800);

/// Operations between two looks at the clock.
const BLOCK: u32 = 4096;

/// How long to measure each cost for simulations.
const SPAN: Duration = Duration::from_millis(300);

/// Times of operations directly on the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) get: Duration,
    pub(super) scan: Duration,
}

impl Costs {
    /// The costs of a server that does nothing.
    pub(super) const NONE: Self = Self {
        get: Duration::ZERO,
        scan: Duration::ZERO,
    };
}

/// The costs, which the first simulation measures for all.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedCosts(Rc<OnceCell<Costs>>);

impl SharedCosts {
    /// The costs on this machine.
    ///
    /// # Errors
    /// The system shows no processor time, or the tree is wrong.
    pub(super) fn get(&self) -> anyhow::Result<Costs> {
        if let Some(costs) = self.0.get() {
            return Ok(*costs);
        }
        let index = fill();
        let costs = Costs {
            get: cost(SPAN, |number| get(&index, number))?,
            scan: cost(SPAN, |number| scan(&index, number))?,
        };
        Ok(*self.0.get_or_init(|| costs))
    }
}

/// The key of an item: random, and different for each number.
#[inline]
pub(super) fn key_of(number: u32) -> [u8; KEY] {
    let mixed = u64::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_be_bytes()
}

/// The value of an item.
#[inline]
pub(super) fn value_of(number: u32) -> [u8; KEY] {
    u64::from(number).to_le_bytes()
}

/// An index with all items.
pub(super) fn fill() -> Index {
    let index = Index::new();
    for number in 0..ITEMS {
        index.put(&key_of(number), &value_of(number));
    }
    index
}

/// Gets per second of processor time from a tree of the index's kind with all items, by the tree's
/// own crate: its nodes contain the items themselves, without the lengths and handles of the index.
///
/// # Errors
/// The system shows no processor time, or the tree is wrong.
pub(super) fn rate(span: Duration) -> anyhow::Result<f64> {
    let tree = TreeIndex::new();
    for number in 0..ITEMS {
        let inserted = tree.insert_sync(key_of(number), value_of(number));
        ensure!(inserted.is_ok(), "two items have the same key");
    }
    // The service, too, has a guard for many gets.
    let guard = Guard::new();
    let get = |number| {
        let found = tree.peek(&key_of(number), &guard).copied();
        found == Some(value_of(number))
    };
    Ok(1.0 / cost(span, get)?.as_secs_f64())
}

/// The time of an operation on a random key, including the drawing of the key, which the service
/// also pays.
fn cost(span: Duration, operate: impl Fn(u32) -> bool) -> anyhow::Result<Duration> {
    let mut rng = Rng::new(7);
    let (mut operations, mut took) = (0, Duration::ZERO);
    let begin = sys::thread_time()?;
    while took < span {
        let mut wrong = 0_u32;
        for _ in 0..BLOCK {
            wrong += u32::from(!operate(rng.below(ITEMS)));
        }
        ensure!(
            wrong == 0,
            "{wrong} of {BLOCK} operations found something else"
        );
        operations += BLOCK;
        took = sys::thread_time()?.saturating_sub(begin);
    }
    Ok(took / operations)
}

fn get(index: &Index, number: u32) -> bool {
    let found = index.get(&key_of(number), |value| *value == value_of(number));
    found == Some(true)
}

fn scan(index: &Index, number: u32) -> bool {
    let start = key_of(number);
    let range = Range {
        start: Start::At(&start),
        end: None,
    };
    let total = index.total(range, SCANNED.into());
    (1..=u64::from(SCANNED)).contains(&total.items)
}
