//! Waits for other threads, processes, futures or the kernel. How long they take depends on the
//! scheduler, so a wait has a long limit, and ends as soon as its condition holds.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// No wait takes this long unless a test fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until the condition holds.
///
/// # Panics
/// If it does not hold within [`PATIENCE`].
#[track_caller]
pub fn until(mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "the condition never holds");
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future until it ends; the thread sleeps meanwhile.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
