//! The two steps of a lease in each order, and the worker's task.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::task::Wake;

use super::*;

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_second_of_owner_and_worker_frees_the_slot() {
    let lease = Lease::default();
    assert!(!lease.leave());
    assert!(lease.give_up());
    let lease = Lease::default();
    assert!(!lease.give_up());
    assert!(lease.leave());
}

#[test]
fn a_worker_is_woken_when_its_call_is_given_up() {
    let lease = Lease::default();
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    let context = Context::from_waker(&waker);
    assert!(lease.poll_given_up(&context).is_pending());
    lease.give_up();
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert!(lease.poll_given_up(&context).is_ready());
}

#[test]
fn a_lease_can_forget_the_task_of_its_worker() {
    let lease = Lease::default();
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    assert!(
        lease
            .poll_given_up(&Context::from_waker(&waker))
            .is_pending()
    );
    lease.forget_task();
    drop(waker);
    assert_eq!(Arc::strong_count(&woken), 1);
    lease.give_up();
    assert_eq!(woken.0.load(Ordering::Relaxed), 0);
}
