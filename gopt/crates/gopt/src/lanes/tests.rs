//! Lanes without a batch: look-ups never move, each is dropped once, even after panics.

use core::cell::Cell;
use core::marker::PhantomPinned;
use core::task::Context;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

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
        assert_ne!(this.polls_left, u32::MAX, "asked to panic");
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

/// Look-ups to begin, one after the other, and those that have ended. At most `most` are in flight.
/// Once `most` are in flight, no look-up begins before all of these have ended.
struct Script<'a> {
    begun: usize,
    look_ups: Vec<Still<'a>>,
    ended: Vec<(usize, u32)>,
    most: usize,
    is_full: bool,
}

impl<'a> Script<'a> {
    /// The first of `look_ups` begins first.
    fn new(look_ups: impl DoubleEndedIterator<Item = Still<'a>>, most: usize) -> Self {
        Self {
            begun: 0,
            look_ups: look_ups.rev().collect(),
            ended: Vec::new(),
            most,
            is_full: false,
        }
    }
}

impl<'a> Source<Still<'a>> for Script<'a> {
    fn next(&mut self) -> Option<(usize, Still<'a>)> {
        let under_way = self.begun - self.ended.len();
        self.is_full = under_way == self.most || (self.is_full && under_way > 0);
        if self.is_full {
            return None;
        }
        let look_up = self.look_ups.pop()?;
        self.begun += 1;
        Some((self.begun - 1, look_up))
    }

    fn on_end(&mut self, number: usize, value: u32) {
        self.ended.push((number, value));
    }
}

#[test]
fn a_lane_takes_the_next_look_up_in_the_same_turn() {
    let drops = Cell::new(0);
    let mut script = Script::new(
        [2, 0, 1, 0]
            .map(|polls| Still::new(polls, &drops))
            .into_iter(),
        9,
    );
    run::<_, _, 2>(2, &mut script);
    assert_eq!(script.ended, [(1, 7), (2, 7), (3, 7), (0, 7)]);
    assert_eq!(drops.get(), 4);
}

#[test]
fn one_lane_runs_any_number_of_look_ups() {
    let drops = Cell::new(0);
    let mut script = Script::new((0..100).map(|polls| Still::new(polls % 3, &drops)), 9);
    run::<_, _, 1>(1, &mut script);
    assert!(
        script
            .ended
            .into_iter()
            .eq((0..100).map(|number| (number, 7)))
    );
    assert_eq!(drops.get(), 100);
}

#[test]
fn lanes_that_had_to_wait_are_used_again() {
    for (width, most) in [(1, 1), (5, 3), (5, 5), (7, 64), (64, 33)] {
        let drops = Cell::new(0);
        let look_ups = (0..300).map(|number| Still::new(number * 7 % 5, &drops));
        let mut script = Script::new(look_ups, most);
        run::<_, _, 64>(width, &mut script);
        script.ended.sort_unstable();
        assert!(
            script
                .ended
                .into_iter()
                .eq((0..300).map(|number| (number, 7)))
        );
        assert_eq!(drops.get(), 300, "width {width}, at most {most}");
    }
}

#[test]
fn a_panic_drops_the_look_ups_in_flight() {
    for (begun, busy) in [(1, 1), (3, 3), (64, 64), (80, 64)] {
        let drops = Cell::new(0);
        let mut script = Script::new((0..begun).map(|_| Still::new(9, &drops)), 99);
        // The look-up that panics is the last to begin, or runs when the others have ended.
        script.look_ups.insert(0, Still::new(u32::MAX, &drops));
        let outcome = catch_unwind(AssertUnwindSafe(|| run::<_, _, 64>(busy, &mut script)));
        assert!(outcome.is_err());
        assert_eq!(drops.get(), begun + 1);
    }
}

#[test]
fn a_panic_while_an_ended_look_up_is_dropped_drops_it_once_and_the_others_too() {
    for panics in 0..8 {
        let drops = Cell::new(0);
        let look_ups = (0..8).map(|number| {
            let mut still = Still::new(u32::from(number != panics), &drops);
            still.panics_in_drop = number == panics;
            still
        });
        let mut script = Script::new(look_ups, 8);
        let outcome = catch_unwind(AssertUnwindSafe(|| run::<_, _, 8>(8, &mut script)));
        assert!(outcome.is_err());
        let never_begun = script.look_ups.len();
        drop(script);
        assert_eq!(drops.get(), 8, "{never_begun} had not begun");
    }
}

#[test]
#[should_panic(expected = "lanes that it has")]
fn more_lanes_than_there_are_cannot_be_used() {
    run::<Still<'_>, _, 2>(3, &mut Script::new([].into_iter(), 1));
}
