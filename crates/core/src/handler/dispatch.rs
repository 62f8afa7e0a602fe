//! Running the user's handlers: in the dispatch thread, as a batch at the end of the burst, or as
//! a job for a worker thread. A panic ends one request, never the endpoint (design §5).

use std::panic::{AssertUnwindSafe, catch_unwind};

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, ReqType};

use crate::config::MAX_BATCH;
use crate::endpoint::proto::Proto;
use crate::endpoint::rpc::{Engine, Rpc};
use crate::handler::background::{Job, JobResult};
use crate::handler::batch::{Answer, Batch, BatchEntry};
use crate::handler::context::Cx;
use crate::handler::request::Request;
use crate::handler::table::{DispatchFn, Entry, Handler, Handlers};
use crate::packet::receive::Packet;
use crate::server::work::{WorkIdx, WorkState};
use crate::session::table::Session;
use crate::time::Clock;
use crate::transport::{Rx, Transport, Tx};

/// Where a packet lies: which frame of the burst, and from which byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) frame: usize,
    pub(crate) offset: usize,
    pub(crate) congestion: bool,
}

/// A request of a slow dispatch handler, with its own copy of the data: it may wait for several
/// iterations.
#[derive(Debug)]
pub(crate) struct SlowRequest {
    pub(crate) req_type: ReqType,
    pub(crate) work: WorkIdx,
    pub(crate) session: Session,
    pub(crate) request: MsgBuf,
}

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Starts the handler of a new request.
    #[inline]
    pub(crate) fn run_handler(&mut self, packet: &Packet<'_>, place: Place, work: WorkIdx) {
        let req_type = packet.header.req_type();
        match self.handlers.get(req_type) {
            Some(Entry {
                handler: Handler::Dispatch(run),
                slow: false,
            }) => {
                let run = *run;
                let session = self.proto.sessions.handle(packet.session);
                self.run_dispatch(packet.data, work, req_type, session, run);
            }
            _ => self.run_later(packet, place, work),
        }
    }

    /// A request whose handler does not run between this packet and the next.
    #[inline(never)]
    fn run_later(&mut self, packet: &Packet<'_>, place: Place, work: WorkIdx) {
        let Some(entry) = self.handlers.get(packet.header.req_type()) else {
            return self.proto.reject(work, ErrorCode::UNKNOWN_TYPE);
        };
        match &entry.handler {
            Handler::Dispatch(_) => self.keep_slow(packet, work),
            Handler::Batch { max_response, .. } => {
                let (max_response, slow) = (*max_response, entry.slow);
                if slow {
                    self.proto.announce_slow(work);
                }
                self.keep_for_batch(packet, place, work, max_response);
            }
            Handler::Background { .. } => self.submit_job(packet, work),
        }
    }

    /// The request is put together where it is used: moving it right after stalls.
    #[inline]
    pub(crate) fn run_dispatch(
        &mut self,
        data: &[u8],
        work: WorkIdx,
        req_type: ReqType,
        session: Session,
        run: DispatchFn<App>,
    ) {
        let Self {
            proto,
            app,
            dropped,
            ..
        } = self;
        self.dispatched = Some(req_type);
        let mut cx = Cx { proto, dropped };
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let request = Request {
                data,
                work,
                req_type,
                session,
            };
            run(app, request, &mut cx);
        }));
        if caught.is_err() {
            proto.stats.on_panic();
        }
        proto.after_handler(work);
    }

    /// Keeps a request whose handler was slow before, until everything that has come in before it
    /// runs is answered. Its client is told already, so that it does not take the silence for a
    /// loss (rule S4).
    #[cold]
    fn keep_slow(&mut self, packet: &Packet<'_>, work: WorkIdx) {
        let Ok(mut request) = self.proto.pool.alloc(packet.data.len()) else {
            return self.proto.reject(work, ErrorCode::OVERLOADED);
        };
        request.data_mut().copy_from_slice(packet.data);
        self.proto.announce_slow(work);
        self.slow.push_back(SlowRequest {
            req_type: packet.header.req_type(),
            work,
            session: self.proto.sessions.handle(packet.session),
            request,
        });
    }

    /// Runs one slow handler, after everything else of the iteration has been answered. One only:
    /// what comes in meanwhile should not wait unseen for several of them.
    #[inline]
    pub(crate) fn run_slow_handler(&mut self) {
        if let Some(slow) = self.slow.pop_front() {
            self.run_slow(slow);
        }
    }

    #[cold]
    #[inline(never)]
    fn run_slow(&mut self, slow: SlowRequest) {
        let work = self.proto.works.at(slow.work);
        let unwanted = work.is_unwanted();
        let handler = self.handlers.get(slow.req_type).map(|entry| &entry.handler);
        match handler {
            _ if unwanted => self.proto.reject(slow.work, ErrorCode::CANCELLED),
            Some(Handler::Dispatch(run)) => {
                let run = *run;
                self.measured(slow.req_type, |engine| {
                    let data = slow.request.data();
                    engine.run_dispatch(data, slow.work, slow.req_type, slow.session, run);
                });
            }
            _ => self.proto.reject(slow.work, ErrorCode::UNKNOWN_TYPE),
        }
        self.proto.pool.recycle(slow.request);
    }

    /// Runs a handler that was slow before, so that it can become fast again. What is ready leaves
    /// first, and with it the word to the clients that it will take time.
    fn measured(&mut self, req_type: ReqType, run: impl FnOnce(&mut Self)) {
        self.transmit();
        // Nobody who falls asleep right now should wait for the handler to be woken.
        self.tx.settle();
        let start = self.clock.now();
        self.proto.moment.advance(start);
        run(self);
        // The iteration as a whole says nothing about this type now.
        self.dispatched = None;
        let end = self.clock.now();
        self.proto.moment.advance(end);
        let slow = end.since(start) > self.proto.config.ack_delay;
        self.handlers.set_slow(req_type, slow);
    }

    #[inline(never)]
    fn keep_for_batch(
        &mut self,
        packet: &Packet<'_>,
        place: Place,
        work: WorkIdx,
        max_response: usize,
    ) {
        let response = self.proto.take_response(work, max_response);
        if response.is_none() {
            return self.proto.reject(work, ErrorCode::OVERLOADED);
        }
        let len = packet.data.len();
        self.batch.push(BatchEntry {
            req_type: packet.header.req_type(),
            work,
            session: self.proto.sessions.handle(packet.session),
            frame: place.frame,
            offset: place.offset + packet.len - len,
            len,
            max_response,
            response,
            answer: Answer::None,
        });
    }

    #[inline(never)]
    fn submit_job(&mut self, packet: &Packet<'_>, work: WorkIdx) {
        let req_type = packet.header.req_type();
        let entry = self.handlers.get(req_type);
        let Some(Handler::Background { max_response, .. }) = entry.map(|entry| &entry.handler)
        else {
            return self.proto.reject(work, ErrorCode::UNKNOWN_TYPE);
        };
        match self.proto.job_bufs(packet.data, *max_response) {
            Some(bufs) => self.submit(bufs, work, req_type),
            None => self.proto.reject(work, ErrorCode::OVERLOADED),
        }
    }

    /// Gives a request and a buffer for its response to the workers.
    pub(crate) fn submit(&mut self, bufs: [MsgBuf; 2], work: WorkIdx, req_type: ReqType) {
        let Self {
            proto,
            handlers,
            workers,
            ..
        } = self;
        let handler = handlers.get(req_type).map(|entry| &entry.handler);
        let rejected = match (workers, handler) {
            (Some(workers), Some(Handler::Background { run, .. })) => {
                let [request, response] = bufs;
                let id = proto.detach(work);
                let job = Job::new(id, req_type, run.clone(), request, response);
                match workers.submit(job) {
                    Ok(()) => {
                        proto.jobs += 1;
                        return;
                    }
                    Err(job) => job.into_bufs(),
                }
            }
            _ => bufs,
        };
        for buf in rejected {
            proto.pool.recycle(buf);
        }
        proto.reject(work, ErrorCode::OVERLOADED);
    }

    /// Answers the requests whose jobs have run.
    #[inline(never)]
    pub(crate) fn collect_jobs(&mut self) {
        let Self {
            proto,
            workers: Some(workers),
            ..
        } = self
        else {
            return;
        };
        while let Some(job) = workers.poll() {
            proto.jobs -= 1;
            proto.finish_job(job);
        }
    }

    /// Answers the held requests that were dropped.
    #[cold]
    #[inline(never)]
    pub(crate) fn reject_dropped(&mut self) {
        while let Some(id) = self.dropped.pop() {
            if let Some(work) = self.proto.works.find(id) {
                self.proto.stats.on_unanswered();
                self.proto.reject(work, ErrorCode::HANDLER_FAILED);
            }
        }
    }
}

