//! The way from a future to its endpoint, whatever its transport. While it is polled, the endpoint
//! is lent to it (`lent.rs`): a step of a pointer. From outside, as in [`Local::caller`] beside no
//! poll at all, it is found through the `Local`. Either way every operation takes effect at once;
//! packets leave with the iteration that runs, or the next.
//!
//! [`Local::caller`]: super::Local::caller

use std::cell::RefCell;
use std::rc::Weak;

use dunlin_core::Cx;
use dunlin_nexus::{Endpoint, Open};

use super::state::State;
use super::tasks::Tasks;

/// An endpoint that is at rest.
pub(super) trait Port {
    /// Uses it, with a new look at the clock. False if it is gone, or in use up the stack.
    fn with(&self, run: &mut dyn FnMut(&mut Cx<'_>)) -> bool;
}

/// An endpoint until its `Local` is dropped.
pub(super) struct Hub<T: Open>(pub(super) RefCell<Option<Endpoint<T, Tasks>>>);

impl<T: Open> Port for Hub<T> {
    fn with(&self, run: &mut dyn FnMut(&mut Cx<'_>)) -> bool {
        let Ok(mut endpoint) = self.0.try_borrow_mut() else {
            return false;
        };
        let Some(endpoint) = endpoint.as_mut() else {
            return false;
        };
        run(&mut endpoint.cx());
        true
    }
}

impl State {
    /// Uses the endpoint; `None` if it is gone, or in use further up the stack.
    #[inline]
    pub(super) fn with<R>(&self, run: impl FnOnce(&mut Cx<'_>) -> R) -> Option<R> {
        match self.lent.is_there() {
            true => self.lent.with(run),
            false => self.with_port(run),
        }
    }

    #[cold]
    #[inline(never)]
    fn with_port<R>(&self, run: impl FnOnce(&mut Cx<'_>) -> R) -> Option<R> {
        let port = self.port.get().and_then(Weak::upgrade)?;
        let (mut run, mut result) = (Some(run), None);
        if port.with(&mut |cx| result = run.take().map(|run| run(cx))) {
            self.disturb();
        }
        result
    }
}
