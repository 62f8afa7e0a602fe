//! A timer as a future. `timers.rs` keeps its time.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use dunlin_core::Nanos;

use crate::state::State;
use crate::wake::WakeBy;

/// Waits until a point in time. Ends immediately if the endpoint is gone.
#[must_use = "nothing waits until it is awaited"]
pub struct Sleep {
    state: Rc<State>,
    at: Nanos,
    slot: Option<usize>,
}

impl Sleep {
    pub(super) const fn new(state: Rc<State>, at: Nanos) -> Self {
        Self {
            state,
            at,
            slot: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let state = &*this.state;
        if let Some(slot) = this.slot {
            let mut timers = state.timers.borrow_mut();
            if !timers.has_fired(slot) {
                timers.note(slot, &state.current, context);
                return Poll::Pending;
            }
            timers.remove(slot);
            this.slot = None;
            return Poll::Ready(());
        }
        let mut future = WakeBy::None;
        future.note(&state.current, context);
        let at = this.at;
        let begun = state.with(|cx| {
            if at <= cx.now() {
                return None;
            }
            let mut timers = state.timers.borrow_mut();
            let slot = timers.insert(at, future);
            timers.arm(cx);
            Some(slot)
        });
        this.slot = begun.flatten();
        match this.slot {
            Some(_) => Poll::Pending,
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.state.timers.borrow_mut().remove(slot);
        }
    }
}

impl std::fmt::Debug for Sleep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sleep")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}
