//! Runs the handlers of requests that came in several packets. Each request lies in a msgbuf of its
//! own, which the handler borrows, or which goes to the worker that will run the handler. Called by
//! the loop when it drains its queues (`drain_queues`).

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, ReqType};

use crate::endpoint::dispatch::SlowRequest;
use crate::endpoint::rpc::Engine;
use crate::handle::RequestIdx;
use crate::handler::batch::{Answer, BatchEntry};
use crate::handler::table::{Handler, Registered};
use crate::time::Clock;
use crate::transfer::reassembly::Arrived;
use crate::transport::Tx;

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
            Handler::Batch { max_response, .. } => {
                let max_response = *max_response;
                self.run_alone(&message, inbound, req_type, max_response);
                self.core.context.pool.recycle(message);
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

    /// Runs a batch handler on one request.
    fn run_alone(
        &mut self,
        message: &MsgBuf,
        inbound: RequestIdx,
        req_type: ReqType,
        max_response: usize,
    ) {
        let context = &mut self.core.context;
        let response = self
            .core
            .requests
            .take_response(inbound, max_response, context);
        if response.is_none() {
            return self.core.server().reject(inbound, ErrorCode::OVERLOADED);
        }
        let (session, _) = self.core.requests.origin(inbound);
        self.batch.insert(
            0,
            BatchEntry {
                response,
                session: self.core.sessions.handle(session),
                frame: 0,
                data: 0..message.len(),
                max_response,
                inbound,
                answer: Answer::None,
                req_type,
            },
        );
        self.run_batch(1, &[message.data()]);
    }
}
