//! The common path: a packet that is a whole short message, with nothing unusual about it, its
//! session, its slot and its call or request.
//!
//! Everything here looks first and changes things after: `None` or `Err` has changed nothing, and
//! the general path (`packet/receive.rs`, `client/calls.rs`, `server/requests.rs`) does all of it
//! again. That path alone is the specification. This file says nothing about the protocol that is
//! not said there; deleting it changes nothing but speed ([`Bypasses::common`] switches it off).
//! The simulator runs seeds both ways and compares everything.
//!
//! Budget of a 32-byte RPC, in instructions of both sides together: see `budget.toml`.
//!
//! [`Bypasses::common`]: crate::Bypasses::common

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{HEADER_LEN, PLAIN_RESPONSE, ReqType};

use crate::client::call::{self, CallId, CallIdx, CallOptions, Done, Tag};
use crate::endpoint::proto::Proto;
use crate::endpoint::rpc::{Engine, Rpc};
use crate::handler::context::Cx;
use crate::handler::dispatch::Place;
use crate::handler::request::Request;
use crate::packet::words::{Words, high, low, words_of};
use crate::server::work::{self, Marks, WorkIdx, WorkState};
use crate::session::proof::plain_request_type;
use crate::session::table::Session;
use crate::time::{Clock, Nanos};
use crate::transport::{Frame, Rx, Transport, Tx};

/// How far an iteration has come with its frames. It is moved on before a function of the user
/// runs, so that a panic ends that call and the next packet follows.
#[derive(Debug, Default)]
struct Cursor {
    frame: usize,
    offset: usize,
    /// Packets that took the common path.
    plain: u64,
    /// Packets that looked as if they could.
    declined: u64,
}

/// The function of the user that runs on the common path, for the case that it panics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Running {
    #[default]
    Nothing,
    Completion,
    Handler(WorkIdx),
}

impl<T: Transport, C: Clock, App> Rpc<T, C, App> {
    /// Every packet of every frame, the ordinary ones on the common path. One guard against panics
    /// serves the whole burst.
    #[inline(always)]
    pub(super) fn receive_plain(&mut self, frames: usize) {
        let Self { rx, engine } = self;
        let mut cursor = Cursor::default();
        loop {
            let run = AssertUnwindSafe(|| engine.receive_from(rx, &mut cursor, frames));
            match catch_unwind(run) {
                Ok(()) => break,
                Err(panic) => engine.after_panic(panic),
            }
        }
        engine.proto.stats.on_plain(cursor.plain, cursor.declined);
    }
}

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// The frames from the cursor on.
    #[inline(always)]
    fn receive_from(&mut self, rx: &impl Rx, cursor: &mut Cursor, frames: usize) {
        while cursor.frame < frames {
            let frame = rx.frame(cursor.frame);
            while cursor.offset < frame.bytes.len() {
                let plain = !frame.congestion && frame.elsewhere.is_none();
                if !plain || !self.run_plain(frame.bytes, cursor) {
                    self.run_other(&frame, cursor);
                }
            }
            if let Some(tap) = &mut self.tap {
                tap.on_frame(&self.proto, &frame);
            }
            cursor.frame += 1;
            cursor.offset = 0;
        }
    }

    /// The packet at the cursor, if it is an ordinary one; false if it is not.
    #[inline(always)]
    fn run_plain(&mut self, bytes: &[u8], cursor: &mut Cursor) -> bool {
        let Self {
            proto,
            app,
            handlers,
            dropped,
            dispatched,
            running,
            ..
        } = self;
        let Some((words, rest)) = words_of(&bytes[cursor.offset..]) else {
            return false;
        };
        let Some(data) = rest.get(..high(words[1]) as usize) else {
            return false;
        };
        let end = cursor.offset + HEADER_LEN + data.len();
        if u64::from(low(words[0])) == PLAIN_RESPONSE {
            let Some((session, idx)) = proto.plain_answer(&words, data) else {
                cursor.declined += 1;
                return false;
            };
            cursor.offset = end;
            cursor.plain += 1;
            *running = Running::Completion;
            let mut cx = Cx { proto, dropped };
            // Put together where it is used: moving it right after stalls.
            let done: Done = cx.proto.calls.plain_done(idx, session, data);
            (handlers.completion)(app, done, &mut cx);
        } else {
            let Some(req_type) = plain_request_type(&words) else {
                return false;
            };
            let Some(run) = handlers.fast(req_type) else {
                return false;
            };
            let Some((session, work)) = proto.plain_request(&words, data, req_type) else {
                cursor.declined += 1;
                return false;
            };
            cursor.offset = end;
            cursor.plain += 1;
            *dispatched = Some(req_type);
            *running = Running::Handler(work);
            let mut cx = Cx { proto, dropped };
            let request = Request {
                data,
                work,
                req_type,
                session,
            };
            run(app, request, &mut cx);
            proto.after_handler(work);
        }
        *running = Running::Nothing;
        true
    }

    /// The packet at the cursor, whatever it is.
    #[inline(never)]
    fn run_other(&mut self, frame: &Frame<'_>, cursor: &mut Cursor) {
        if frame.elsewhere.is_some() {
            self.on_reference(frame);
            cursor.offset = frame.bytes.len();
            return;
        }
        let offset = cursor.offset;
        let bytes = &frame.bytes[offset..];
        let Some(packet) = self.proto.next_packet(bytes) else {
            // Where the next packet starts is not known.
            cursor.offset = frame.bytes.len();
            return;
        };
        cursor.offset += packet.len;
        let place = Place {
            frame: cursor.frame,
            offset,
            congestion: frame.congestion,
        };
        self.on_packet(&packet, bytes, place);
    }

    /// A function of the user has panicked on the common path: that ends its request.
    #[cold]
    #[inline(never)]
    fn after_panic(&mut self, panic: Box<dyn Any + Send>) {
        match std::mem::take(&mut self.running) {
            // It was this crate's own.
            Running::Nothing => resume_unwind(panic),
            Running::Completion => self.proto.stats.on_panic(),
            Running::Handler(work) => {
                self.proto.stats.on_panic();
                #[cfg(feature = "mutants")]
                if self.proto.shows(crate::mutant::Mutant::PanicMisattributed) {
                    return;
                }
                self.proto.after_handler(work);
            }
        }
    }
}

