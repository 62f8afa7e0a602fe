//! One session's persistent state: two cache lines, of which an ordinary packet touches the first.
//!
//! An idle session that was used before takes up this line, its entries in the tables of slots, and
//! its entry in the table of backlogs. A `const` assertion checks the size of the line. Calls,
//! requests and buffers live in pools and go back when they are done. With the default window an
//! idle session may take at most 512 bytes per side, which `dunlin bench sessions` measures.
//!
//! Three fields are computed from others, so that the common path makes one check instead of many:
//! `limit`, `head` and `plain_until`. [`Line::settle`] computes them, and every method that changes
//! one of the other fields ends with a call of it. [`Line::check`] asserts that the three are up to
//! date.

use dunlin_wire::{
    Flags, Header, PLAIN_REQUEST, PLAIN_RESPONSE, PacketType, PktNum, ReqNum, ReqType, SessionNum,
    Token,
};

use crate::handle::{FlowIdx, Session, SlotIdx};
use crate::packet::words::{Words, high, low};
use crate::scheme::Scheme;
use crate::session::lifecycle::SessionOffer;
use crate::session::marks::Marks;
use crate::session::rtt::Rtt;
use crate::session::slots::SlotRange;
use crate::session::terms::{Template, Terms, largest_message};
use crate::time::Nanos;
use crate::transport::PeerId;

/// The state of a session between opening and end.
///
/// ```text
/// Free ──open──▶ Connecting ──opened──▶ Open ──close──▶ Free
///   └───────────────accept──────────────▲
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
enum State {
    #[default]
    Free,
    /// This side asked; calls queue in the backlog.
    Connecting,
    /// Packets flow.
    Open,
}

/// State of one session.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line {
    /// The token that packets to this side must carry (rule W5).
    token: Token,
    /// One more than the longest message that is a single packet. 0 if the session is not open, or
    /// must notice every packet.
    limit: u32,
    /// The first word of a request's header, without the request type.
    head: u64,
    /// Until this time a short request needs no check other than for a free slot: the session is
    /// open, not paced, no call waits, no sample is due, there is a credit for each slot, and the
    /// common path is on.
    plain_until: Nanos,
    /// Bit i: this side may issue a request in slot i.
    free: u64,
    /// The place of the session's first slot in both slot tables.
    slots: SlotIdx,
    marks: Marks,
    /// The window less one.
    mask: u8,
    state: State,
    /// The credits at the opening (rule S7).
    credit_limit: u16,
    /// Credits that packets of large messages hold, in addition to one credit for each slot in use.
    parts: u16,
    /// The session's flow, or [`FlowIdx::NONE`] if only credits limit it.
    flow: FlowIdx,
    /// The session's handle; after its end, its last handle.
    handle: Session,
    remote_token: Token,
    peer: PeerId,

    /// From this time on, a request asks for a round-trip sample.
    sample_due: Nanos,
    /// While the session asks for a packet: when it began to ask. Otherwise: when the packet for
    /// which it last asked came, or when the session opened. The time is on the clock that measures
    /// silence.
    heard: Nanos,
    /// When the last acknowledgement vector was sent.
    acked: Nanos,
    rtt: Rtt,
    remote: SessionNum,
    data_size: u32,
    max_message: u32,
    /// Start of the request numbers.
    first_req: ReqNum,
    /// The chosen congestion control; `None`: the transport's, once the peer is known.
    scheme: Option<Scheme>,
}

const _: () = {
    assert!(size_of::<Line>() == 128);
    assert!(std::mem::offset_of!(Line, sample_due) == 64);
};

impl Default for Line {
    fn default() -> Self {
        Self {
            token: Token(0),
            limit: 0,
            head: 0,
            plain_until: Nanos::ZERO,
            free: 0,
            slots: SlotIdx(0),
            remote_token: Token(0),
            handle: Session::NONE,
            flow: FlowIdx::NONE,
            mask: 0,
            state: State::Free,
            marks: Marks::default(),
            scheme: None,
            sample_due: Nanos::ZERO,
            heard: Nanos::ZERO,
            acked: Nanos::ZERO,
            rtt: Rtt::default(),
            remote: SessionNum(0),
            peer: PeerId(0),
            data_size: 0,
            max_message: 0,
            credit_limit: 0,
            parts: 0,
            first_req: ReqNum(0),
        }
    }
}

