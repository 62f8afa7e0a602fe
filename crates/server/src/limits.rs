//! Limits of a service: the length of its requests, the calls that it runs at once, and the time of
//! a call. `limited.rs` keeps those of services of the poll API. For services of futures, a gate in
//! front of the handlers and their layers keeps them, for all threads of a server together. A
//! service without limits has no gate, so its requests pay nothing.
//!
//! Invariant: a request that the gate refuses has not reached a layer or a handler, and its code
//! proves that to the client (rule W13).

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dunlin_core::Nanos;
use dunlin_local::{Caller, Local, ServiceRequest, serve_method_of_service};
use dunlin_service::{AsyncService, Error, IncomingRequest, META, Refusal, message_of};
use dunlin_transport::auto::Auto;
use dunlin_wire::ReqType;

/// Limits of one service of a server; by default, there are none.
///
/// ```
/// use std::time::Duration;
/// use dunlin_server::Limits;
///
/// let limits = Limits::default().max_message(64 << 10).max_calls(100);
/// let limits = limits.timeout(Duration::from_secs(1));
/// assert_ne!(limits, Limits::default());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Limits {
    max_message: Option<usize>,
    max_calls: Option<usize>,
    timeout: Option<Duration>,
}

/// Lets the requests of one service pass, within its limits.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: Limits,
    /// Calls that have passed and have not ended, on all threads. Counted only if they are limited.
    calls: AtomicUsize,
}

/// A call that has passed, until it ends.
struct Passed<'a>(&'a AtomicUsize);

impl Limits {
    /// Sets the most bytes of a request's message, without metadata. Larger ones end with
    /// `TOO_LARGE`, which proves that no handler ran; channels do not repeat them. A server does
    /// not start if this is more than its endpoints receive (`endpoint.max_message`).
    pub fn max_message(mut self, bytes: impl Into<Option<usize>>) -> Self {
        self.max_message = bytes.into();
        self
    }

    /// Sets the most calls that the service runs at once, on all threads of the server together.
    /// Further ones end with `OVERLOADED`, which proves that no handler ran; channels repeat them.
    pub fn max_calls(mut self, calls: impl Into<Option<usize>>) -> Self {
        self.max_calls = calls.into();
        self
    }

    /// Sets the time of a call whose client has given no deadline. Then its handler's future is
    /// dropped where it waits, and the call ends with `TIMED_OUT`. The handler may have run in
    /// part, so channels do not repeat the call. A call with a deadline ends at that, as always.
    pub fn timeout(mut self, span: impl Into<Option<Duration>>) -> Self {
        self.timeout = span.into();
        self
    }

    /// These limits for one of several threads, each of which has an equal part of the calls.
    pub(crate) fn of_thread(self, threads: usize) -> Self {
        Self {
            max_calls: self.max_calls.map(|calls| calls.div_ceil(threads.max(1))),
            ..self
        }
    }

    pub(crate) const fn longest_message(&self) -> Option<usize> {
        self.max_message
    }

    pub(crate) fn are_exceeded_by(&self, bytes: usize) -> bool {
        self.max_message.is_some_and(|most| bytes > most)
    }

    /// Whether no further call may begin while this number of calls run.
    pub(crate) fn are_reached_by(&self, calls: usize) -> bool {
        self.max_calls.is_some_and(|most| calls >= most)
    }

    pub(crate) const fn count_calls(&self) -> bool {
        self.max_calls.is_some()
    }

    /// The time of a call without a deadline.
    pub(crate) fn time(&self) -> Option<Nanos> {
        self.timeout.map(Nanos::from)
    }

    /// The gate that keeps these limits; `None` if there are none.
    pub(crate) fn gate(self) -> Option<Arc<Gate>> {
        let calls = AtomicUsize::new(0);
        (self != Self::default()).then(|| {
            Arc::new(Gate {
                limits: self,
                calls,
            })
        })
    }
}

impl Gate {
    /// Has a request answered, or refuses it.
    pub(crate) async fn pass<F>(
        self: Arc<Self>,
        request: ServiceRequest,
        caller: Caller,
        answer: impl FnOnce(ServiceRequest) -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        let Ok((context, message)) = message_of(&request, "") else {
            return request.refuse(Refusal::Undecodable);
        };
        let (has_deadline, len) = (context.deadline.is_some(), message.len());
        if self.limits.are_exceeded_by(len) {
            return request.refuse(Refusal::TooLarge);
        }
        let Some(_passed) = self.enter() else {
            return request.refuse(Refusal::Overloaded);
        };
        match self.limits.timeout.filter(|_| !has_deadline) {
            None => answer(request).await,
            // After the time-out, the request has its answer.
            Some(span) => caller.within(span, answer(request)).await.unwrap_or(Ok(())),
        }
    }

    /// Counts a call in. `None`: there are too many.
    fn enter(&self) -> Option<Option<Passed<'_>>> {
        let Some(most) = self.limits.max_calls else {
            return Some(None);
        };
        let more = |calls| (calls < most).then_some(calls + 1);
        let counted = self
            .calls
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.ok().map(|_| Some(Passed(&self.calls)))
    }
}

impl Drop for Passed<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Registers the handlers of a service, after its gate if it has one.
pub(crate) fn serve<S: AsyncService<ServiceRequest>>(
    local: &mut Local<Auto>,
    service: S,
    gate: Option<&Arc<Gate>>,
) {
    let Some(gate) = gate else {
        return local.serve_typed(service);
    };
    local.add_service::<S>();
    let service = Rc::new(service);
    for (place, number) in S::METHODS.iter().enumerate() {
        let name = S::NAMES.get(place).copied().unwrap_or_default();
        for req_type in [*number, *number | META] {
            let (gate, service) = (Arc::clone(gate), Rc::clone(&service));
            serve_method_of_service(local, ReqType(req_type), name, move |request, caller| {
                let service = Rc::clone(&service);
                Arc::clone(&gate).pass(request, caller, |request| service.answer(request))
            });
        }
    }
}
