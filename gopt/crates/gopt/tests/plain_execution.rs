//! Look-ups that run interleaved give the same values as one after the other, for any batch, width
//! and path.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use gopt::Batch;
use proptest::prelude::*;

/// The longest batch. Miri interprets every poll.
const LONGEST: usize = if cfg!(miri) { 20 } else { 200 };

/// A random walk: each cell names the next one, or ends the walk.
type Walks = Vec<Option<u16>>;

/// A look-up with loops, early returns, branches, and a call of another marked function.
async fn walk(cells: &[Option<u16>], start: usize, limit: u32) -> Result<u32, &'static str> {
    let mut at = start;
    let mut sum = 0_u32;
    for step in 0..limit {
        let Some(next) = next(cells, at).await? else {
            return Ok(sum);
        };
        if next % 3 == 0 {
            gopt::prefetch(cells.as_ptr().wrapping_add(at)).await;
            sum = sum.wrapping_mul(31);
        }
        sum = sum.wrapping_add(next).wrapping_add(step);
        at = next as usize;
    }
    Err("too long")
}

async fn next(cells: &[Option<u16>], at: usize) -> Result<Option<u32>, &'static str> {
    let cell = cells.get(at).ok_or("outside")?;
    Ok(gopt::load(cell).await.map(u32::from))
}

/// The same as `walk`, without marks.
fn plain(cells: &[Option<u16>], start: usize, limit: u32) -> Result<u32, &'static str> {
    let mut at = start;
    let mut sum = 0_u32;
    for step in 0..limit {
        let Some(next) = *cells.get(at).ok_or("outside")? else {
            return Ok(sum);
        };
        let next = u32::from(next);
        if next.is_multiple_of(3) {
            sum = sum.wrapping_mul(31);
        }
        sum = sum.wrapping_add(next).wrapping_add(step);
        at = next as usize;
    }
    Err("too long")
}

fn cells() -> impl Strategy<Value = Walks> {
    // Numbers that are too large for the list lead outside of it.
    prop::collection::vec(prop::option::weighted(0.8, 0..105_u16), 1..LONGEST / 2)
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_batch_at_any_width_gives_the_values_of_plain_execution(
        cells in cells(),
        starts in prop::collection::vec(0..105_usize, 0..LONGEST),
        width in 1..=64_usize,
        limit in 0..20_u32,
    ) {
        let expected: Vec<_> = starts.iter().map(|&at| plain(&cells, at, limit)).collect();
        let batch = Batch::<64>::with_width(width).unwrap();

        let mut out = vec![Ok(0); starts.len()];
        let written = batch.map(&starts, &mut out, |&at| walk(&cells, at, limit));
        prop_assert_eq!(written, starts.len());
        prop_assert_eq!(&out, &expected);

        let mut in_order = Vec::new();
        let lookup = |at: usize| walk(&cells, at, limit);
        batch.in_order(starts.iter().copied(), lookup, |value| in_order.push(value));
        prop_assert_eq!(&in_order, &expected);

        let mut seen = vec![None; starts.len()];
        batch.for_each(starts, |at| walk(&cells, at, limit), |index, value| {
            assert_eq!(seen[index].replace(value), None, "handed on twice");
        });
        prop_assert!(seen.into_iter().eq(expected.into_iter().map(Some)));
    }

    #[test]
    fn map_stops_at_the_shorter_side(items in 0..50_usize, places in 0..50_usize) {
        let taken = Cell::new(0);
        let source = (0..items).inspect(|_| taken.set(taken.get() + 1));
        let mut out = vec![usize::MAX; places];
        let written = Batch::<7>::new().map(source, &mut out, |item| async move {
            gopt::switch().await;
            item
        });
        prop_assert_eq!(written, items.min(places));
        prop_assert_eq!(taken.get(), written);
        let untouched = out[written..].iter().all(|&value| value == usize::MAX);
        prop_assert!(untouched && out[..written].iter().copied().eq(0..written));
    }

    #[test]
    fn independent_updates_all_arrive(
        places in prop::collection::vec(0..16_usize, 0..LONGEST),
        width in 1..=16_usize,
    ) {
        let counters: [AtomicU64; 16] = std::array::from_fn(|_| AtomicU64::new(0));
        let batch = Batch::<16>::with_width(width).unwrap();
        let add = async |at: usize| {
            let counter = gopt::load(&counters[at]).with(gopt::Write).await;
            counter.fetch_add(1, Ordering::Relaxed);
        };
        batch.for_each(places.iter().copied(), add, |_, ()| ());
        for (at, counter) in counters.into_iter().enumerate() {
            let expected = places.iter().filter(|&&place| place == at).count();
            prop_assert_eq!(counter.into_inner(), expected as u64);
        }
    }
}

#[test]
fn an_empty_batch_does_nothing() {
    let batch = Batch::<16>::new();
    let none: [u32; 0] = [];
    let fail = |_| async { panic!("a look-up in an empty batch") };
    batch.for_each(none, fail, |_, (): ()| ());
    assert_eq!(batch.map([1, 2], &mut [], fail), 0);
    batch.in_order(none, fail, |()| ());
}

/// Values that own memory are moved out of their lanes, and each is dropped once.
#[test]
fn values_may_own_memory() {
    let words = ["a", "bc", "def", ""];
    let mut out = vec![String::new(); 4];
    Batch::<3>::new().map(words, &mut out, |word| async move {
        let mut twice = word.to_owned();
        gopt::switch().await;
        twice.push_str(word);
        twice
    });
    assert_eq!(out, ["aa", "bcbc", "defdef", ""]);
}
