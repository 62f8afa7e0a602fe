//! One iteration of the endpoint's event loop, from top to bottom. This is the packet path.
//!
//! ```text
//! rx.burst → prefetch sessions and slots of the burst → parse and validate → session → slot
//!   → handler or continuation → batch handlers → finished jobs → what is due
//!   → completions that waited → stall queue → tx.burst
//! ```
//! Ordinary packets take the common path (`endpoint/plain.rs`), all others the general one here.
//!
//! Slots never call user code and never see the transport: they push packets and return events. The
//! control flow is here and in `endpoint/dispatch.rs`. The loop reads the clock at the places
//! marked CLOCK, around slow handlers, and in one of at most 64 idle iterations; everything below
//! gets the time as an argument.
//!
//! Nanosecond budget of a 32-byte RPC on shared memory, per side, at 2.1 GHz:
//!
//! | step | ns |
//! |---|---|
//! | `rx.burst`: find and copy one cell | 15 |
//! | clock | 15 |
//! | parse, session, slot | 15 |
//! | handler or continuation, buffers | 20 |
//! | `tx.burst`: one cell, one store that publishes | 15 |
//!
//! The second reading of the clock comes before the burst only if clients measure round trips or
//! the burst is long; otherwise it comes after the burst, off the packets' path
//! (`docs/decisions/round-trip-samples.md`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dunlin_msgbuf::PeerBytes;
use dunlin_wire::PacketType;

use crate::context::Context;
use crate::endpoint::dispatch::{Dispatched, Position};
use crate::endpoint::prefetch::prefetch;
use crate::endpoint::rpc::{Endpoint, Engine};
use crate::handler::context::Cx;
use crate::handler::table::Handlers;
use crate::law::Check;
use crate::observe::counters::DropReason;
use crate::packet::receive::{Data, Packet};
use crate::protocol::Core;
use crate::time::{Clock, Nanos};
use crate::transport::{Begun, Frame, Rx, Transport, Tx};

/// The work of one iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Frames that came in.
    pub frames: usize,
    /// The iteration did more than poll for frames and read the clock.
    pub busy: bool,
}

impl Progress {
    const NONE: Self = Self {
        frames: 0,
        busy: false,
    };

    /// The progress of an iteration with work to do.
    const fn of(frames: usize) -> Self {
        Self { frames, busy: true }
    }
}

impl<T: Transport, C: Clock, App> Endpoint<T, C, App> {
    /// One iteration. Never blocks. Each call here is the last thing that the function does, so an
    /// iteration with one frame or none saves no registers.
    #[inline]
    pub fn run_once(&mut self) -> Progress {
        match self.rx.begin() {
            Begun::Nothing => self.run_idle(),
            Begun::One => self.run_lone(),
            Begun::Unfinished(begun) => self.run_rest(begun),
        }
    }

    /// An iteration whose burst is not over yet.
    #[inline(never)]
    fn run_rest(&mut self, begun: u32) -> Progress {
        match self.rx.finish(begun) {
            0 => self.run_idle(),
            1 => self.run_lone(),
            frames => self.iterate(frames),
        }
    }

    /// An iteration without frames.
    #[inline(always)]
    fn run_idle(&mut self) -> Progress {
        match self.engine.may_rest() {
            true => Progress::NONE,
            false => self.run_without_frames(),
        }
    }

    /// An iteration without frames, in which there may be something to do.
    #[inline(never)]
    fn run_without_frames(&mut self) -> Progress {
        match self.engine.must_run() {
            true => self.iterate(0),
            false => Progress::NONE,
        }
    }

    /// An iteration for one frame.
    #[inline(always)]
    fn run_lone(&mut self) -> Progress {
        match self.engine.usual {
            true => self.iterate_lone(),
            false => self.iterate(1),
        }
    }

    /// An iteration for a frame that is alone in its burst, without a loop over frames.
    #[inline(never)]
    fn iterate_lone(&mut self) -> Progress {
        let now = self.engine.clock.now(); // CLOCK 1: all that follows happens at this time.
        self.engine.begin(now, 1);
        let dispatched = self.receive_lone();
        self.engine.finish_lone(dispatched);
        Progress::of(1)
    }

