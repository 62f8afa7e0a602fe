//! Running the handlers of requests that came in several packets. They lie in a msgbuf of their
//! own, which the handler borrows, or which goes to whoever runs it later. Called by the loop for
//! its queue (`attend`).

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, ReqType};

use crate::endpoint::rpc::Engine;
use crate::handler::batch::{Answer, BatchEntry};
use crate::handler::dispatch::SlowRequest;
use crate::handler::table::{Entry, Handler};
use crate::server::work::WorkIdx;
use crate::time::Clock;
use crate::transfer::reassembly::Arrived;
use crate::transport::Tx;

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Starts the handler of a request that came in several packets.
    #[cold]
    pub(crate) fn run_arrived(&mut self, arrived: Arrived) {
        let Arrived { work, message } = arrived;
        let (req_type, session) = {
            let work = self.proto.works.at(work);
            (work.req_type, self.proto.sessions.handle(work.session))
        };
        let Some(Entry { handler, slow }) = self.handlers.get(req_type) else {
            self.proto.pool.recycle(message);
            return self.proto.reject(work, ErrorCode::UNKNOWN_TYPE);
        };
        let slow = *slow;
        match handler {
            Handler::Dispatch(_) if slow => {
                self.proto.announce_slow(work);
                self.slow.push_back(SlowRequest {
                    req_type,
                    work,
                    session,
                    request: message,
                });
            }
            Handler::Dispatch(run) => {
                let run = *run;
                self.run_dispatch(message.data(), work, req_type, session, run);
                self.proto.pool.recycle(message);
            }
            Handler::Batch { max_response, .. } => {
                let max_response = *max_response;
                self.run_alone(&message, work, req_type, max_response);
                self.proto.pool.recycle(message);
            }
            Handler::Background { max_response, .. } => {
                let max_response = *max_response;
                match self.proto.pool.alloc(max_response) {
                    Ok(response) => self.submit([message, response], work, req_type),
                    Err(_) => {
                        self.proto.pool.recycle(message);
                        self.proto.reject(work, ErrorCode::OVERLOADED);
                    }
                }
            }
        }
    }

    /// Runs a batch handler on one request.
    fn run_alone(
        &mut self,
        message: &MsgBuf,
        work: WorkIdx,
        req_type: ReqType,
        max_response: usize,
    ) {
        let response = self.proto.take_response(work, max_response);
        if response.is_none() {
            return self.proto.reject(work, ErrorCode::OVERLOADED);
        }
        let session = self.proto.works.at(work).session;
        self.batch.insert(
            0,
            BatchEntry {
                req_type,
                work,
                session: self.proto.sessions.handle(session),
                frame: 0,
                offset: 0,
                len: message.len(),
                max_response,
                response,
                answer: Answer::None,
            },
        );
        self.run_batch(1, &[message.data()]);
    }
}
