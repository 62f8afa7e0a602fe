//! Marks are pending once, are harmless at any address, and work in other executors.

use core::cell::RefCell;
use core::pin::pin;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread_local;

use super::*;

fn polls_until_ready<F: Future>(mark: F) -> (u32, F::Output) {
    let mut mark = pin!(mark);
    let mut cx = Context::from_waker(Waker::noop());
    let mut polls = 1;
    loop {
        match mark.as_mut().poll(&mut cx) {
            Poll::Ready(value) => return (polls, value),
            Poll::Pending => polls += 1,
        }
    }
}

#[test]
fn every_mark_switches_exactly_once() {
    let mut value = [5_u64; 40];
    assert_eq!(polls_until_ready(switch()), (2, ()));
    assert_eq!(polls_until_ready(load(&value[3])), (2, &5));
    assert_eq!(polls_until_ready(load(&value).with(T1)).0, 2);
    assert_eq!(polls_until_ready(load(&value).with(T2)).0, 2);
    assert_eq!(polls_until_ready(load(&value).with(Nta)).0, 2);
    assert_eq!(polls_until_ready(load(&value).with(Write)).0, 2);
    assert_eq!(polls_until_ready(load(&())), (2, &()));
    let (polls, place) = polls_until_ready(load_mut(&mut value[1]));
    *place = 6;
    assert_eq!((polls, value[1]), (2, 6));
}

#[test]
fn addresses_need_not_be_mapped() {
    for address in [0, 1, usize::MAX] {
        let address = core::ptr::without_provenance::<u8>(address);
        assert_eq!(polls_until_ready(prefetch(address)).0, 2);
        assert_eq!(polls_until_ready(prefetch(address).with(Write)).0, 2);
        prefetch_now(address, T0);
        prefetch_now(address, Nta);
    }
}

struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_mark_wakes_the_task_of_a_foreign_executor() {
    let count = Arc::new(Count(AtomicU32::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    let mut mark = pin!(load(&3));
    assert_eq!(mark.as_mut().poll(&mut cx), Poll::Pending);
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert_eq!(mark.as_mut().poll(&mut cx), Poll::Ready(&3));
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
}

thread_local! {
    /// The lines that [`Noted`] was asked to prefetch.
    static LINES_ASKED: RefCell<BTreeSet<usize>> = const { RefCell::new(BTreeSet::new()) };
}

/// A hint that prefetches nothing, but notes the lines.
#[derive(Clone, Copy)]
struct Noted;

impl sealed::Sealed for Noted {}

impl Hint for Noted {
    fn prefetch_line(address: *const u8) {
        LINES_ASKED.with_borrow_mut(|asked| asked.insert(address.addr() / LINE_BYTES));
    }
}

/// Loads values of this size from every offset in a line, without alignment.
fn loads_at_every_offset<const SIZE: usize>() {
    #[repr(align(64))]
    struct Lines([u8; 10 * LINE_BYTES]);
    let lines = Lines([0; 10 * LINE_BYTES]);
    for offset in 0..LINE_BYTES {
        let value: &[u8; SIZE] = lines.0[offset..].first_chunk().unwrap();
        polls_until_ready(load(value).with(Noted));
        let first = value.as_ptr().addr();
        let covered = first / LINE_BYTES..=(first + SIZE - 1) / LINE_BYTES;
        let expected: BTreeSet<usize> = covered.take(LINES).collect();
        let asked = LINES_ASKED.with_borrow_mut(core::mem::take);
        assert_eq!(asked, expected, "{SIZE} bytes at offset {offset}");
    }
}

#[test]
fn a_load_asks_for_every_line_of_a_value_wherever_it_lies() {
    loads_at_every_offset::<1>();
    loads_at_every_offset::<16>();
    loads_at_every_offset::<64>();
    loads_at_every_offset::<100>();
    loads_at_every_offset::<511>();
    loads_at_every_offset::<513>();
}

#[test]
fn a_value_that_cannot_cross_a_line_costs_one_prefetch() {
    assert!(!may_cross::<u64>() && !may_cross::<[u8; 1]>() && !may_cross::<()>());
    assert!(may_cross::<[u64; 2]>() && may_cross::<[u8; 64]>());
    #[repr(align(16))]
    struct Pair(#[expect(dead_code, reason = "only its size counts")] [u64; 2]);
    assert!(!may_cross::<Pair>());
}