impl Proto {
    /// The call that a response ends, and its session. Only its completion is left.
    #[inline(always)]
    fn plain_answer(&mut self, words: &Words, data: &[u8]) -> Option<(Session, CallIdx)> {
        let Self {
            sessions,
            calls,
            stats,
            moment,
            outbox,
            ..
        } = self;
        let known = sessions.known(words, data.len())?;
        let waits = known.has_waiting();
        let (at, req, window) = (known.slot(), known.req(), known.window());
        let idx = calls.plain_in_slot(at, req, data.len(), outbox)?;
        calls.vacate(at, window);
        #[cfg(feature = "mutants")]
        if self.config.mutant == Some(crate::mutant::Mutant::WrongWrap) {
            calls.stop_numbers(at, req, window);
        }
        let took = moment.present(moment.burst_time());
        stats.on_answered(took.since(calls.first_sent(idx)));
        stats.on_completion();
        let session = known.release();
        if waits {
            self.wake(session.index());
        }
        Some((session, idx))
    }

    /// The work of a new request, and its session. Its handler is left.
    #[inline(always)]
    fn plain_request(
        &mut self,
        words: &Words,
        data: &[u8],
        req_type: ReqType,
    ) -> Option<(Session, WorkIdx)> {
        let Self {
            sessions,
            works,
            stats,
            moment,
            outbox,
            ..
        } = self;
        let known = sessions.known(words, data.len())?;
        let (at, req) = (known.slot(), known.req());
        let answer = || known.answer_template();
        let idx = works.plain_next(at, req, known.window(), outbox, answer)?;
        let begun = work::Begun {
            session: known.session().index(),
            req,
            req_type,
            marks: Marks::NONE,
            arrived: moment.burst_time(),
        };
        works.begin_plain(at, idx, &begun);
        stats.on_request_accepted();
        Some((known.session(), idx))
    }

    /// Issues a short request.
    ///
    /// # Errors
    /// The msgbufs, if anything is unusual.
    #[inline(always)]
    pub(crate) fn plain_call(
        &mut self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        response: MsgBuf,
        tag: Tag,
        options: CallOptions,
    ) -> Result<CallId, [MsgBuf; 2]> {
        let Self {
            config,
            sessions,
            calls,
            outbox,
            agenda,
            stats,
            moment,
            ..
        } = self;
        let (now, len) = (moment.now(), request.len());
        let ready = match config.bypasses.common {
            true => sessions.ready(session, len, now),
            false => None,
        };
        let Some(ready) = ready else {
            return Err([request, response]);
        };
        let at = ready.slot();
        #[expect(clippy::cast_possible_truncation, reason = "a single packet")]
        let words = ready.words(req_type, len as u32, calls.req_at(at));
        let tx_end = outbox.push_words(ready.peer(), words, &request);
        let deadline = options.deadline.map_or(Nanos::MAX, |span| now + span);
        let id = calls.begin_plain(
            at,
            call::Begun {
                session: ready.index(),
                req_type,
                tag,
                request,
                response,
                deadline,
                now,
                present: moment.present(now),
                tx_end,
            },
        );
        ready.take();
        if moment.is_between_iterations() {
            outbox.tell_when_sent(id.index_at());
        }
        stats.on_request_sent();
        agenda.on_call(now, config.scan_interval);
        Ok(id)
    }

    /// Answers with a response of one packet, in the iteration in which the request came.
    ///
    /// # Errors
    /// `write`, if anything is unusual.
    #[inline(always)]
    pub(crate) fn plain_reply<W: FnOnce(&mut [u8])>(
        &mut self,
        idx: WorkIdx,
        len: usize,
        write: W,
    ) -> Result<(), W> {
        let work = self.works.at_mut(idx);
        let usual = self.config.bypasses.common
            && work.marks == Marks::NONE
            && work.arrived == self.moment.burst_time()
            && len <= work.answer.single as usize;
        let Some(response) = work.response.as_mut().filter(|_| usual) else {
            return Err(write);
        };
        if response.resize(len).is_err() {
            return Err(write);
        }
        write(response.data_mut());
        let words = [
            work.answer.head,
            (len as u64) << 32 | u64::from(work.answer.token.0),
            u64::from(work.req.0) << 32,
        ];
        work.state = WorkState::Done;
        work.answered = self.moment.now();
        work.tx_end = self.outbox.push_words(work.answer.peer, words, response);
        self.expect_sweep();
        Ok(())
    }
}
