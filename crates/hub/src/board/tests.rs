//! Only changes wake tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use dunlin_channel::State;
use dunlin_core::Nanos;

use super::{Board, ChannelState};

/// Counts wake-ups.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_time_that_is_noted_again_after_a_change_counts_as_new() {
    let (board, mut name) = (Board::default(), None);
    let mut wait = || {
        let idle = Context::from_waker(Waker::noop());
        board.wait(&mut name, Nanos(5), &idle)
    };
    assert!(wait());
    assert!(!wait(), "the thread already knows this time");
    board.close();
    assert!(wait(), "the thread may have forgotten this time");
}

#[cfg(feature = "tower")]
#[test]
fn only_times_and_the_end_wake_a_task_that_sleeps() {
    let (board, woken) = (Board::default(), Arc::<Woken>::default());
    let waker = Waker::from(Arc::clone(&woken));
    let (context, wakes) = (Context::from_waker(&waker), || {
        woken.0.load(Ordering::Relaxed)
    });
    let mut names = [None; 3];
    for (name, until) in names.iter_mut().zip([5, 9, 9]) {
        assert!(board.sleep(name, Nanos(until), &context));
    }
    assert!(
        board.sleep(&mut names[1], Nanos(7), &context),
        "an earlier time"
    );
    assert!(
        !board.sleep(&mut names[1], Nanos(8), &context),
        "a later one"
    );
    board.show(ChannelState {
        state: State::Ready,
        addresses: Vec::new(),
    });
    assert_eq!(wakes(), 0);
    assert_eq!(board.on_time(Nanos(5)), Some(Nanos(8)));
    assert_eq!(wakes(), 1);
    board.forget(names[1].expect("it waited"));
    assert_eq!(board.on_time(Nanos(6)), Some(Nanos(9)));
    board.close();
    assert_eq!(wakes(), 2, "the task that was forgotten does not wait");
}

#[test]
fn a_state_that_is_shown_again_is_no_change() {
    let (board, woken) = (Board::default(), Arc::<Woken>::default());
    let waker = Waker::from(Arc::clone(&woken));
    let of = |state| ChannelState {
        state,
        addresses: Vec::new(),
    };
    board.show(of(State::Ready));
    let (before, mut name) = (board.see().version, None);
    board.wait(&mut name, Nanos::MAX, &Context::from_waker(&waker));
    board.show(of(State::Ready));
    assert_eq!(board.see().version, before);
    assert_eq!(woken.0.load(Ordering::Relaxed), 0);
    board.show(of(State::Gone));
    assert_ne!(board.see().version, before);
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
}