impl<T: Transport, C: Clock, App> Rpc<T, C, App> {
    /// Runs the batch handlers on what the burst brought them, one type after the other.
    #[inline(never)]
    pub(crate) fn run_batches(&mut self) {
        while !self.engine.batch.is_empty() {
            let (engine, rx) = (&mut self.engine, &self.rx);
            let count = gather(&mut engine.batch);
            let mut data: [&[u8]; MAX_BATCH] = [&[]; MAX_BATCH];
            for (data, entry) in data.iter_mut().zip(&engine.batch[..count]) {
                *data = &rx.frame(entry.frame).bytes[entry.offset..entry.offset + entry.len];
            }
            let (req_type, data) = (engine.batch[0].req_type, &data[..count]);
            match engine
                .handlers
                .get(req_type)
                .is_some_and(|entry| entry.slow)
            {
                true => engine.measured(req_type, |engine| engine.run_batch(count, data)),
                false => engine.run_batch(count, data),
            }
        }
    }
}

/// After a long iteration: the type that ran last in it is taken for slow until it is measured.
#[cold]
pub(crate) fn suspect_slow<App>(handlers: &mut Handlers<App>, last: &mut Option<ReqType>) {
    if let Some(req_type) = last.take() {
        handlers.set_slow(req_type, true);
    }
}

