//! Pacing: delays the packets of sessions below line rate until their time (design §7, eRPC §5.2,
//! rule S15).
//!
//! REQ packets and RFRs are paced one by one; an RFR takes the time of the bytes that it asks for.
//! A packet that could otherwise leave reserves the next departure at its session's rate, and waits
//! for it in the timing wheel. When a packet is due, its session, request and state must be as
//! before (rule S8). A message has at most one packet in the wheel. Packets take credits only when
//! they leave, and a call that ends removes nothing from the wheel. If a scheme has a window
//! instead of a rate, the window limits all large messages of the session in that direction
//! together.
//!
//! Called by `client/calls.rs` and `transfer/transfers.rs` for paced sessions, and by the endpoint
//! when a packet in the wheel is due.

use crate::congestion::flow::Flow;
use crate::congestion::pacer::Pacer;
use crate::congestion::wheel::Paced;
use crate::congestion::{CongestionControl, Link, Sample, Way};
use crate::context::Context;
use crate::handle::FlowIdx;
use crate::packet::words::HEADER_BYTES;
use crate::scheme::{BytesPerSec, Scheme};
use crate::session::line::Line;
use crate::time::Nanos;
use crate::transport::Path;

impl Pacer {
    /// Begins congestion control of a session once its peer is known, with the scheme that was
    /// chosen for the session, or with the transport's.
    pub(crate) fn begin_scheme(&mut self, line: &mut Line, path: &Path, context: &mut Context) {
        if line.flow() != FlowIdx::NONE {
            // The user has chosen a scheme already.
            return;
        }
        let scheme = line.scheme().unwrap_or(path.scheme);
        self.set_scheme(line, scheme, path, context);
    }

    /// Gives the session a scheme, which starts in its initial state.
    pub(crate) fn set_scheme(
        &mut self,
        line: &mut Line,
        scheme: Scheme,
        path: &Path,
        context: &mut Context,
    ) {
        self.end_scheme(line);
        line.choose_scheme(Some(scheme));
        if line.is_connecting() {
            // The peer is not known yet.
            return;
        }
        let link = link_of(line, path, context);
        let flow = || Flow::new(scheme, &link, context.config.bypasses);
        if let Some(out) = flow() {
            self.set_flows(line, out, flow(), context);
        }
    }

    /// Gives the session a scheme of the user's own.
    pub(crate) fn set_own_scheme(
        &mut self,
        line: &mut Line,
        scheme: Box<dyn CongestionControl>,
        path: &Path,
        context: &mut Context,
    ) {
        self.end_scheme(line);
        let link = link_of(line, path, context);
        self.set_flows(line, Flow::own(scheme, &link), None, context);
    }

    fn set_flows(&mut self, line: &mut Line, out: Flow, back: Option<Flow>, context: &Context) {
        let flow = self.begin(out, back);
        line.begin_flow(flow);
        self.on_rate(line, context);
    }

    /// Forgets the session's flow. Its packets in the wheel still leave on time.
    pub(crate) fn end_scheme(&mut self, line: &mut Line) {
        self.end(line.end_flow());
    }

    /// Notes in the session whether its packets must be paced now, because the rate of its flow may
    /// have changed.
    #[cfg_attr(
        not(feature = "mutants"),
        expect(unused_variables, reason = "for planted bugs")
    )]
    pub(crate) fn on_rate(&self, line: &mut Line, context: &Context) {
        if let Some(paced) = self.must_pace(line.flow(), line.terms().credits) {
            line.on_pacing(paced);
            #[cfg(feature = "mutants")]
            if context.shows(crate::mutant::Mutant::PlainThoughPaced) {
                line.spoil_plain(true);
            }
        }
    }

    /// Reports an answer to packets of this direction to the session's scheme.
    #[inline]
    pub(crate) fn learn(
        &mut self,
        line: &mut Line,
        way: Way,
        sample: Sample,
        context: &mut Context,
    ) {
        if sample.congestion {
            context.stats.on_congestion_mark();
        }
        if self.on_answer(line.flow(), way, sample) {
            self.on_rate(line, context);
        }
    }

    /// Informs the session's scheme that packets have arrived whose answers give no round trip,
    /// because a thread did not run (rule S10).
    #[cold]
    pub(crate) fn learn_wait(
        &mut self,
        line: &mut Line,
        way: Way,
        packets: u32,
        context: &Context,
    ) {
        if self.on_wait(line.flow(), way, packets) {
            self.on_rate(line, context);
        }
    }

    /// Reports a mark on an answer of `size` bytes to the scheme, because this side's rate
    /// determines when the server sends answers (rule S15).
    #[cold]
    pub(crate) fn on_marked_answer(&mut self, line: &mut Line, size: u32, context: &mut Context) {
        let way = match line.is_single(size) {
            true => Way::Out,
            false => Way::Back,
        };
        self.learn_mark(line, way, context);
    }

    /// Tells the session's scheme that a packet was marked.
    #[cold]
    pub(crate) fn learn_mark(&mut self, line: &mut Line, way: Way, context: &mut Context) {
        let mark = Sample {
            rtt: None,
            congestion: true,
            packets: 0,
            now: context.moment.now(),
        };
        self.learn(line, way, mark, context);
    }

    /// Tells the session's scheme that packets were lost.
    pub(crate) fn learn_loss(&mut self, line: &mut Line, way: Way, context: &Context) {
        if self.on_loss(line.flow(), way, context.moment.now()) {
            self.on_rate(line, context);
        }
    }

    /// Informs the session's scheme that the answer to a probe has revealed a loss. With a window
    /// below one packet, the probe itself has already counted as a loss.
    pub(crate) fn learn_lost_tail(&mut self, line: &mut Line, way: Way, context: &Context) {
        if !self.is_below_one(line.flow(), way) {
            self.learn_loss(line, way, context);
        }
    }

    /// Tells the session's scheme that a timeout has passed without an answer.
    pub(crate) fn learn_timeout(&mut self, line: &mut Line, way: Way, context: &Context) {
        if self.on_timeout(line.flow(), way, context.moment.now()) {
            self.on_rate(line, context);
        }
    }

    /// Reserves the session's next departure for `bytes` bytes. `None` if they may leave now.
    pub(crate) fn take_place(
        &mut self,
        line: &mut Line,
        way: Way,
        bytes: u32,
        context: &Context,
    ) -> Option<Nanos> {
        let at = self.reserve(line.flow(), way, bytes, context.moment.now());
        self.on_rate(line, context);
        at
    }

    /// Puts a packet of a request into the wheel.
    pub(crate) fn wait(&mut self, entry: Paced, context: &mut Context) {
        context.stats.on_paced();
        self.hold(entry, context.moment.now());
        context.agenda.at_latest(self.next_due());
    }
}

fn link_of(line: &Line, path: &Path, context: &mut Context) -> Link {
    let dither = context.rng.next_u32();
    let terms = line.terms();
    Link {
        line_rate: BytesPerSec(path.line_rate),
        base_rtt: path.base_rtt,
        packet: terms.data_size + HEADER_BYTES,
        credits: terms.credits,
        dither,
    }
}
