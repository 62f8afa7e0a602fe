//! Waits for other threads, processes, futures or the kernel. How long they take depends on the
//! scheduler, so a wait has a long limit, and ends as soon as its condition holds.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// A thread that waits, and whether it has been woken.
struct Sleeper(Thread, AtomicBool);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// Polls a future until it ends, and after the first time only when it was woken; the thread sleeps
/// meanwhile.
///
/// # Panics
/// If the future is not woken within [`PATIENCE`].
pub fn block_on<F: Future>(future: F) -> F::Output {
    let sleeper = Arc::new(Sleeper(std::thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&sleeper));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        let begin = Instant::now();
        while !sleeper.1.swap(false, Ordering::SeqCst) {
            assert!(begin.elapsed() < PATIENCE, "a future is never woken");
            std::thread::park_timeout(PATIENCE);
        }
    }
}

/// Runs a future on a runtime of tokio of its own, for futures that need tokio's clock, sockets or
/// tasks.
///
/// # Panics
/// If the future has not ended within [`PATIENCE`].
#[cfg(feature = "tokio")]
pub fn block_on_tokio<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("tokio starts");
    runtime.block_on(async {
        let ended = tokio::time::timeout(PATIENCE, future).await;
        ended.expect("the future never ends")
    })
}