/// Opening and closing; see the state diagram.
impl Line {
    /// Begins a session. If this side asked for the session, it then waits for the peer's answer;
    /// if the peer asked for it (`accepted`), the caller calls `join` next. `terms.peer` is not
    /// known yet.
    pub(super) fn begin(
        &mut self,
        handle: Session,
        token: Token,
        slots: SlotIdx,
        terms: &Terms,
        accepted: bool,
    ) {
        let credits = u16::try_from(terms.credits).expect("MAX_CREDITS fits");
        let mut marks = Marks::default();
        marks.set(Marks::ACCEPTED, accepted);
        *self = Self {
            token,
            slots,
            handle,
            marks,
            free: all_slots(terms.window),
            credit_limit: credits,
            mask: u8::try_from(terms.window - 1).expect("a window is at most 64"),
            data_size: terms.data_size,
            max_message: terms.max_message,
            first_req: terms.first_req,
            state: State::Connecting,
            ..Self::default()
        };
        self.settle();
    }

    /// Lowers window and credits to the peer's answer. The session has issued nothing yet.
    pub(super) fn narrow(&mut self, slots: SlotRange, credits: u32) {
        self.slots = slots.start();
        self.mask = u8::try_from(slots.len() - 1).expect("a window is at most 64");
        self.free = all_slots(slots.len());
        self.credit_limit = u16::try_from(credits).expect("MAX_CREDITS fits");
    }

    /// Joins the session with its peer, now that the peer is known: packets may flow.
    pub(super) fn join(&mut self, peer: PeerId, other: &SessionOffer, heard: Nanos) {
        self.heard = heard;
        self.peer = peer;
        self.remote = other.session;
        self.remote_token = other.token;
        self.data_size = self.data_size.min(other.data_size);
        let limit = self.max_message.min(other.max_message);
        self.max_message = largest_message(limit, self.data_size);
        self.marks.set(Marks::CODES, other.keeps_code_rules);
        self.state = State::Open;
        self.settle();
    }

    /// Ends the session. Its calls and requests are already gone.
    pub(super) fn end(&mut self) {
        self.state = State::Free;
        self.flow = FlowIdx::NONE;
        self.marks = Marks::default();
        self.settle();
    }

    /// Notes whether the session's short requests may take the common path from now on.
    pub(super) fn on_bypasses(&mut self, common: bool) {
        self.marks.set(Marks::GENERAL, !common);
        self.settle();
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// Gives the session another token, before its peer knows one.
    pub(super) fn rename(&mut self, token: Token) {
        self.token = token;
    }

    #[inline]
    pub(crate) fn handle(&self) -> Session {
        self.handle
    }

    /// The indexes of the session's slots.
    pub(crate) fn slots(&self) -> SlotRange {
        SlotRange::new(self.slots, self.window())
    }

    /// Whether the session is connecting or open.
    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.state != State::Free
    }

    #[inline]
    pub(crate) fn is_connecting(&self) -> bool {
        self.state == State::Connecting
    }

    /// Whether packets flow.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(crate) fn is_accepted(&self) -> bool {
        self.marks.has(Marks::ACCEPTED)
    }

    /// Whether the peer's error codes prove whether a handler ran (rule W13).
    pub(crate) fn keeps_code_rules(&self) -> bool {
        self.marks.has(Marks::CODES)
    }

    pub(crate) fn remote(&self) -> (SessionNum, Token) {
        (self.remote, self.remote_token)
    }

    #[inline]
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            peer: self.peer,
            window: u32::from(self.mask) + 1,
            data_size: self.data_size,
            max_message: self.max_message,
            credits: u32::from(self.credit_limit),
            first_req: self.first_req,
        }
    }

    /// The offer to the peer. `session` is this side's number of the session.
    pub(crate) fn offer(&self, session: SessionNum) -> SessionOffer {
        let terms = self.terms();
        SessionOffer {
            session,
            token: self.token,
            window: terms.window,
            credits: terms.credits,
            data_size: terms.data_size,
            max_message: terms.max_message,
            first_req: terms.first_req,
            keeps_code_rules: true,
        }
    }
}

/// Packets.
impl Line {
    /// Whether a packet with this token belongs to this session (rule W5).
    #[inline]
    pub(crate) fn has_token(&self, token: Token) -> bool {
        self.token == token
    }

    /// Whether a message of `size` bytes is a single packet.
    #[inline]
    pub(crate) fn is_single(&self, size: u32) -> bool {
        size <= self.single()
    }

    /// Longest message that is a single packet.
    #[inline]
    pub(crate) fn single(&self) -> u32 {
        self.max_message.min(self.data_size)
    }

    /// Whether a header's second word has the session's token and the length of a single packet,
    /// and the session need not notice the packet.
    #[inline(always)]
    pub(super) fn takes(&self, word: u64) -> bool {
        low(word) == self.token.0 && high(word) < self.limit
    }

    /// A planted bug: the same, with any token.
    #[cfg(feature = "mutants")]
    pub(super) fn takes_with_any_token(&self, word: u64) -> bool {
        high(word) < self.limit
    }

