//! The common path: packets that hold a whole short message, with nothing unusual about the packet,
//! its session, its slot, or its call or request.
//!
//! All code here checks first and changes state last: a function that returns `None` or `Err` has
//! changed nothing, and the general path (`packet/receive.rs`, `client/calls.rs`,
//! `server/requests.rs`) then handles the packet from the start. The general path alone is the
//! specification: without this file only the speed would differ ([`Bypasses::common`] switches it
//! off). The simulator runs seeds both ways and compares everything.
//!
//! A request with a batch handler is accepted here, and waits for the end of the burst.
//!
//! Most frames are one packet. A loop that keeps its state in registers handles them. It stores
//! nothing before it calls a user function. If that function panics, [`Blame`] notes during the
//! unwinding which function it was, and with which frame the burst continues.
//!
//! Budget of a 32-byte RPC, in instructions of both sides together: see `budget.toml`.
//!
//! [`Bypasses::common`]: crate::Bypasses::common

pub(super) mod batched;
mod parts;
mod shared;
mod timed;

use std::any::Any;
use std::hint::cold_path;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use dunlin_wire::PLAIN_RESPONSE;

use crate::context::Context;
use crate::endpoint::dispatch::{Dispatched, Position};
use crate::endpoint::prefetch::prefetch_shared;
use crate::endpoint::rpc::{Endpoint, Engine};
use crate::handle::RequestIdx;
use crate::handler::context::Cx;
use crate::handler::request::Request;
use crate::handler::table::Handlers;
use crate::packet::words::{Words, high, low, words_of};
use crate::session::proof::plain_request_type;
use crate::time::Clock;
use crate::transport::{Frame, Rx, Transport, Tx};
use parts::may_be_part;
use shared::Met;

/// The progress of an iteration through its frames, for code outside the loop over frames.
#[derive(Debug, Default)]
struct Cursor {
    /// The frame with which the loop begins, or resumes.
    frame: usize,
    /// The offset in that frame at which the next packet begins.
    offset: usize,
    /// The user function that has panicked.
    panicked: Option<Running>,
    /// Frames whose packets are counted one by one.
    apart: u64,
    /// Packets of those frames that took the common path.
    plain: u64,
    /// Packets that looked ordinary, but could not take the common path.
    declined: u64,
    /// The frame is tried again, because its first attempt came before [`Engine::catch_up`].
    again: bool,
}

/// The user function that runs on the common path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Running {
    Completion,
    /// The handler of a request.
    Handler(RequestIdx),
}

/// A guard for the time in which a user function runs. If the function panics, the guard notes
/// that, and the burst continues after the packet for which the function ran. The guard costs
/// nothing if the function returns. `LONE`: the burst has no other packet.
struct Blame<'a, const LONE: bool, N: Fn() -> (usize, usize) + Clone> {
    cursor: &'a mut Cursor,
    /// Finds the frame and the offset with which the burst continues. This is a function, because
    /// the loop over frames keeps no count of them: they are counted only after a panic.
    next: N,
    running: Running,
}

impl<const LONE: bool, N: Fn() -> (usize, usize) + Clone> Blame<'_, LONE, N> {
    /// Disarms the guard, because the function has returned.
    #[inline(always)]
    fn lift(self) {
        std::mem::forget(self);
    }
}

impl<const LONE: bool, N: Fn() -> (usize, usize) + Clone> Drop for Blame<'_, LONE, N> {
    #[inline(always)]
    fn drop(&mut self) {
        match LONE {
            true => self.cursor.panicked = Some(self.running),
            false => self.cursor.blame(self.next.clone(), self.running),
        }
    }
}

impl Cursor {
    /// Notes that this user function has panicked. This is a separate function that takes values,
    /// so that the guard's fields are never in memory.
    #[cold]
    #[inline(never)]
    fn blame(&mut self, next: impl Fn() -> (usize, usize), running: Running) {
        (self.frame, self.offset) = next();
        self.panicked = Some(running);
    }
}

impl<T: Transport, C: Clock, App> Endpoint<T, C, App> {
    /// Handles every packet of every frame, the ordinary ones on the common path. One guard against
    /// panics serves the whole burst.
    #[inline(always)]
    pub(super) fn receive_plain(&mut self, frames: usize) {
        let Self { rx, engine } = self;
        let mut cursor = Cursor::default();
        loop {
            let run = AssertUnwindSafe(|| engine.receive_from(rx, &mut cursor, frames));
            match catch_unwind(run) {
                Ok(()) => break,
                Err(panic) => engine.after_panic_in_burst(&mut cursor, panic),
            }
        }
        let whole = frames as u64 - cursor.apart;
        let Context { moment, stats, .. } = &mut engine.core.context;
        stats.on_plain(whole + cursor.plain, cursor.declined, moment.came());
    }

