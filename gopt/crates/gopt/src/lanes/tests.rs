//! Lanes without a batch: look-ups never move, each is dropped once, even after panics.

use core::cell::Cell;
use core::pin::pin;
use core::task::Waker;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

/// A look-up that checks that it never moves between its first poll and its drop.
struct Still<'a> {
    address: Option<usize>,
    polls_left: u32,
    drops: &'a Cell<u32>,
    panics_in_drop: bool,
    _pinned: PhantomPinned,
}

impl Still<'_> {
    fn new(polls_left: u32, drops: &Cell<u32>) -> Still<'_> {
        Still {
            address: None,
            polls_left,
            drops,
            panics_in_drop: false,
            _pinned: PhantomPinned,
        }
    }
}

impl Future for Still<'_> {
    type Output = u32;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        // SAFETY: nothing is moved out.
        let this = unsafe { self.get_unchecked_mut() };
        let here = core::ptr::from_mut(this).addr();
        assert_eq!(*this.address.get_or_insert(here), here, "moved");
        match this.polls_left.checked_sub(1) {
            None => Poll::Ready(7),
            Some(left) => {
                this.polls_left = left;
                Poll::Pending
            }
        }
    }
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        let here = core::ptr::from_mut(self).addr();
        assert!(self.address.is_none_or(|address| address == here), "moved");
        self.drops.set(self.drops.get() + 1);
        assert!(!self.panics_in_drop, "asked to panic");
    }
}

#[test]
fn ended_lanes_are_not_visited_and_can_be_opened_again() {
    let drops = Cell::new(0);
    let mut lanes = pin!(Lanes::<_, 3>::new());
    let mut cx = Context::from_waker(Waker::noop());
    for lane in 0..3_u32 {
        lanes
            .as_mut()
            .open(lane as usize, 10 + lane as usize, Still::new(lane, &drops));
    }
    let mut seen = std::vec::Vec::new();
    lanes.as_mut().round(&mut cx, |lane, index, value| {
        seen.push((lane, index, value));
        None
    });
    assert_eq!(seen, [(0, 10, 7)]);
    assert_eq!(drops.get(), 1);
    lanes.as_mut().open(0, 99, Still::new(0, &drops));
    while lanes.is_live() {
        lanes.as_mut().round(&mut cx, |lane, index, value| {
            seen.push((lane, index, value));
            None
        });
    }
    assert_eq!(seen[1..], [(0, 99, 7), (1, 11, 7), (2, 12, 7)]);
    assert_eq!(drops.get(), 4);
}

#[test]
fn a_replacement_runs_in_the_same_round() {
    let drops = Cell::new(0);
    let mut lanes = pin!(Lanes::<_, 1>::new());
    let mut cx = Context::from_waker(Waker::noop());
    lanes.as_mut().open(0, 0, Still::new(0, &drops));
    let mut next = 0;
    lanes.as_mut().round(&mut cx, |_, index, _| {
        assert_eq!(index, next);
        next += 1;
        (next < 100).then(|| (next, Still::new(0, &drops)))
    });
    assert_eq!((next, drops.get()), (100, 100));
    assert!(!lanes.is_live());
}

#[test]
fn dropping_the_lanes_drops_what_is_under_way() {
    let drops = Cell::new(0);
    {
        let mut lanes = pin!(Lanes::<_, 64>::new());
        let mut cx = Context::from_waker(Waker::noop());
        for lane in [0, 5, 63] {
            lanes.as_mut().open(lane, lane, Still::new(9, &drops));
        }
        lanes.as_mut().round(&mut cx, |_, _, _| None);
        assert_eq!(drops.get(), 0);
    }
    assert_eq!(drops.get(), 3);
}

#[test]
fn a_panic_in_one_drop_does_not_spare_the_others() {
    let drops = Cell::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut lanes = pin!(Lanes::<_, 8>::new());
        for lane in 0..8 {
            let mut still = Still::new(1, &drops);
            still.panics_in_drop = lane == 3;
            lanes.as_mut().open(lane, lane, still);
        }
    }));
    assert!(outcome.is_err());
    assert_eq!(drops.get(), 8);
}

#[test]
fn a_panic_while_an_ended_look_up_is_dropped_drops_it_once() {
    let drops = Cell::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut lanes = pin!(Lanes::<_, 2>::new());
        let mut cx = Context::from_waker(Waker::noop());
        let mut still = Still::new(0, &drops);
        still.panics_in_drop = true;
        lanes.as_mut().open(0, 0, still);
        lanes.as_mut().open(1, 1, Still::new(5, &drops));
        lanes.as_mut().round(&mut cx, |_, _, _| None);
    }));
    assert!(outcome.is_err());
    assert_eq!(drops.get(), 2);
}

#[test]
#[should_panic(expected = "holds a look-up already")]
fn a_live_lane_is_not_overwritten() {
    let drops = Cell::new(0);
    let mut lanes = pin!(Lanes::<_, 2>::new());
    lanes.as_mut().open(1, 0, Still::new(1, &drops));
    lanes.as_mut().open(1, 1, Still::new(1, &drops));
}