    /// An iteration with work to do.
    #[inline]
    fn iterate(&mut self, frames: usize) -> Progress {
        match self.engine.core.context.config.check {
            Check::Event => self.iterate_checked(frames),
            Check::Never | Check::Sweep => self.iterate_unchecked(frames),
        }
    }

    /// The body is not inlined, so that it exists once. If it existed twice, the compiler would
    /// inline less into it.
    #[inline(never)]
    fn iterate_unchecked(&mut self, frames: usize) -> Progress {
        let now = self.engine.clock.now(); // CLOCK 1: all that follows happens at this time.
        self.engine.begin(now, frames);
        self.engine.catch_up();
        self.engine.last_burst = now;
        self.engine.dispatched = Dispatched::NOTHING;
        if frames != 0 {
            prefetch(&self.engine.core, &self.rx, frames);
            let bypasses = self.engine.core.context.config.bypasses;
            match (bypasses.clock, bypasses.common) {
                (true, true) => self.receive_plain(frames),
                (true, false) => self.receive::<false>(frames),
                (false, _) => self.receive::<true>(frames),
            }
            if !self.engine.batch.is_empty() {
                self.run_batches();
            }
        }
        self.engine.finish(frames);
        #[cfg(feature = "mutants")]
        if frames == 0 {
            self.engine.core.sessions.hide();
        }
        Progress::of(frames)
    }

    /// Runs an iteration, then checks the laws of the sessions that its packets named; or of all
    /// sessions, if it did more than handle packets. So timers, calls, cancellations and events of
    /// the control plane are followed by a check of all sessions.
    #[cold]
    #[inline(never)]
    fn iterate_checked(&mut self, frames: usize) -> Progress {
        let agenda = &self.engine.core.context.agenda;
        let (alert, due) = (agenda.is_alert(), agenda.due());
        let called = !self.engine.core.context.outbox.is_empty();
        let progress = match frames == 1 && self.engine.is_usual_but_checked() {
            true => self.iterate_lone(),
            false => self.iterate_unchecked(frames),
        };
        let is_due = due <= self.engine.core.context.moment.now();
        let Self { rx, engine } = self;
        let frames = (0..frames).map(|index| rx.frame(index).bytes);
        engine
            .core
            .check_after_event(frames, alert || called || is_due);
        progress
    }

