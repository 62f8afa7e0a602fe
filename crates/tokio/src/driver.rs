//! An endpoint among the tasks of a thread: one task drives it, and waits for its descriptor while
//! nothing happens.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use dunlin::{Local, Open};
use tokio::time::{Instant, Sleep};

use crate::descriptor::Descriptor;

/// Turns without work before the driver waits for the descriptor.
const SPIN: u32 = 100;

/// Runs an endpoint and the futures of its handlers among the other tasks of its thread. Those
/// tasks make calls through `Local::caller`. The endpoint ends when this future is dropped.
///
/// An endpoint cannot move to another thread, so this runs in a `LocalSet` or in the `block_on` of
/// a runtime.
///
/// # Errors
/// If the process has no descriptor left, or if the runtime is shut down.
///
/// # Panics
/// If the runtime has no drivers for I/O and time (`enable_all`).
pub async fn drive<T: Open>(mut local: Local<T>) -> io::Result<Infallible> {
    let descriptor = Descriptor::register(local.descriptor()?)?;
    let mut timer = Box::pin(tokio::time::sleep_until(Instant::now()));
    let mut idle = 0;
    loop {
        idle = if local.turn() { 0 } else { idle + 1 };
        if idle < SPIN {
            tokio::task::yield_now().await;
        } else {
            wait(&mut local, &descriptor, timer.as_mut()).await?;
            idle = 0;
        }
    }
}

/// Waits until the descriptor is readable, another task uses the endpoint, or a timer is due.
async fn wait<T: Open>(
    local: &mut Local<T>,
    descriptor: &Descriptor,
    mut timer: Pin<&mut Sleep>,
) -> io::Result<()> {
    let mut is_parked = false;
    let ended = std::future::poll_fn(|context| {
        if is_parked {
            // The descriptor, the timer, or a task that uses the endpoint woke this task.
            return Poll::Ready(Ok(()));
        }
        let Some(span) = local.park(context.waker()) else {
            return Poll::Ready(Ok(()));
        };
        is_parked = true;
        timer.as_mut().reset(Instant::now() + span);
        poll_either(descriptor, timer.as_mut(), context)
    })
    .await;
    if is_parked {
        local.unpark();
    }
    ended
}

/// Ready if the descriptor is readable or the timer is due; otherwise both wake the task.
fn poll_either(
    descriptor: &Descriptor,
    timer: Pin<&mut Sleep>,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let is_due = timer.poll(context).is_ready();
    match descriptor.poll_readable(context) {
        Poll::Pending if is_due => Poll::Ready(Ok(())),
        readable => readable,
    }
}
