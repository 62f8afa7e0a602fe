//! The order in which lanes run, and widths that are refused.

use std::cell::RefCell;
use std::vec::Vec;

use super::*;

/// Logs each run, and switches `switches` times.
async fn visit(log: &RefCell<Vec<u32>>, item: u32, switches: u32) -> u32 {
    for _ in 0..switches {
        log.borrow_mut().push(item);
        crate::switch().await;
    }
    log.borrow_mut().push(item);
    item
}

#[test]
fn lanes_take_turns() {
    let log = RefCell::new(Vec::new());
    let mut out = [0; 3];
    Batch::<2>::new().map(0..3, &mut out, |item| visit(&log, item, 1));
    // Item 2 takes the lane of item 0 and runs to its mark before item 1 has its second turn.
    assert_eq!(log.into_inner(), [0, 1, 0, 2, 1, 2]);
    assert_eq!(out, [0, 1, 2]);
}

#[test]
fn ended_look_ups_are_not_visited_again() {
    let log = RefCell::new(Vec::new());
    let mut ended = Vec::new();
    Batch::<4>::new().for_each(
        [3, 0, 1, 0],
        |switches| visit(&log, switches, switches),
        |index, value| ended.push((index, value)),
    );
    assert_eq!(log.into_inner(), [3, 0, 1, 0, 3, 1, 3, 3]);
    assert_eq!(ended, [(1, 0), (3, 0), (2, 1), (0, 3)]);
}

#[test]
fn the_width_bounds_the_look_ups_in_flight() {
    for width in 1..=8 {
        let under_way = RefCell::new((0, 0));
        let enter = async || {
            let now = {
                let mut counts = under_way.borrow_mut();
                counts.0 += 1;
                counts.1 = counts.1.max(counts.0);
                counts.0
            };
            for _ in 0..now {
                crate::switch().await;
            }
            under_way.borrow_mut().0 -= 1;
        };
        let batch = Batch::<8>::with_width(width).unwrap();
        batch.for_each(0..50, |_| enter(), |_, ()| ());
        batch.in_order(0..50, |_| enter(), |()| ());
        // Two batches one after the other, each with no more lanes than its width.
        assert_eq!(under_way.into_inner(), (0, width));
    }
}

#[test]
fn values_come_in_order_although_look_ups_do_not_end_in_order() {
    let mut values = Vec::new();
    Batch::<5>::new().in_order(
        (0..40).map(|item| (item, item * 7 % 11)),
        |(item, switches)| async move {
            for _ in 0..switches {
                crate::switch().await;
            }
            item
        },
        |value| values.push(value),
    );
    assert_eq!(values, (0..40).collect::<Vec<_>>());
}

#[test]
fn absurd_widths_are_refused() {
    for width in [0, 17, usize::MAX] {
        let capacity = 16;
        let error = WidthError { width, capacity };
        assert_eq!(Batch::<16>::with_width(width), Err(error));
    }
    assert_eq!(Batch::<64>::default().width(), MAX_WIDTH);
    assert_eq!(Batch::<16>::with_width(3).map(Batch::width), Ok(3));
}