    /// Handles the only frame of a burst. There must be no tap. Returns the type whose dispatch
    /// handler has run.
    #[inline(always)]
    pub(super) fn receive_lone(&mut self) -> Dispatched {
        let Self { rx, engine } = self;
        let mut cursor = Cursor::default();
        let mut dispatched = Dispatched::NOTHING;
        let run = AssertUnwindSafe(|| {
            let bytes = match rx.first() {
                Some(bytes) => bytes,
                None => {
                    cold_path();
                    match rx.whole(0) {
                        Some(bytes) => bytes,
                        None => return false,
                    }
                }
            };
            engine.run_lone(bytes, &mut cursor, &mut dispatched)
        });
        match catch_unwind(run) {
            Ok(false) => return self.receive_apart(cursor.declined != 0),
            Ok(true) => {}
            Err(panic) => engine.after_panic(cursor.panicked.take(), panic),
        }
        dispatched
    }

    /// Handles the only frame of a burst. The frame is not one ordinary packet; or the common path
    /// has declined it (`has_declined`), perhaps because [`Engine::catch_up`] had not run. Returns
    /// the type whose dispatch handler has run.
    #[cold]
    #[inline(never)]
    fn receive_apart(&mut self, has_declined: bool) -> Dispatched {
        let Self { rx, engine } = self;
        engine.catch_up();
        engine.dispatched = Dispatched::NOTHING;
        let kept = usize::from(engine.keep_lone(rx));
        let mut cursor = Cursor {
            plain: kept as u64,
            again: has_declined,
            ..Cursor::default()
        };
        loop {
            let run = AssertUnwindSafe(|| {
                if kept == 0 {
                    engine.run_lone_apart(rx, &mut cursor);
                }
            });
            match catch_unwind(run) {
                Ok(()) => break,
                Err(panic) => engine.after_panic_in_burst(&mut cursor, panic),
            }
        }
        let Context { moment, stats, .. } = &mut engine.core.context;
        stats.on_plain(cursor.plain, cursor.declined, moment.came());
        self.run_batches();
        self.engine.dispatched
    }
}

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Handles the frames from the cursor on.
    #[inline(always)]
    fn receive_from(&mut self, rx: &impl Rx, cursor: &mut Cursor, frames: usize) {
        let mut index = cursor.frame;
        if cursor.offset != 0 {
            index = self.run_apart(rx, cursor, index, frames);
        }
        loop {
            index = self.run_whole(rx, cursor, index, frames);
            if index == frames {
                break;
            }
            let kept = self.keep_whole(rx, index, frames);
            if kept == frames {
                break;
            }
            index = match kept == index {
                true => self.run_otherwise(rx, cursor, index, frames),
                false => kept,
            };
        }
    }

    /// Handles frames that are one ordinary packet each. Returns the index of the first other
    /// frame, or the number of frames.
    #[inline(always)]
    fn run_whole(
        &mut self,
        rx: &impl Rx,
        cursor: &mut Cursor,
        first: usize,
        frames: usize,
    ) -> usize {
        let Self {
            core,
            app,
            handlers,
            dropped,
            dispatched,
            tap,
            ..
        } = self;
        let mut cx = Cx { core, dropped };
        // A tap must see each frame.
        if tap.is_some() {
            return first;
        }
        // The index of the first frame after the lined-up ones.
        let mut after = first;
        while after != frames {
            let at = after;
            let mut lined_up = rx.lined_up(at);
            after += lined_up.len();
            let mut bytes = match lined_up.next() {
                Some(bytes) => bytes,
                None => {
                    let Some(bytes) = rx.whole(at) else {
                        return at;
                    };
                    after += 1;
                    bytes
                }
            };
            loop {
                let next = || (after - lined_up.len(), 0);
                let user = (&mut *app, &*handlers, &mut *dispatched);
                if !run_packet::<false, _>(bytes, next, cursor, user, &mut cx) {
                    return after - lined_up.len() - 1;
                }
                bytes = match lined_up.next() {
                    Some(bytes) => bytes,
                    None => break,
                };
            }
        }
        frames
    }

    /// Handles the rest of a frame that is not one ordinary packet, from the cursor's offset on, or
    /// several frames of one large request. Returns the index of the next frame.
    #[inline(never)]
    fn run_apart(
        &mut self,
        rx: &impl Rx,
        cursor: &mut Cursor,
        index: usize,
        frames: usize,
    ) -> usize {
        let frame = rx.frame(index);
        if cursor.offset == 0 {
            let taken = match may_be_part(frame.bytes) {
                true => self.take_parts(rx, index, frames),
                false => 0,
            };
            cursor.apart += taken.max(1) as u64;
            if taken != 0 {
                return index + taken;
            }
        }
        let mut prefetched = cursor.offset;
        while cursor.offset < frame.bytes.len() {
            if cursor.offset >= prefetched {
                prefetched = prefetch_shared(&self.core, frame.bytes, cursor.offset);
            }
            let met = self.run_shared(&frame, prefetched, cursor, index);
            if met != Met::Nothing && !self.run_among_others(&frame, met, cursor, index) {
                self.run_other(&frame, cursor, index);
            }
        }
        cursor.offset = 0;
        if let Some(tap) = &mut self.tap {
            tap.on_frame(&self.core, &frame);
        }
        index + 1
    }

    /// Handles the only packet of a burst, if it is an ordinary one.
    #[inline(always)]
    fn run_lone(
        &mut self,
        packet: &[u8],
        cursor: &mut Cursor,
        dispatched: &mut Dispatched,
    ) -> bool {
        let Self {
            core,
            app,
            handlers,
            dropped,
            ..
        } = self;
        let mut cx = Cx { core, dropped };
        let user = (app, &*handlers, dispatched);
        run_packet::<true, _>(packet, || (1, 0), cursor, user, &mut cx)
    }

    /// Handles the packet at the cursor's offset on the general path.
    #[inline(never)]
    fn run_other(&mut self, frame: &Frame<'_>, cursor: &mut Cursor, index: usize) {
        if let Some(data) = frame.elsewhere {
            self.on_reference(frame, data);
            cursor.offset = frame.bytes.len();
            return;
        }
        let offset = cursor.offset;
        let bytes = &frame.bytes[offset..];
        let Some(packet) = self.core.next_packet(bytes) else {
            // Without a length, the start of the next packet is unknown too.
            self.on_unknown(bytes);
            cursor.offset = frame.bytes.len();
            return;
        };
        cursor.offset += packet.len;
        let place = Position {
            frame: index,
            offset,
            congestion: frame.congestion,
        };
        self.on_packet(&packet, bytes, place);
    }

    /// Like [`Self::after_panic`], for the function that the cursor names.
    #[cold]
    #[inline(never)]
    fn after_panic_in_burst(&mut self, cursor: &mut Cursor, panic: Box<dyn Any + Send>) {
        self.after_panic(cursor.panicked.take(), panic);
    }

    /// Counts a panic of a user function on the common path; if the function is the handler of a
    /// request, ends that request. `running`: the function that has panicked.
    #[cold]
    #[inline(never)]
    fn after_panic(&mut self, running: Option<Running>, panic: Box<dyn Any + Send>) {
        match running {
            // The panic came from this crate.
            None => resume_unwind(panic),
            Some(Running::Completion) => self.core.context.stats.on_panic(),
            Some(Running::Handler(inbound)) => {
                self.core.context.stats.on_panic();
                #[cfg(feature = "mutants")]
                if self
                    .core
                    .context
                    .shows(crate::mutant::Mutant::PanicMisattributed)
                {
                    return;
                }
                self.core.server().after_handler(inbound);
            }
        }
    }
}

