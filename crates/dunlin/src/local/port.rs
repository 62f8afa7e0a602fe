//! The way from a future to its endpoint, whatever its transport. Between iterations the endpoint
//! is at rest, so every operation of a future takes effect at once; packets leave with the next
//! iteration.

use std::cell::RefCell;
use std::rc::Rc;

use dunlin_core::Cx;
use dunlin_nexus::{Endpoint, Open};

use super::state::{State, Tasks};

/// An endpoint as futures see it.
pub(super) trait Port {
    fn state(&self) -> &State;

    /// Uses the endpoint. False if it is gone, or in use further up the stack.
    fn with(&self, run: &mut dyn FnMut(&mut Cx<'_>)) -> bool;
}

/// An endpoint until its `Local` is dropped.
pub(super) struct Hub<T: Open> {
    pub(super) endpoint: RefCell<Option<Endpoint<T, Tasks>>>,
    pub(super) state: Rc<State>,
}

impl<T: Open> Port for Hub<T> {
    fn state(&self) -> &State {
        &self.state
    }

    #[inline]
    fn with(&self, run: &mut dyn FnMut(&mut Cx<'_>)) -> bool {
        let Ok(mut endpoint) = self.endpoint.try_borrow_mut() else {
            return false;
        };
        let Some(endpoint) = endpoint.as_mut() else {
            return false;
        };
        if self.state.polling.get() {
            run(&mut endpoint.cx_again());
        } else {
            run(&mut endpoint.cx());
            self.state.disturb();
        }
        true
    }
}

/// Uses the endpoint; `None` if it is gone, or in use further up the stack.
#[inline]
pub(super) fn with<R>(port: &dyn Port, run: impl FnOnce(&mut Cx<'_>) -> R) -> Option<R> {
    let (mut run, mut result) = (Some(run), None);
    port.with(&mut |cx| result = run.take().map(|run| run(cx)));
    result
}
