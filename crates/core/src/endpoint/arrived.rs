//! Runs the handlers of requests that came in several packets. Each request lies in a msgbuf of its
//! own. The handler borrows it, or the worker that will run the handler gets it. Called by the loop
//! when it drains its queues (`drain_queues`).

use std::panic::{AssertUnwindSafe, catch_unwind};

use dunlin_wire::ErrorCode;

use crate::endpoint::dispatch::{Dispatched, SlowRequest};
use crate::endpoint::rpc::Engine;
use crate::handler::batch::{Answer, Batch, BatchEntry};
use crate::handler::context::Cx;
use crate::handler::table::{BatchFn, Handler, Registered};
use crate::time::Clock;
use crate::transfer::reassembly::Arrived;
use crate::transport::Tx;

/// The most requests that may wait because a batch handler has not finished them. Together they may
/// hold one part in `SHARE_WAITING` of the receive budget.
const MOST_WAITING: usize = 16;
const SHARE_WAITING: u64 = 16;

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Starts the handler of a request that came in several packets.
    #[cold]
    pub(crate) fn run_arrived(&mut self, arrived: Arrived) {
        let Arrived { request, message } = arrived;
        let inbound = request;
        let (session, req_type) = self.core.requests.origin(inbound);
        let session = self.core.sessions.handle(session);
        let Some(Registered { handler, slow }) = self.handlers.get(req_type) else {
            self.core.context.pool.recycle(message);
            return self.core.server().reject(inbound, ErrorCode::UNKNOWN_TYPE);
        };
        let slow = *slow;
        match handler {
            Handler::Dispatch(_) if slow => {
                self.postpone(SlowRequest {
                    req_type,
                    inbound,
                    session,
                    request: message,
                });
            }
            Handler::Dispatch(run) => {
                let run = *run;
                self.run_own(message, (inbound, req_type, session), run);
            }
            Handler::Batch { max_response, run } => {
                let (max_response, run) = (*max_response, *run);
                let request = SlowRequest {
                    req_type,
                    inbound,
                    session,
                    request: message,
                };
                let may_wait = self.may_wait(&request);
                if let Some(unfinished) = self.run_alone(request, (max_response, run), may_wait) {
                    self.postpone(unfinished);
                }
            }
            Handler::Background { max_response, .. } => {
                let max_response = *max_response;
                match self.core.context.pool.alloc(max_response) {
                    Ok(response) => self.submit([message, response], inbound, req_type),
                    Err(_) => {
                        self.core.context.pool.recycle(message);
                        self.core.server().reject(inbound, ErrorCode::OVERLOADED);
                    }
                }
            }
        }
    }

    /// Runs a batch handler on one request. Returns the request if the handler will continue with
    /// it later, which is allowed only with `may_wait`.
    pub(crate) fn run_alone(
        &mut self,
        alone: SlowRequest,
        (max_response, run): (usize, BatchFn<App>),
        may_wait: bool,
    ) -> Option<SlowRequest> {
        let (inbound, req_type) = (alone.inbound, alone.req_type);
        let Self {
            core,
            app,
            dropped,
            dispatched,
            ..
        } = self;
        let response = core
            .requests
            .take_response(inbound, max_response, &mut core.context);
        if response.is_none() {
            core.context.pool.recycle(alone.request);
            core.server().reject(inbound, ErrorCode::OVERLOADED);
            return None;
        }
        let mut entry = BatchEntry {
            response,
            session: alone.session,
            frame: match may_wait {
                true => BatchEntry::NO_FRAME,
                false => 0,
            },
            data: 0..alone.request.len(),
            max_response,
            inbound,
            answer: Answer::None,
            req_type,
        };
        *dispatched = Dispatched::of(req_type);
        let mut cx = Cx { core, dropped };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let (entries, data) = (std::slice::from_mut(&mut entry), &[alone.request.data()]);
            run(app, Batch { entries, data }, &mut cx);
        }));
        if outcome.is_err() {
            core.context.stats.on_panic();
            if entry.answer == Answer::Again {
                entry.answer = Answer::None;
            }
        }
        entry.settle(|| core.server());
        if entry.answer == Answer::Again {
            return Some(alone);
        }
        core.context.pool.recycle(alone.request);
        None
    }

    /// Whether a batch handler may continue with this request later. Requests that wait for their
    /// next turn hold memory that no budget counts, so only a few may.
    fn may_wait(&self, alone: &SlowRequest) -> bool {
        if self.slow.len() >= MOST_WAITING {
            return false;
        }
        let bytes = |request: &SlowRequest| request.request.len() as u64;
        let waiting: u64 = self.slow.iter().map(bytes).sum();
        waiting + bytes(alone) <= self.core.context.config.receive_budget / SHARE_WAITING
    }

    /// Continues with a request of a batch handler, after the answers that are ready have left. If
    /// it needs another turn, that comes after the turns of all other waiting requests.
    pub(crate) fn run_again(&mut self, alone: SlowRequest, max_response: usize, run: BatchFn<App>) {
        let mut unfinished = None;
        // It has waited before, so it may again.
        self.apart(|engine| unfinished = engine.run_alone(alone, (max_response, run), true));
        if let Some(unfinished) = unfinished {
            self.core.context.agenda.on_postponed();
            self.slow.push_back(unfinished);
        }
    }
}
