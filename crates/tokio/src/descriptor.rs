//! The descriptor of an endpoint in the reactor of a runtime.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor for which tasks of the runtime wait.
pub(crate) struct Descriptor(AsyncFd<OwnedFd>);

impl Descriptor {
    /// Registers a descriptor with the runtime of the current task.
    pub(crate) fn register(descriptor: OwnedFd) -> io::Result<Self> {
        // SAFETY: the `AsyncFd` owns the descriptor, which therefore stays open and the same until
        // the `AsyncFd` is dropped.
        let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
        Ok(Self(registered?))
    }

    /// Ready once the descriptor is readable.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut guard = ready!(self.0.poll_read_ready(context))?;
        // Otherwise tokio would remember that the descriptor is readable, and the next wait would
        // end at once.
        guard.clear_ready();
        Poll::Ready(Ok(()))
    }
}
