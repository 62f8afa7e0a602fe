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

use dunlin_wire::{HEADER_LEN, PLAIN_RESPONSE};

use crate::call::Done;
use crate::endpoint::dispatch::{Dispatched, Position};
use crate::endpoint::rpc::{Engine, Rpc};
use crate::handle::RequestIdx;
use crate::handler::context::Cx;
use crate::handler::request::Request;
use crate::handler::table::Handlers;
use crate::packet::words::{high, low, words_of};
use crate::session::proof::plain_request_type;
use crate::time::Clock;
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

/// The function of the user that runs on the common path, for the case that it panics: the handler
/// of a request, by its index, or another one. A single word, because each packet stores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Running(u32);

impl Running {
    pub(super) const NOTHING: Self = Self(u32::MAX);
    const COMPLETION: Self = Self(u32::MAX - 1);
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
        engine
            .core
            .context
            .stats
            .on_plain(cursor.plain, cursor.declined);
    }
}

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// The frames from the cursor on.
    #[inline(always)]
    fn receive_from(&mut self, rx: &impl Rx, cursor: &mut Cursor, frames: usize) {
        while self.run_plain(rx, cursor, frames) {
            self.run_other(&rx.frame(cursor.frame), cursor);
        }
    }

    /// Packets from the cursor on, up to one that is not an ordinary one; false if there is none.
    #[inline(always)]
    fn run_plain(&mut self, rx: &impl Rx, cursor: &mut Cursor, frames: usize) -> bool {
        let Self {
            core,
            app,
            handlers,
            dropped,
            dispatched,
            running,
            tap,
            ..
        } = self;
        let mut cx = Cx { core, dropped };
        while cursor.frame < frames {
            let frame = rx.frame(cursor.frame);
            let plain = !frame.congestion && frame.elsewhere.is_none();
            while cursor.offset < frame.bytes.len() {
                let calls = (&*handlers, &mut *dispatched, &mut *running);
                if !plain || !run_packet(frame.bytes, cursor, app, calls, &mut cx) {
                    return true;
                }
            }
            if let Some(tap) = tap {
                tap.on_frame(cx.core, &frame);
            }
            cursor.frame += 1;
            cursor.offset = 0;
        }
        false
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
        let Some(packet) = self.core.next_packet(bytes) else {
            // Where the next packet starts is not known.
            cursor.offset = frame.bytes.len();
            return;
        };
        cursor.offset += packet.len;
        let place = Position {
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
        match std::mem::replace(&mut self.running, Running::NOTHING) {
            // It was this crate's own.
            Running::NOTHING => resume_unwind(panic),
            Running::COMPLETION => self.core.context.stats.on_panic(),
            Running(index) => {
                self.core.context.stats.on_panic();
                #[cfg(feature = "mutants")]
                if self
                    .core
                    .context
                    .shows(crate::mutant::Mutant::PanicMisattributed)
                {
                    return;
                }
                self.core.server().after_handler(RequestIdx(index));
            }
        }
    }
}

/// The packet at the cursor, if it is an ordinary one; false if it is not.
#[inline(always)]
fn run_packet<App>(
    bytes: &[u8],
    cursor: &mut Cursor,
    app: &mut App,
    (handlers, dispatched, running): (&Handlers<App>, &mut Dispatched, &mut Running),
    cx: &mut Cx<'_>,
) -> bool {
    let Some((words, rest)) = words_of(&bytes[cursor.offset..]) else {
        return false;
    };
    let Some(data) = rest.get(..high(words[1]) as usize) else {
        return false;
    };
    let end = cursor.offset + HEADER_LEN + data.len();
    if u64::from(low(words[0])) == PLAIN_RESPONSE {
        let core = &mut *cx.core;
        let Some((session, idx)) =
            core.calls
                .on_plain_answer(&words, data, &mut core.sessions, &mut core.context)
        else {
            cursor.declined += 1;
            return false;
        };
        cursor.offset = end;
        cursor.plain += 1;
        *running = Running::COMPLETION;
        // Put together where it is used: moving it right after stalls.
        let done: Done = cx.core.calls.plain_done(idx, session, data);
        (handlers.completion)(app, done, cx);
    } else {
        let Some(req_type) = plain_request_type(&words) else {
            return false;
        };
        let Some(run) = handlers.fast(req_type) else {
            return false;
        };
        let core = &mut *cx.core;
        let Some((session, inbound)) =
            core.requests
                .on_plain_request(&words, &mut core.sessions, &mut core.context)
        else {
            cursor.declined += 1;
            return false;
        };
        cursor.offset = end;
        cursor.plain += 1;
        *dispatched = Dispatched::of(req_type);
        *running = Running(inbound.0);
        let request = Request {
            data,
            inbound,
            req_type,
            session,
        };
        run(app, request, cx);
        cx.core.server().after_handler(inbound);
    }
    *running = Running::NOTHING;
    true
}
