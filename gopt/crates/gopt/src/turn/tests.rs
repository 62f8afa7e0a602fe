//! Permits reach marks through any future in between, and none outlives its batch.

use core::cell::Cell;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::Poll;
use std::boxed::Box;
use std::vec::Vec;

use super::*;

#[test]
fn a_permit_lets_one_mark_pass() {
    let permit = Permit::new();
    permit.with_context(|cx| {
        assert_eq!(take(cx), Some(false));
        permit.set(true);
        assert_eq!((take(cx), take(cx)), (Some(true), Some(false)));
    });
}

#[test]
fn other_wakers_bring_no_permit_and_neither_does_a_clone() {
    let permit = Permit::new();
    let clone = permit.with_context(|cx| cx.waker().clone());
    assert_eq!(take(&Context::from_waker(&clone)), None);
    assert_eq!(take(&Context::from_waker(Waker::noop())), None);
}

#[test]
fn a_boxed_look_up_switches_at_its_own_marks_but_not_at_those_of_an_inner_batch() {
    let polls = Cell::new(0);
    let look_up = |depth: u32| {
        let polls = &polls;
        let steps: Pin<Box<dyn Future<Output = u32>>> = Box::pin(async move {
            for _ in 0..3 {
                crate::switch().await;
            }
            let mut inner = Vec::new();
            let twice = |n| async move {
                crate::switch().await;
                2 * n
            };
            crate::Batch::<2>::new().in_order(0..depth, twice, |value| inner.push(value));
            crate::switch().await;
            inner.into_iter().sum()
        });
        async move {
            let mut steps = pin!(steps);
            poll_fn(|cx| {
                polls.set(polls.get() + 1);
                steps.as_mut().poll(cx)
            })
            .await
        }
    };
    let mut sums = [0; 2];
    crate::Batch::<2>::new().map([4, 1], &mut sums, look_up);
    assert_eq!(sums, [12, 0]);
    assert_eq!(polls.get(), 2 * 5, "four marks are five polls");
}

#[test]
fn of_two_joined_marks_one_passes_in_each_turn() {
    let polls = Cell::new(0);
    let both = async |()| {
        let (mut first, mut second) = (pin!(crate::switch()), pin!(crate::switch()));
        let (mut first_passed, mut second_passed) = (false, false);
        poll_fn(|cx| {
            polls.set(polls.get() + 1);
            first_passed = first_passed || first.as_mut().poll(cx).is_ready();
            second_passed = second_passed || second.as_mut().poll(cx).is_ready();
            if first_passed && second_passed {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    };
    crate::Batch::<1>::new().for_each([()], both, |_, ()| ());
    assert_eq!(polls.get(), 3);
}
