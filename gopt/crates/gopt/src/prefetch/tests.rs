//! Marks: pending once, harmless at any address, usable in other executors.

use core::pin::pin;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::task::Wake;

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
