//! One iteration of the endpoint's event loop, from top to bottom. This is the packet path.
//!
//! ```text
//! rx.burst → prefetch sessions and slots of the burst → parse and validate → session → slot
//!   → handler or continuation → batch handlers → finished jobs → what is due
//!   → completions that waited → stall queue → tx.burst
//! ```
//! Ordinary packets take the common path (`endpoint/plain.rs`), all others the general one here.
//!
//! Slots never call user code and never see the transport: they push packets and return events, and
//! the control flow is here and in `handler/dispatch.rs`. The clock is read at the places marked
//! CLOCK, around slow handlers, and in every 64th idle iteration; everything below gets the time.
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
//! The second reading of the clock is before the burst only if clients measure or many packets
//! share it, else behind it, off their path (`docs/decisions/round-trip-samples.md`).

use std::panic::{AssertUnwindSafe, catch_unwind};

use dunlin_wire::{PacketType, peek_session};

use crate::config::{IDLE_CLOCK_GAP, IDLE_CLOCK_MASK};
use crate::endpoint::proto::Proto;
use crate::endpoint::rpc::{Engine, Rpc};
use crate::handler::context::Cx;
use crate::handler::dispatch::{Place, suspect_slow};
use crate::handler::table::Handlers;
use crate::observe::counters::DropReason;
use crate::packet::receive::{Data, Packet};
use crate::session::table::NONE;
use crate::time::{Clock, Nanos};
use crate::transport::{Frame, RX_BURST, Rx, Transport, Tx};

/// Bursts from this size on are worth prefetching.
const PREFETCH_FROM: usize = 4;

/// A burst of so many packets may take a transport that makes system calls as long as a handler
/// that counts as slow.
const MANY: usize = 4;

/// Fewer sessions than this are in the cache anyway.
const PREFETCH_SESSIONS: usize = 64;

/// What one iteration did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Frames that came in.
    pub frames: usize,
    /// The iteration did more than to look for frames and time.
    pub busy: bool,
}

impl<T: Transport, C: Clock, App> Rpc<T, C, App> {
    /// One iteration. Never blocks.
    pub fn run_once(&mut self) -> Progress {
        let frames = self.rx.burst();
        if frames == 0 && !self.engine.must_run() {
            return Progress {
                frames: 0,
                busy: false,
            };
        }
        let now = self.engine.clock.now(); // CLOCK 1: all that follows happens at this time.
        self.engine.begin(now, frames);
        if frames != 0 {
            let live = self.engine.proto.sessions.live();
            if frames >= PREFETCH_FROM && live >= PREFETCH_SESSIONS {
                self.prefetch(frames);
            }
            let bypasses = self.engine.proto.config.bypasses;
            match (bypasses.clock, bypasses.common) {
                (true, true) => self.receive_plain(frames),
                (true, false) => self.receive::<false>(frames),
                (false, _) => self.receive::<true>(frames),
            }
            if !self.engine.batch.is_empty() {
                self.run_batches();
            }
        }
        self.engine.run_slow_handler();
        self.engine.finish(frames < RX_BURST);
        Progress { frames, busy: true }
    }

    /// Asks for the sessions of the burst's packets, then for their slots, then for their calls
    /// and work, so that the misses of a burst overlap.
    #[inline(never)]
    fn prefetch(&mut self, frames: usize) {
        let proto = &self.engine.proto;
        let mut sessions = [NONE; RX_BURST];
        for (index, session) in sessions.iter_mut().enumerate().take(frames) {
            if let Some(number) = peek_session(self.rx.frame(index).bytes) {
                *session = number.0;
                proto.sessions.prefetch(number.0);
            }
        }
        for session in &sessions[..frames] {
            proto.prefetch_slots(*session);
        }
        for (index, session) in sessions.iter().enumerate().take(frames) {
            proto.prefetch_state(*session, self.rx.frame(index).bytes);
        }
    }