    /// The common part of the answers to the peer's requests.
    pub(crate) fn answer_template(&self) -> Template {
        Template {
            head: u64::from(self.remote.0) << 32 | PLAIN_RESPONSE,
            token: self.remote_token,
            peer: self.peer,
            single: self.single(),
        }
    }

    /// The header of a request of one packet, as words.
    #[inline(always)]
    pub(super) fn request_words(&self, req_type: ReqType, len: u32, req: ReqNum) -> Words {
        [
            self.head | u64::from(req_type.0) << 16,
            u64::from(len) << 32 | u64::from(self.remote_token.0),
            u64::from(req.0) << 32,
        ]
    }

    #[inline(always)]
    pub(crate) fn window(&self) -> u32 {
        u32::from(self.mask) + 1
    }

    #[inline(always)]
    pub(super) fn peer(&self) -> PeerId {
        self.peer
    }

    /// The place of a request number's slot in the slot tables (rule W9).
    #[inline]
    pub(crate) fn slot_at(&self, req: ReqNum) -> SlotIdx {
        SlotIdx(self.slots.0 + (req.0 & u32::from(self.mask)))
    }

    /// A header of a packet from this session to its peer.
    #[inline]
    pub(crate) fn header(&self, kind: PacketType, req: ReqNum) -> Header {
        Header {
            kind,
            flags: Flags::NONE,
            aux: 0,
            session: self.remote,
            token: self.remote_token,
            size: 0,
            pkt: PktNum(0),
            req,
        }
    }

    /// Notes that a valid packet has come, if the session has asked for one.
    #[inline]
    pub(crate) fn note_activity(&mut self, present: Nanos) {
        if self.marks.has(Marks::ASKS) {
            self.marks.set(Marks::ASKS, false);
            self.heard = present;
            self.settle();
        }
    }

    /// Notes that the session asks, because no packet came for too long. Silence counts from now,
    /// or, if the session was already asking, from when it began to ask.
    pub(crate) fn on_asked(&mut self, present: Nanos) {
        if !self.marks.has(Marks::ASKS) {
            self.marks.set(Marks::ASKS, true);
            self.heard = present;
            self.settle();
        }
    }

    /// Whether the session has asked, and no packet has come since.
    pub(crate) fn asks(&self) -> bool {
        self.marks.has(Marks::ASKS)
    }

    /// How long ago the packet came for which the session last asked. `None` if that was not after
    /// `sent`, or if the session has begun to ask again.
    pub(crate) fn heard_since(&self, sent: Nanos, present: Nanos) -> Option<Nanos> {
        (!self.asks() && self.heard > sent).then(|| present.since(self.heard))
    }

    /// Whether no packet has come for `span` although the session asked (rule S11).
    pub(crate) fn is_silent(&self, present: Nanos, span: Nanos) -> bool {
        self.asks() && present.since(self.heard) >= span
    }
}

/// Fields that are computed from others.
impl Line {
    fn settle(&mut self) {
        (self.limit, self.head, self.plain_until) = self.settled();
    }

    fn settled(&self) -> (u32, u64, Nanos) {
        let open = self.is_open();
        let unusual = Marks::PACED | Marks::WAITING | Marks::GENERAL;
        let plain = open && !self.marks.has(unusual) && self.has_credits_for_slots();
        (
            match open && !self.marks.has(Marks::ASKS) {
                true => self.single() + 1,
                false => 0,
            },
            u64::from(self.remote.0) << 32 | PLAIN_REQUEST,
            match plain {
                true => self.sample_due,
                false => Nanos::ZERO,
            },
        )
    }

    /// A planted bug: the session takes packets whatever its state.
    #[cfg(feature = "mutants")]
    pub(crate) fn spoil_limit(&mut self) {
        self.limit = self.single() + 1;
    }

    /// A planted bug: short requests leave at once, or do not, whatever the session's state. A
    /// session without a credit for each slot never sends at once, because that would break a rule.
    #[cfg(feature = "mutants")]
    pub(crate) fn spoil_plain(&mut self, plain: bool) {
        self.plain_until = match plain && self.has_credits_for_slots() {
            true => self.sample_due,
            false => Nanos::ZERO,
        };
    }

    /// Whether the fields that are computed from others are up to date.
    pub(crate) fn is_settled(&self) -> bool {
        (self.limit, self.head, self.plain_until) == self.settled()
    }

    /// Asserts that these fields are up to date.
    pub(crate) fn check(&self) {
        assert!(self.is_settled(), "{self:?} is not settled");
    }
}

/// The bits of all slots.
fn all_slots(window: u32) -> u64 {
    u64::MAX >> (u64::BITS - window)
}

mod congestion;
mod credits;

pub(crate) use congestion::PathTraits;

#[cfg(test)]
mod tests;
