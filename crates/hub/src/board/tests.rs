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
fn a_wait_that_a_change_has_ended_is_new_again() {
    let (board, mut name) = (Board::default(), None);
    let mut wait = || {
        let idle = Context::from_waker(Waker::noop());
        board.wait(&mut name, Nanos(5), &idle)
    };
    assert!(wait());
    assert!(!wait(), "the thread has its time");
    board.close();
    assert!(wait(), "the thread may have forgotten its time");
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
