//! Background handlers: worker threads run them, so that they do not block the dispatch thread
//! (eRPC §3.2).
//!
//! The endpoint copies the request from the RX frame into one msgbuf, and the handler writes the
//! response into another; the job owns both. The executor is an argument ([`Workers`]): threads in
//! the nexus, virtual time in the simulator.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dunlin_msgbuf::{MsgBuf, TooLong};
use dunlin_wire::{ErrorCode, ReqType};

use crate::handle::RequestId;
use crate::handler::refusal::of_handler;

/// A handler that a worker thread runs.
pub(crate) type BackgroundFn = Arc<dyn Fn(BackgroundRequest<'_>) + Send + Sync>;

/// Runs jobs in other threads, and returns them when they have run. Neither function blocks.
pub trait Workers: Send {
    /// Takes a job.
    ///
    /// # Errors
    /// Returns the job if the queue is full.
    fn submit(&mut self, job: Job) -> Result<(), Job>;

    /// The next job of this endpoint that has run, if there is one.
    fn poll(&mut self) -> Option<Job>;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Unanswered,
    Replied,
    Rejected(ErrorCode),
    Panicked,
}

/// One background request on its way to a worker and back.
pub struct Job {
    pub(crate) id: RequestId,
    req_type: ReqType,
    handler: BackgroundFn,
    request: MsgBuf,
    response: MsgBuf,
    outcome: Outcome,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("req_type", &self.req_type)
            .finish_non_exhaustive()
    }
}

/// The outcome of a job.
pub(crate) enum JobResult {
    Reply(MsgBuf),
    Reject(ErrorCode, MsgBuf),
    Panic(MsgBuf),
}

impl JobResult {
    /// The response buffer, and the error to answer with instead, if any.
    pub(crate) fn into_answer(self) -> (MsgBuf, Option<ErrorCode>) {
        match self {
            Self::Reply(response) => (response, None),
            Self::Reject(code, unused) => (unused, Some(code)),
            Self::Panic(unused) => (unused, Some(ErrorCode::HANDLER_FAILED)),
        }
    }
}

impl Job {
    pub(crate) fn new(
        id: RequestId,
        req_type: ReqType,
        handler: BackgroundFn,
        request: MsgBuf,
        response: MsgBuf,
    ) -> Self {
        Self {
            id,
            req_type,
            handler,
            request,
            response,
            outcome: Outcome::Unanswered,
        }
    }

    /// Runs the handler. A panic is caught and becomes the request's error.
    pub fn run(&mut self) {
        let handler = Arc::clone(&self.handler);
        let request = BackgroundRequest { job: self };
        if catch_unwind(AssertUnwindSafe(|| handler(request))).is_err() {
            self.outcome = Outcome::Panicked;
        }
    }

    /// The request's buffer, and the answer.
    pub(crate) fn into_result(self) -> (RequestId, MsgBuf, JobResult) {
        let result = match self.outcome {
            Outcome::Replied => JobResult::Reply(self.response),
            Outcome::Rejected(code) => JobResult::Reject(code, self.response),
            Outcome::Unanswered => JobResult::Reject(ErrorCode::HANDLER_FAILED, self.response),
            Outcome::Panicked => JobResult::Panic(self.response),
        };
        (self.id, self.request, result)
    }

    /// Both buffers of a job that the workers refused.
    pub(crate) fn into_bufs(self) -> [MsgBuf; 2] {
        [self.request, self.response]
    }
}

/// A request as a background handler sees it. If the handler drops the request unanswered, the
/// client gets an error.
#[derive(Debug)]
pub struct BackgroundRequest<'a> {
    job: &'a mut Job,
}

impl BackgroundRequest<'_> {
    /// The request's bytes.
    pub fn data(&self) -> &[u8] {
        self.job.request.data()
    }

    /// The type that the client gave.
    pub fn req_type(&self) -> ReqType {
        self.job.req_type
    }

    /// Answers with `len` bytes that `write` fills from the request's bytes.
    ///
    /// # Errors
    /// If `len` is more than the handler was registered for; the client gets
    /// [`ErrorCode::RESPONSE_TOO_LARGE`].
    pub fn reply(self, len: usize, write: impl FnOnce(&[u8], &mut [u8])) -> Result<(), TooLong> {
        let job = self.job;
        if let Err(too_long) = job.response.resize(len) {
            job.outcome = Outcome::Rejected(ErrorCode::RESPONSE_TOO_LARGE);
            return Err(too_long);
        }
        write(job.request.data(), job.response.data_mut());
        job.outcome = Outcome::Replied;
        Ok(())
    }

    /// Answers with an error code; see [`Request::reject`](crate::Request::reject).
    pub fn reject(self, code: ErrorCode) {
        self.job.outcome = Outcome::Rejected(of_handler(code));
    }
}
