//! Waits for other threads, processes or the kernel. How long they take depends on the scheduler,
//! so a wait has a long limit, and ends as soon as its condition holds.

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