    /// Handles every packet of every frame. A frame may hold many (rule W11). With `EACH`, the
    /// clock is read for each packet (eRPC §5.2.2, batched timestamps off).
    #[inline(never)]
    fn receive<const EACH: bool>(&mut self, frames: usize) {
        for index in 0..frames {
            let frame = self.rx.frame(index);
            let mut offset = 0;
            if let Some(data) = frame.elsewhere {
                self.engine.on_reference(&frame, data);
                offset = frame.bytes.len();
            }
            while offset < frame.bytes.len() {
                let bytes = &frame.bytes[offset..];
                let Some(packet) = self.engine.core.next_packet(bytes) else {
                    self.engine.on_unknown(bytes);
                    break;
                };
                if EACH {
                    self.engine.read_clock();
                }
                let place = Position {
                    frame: index,
                    offset,
                    congestion: frame.congestion,
                };
                self.engine.on_packet(&packet, bytes, place);
                offset += packet.len;
            }
            if let Some(tap) = &mut self.engine.tap {
                tap.on_frame(&self.engine.core, &frame);
            }
        }
    }
}

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    #[inline]
    fn begin(&mut self, now: Nanos, frames: usize) {
        #[cfg(feature = "mutants")]
        self.core.sessions.unhide();
        self.core.context.moment.begin_iteration(now);
        self.core.context.stats.on_frames(frames);
    }

    /// Notes two facts of a new iteration that the general path needs, and the common path for one
    /// packet does not: when the previous burst was taken, and which packets the transport has
    /// released.
    #[inline]
    pub(super) fn catch_up(&mut self) {
        let Context { moment, held, .. } = &mut self.core.context;
        moment.set_before(self.last_burst);
        held.on_done(self.tx.done());
    }

    /// Handles a packet whose data still lies in its sender's memory. The endpoint copies the data
    /// once, to its final place, as it does for a packet of a large message. Therefore even a
    /// message of one such packet takes the path of large messages.
    #[inline(never)]
    pub(super) fn on_reference(&mut self, frame: &Frame<'_>, data: PeerBytes<'_>) {
        let core = &mut self.core;
        let Some(packet) = core.packet_of_data(frame.bytes, data.len()) else {
            return;
        };
        let (session, header) = (packet.session, &packet.header);
        if let Some(acks) = packet.acks(frame.bytes) {
            core.server().on_acks(session, acks);
        }
        match header.kind {
            PacketType::Req => {
                core.server().on_large_request(
                    session,
                    header,
                    Data::There(data),
                    frame.congestion,
                );
            }
            PacketType::Resp => core.on_large_answer(session, header, Data::There(data)),
            // The other types have no data.
            _ => core.context.stats.on_drop(DropReason::Size),
        }
    }

    /// Handles bytes that are not a packet of an open session, and may be a challenge.
    #[inline]
    pub(super) fn on_unknown(&mut self, bytes: &[u8]) {
        let Core {
            context, sessions, ..
        } = &mut self.core;
        context.notices.on_challenge(sessions, bytes);
    }

    /// Reads the clock, because the next events happen now.
    fn read_clock(&mut self) {
        let now = self.clock.now();
        self.core.context.moment.begin_packet(now);
    }

    /// Handles one valid packet of an open session.
    #[inline(always)]
    pub(super) fn on_packet(&mut self, packet: &Packet<'_>, bytes: &[u8], place: Position) {
        let core = &mut self.core;
        let (session, header) = (packet.session, &packet.header);
        if let Some(acks) = packet.acks(bytes) {
            core.server().on_acks(session, acks);
        }
        match header.kind {
            PacketType::Req => {
                if let Some(inbound) = core.server().on_request(session, packet, place.congestion) {
                    #[cfg(feature = "mutants")]
                    if core.context.shows(crate::mutant::Mutant::TemplateStale) {
                        core.requests.spoil_template(inbound);
                    }
                    self.run_handler(packet, place, inbound);
                }
            }
            PacketType::Resp | PacketType::Err => {
                if place.congestion {
                    let line = core.sessions.at_mut(session);
                    core.pacer
                        .on_marked_answer(line, header.size, &mut core.context);
                }
                if let Some(answered) = core.on_answer(session, header, packet.data) {
                    // The completion is built in place: moving it right after writing it would
                    // stall the processor.
                    self.call_user(|app, handlers, cx| {
                        let (calls, sessions) = (&mut cx.core.calls, &cx.core.sessions);
                        let keeps_rules = |session| sessions.keeps_code_rules(session);
                        let done = calls.finish(answered, header, packet.data, keeps_rules);
                        (handlers.completion)(app, done, cx);
                    });
                }
            }
            // CR, RFR, CANCEL.
            _ => core.on_control_packet(session, header, bytes, place.congestion),
        }
    }

    /// Does all work of an iteration that does not come from frames.
    #[inline(always)]
    fn finish(&mut self, frames: usize) {
        if self.has_due_work() {
            self.do_due_work(frames);
        }
        self.transmit_short();
    }

    /// Ends an iteration with one frame. Most of these send one packet, for which the peer waits.
    /// `dispatched`: the type whose handler has run.
    #[inline(always)]
    fn finish_lone(&mut self, dispatched: Dispatched) {
        if self.has_due_work() {
            return self.finish_otherwise(dispatched);
        }
        let Some(packet) = self.core.context.outbox.lone() else {
            return self.finish_otherwise(dispatched);
        };
        self.last_burst = self.core.context.moment.now();
        self.send_lone(packet);
        if dispatched != Dispatched::NOTHING {
            // CLOCK 2, after the packet, because it should not wait for the reading.
            let leaving = self.clock.now();
            if self.is_late(leaving) {
                self.dispatched = dispatched;
                self.find_slow(leaving);
            }
        }
    }

    /// Ends an iteration with one frame that has more work to do, or not exactly one packet to
    /// send.
    #[inline(never)]
    fn finish_otherwise(&mut self, dispatched: Dispatched) {
        self.dispatched = dispatched;
        self.catch_up();
        self.last_burst = self.core.context.moment.burst_time();
        self.finish(1);
    }

    /// Whether anything may wait for the loop, or is due.
    #[inline(always)]
    fn has_due_work(&self) -> bool {
        let Context { agenda, moment, .. } = &self.core.context;
        agenda.is_alert() || agenda.due() <= moment.now()
    }

    /// Does the work of an iteration that comes neither from frames nor from packets to send.
    #[inline(never)]
    fn do_due_work(&mut self, frames: usize) {
        if self.core.context.agenda.has_postponed() {
            self.run_slow_handler();
            self.collect_jobs();
        }
        if self.dropped.any() {
            self.reject_dropped();
        }
        if self.core.context.agenda.due() <= self.core.context.moment.now() {
            // If the burst brought a frame, more may be waiting: shared memory delivers data by
            // reference two at a time, and the transport may ask a socket for one datagram at a
            // time. While a slow handler ran, answers may have come in, too.
            let queue_empty = frames == 0 && self.core.context.moment.is_at_burst();
            self.core.on_time(queue_empty);
            self.deliver_timers();
            let paced = self.core.pacer.next_due();
            self.core.context.agenda.find_due(paced);
        }
        if self.core.context.agenda.needs_attention() {
            self.drain_queues();
        }
        // Once no handle of a deferred request is left, the list is complete: it has every request
        // that other threads have dropped.
        let guarded = Arc::get_mut(&mut self.dropped).is_none();
        let others = guarded || self.dropped.any();
        self.core.context.agenda.lower_alert(others);
    }

    /// Delivers completions that no answer has caused, or that waited for the transport; session
    /// events; and kept requests whose clients no longer wait. Also handles buffers that the
    /// transport has released, sessions whose backlog can move, and large messages.
    #[inline(never)]
    fn drain_queues(&mut self) {
        self.core.context.recycle_lingering();
        while let Some(arrived) = self.core.reassembly.pop_complete() {
            self.run_arrived(arrived);
        }
        self.core.server().return_credits();
        self.deliver_endings();
        while let Some(event) = self.core.context.notices.pop_session() {
            self.call_user(|app, handlers, cx| (handlers.session)(app, event, cx));
        }
        while let Some(request) = self.core.context.notices.pop_given_up() {
            let ticket = self.core.sessions.ticket(request);
            self.call_user(|app, handlers, cx| (handlers.given_up)(app, ticket, cx));
        }
        self.core.resume_stalled();
        let (transfers, mut lent) = self.core.transfers();
        transfers.send_large(&mut lent);
        self.core.server().send_asked();
        self.core.context.agenda.on_drained(self.core.is_waiting());
    }

    fn deliver_endings(&mut self) {
        #[cfg(feature = "mutants")]
        if self
            .core
            .context
            .shows(crate::mutant::Mutant::EndingsReversed)
        {
            self.core.context.held.reverse_endings();
        }
        for _ in 0..self.core.context.held.ending_count() {
            if let Some(done) = self.core.context.held.pop_ending() {
                self.core.context.stats.on_completion();
                self.call_user(|app, handlers, cx| (handlers.completion)(app, done, cx));
            }
        }
    }

    /// Delivers the timers that are due. If the user's function sets a timer for now, that timer
    /// waits for the next iteration.
    #[inline(never)]
    fn deliver_timers(&mut self) {
        for _ in 0..self.core.context.agenda.timer_count() {
            let Some(token) = self
                .core
                .context
                .agenda
                .pop_timer(self.core.context.moment.now())
            else {
                return;
            };
            self.call_user(|app, handlers, cx| (handlers.timer)(app, token, cx));
        }
    }

    /// Calls a user function. A panic ends that function, not the endpoint; the msgbufs that the
    /// function held are dropped, which returns them to their pools.
    #[inline]
    fn call_user(&mut self, run: impl FnOnce(&mut App, &Handlers<App>, &mut Cx<'_>)) {
        let Self {
            core,
            app,
            handlers,
            dropped,
            ..
        } = self;
        let mut cx = Cx { core, dropped };
        if catch_unwind(AssertUnwindSafe(|| run(app, handlers, &mut cx))).is_err() {
            cx.core.context.stats.on_panic();
        }
    }
}
