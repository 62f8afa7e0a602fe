//! Runs the user's handlers: in the dispatch thread, as a batch at the end of the burst, or as a
//! job for a worker thread. A panic ends one request, never the endpoint (design §5).

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dunlin_msgbuf::{MsgBuf, Pool};
use dunlin_wire::{ErrorCode, ReqType};

use crate::config::MAX_BATCH;
use crate::endpoint::plain::batched::find_whole;
use crate::endpoint::rpc::{Endpoint, Engine};
use crate::handle::{RequestIdx, Session};
use crate::handler::background::{Job, JobResult};
use crate::handler::batch::{Answer, Batch, BatchEntry};
use crate::handler::context::Cx;
use crate::handler::request::Request;
use crate::handler::table::{DispatchFn, Handler, Handlers, Registered};
use crate::packet::receive::Packet;
use crate::protocol::Core;
use crate::time::{Clock, Nanos};
use crate::transport::{RX_BURST, Rx, Transport, Tx};

const _: () = assert!(
    MAX_BATCH >= RX_BURST,
    "a batch holds the requests of a burst"
);

/// Where a packet lies: the frame of the burst, and the byte at which it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) frame: usize,
    pub(crate) offset: usize,
    pub(crate) congestion: bool,
}

/// The type whose handler ran last in an iteration. It is a single word, because each request
/// writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Dispatched(u32);

impl Dispatched {
    pub(crate) const NOTHING: Self = Self(u32::MAX);

    #[inline(always)]
    pub(crate) fn of(req_type: ReqType) -> Self {
        Self(u32::from(req_type.0))
    }

    /// Inlined: a call would need the field's address and cost each iteration a store.
    #[inline(always)]
    fn take(&mut self) -> Option<ReqType> {
        let last = std::mem::replace(self, Self::NOTHING);
        u16::try_from(last.0).ok().map(ReqType)
    }
}