    /// Every packet of every frame. A frame may hold many (rule W11). `EACH`: each has a reading
    /// of the clock of its own (eRPC §5.2.2, batched timestamps off).
    #[inline(never)]
    fn receive<const EACH: bool>(&mut self, frames: usize) {
        for index in 0..frames {
            let frame = self.rx.frame(index);
            let mut offset = 0;
            if frame.elsewhere.is_some() {
                self.engine.on_reference(&frame);
                offset = frame.bytes.len();
            }
            while offset < frame.bytes.len() {
                let bytes = &frame.bytes[offset..];
                let Some(packet) = self.engine.proto.next_packet(bytes) else {
                    break;
                };
                if EACH {
                    self.engine.read_clock();
                }
                let place = Place {
                    frame: index,
                    offset,
                    congestion: frame.congestion,
                };
                self.engine.on_packet(&packet, bytes, place);
                offset += packet.len;
            }
            if let Some(tap) = &mut self.engine.tap {
                tap.on_frame(&self.engine.proto, &frame);
            }
        }
    }
}

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// True if an iteration without frames has something to do. Looks at the clock now and then.
    #[inline]
    fn must_run(&mut self) -> bool {
        self.idle_iterations = self.idle_iterations.wrapping_add(1);
        let waiting = !self.slow.is_empty() || self.dropped.any();
        if waiting || self.proto.has_work() || self.proto.jobs != 0 {
            return true;
        }
        if self.idle_iterations & self.idle_mask != 0 {
            return false;
        }
        self.tx.settle();
        let now = self.clock.now();
        self.adapt_idle_mask(now.since(self.last_burst));
        self.last_burst = now;
        self.proto.moment.advance(now);
        self.proto.agenda.due() <= now
    }

    /// Reads the clock so often in idle iterations that it is never far behind: an RX queue that is
    /// looked at with a system call makes an iteration last longer than one in shared memory.
    fn adapt_idle_mask(&mut self, gap: Nanos) {
        if gap > IDLE_CLOCK_GAP {
            self.idle_mask /= 2;
        } else if gap.times(2) < IDLE_CLOCK_GAP && self.idle_mask < IDLE_CLOCK_MASK {
            self.idle_mask = self.idle_mask * 2 + 1;
        }
    }

    #[inline]
    fn begin(&mut self, now: Nanos, frames: usize) {
        self.proto.moment.begin_iteration(now, self.last_burst);
        self.dispatched = None;
        self.proto.outbox.on_done(self.tx.done());
        self.proto.stats.on_frames(frames);
        self.last_burst = now;
    }

    /// A packet whose data lies with its sender. It is copied once, to where it ends up, as a
    /// packet of a large message is: so it goes that way even if it is the only one.
    #[inline(never)]
    pub(super) fn on_reference(&mut self, frame: &Frame<'_>) {
        let Some(data) = frame.elsewhere else { return };
        let proto = &mut self.proto;
        let Some(packet) = proto.packet_of_data(frame.bytes, data.len()) else {
            return;
        };
        let (session, header) = (packet.session, &packet.header);
        if let Some(acks) = Proto::acks_of(&packet, frame.bytes) {
            proto.on_acks(session, acks);
        }
        match header.kind {
            PacketType::Req => {
                proto.on_large_request(session, header, Data::There(data), frame.congestion);
            }
            PacketType::Resp => proto.on_large_answer(session, header, Data::There(data)),
            // The others have no data.
            _ => proto.stats.on_drop(DropReason::Size),
        }
    }

    /// What follows happens now.
    fn read_clock(&mut self) {
        let now = self.clock.now();
        self.proto.moment.begin_packet(now);
    }

    /// One valid packet of an open session.
    #[inline(always)]
    pub(super) fn on_packet(&mut self, packet: &Packet<'_>, bytes: &[u8], place: Place) {
        let proto = &mut self.proto;
        let (session, header) = (packet.session, &packet.header);
        if let Some(acks) = Proto::acks_of(packet, bytes) {
            proto.on_acks(session, acks);
        }
        match header.kind {
            PacketType::Req => {
                if let Some(work) = proto.on_request(session, packet, place.congestion) {
                    self.run_handler(packet, place, work);
                }
            }
            PacketType::Resp | PacketType::Err => {
                if place.congestion {
                    proto.on_marked_answer(session);
                }
                if let Some(answered) = proto.on_answer(session, header, packet.data) {
                    // Put together where it is used: moving it right after stalls.
                    self.caught(|app, handlers, cx| {
                        let done = cx.proto.finish(answered, header, packet.data);
                        (handlers.completion)(app, done, cx);
                    });
                }
            }
            // CR, RFR, CANCEL.
            _ => proto.on_other(session, header, bytes, place.congestion),
        }
    }

    /// Everything of an iteration that does not come from frames.
    #[inline]
    fn finish(&mut self, queue_empty: bool) {
        // While a slow handler ran, answers may have come in.
        let queue_empty = queue_empty && self.proto.moment.is_at_burst();
        if self.proto.jobs != 0 {
            self.collect_jobs();
        }
        if self.dropped.any() {
            self.reject_dropped();
        }
        if self.proto.agenda.due() <= self.proto.moment.now() {
            self.proto.on_time(queue_empty);
            self.deliver_timers();
            let paced = self.proto.pacer.next_due();
            self.proto.agenda.find_due(paced);
        }
        if self.proto.agenda.needs_attention() {
            self.attend();
        }
        self.transmit();
    }

    /// Completions that were not answers, or that waited for the transport; session events;
    /// requests that nobody waits for; sessions whose backlog can move; buffers that the transport
    /// is done with; large messages.
    #[inline(never)]
    fn attend(&mut self) {
        self.proto.recycle_lingering();
        while let Some(arrived) = self.proto.reassembly.pop_complete() {
            self.run_arrived(arrived);
        }
        self.proto.return_credits();
        self.deliver_endings();
        while let Some(event) = self.proto.notices.pop_session() {
            self.caught(|app, handlers, cx| (handlers.session)(app, event, cx));
        }
        while let Some(ticket) = self.proto.notices.pop_given_up() {
            self.caught(|app, handlers, cx| (handlers.given_up)(app, ticket, cx));
        }
        while let Some(session) = self.proto.agenda.pop_stalled() {
            self.proto.resume(session);
        }
        self.proto.send_large();
        self.proto.agenda.on_drained(self.proto.is_waiting());
    }

    fn deliver_endings(&mut self) {
        #[cfg(feature = "mutants")]
        if self.proto.shows(crate::mutant::Mutant::EndingsReversed) {
            self.proto.outbox.reverse_endings();
        }
        for _ in 0..self.proto.outbox.ending_count() {
            if let Some(done) = self.proto.outbox.pop_ending() {
                self.proto.stats.on_completion();
                self.caught(|app, handlers, cx| (handlers.completion)(app, done, cx));
            }
        }
    }

    /// Timers that are due. One that is set by these for now waits for the next iteration.
    #[inline(never)]
    fn deliver_timers(&mut self) {
        for _ in 0..self.proto.agenda.timer_count() {
            let Some(token) = self.proto.agenda.pop_timer(self.proto.moment.now()) else {
                return;
            };
            self.caught(|app, handlers, cx| (handlers.timer)(app, token, cx));
        }
    }

    /// Gives the iteration's packets to the transport.
    #[inline]
    pub(crate) fn transmit(&mut self) {
        let proto = &mut self.proto;
        if proto.outbox.is_empty() {
            return self.tx.settle();
        }
        proto.stats.on_transmit(proto.outbox.items().len());
        // CLOCK 2: before the burst if some client measures, because the answers leave at this
        // time, or if the burst is long, because the transport's time is not the handlers'.
        let measures = proto.outbox.measures();
        let early = measures || proto.outbox.items().len() >= MANY;
        let mut leaving = if early {
            self.clock.now()
        } else {
            proto.moment.now()
        };
        if !proto.config.bypasses.clock {
            for _ in 1..proto.outbox.items().len() {
                leaving = self.clock.now();
            }
        }
        if measures {
            let burst_time = proto.moment.burst_time();
            proto
                .outbox
                .stamp_answers(leaving, burst_time, &mut proto.stats);
        }
        if let Some(tap) = &mut self.tap {
            tap.on_burst(leaving, proto.outbox.items());
        }
        let end = self.tx.burst(proto.outbox.items());
        if !early && (self.dispatched.is_some() || !proto.outbox.sent().is_empty()) {
            // CLOCK 2, behind a short burst, because its packets should not wait for it.
            leaving = self.clock.now();
        }
        if leaving.since(proto.moment.now()) > proto.config.ack_delay {
            suspect_slow(&mut self.handlers, &mut self.dispatched);
        }
        for call in proto.outbox.sent() {
            proto.calls.at_mut(*call).sent = leaving;
        }
        proto.outbox.clear(end);
        proto.outbox.on_done(self.tx.done());
    }

    /// Calls a function of the user. A panic ends that call and not the endpoint; msgbufs that it
    /// held find their way back by being dropped.
    #[inline]
    fn caught(&mut self, run: impl FnOnce(&mut App, &Handlers<App>, &mut Cx<'_>)) {
        let Self {
            proto,
            app,
            handlers,
            dropped,
            ..
        } = self;
        let mut cx = Cx { proto, dropped };
        if catch_unwind(AssertUnwindSafe(|| run(app, handlers, &mut cx))).is_err() {
            cx.proto.stats.on_panic();
        }
    }
}