/// The user's state and functions that ordinary packets need.
type User<'a, App> = (&'a mut App, &'a Handlers<App>, &'a mut Dispatched);

/// Handles a packet with these bytes if it is an ordinary one; returns false otherwise. `next`
/// finds the frame and offset with which the burst continues if a user function panics. `LONE`: the
/// packet is the only one of its burst; otherwise, the caller counts it.
#[inline(always)]
fn run_packet<const LONE: bool, App>(
    bytes: &[u8],
    next: impl Fn() -> (usize, usize) + Clone,
    cursor: &mut Cursor,
    user: User<'_, App>,
    cx: &mut Cx<'_>,
) -> bool {
    let is_whole = |(words, data): &(Words, &[u8])| data.len() == high(words[1]) as usize;
    match words_of(bytes).filter(is_whole) {
        Some(packet) => run_words::<LONE, _>(packet, next, cursor, user, cx),
        None => false,
    }
}

/// Like [`run_packet`], for a packet with this header and data, which holds its whole message.
#[inline(always)]
fn run_words<const LONE: bool, App>(
    (words, data): (Words, &[u8]),
    next: impl Fn() -> (usize, usize) + Clone,
    cursor: &mut Cursor,
    (app, handlers, dispatched): User<'_, App>,
    cx: &mut Cx<'_>,
) -> bool {
    let core = &mut *cx.core;
    if u64::from(low(words[0])) == PLAIN_RESPONSE {
        let ended =
            core.calls
                .end_plain::<LONE>(&words, data, &mut core.sessions, &mut core.context);
        let Some(ended) = ended else {
            cursor.declined += 1;
            return false;
        };
        let blame = Blame::<LONE, _> {
            cursor,
            next,
            running: Running::Completion,
        };
        // The completion is built in place: moving it right after writing it would stall the
        // processor.
        (handlers.completion)(app, ended.done(Ok(())), cx);
        blame.lift();
        return true;
    }
    let Some(req_type) = plain_request_type(&words) else {
        return false;
    };
    let Some(run) = handlers.fast(req_type) else {
        return false;
    };
    let accepted = core
        .requests
        .on_plain_request(&words, &mut core.sessions, &mut core.context);
    let Some((session, inbound)) = accepted else {
        cursor.declined += 1;
        return false;
    };
    if LONE {
        core.context.stats.on_lone(None);
    }
    *dispatched = Dispatched::of(req_type);
    let blame = Blame::<LONE, _> {
        cursor,
        next,
        running: Running::Handler(inbound),
    };
    let request = Request {
        data,
        inbound,
        req_type,
        session,
    };
    run(app, request, cx);
    blame.lift();
    cx.core.server().after_handler(inbound);
    true
}