/// A request of a slow dispatch handler, or of a batch handler that will continue with it later,
/// with its own copy of the data: it may wait for several iterations.
#[derive(Debug)]
pub(crate) struct SlowRequest {
    pub(crate) req_type: ReqType,
    pub(crate) inbound: RequestIdx,
    pub(crate) session: Session,
    pub(crate) request: MsgBuf,
}

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Starts the handler of a new request.
    #[inline]
    pub(crate) fn run_handler(
        &mut self,
        packet: &Packet<'_>,
        place: Position,
        inbound: RequestIdx,
    ) {
        let req_type = packet.header.req_type();
        match self.handlers.get(req_type) {
            Some(Registered {
                handler: Handler::Dispatch(run),
                slow: false,
            }) => {
                let run = *run;
                let session = self.core.sessions.handle(packet.session);
                self.run_dispatch(packet.data, inbound, req_type, session, run);
            }
            _ => self.run_later(packet, place, inbound),
        }
    }

    /// Keeps a request whose handler will run after the next packets have been handled.
    #[inline(never)]
    fn run_later(&mut self, packet: &Packet<'_>, place: Position, inbound: RequestIdx) {
        let Some(entry) = self.handlers.get(packet.header.req_type()) else {
            return self.core.server().reject(inbound, ErrorCode::UNKNOWN_TYPE);
        };
        match &entry.handler {
            Handler::Dispatch(_) => self.keep_slow(packet, inbound),
            Handler::Batch { max_response, .. } => {
                let (max_response, slow) = (*max_response, entry.slow);
                if slow {
                    self.core.server().announce_slow(inbound);
                }
                let session = self.core.sessions.handle(packet.session);
                let request = (packet.header.req_type(), inbound, session);
                let end = place.offset + packet.len;
                let data = end - packet.data.len()..end;
                self.keep_for_batch(request, place.frame, data, max_response);
            }
            Handler::Background { max_response, .. } => {
                let max_response = *max_response;
                self.submit_job(packet, inbound, max_response);
            }
        }
    }

    /// Runs a dispatch handler. Ends the request if the handler left it unanswered.
    #[inline]
    fn run_dispatch(
        &mut self,
        data: &[u8],
        inbound: RequestIdx,
        req_type: ReqType,
        session: Session,
        run: DispatchFn<App>,
    ) {
        self.call_handler(data, inbound, req_type, session, run);
        self.core.server().after_handler(inbound);
    }

    /// Runs a dispatch handler for a request that lies in a msgbuf of its own. The handler may turn
    /// that msgbuf into its answer.
    pub(crate) fn run_own(
        &mut self,
        request: MsgBuf,
        (inbound, req_type, session): (RequestIdx, ReqType, Session),
        run: DispatchFn<App>,
    ) {
        self.core.requests.begin_apart(inbound);
        self.call_handler(request.data(), inbound, req_type, session, run);
        match self.core.requests.end_apart() {
            true => self.core.server().reply_with(inbound, request),
            false => self.core.context.pool.recycle(request),
        }
        self.core.server().after_handler(inbound);
    }

    /// Calls a dispatch handler. The request is built in place: moving it right after writing it
    /// would stall the processor.
    #[inline]
    fn call_handler(
        &mut self,
        data: &[u8],
        inbound: RequestIdx,
        req_type: ReqType,
        session: Session,
        run: DispatchFn<App>,
    ) {
        let Self {
            core, app, dropped, ..
        } = self;
        self.dispatched = Dispatched::of(req_type);
        let mut cx = Cx { core, dropped };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let request = Request {
                data,
                inbound,
                req_type,
                session,
            };
            run(app, request, &mut cx);
        }));
        if outcome.is_err() {
            core.context.stats.on_panic();
        }
    }

    /// Keeps a request whose handler was slow before, until all earlier requests are answered. The
    /// client gets an acknowledgement first, so that it does not mistake the silence for a loss
    /// (rule S4).
    #[cold]
    fn keep_slow(&mut self, packet: &Packet<'_>, inbound: RequestIdx) {
        let Ok(mut request) = self.core.context.pool.alloc(packet.data.len()) else {
            return self.core.server().reject(inbound, ErrorCode::OVERLOADED);
        };
        request.data_mut().copy_from_slice(packet.data);
        let session = self.core.sessions.handle(packet.session);
        self.postpone(SlowRequest {
            req_type: packet.header.req_type(),
            inbound,
            session,
            request,
        });
    }

    /// Queues a request for its slow handler, and informs its client.
    pub(crate) fn postpone(&mut self, request: SlowRequest) {
        self.core.server().announce_slow(request.inbound);
        self.core.context.agenda.on_postponed();
        self.slow.push_back(request);
    }

    /// Runs one slow handler, after all other requests of the iteration have been answered. It runs
    /// only one, so that packets that come in meanwhile need not wait for several.
    #[inline(never)]
    pub(crate) fn run_slow_handler(&mut self) {
        if let Some(slow) = self.slow.pop_front() {
            self.core.context.agenda.on_resumed();
            self.run_slow(slow);
        }
    }

    #[cold]
    #[inline(never)]
    fn run_slow(&mut self, slow: SlowRequest) {
        let (req_type, inbound) = (slow.req_type, slow.inbound);
        let unwanted = self.core.requests.is_unwanted(inbound);
        let handler = self.handlers.get(req_type).map(|entry| &entry.handler);
        let refusal = match handler {
            // The handler has begun with the request, and must finish it.
            Some(Handler::Batch { max_response, run }) => {
                let (max_response, run) = (*max_response, *run);
                return self.run_again(slow, max_response, run);
            }
            _ if unwanted => ErrorCode::CANCELLED,
            Some(Handler::Dispatch(run)) => {
                let run = *run;
                return self.measured(req_type, |engine| {
                    engine.run_own(slow.request, (inbound, req_type, slow.session), run);
                });
            }
            _ => ErrorCode::UNKNOWN_TYPE,
        };
        self.core.context.pool.recycle(slow.request);
        self.core.server().reject(inbound, refusal);
    }

    /// Runs a handler that was slow before, and measures it, so that the request type can count as
    /// fast again.
    fn measured(&mut self, req_type: ReqType, run: impl FnOnce(&mut Self)) {
        let slow = self.apart(run) > self.core.context.config.ack_delay;
        self.handlers.set_slow(req_type, slow);
    }

    /// Runs a handler, and returns how long it took. Packets that are ready leave first, among them
    /// the acknowledgements for clients that will have to wait.
    pub(crate) fn apart(&mut self, run: impl FnOnce(&mut Self)) -> Nanos {
        self.transmit();
        // A peer that is falling asleep must be woken now, not after the handler.
        self.tx.settle();
        let start = self.clock.now();
        self.core.context.moment.advance(start);
        run(self);
        // From now on, the length of this iteration shows nothing about this type.
        self.dispatched = Dispatched::NOTHING;
        let end = self.clock.now();
        self.core.context.moment.advance(end);
        end.since(start)
    }

    /// Keeps an accepted request until its batch handler runs, after the burst. `data`: where its
    /// bytes are in the frame.
    #[inline(always)]
    pub(crate) fn keep_for_batch(
        &mut self,
        (req_type, inbound, session): (ReqType, RequestIdx, Session),
        frame: usize,
        data: Range<usize>,
        max_response: usize,
    ) {
        let mut response = None;
        if max_response != 0 {
            let Core {
                requests, context, ..
            } = &mut self.core;
            response = requests.take_response(inbound, max_response, context);
            if response.is_none() {
                return self.core.server().reject(inbound, ErrorCode::OVERLOADED);
            }
        }
        self.batch.push(BatchEntry {
            response,
            session,
            frame,
            data,
            max_response,
            inbound,
            answer: Answer::None,
            req_type,
        });
    }

    #[inline(never)]
    fn submit_job(&mut self, packet: &Packet<'_>, inbound: RequestIdx, max_response: usize) {
        match job_bufs(&mut self.core.context.pool, packet.data, max_response) {
            Some(bufs) => self.submit(bufs, inbound, packet.header.req_type()),
            None => self.core.server().reject(inbound, ErrorCode::OVERLOADED),
        }
    }

    /// Gives a request and a buffer for its response to the workers.
    pub(crate) fn submit(&mut self, bufs: [MsgBuf; 2], inbound: RequestIdx, req_type: ReqType) {
        let Self {
            core,
            handlers,
            workers,
            ..
        } = self;
        let handler = handlers.get(req_type).map(|entry| &entry.handler);
        let rejected = match (workers, handler) {
            (Some(workers), Some(Handler::Background { run, .. })) => {
                let [request, response] = bufs;
                let id = core.server().detach(inbound);
                let job = Job::new(id, req_type, run.clone(), request, response);
                match workers.submit(job) {
                    Ok(()) => {
                        core.context.agenda.on_postponed();
                        return;
                    }
                    Err(job) => job.into_bufs(),
                }
            }
            _ => bufs,
        };
        for buf in rejected {
            core.context.pool.recycle(buf);
        }
        core.server().reject(inbound, ErrorCode::OVERLOADED);
    }

    /// Answers the requests whose jobs have run.
    #[inline(never)]
    pub(crate) fn collect_jobs(&mut self) {
        let Self {
            core,
            workers: Some(workers),
            ..
        } = self
        else {
            return;
        };
        while let Some(job) = workers.poll() {
            core.context.agenda.on_resumed();
            let (id, request, result) = job.into_result();
            core.context.pool.recycle(request);
            if matches!(result, JobResult::Panic(_)) {
                core.context.stats.on_panic();
            }
            let (response, error) = result.into_answer();
            core.server().finish_detached(id, response, error);
        }
    }

    /// Rejects the deferred requests that the program has dropped without an answer.
    #[cold]
    #[inline(never)]
    pub(crate) fn reject_dropped(&mut self) {
        while let Some(id) = self.dropped.pop() {
            if let Some(inbound) = self.core.requests.find(id) {
                self.core.context.stats.on_unanswered();
                self.core
                    .server()
                    .reject(inbound, ErrorCode::HANDLER_FAILED);
            }
        }
    }
}