/// Moves the entries of the first one's type to the front, in order; returns how many, at most
/// [`MAX_BATCH`].
fn gather(entries: &mut [BatchEntry]) -> usize {
    let Some(first) = entries.first() else {
        return 0;
    };
    let req_type = first.req_type;
    let mut count = 1;
    for index in 1..entries.len() {
        if count == MAX_BATCH {
            break;
        }
        if entries[index].req_type == req_type {
            // A rotation, unlike a swap, keeps the others in order too.
            entries[count..=index].rotate_right(1);
            count += 1;
        }
    }
    count
}

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Runs one batch: the first `count` entries.
    pub(crate) fn run_batch(&mut self, count: usize, data: &[&[u8]]) {
        let Self {
            proto,
            app,
            handlers,
            dropped,
            batch,
            dispatched,
            ..
        } = self;
        let entries = &mut batch[..count];
        let req_type = entries[0].req_type;
        *dispatched = Some(req_type);
        if let Some(Handler::Batch { run, .. }) = handlers.get(req_type).map(|entry| &entry.handler)
        {
            let batch = Batch { entries, data };
            let mut cx = Cx { proto, dropped };
            if catch_unwind(AssertUnwindSafe(|| run(app, batch, &mut cx))).is_err() {
                proto.stats.on_panic();
            }
        }
        for entry in batch.drain(..count) {
            proto.answer_batched(entry);
        }
    }
}

impl Proto {
    /// The work's response buffer with room for `capacity` bytes, for a handler that has no access
    /// to the pool.
    pub(crate) fn take_response(&mut self, work: WorkIdx, capacity: usize) -> Option<MsgBuf> {
        match self.works.at_mut(work).response.take() {
            Some(response) if response.capacity() >= capacity => Some(response),
            Some(response) => {
                self.pool.recycle(response);
                self.pool.alloc(capacity).ok()
            }
            None => self.pool.alloc(capacity).ok(),
        }
    }

    /// Copies a request for a worker thread, with a buffer for the response.
    fn job_bufs(&mut self, data: &[u8], max_response: usize) -> Option<[MsgBuf; 2]> {
        let mut request = self.pool.alloc(data.len()).ok()?;
        request.data_mut().copy_from_slice(data);
        match self.pool.alloc(max_response) {
            Ok(response) => Some([request, response]),
            Err(_) => {
                self.pool.recycle(request);
                None
            }
        }
    }

    fn finish_job(&mut self, job: Job) {
        let (id, request, result) = job.into_result();
        self.pool.recycle(request);
        let work = self.works.find(id);
        let (code, response) = match result {
            JobResult::Reply(response) => match work {
                Some(work) => return self.reply_with(work, response),
                None => (ErrorCode::HANDLER_FAILED, response),
            },
            JobResult::Reject(code, response) => (code, response),
            JobResult::Panic(response) => {
                self.stats.on_panic();
                (ErrorCode::HANDLER_FAILED, response)
            }
        };
        self.pool.recycle(response);
        if let Some(work) = work {
            self.reject(work, code);
        }
    }

    /// Puts an unused response buffer back into the work for the slot's next request. A handler
    /// that kept the request may have answered it already: then the work has another one, which
    /// the transport may be reading, or is gone.
    fn keep_response(&mut self, idx: WorkIdx, unused: MsgBuf) {
        let work = self.works.at_mut(idx);
        if work.state == WorkState::Free || work.response.is_some() {
            self.pool.recycle(unused);
        } else {
            work.response = Some(unused);
        }
    }

    /// Sends what the handler of a batch has left in an entry.
    fn answer_batched(&mut self, entry: BatchEntry) {
        let work = entry.work;
        match (entry.answer, entry.response) {
            (Answer::Reply, Some(response)) => return self.reply_with(work, response),
            (_, Some(response)) => self.keep_response(work, response),
            (_, None) => {}
        }
        match entry.answer {
            Answer::Reject(code) => self.reject(work, code),
            Answer::Deferred => {}
            Answer::None | Answer::Reply => self.after_handler(work),
        }
    }
}
