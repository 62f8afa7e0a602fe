//! Tuning with a clock that the test advances.

use core::cell::Cell;

use super::*;

/// Tunes a look-up that takes `cost(width)` ticks.
fn tuned<const CAP: usize>(cost: impl Fn(usize) -> u64) -> Tuned<CAP> {
    let now = Cell::new(0);
    Batch::tune(
        || now.get(),
        |batch| now.set(now.get() + cost(batch.width())),
    )
}

#[test]
fn the_fastest_width_is_found() {
    let tuned = tuned::<64>(|width| 1000 + 10 * (12_u64.abs_diff(width as u64)));
    assert_eq!((tuned.batch.width(), tuned.ticks), (12, 1000));
}

#[test]
fn of_widths_that_are_as_good_the_narrowest_is_chosen() {
    let tuned = tuned::<64>(|width| {
        if width < 8 {
            2000
        } else {
            1000 - width as u64 / 8
        }
    });
    assert_eq!(tuned.batch.width(), 8);
}

#[test]
fn widths_beyond_the_capacity_are_not_tried() {
    let tuned = tuned::<6>(|width| {
        assert!(width <= 6);
        100 - width as u64 * 10
    });
    assert_eq!(tuned.batch.width(), 6);
}

#[test]
fn one_slow_moment_does_not_decide() {
    let runs = Cell::new(0);
    let tuned = tuned::<16>(|width| {
        runs.set(runs.get() + 1);
        let noise = if runs.get() <= 20 { 5000 } else { 0 };
        noise + if width == 4 { 100 } else { 200 }
    });
    assert_eq!(tuned.batch.width(), 4);
}

#[test]
fn a_clock_that_stands_still_or_goes_back_gives_some_width() {
    let still = Batch::<8>::tune(|| 0, |_| ());
    assert_eq!(still.batch.width(), 1);
    let now = Cell::new(u64::MAX);
    let back = Batch::<8>::tune(
        || {
            now.set(now.get() - 1);
            now.get()
        },
        |_| (),
    );
    assert_eq!(back.batch.width(), 1);
}