impl<T: Transport, C: Clock, App> Endpoint<T, C, App> {
    /// Runs each batch handler on its requests of the burst, one request type after the other.
    #[inline(never)]
    pub(crate) fn run_batches(&mut self) {
        let (engine, rx) = (&mut self.engine, &self.rx);
        while let Some((req_type, count)) = gather(&mut engine.batch) {
            let mut data: [&[u8]; MAX_BATCH] = [&[]; MAX_BATCH];
            match &engine.batch[..count] {
                [entry] => {
                    let first = (entry.frame == 0).then(|| rx.first()).flatten();
                    let whole = first.or_else(|| rx.whole(entry.frame));
                    let frame = whole.unwrap_or_else(|| rx.frame(entry.frame).bytes);
                    data[0] = &frame[entry.data.clone()];
                }
                entries => find_data(rx, entries, &mut data),
            }
            let data = &data[..count];
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

/// Finds the bytes of several requests. Frames that the transport has lined up are taken one after
/// the other, without a look-up for each.
#[inline(always)]
fn find_data<'a, R: Rx>(rx: &'a R, entries: &[BatchEntry], found: &mut [&'a [u8]]) {
    let mut next = entries[0].frame;
    let mut lined_up = rx.lined_up(next);
    for (found, entry) in found.iter_mut().zip(entries) {
        if entry.frame != next {
            lined_up = rx.lined_up(entry.frame);
        }
        next = entry.frame + 1;
        let mut bytes = lined_up.next();
        if bytes.is_none() {
            lined_up = rx.lined_up(entry.frame);
            bytes = lined_up.next().or_else(|| find_whole(rx, entry.frame));
        }
        let frame = bytes.unwrap_or_else(|| rx.frame(entry.frame).bytes);
        *found = &frame[entry.data.clone()];
    }
}

/// After a long iteration, treats the type that ran last in it as slow until its handler is
/// measured.
#[cold]
pub(crate) fn suspect_slow<App>(handlers: &mut Handlers<App>, last: &mut Dispatched) {
    if let Some(req_type) = last.take() {
        handlers.set_slow(req_type, true);
    }
}

/// Moves the entries of the first entry's type to the front, in order; returns this type and the
/// number of its entries, at most [`MAX_BATCH`]. `None`: there are no entries.
fn gather(entries: &mut [BatchEntry]) -> Option<(ReqType, usize)> {
    let req_type = entries.first()?.req_type;
    let mut count = 1;
    for index in 1..entries.len() {
        if count == MAX_BATCH {
            break;
        }
        if entries[index].req_type == req_type {
            if index != count {
                // A rotation, unlike a swap, keeps the others in order too.
                entries[count..=index].rotate_right(1);
            }
            count += 1;
        }
    }
    Some((req_type, count))
}

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Runs one batch: the first `count` entries.
    pub(crate) fn run_batch(&mut self, count: usize, data: &[&[u8]]) {
        let Self {
            core,
            app,
            handlers,
            dropped,
            batch,
            dispatched,
            ..
        } = self;
        let entries = &mut batch[..count];
        let req_type = entries[0].req_type;
        *dispatched = Dispatched::of(req_type);
        if let Some(Handler::Batch { run, .. }) = handlers.get(req_type).map(|entry| &entry.handler)
        {
            let batch = Batch { entries, data };
            let mut cx = Cx { core, dropped };
            if catch_unwind(AssertUnwindSafe(|| run(app, batch, &mut cx))).is_err() {
                core.context.stats.on_panic();
            }
        }
        for entry in &mut batch[..count] {
            entry.settle(|| core.server());
        }
        batch.drain(..count);
    }
}

/// Copies a request for a worker thread, with a buffer for the response.
fn job_bufs(pool: &mut Pool, data: &[u8], max_response: usize) -> Option<[MsgBuf; 2]> {
    let mut request = pool.alloc(data.len()).ok()?;
    request.data_mut().copy_from_slice(data);
    match pool.alloc(max_response) {
        Ok(response) => Some([request, response]),
        Err(_) => {
            pool.recycle(request);
            None
        }
    }
}
