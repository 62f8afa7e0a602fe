//! The user's functions: plain functions in a table that is indexed by request type, so that
//! finding one is a load and calling it is a call (design §3). The table begins with the lowest
//! type that has a handler, so services with neighbouring types need only a short table.

use std::fmt;

use dunlin_wire::ReqType;

use crate::call::Done;
use crate::handle::{Ticket, TimerToken};
use crate::handler::background::BackgroundFn;
use crate::handler::batch::Batch;
use crate::handler::context::Cx;
use crate::handler::request::Request;
use crate::session::lifecycle::SessionEvent;

/// A handler that runs in the dispatch thread.
pub type DispatchFn<App> = fn(&mut App, Request<'_>, &mut Cx<'_>);
/// A handler that gets all requests of its type in a burst.
pub type BatchFn<App> = fn(&mut App, Batch<'_>, &mut Cx<'_>);
/// The continuation: called once for each call that has ended.
pub type CompletionFn<App> = fn(&mut App, Done, &mut Cx<'_>);
/// Called when a session opens or ends.
pub type SessionFn<App> = fn(&mut App, SessionEvent, &mut Cx<'_>);
/// Called when the client of a kept request no longer waits for the answer.
pub type GivenUpFn<App> = fn(&mut App, Ticket, &mut Cx<'_>);
/// Called when a timer is due.
pub type TimerFn<App> = fn(&mut App, TimerToken, &mut Cx<'_>);

/// The function that runs for a request type.
pub(crate) enum Handler<App> {
    Dispatch(DispatchFn<App>),
    Batch {
        run: BatchFn<App>,
        max_response: usize,
    },
    Background {
        run: BackgroundFn,
        max_response: usize,
    },
}

/// An entry of the table.
pub(crate) struct Registered<App> {
    pub(crate) handler: Handler<App>,
    /// The dispatch handler took longer than `ack_delay`, or is suspected of it. Its clients get an
    /// acknowledgement before it starts (rule S4).
    pub(crate) slow: bool,
}

/// All functions of an endpoint.
pub(crate) struct Handlers<App> {
    /// The lowest type that has a handler: the index 0 of both tables.
    first: usize,
    by_type: Vec<Option<Registered<App>>>,
    /// The dispatch handlers that are not slow.
    fast: Vec<Option<DispatchFn<App>>>,
    /// A type for which a second handler has replaced the first.
    twice: Option<ReqType>,
    pub(crate) completion: CompletionFn<App>,
    pub(crate) session: SessionFn<App>,
    pub(crate) timer: TimerFn<App>,
    pub(crate) given_up: GivenUpFn<App>,
}

impl<App> fmt::Debug for Handlers<App> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.by_type.iter().flatten().count();
        f.debug_struct("Handlers")
            .field("types", &count)
            .finish_non_exhaustive()
    }
}

impl<App> Default for Handlers<App> {
    /// No handlers; the completion function returns the msgbufs to the pool.
    fn default() -> Self {
        Self {
            first: 0,
            by_type: Vec::new(),
            fast: Vec::new(),
            twice: None,
            completion: |_, done, cx| cx.recycle([done.request, done.response]),
            session: |_, _, _| {},
            timer: |_, _, _| {},
            given_up: |_, _, _| {},
        }
    }
}

impl<App> Handlers<App> {
    pub(crate) fn set(&mut self, req_type: ReqType, handler: Handler<App>) {
        self.widen(req_type);
        let index = self.index(req_type);
        if self.by_type[index].is_some() {
            self.twice = Some(req_type);
        }
        self.by_type[index] = Some(Registered {
            handler,
            slow: false,
        });
        self.set_slow(req_type, false);
    }

    /// Makes room for a type.
    fn widen(&mut self, req_type: ReqType) {
        if self.by_type.is_empty() {
            self.first = req_type.0.into();
        }
        let before = self.first.saturating_sub(req_type.0.into());
        if before > 0 {
            self.first = req_type.0.into();
            self.by_type
                .splice(0..0, std::iter::repeat_with(|| None).take(before));
            self.fast.splice(0..0, std::iter::repeat_n(None, before));
        }
        let len = self.by_type.len().max(self.index(req_type) + 1);
        self.by_type.resize_with(len, || None);
        self.fast.resize(len, None);
    }

    /// The index of a type in the tables; for a type without one, an index after their end.
    #[inline(always)]
    fn index(&self, req_type: ReqType) -> usize {
        usize::from(req_type.0).wrapping_sub(self.first)
    }

    /// A type that was registered twice.
    pub(crate) const fn twice(&self) -> Option<ReqType> {
        self.twice
    }

    /// Replaces every handler by this function.
    pub(crate) fn replace_all(&mut self, run: DispatchFn<App>) {
        for (entry, fast) in self.by_type.iter_mut().zip(&mut self.fast) {
            let Some(entry) = entry else { continue };
            entry.handler = Handler::Dispatch(run);
            entry.slow = false;
            *fast = Some(run);
        }
    }

    #[inline]
    pub(crate) fn get(&self, req_type: ReqType) -> Option<&Registered<App>> {
        self.by_type.get(self.index(req_type))?.as_ref()
    }

    /// The dispatch handler of this type, unless it is slow.
    #[inline(always)]
    pub(crate) fn fast(&self, req_type: ReqType) -> Option<DispatchFn<App>> {
        *self.fast.get(self.index(req_type))?
    }

    /// The longest answer of this type's batch handler, if it has one that is not slow.
    #[inline]
    pub(crate) fn fast_batch(&self, req_type: ReqType) -> Option<usize> {
        match self.get(req_type)? {
            Registered {
                handler: Handler::Batch { max_response, .. },
                slow: false,
            } => Some(*max_response),
            _ => None,
        }
    }

    /// Remembers whether a dispatch handler is slow.
    #[cold]
    pub(crate) fn set_slow(&mut self, req_type: ReqType, slow: bool) {
        let index = self.index(req_type);
        if let Some(Some(entry)) = self.by_type.get_mut(index) {
            entry.slow = slow;
            self.fast[index] = match entry.handler {
                Handler::Dispatch(run) if !slow => Some(run),
                _ => None,
            };
        }
    }
}

#[cfg(test)]
mod tests;
