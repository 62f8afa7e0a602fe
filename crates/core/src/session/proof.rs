//! Proofs that a packet or a call is ordinary: the code that makes a proof has checked the session
//! for every special case. A proof borrows the session, and the permitted change consumes the
//! proof, so the common path cannot change a session that it has not checked.

use dunlin_wire::{PLAIN_REQUEST, ReqNum, ReqType};

use crate::handle::{Session, SessionIdx, SlotIdx};
use crate::packet::words::{Words, high, low};
use crate::session::line::Line;
use crate::session::table::Sessions;
use crate::session::terms::Template;
use crate::time::Nanos;
use crate::transport::PeerId;

/// The proof that a packet carries the token of an open session and has the length of a
/// single-packet message (rules W5, W6). The slot checks whether it is the first packet of its
/// message.
pub(crate) struct Known<'a> {
    line: &'a mut Line,
    index: SessionIdx,
    req: ReqNum,
}

/// A session that can send a short request now.
pub(crate) struct Ready<'a> {
    line: &'a mut Line,
    index: SessionIdx,
    at: SlotIdx,
}

/// A session from which a request leaves.
pub(crate) struct Left<'a> {
    line: &'a Line,
}

impl Sessions {
    /// Returns the proof, if the header permits it. The caller has checked that the packet has the
    /// length that its header states.
    #[inline(always)]
    pub(crate) fn known(&mut self, words: &Words) -> Option<Known<'_>> {
        let index = SessionIdx(high(words[0]));
        let asserts = self.asserts();
        #[cfg(feature = "mutants")]
        let ignores_tokens = self.ignores_tokens();
        let line = self.line_mut(index)?;
        if asserts {
            line.check();
        }
        let takes = line.takes(words[1]);
        #[cfg(feature = "mutants")]
        let takes = takes || ignores_tokens && line.takes_with_any_token(words[1]);
        if !takes {
            return None;
        }
        Some(Known {
            line,
            index,
            req: ReqNum(high(words[2])),
        })
    }

    /// The session, if a request of `len` bytes can leave now without a further check.
    #[inline(always)]
    pub(crate) fn ready(&mut self, session: Session, len: usize, now: Nanos) -> Option<Ready<'_>> {
        let index = session.index();
        let line = self.line_mut(index)?;
        let len = u32::try_from(len).ok()?;
        if !line.is_plain(session, len, now) {
            return None;
        }
        let at = line.next_slot();
        Some(Ready { line, index, at })
    }
}

impl<'a> Known<'a> {
    #[inline(always)]
    pub(crate) fn req(&self) -> ReqNum {
        self.req
    }

    /// The index of the packet's slot.
    #[inline(always)]
    pub(crate) fn slot(&self) -> SlotIdx {
        self.line.slot_at(self.req)
    }

    #[inline(always)]
    pub(crate) fn window(&self) -> u32 {
        self.line.window()
    }

    /// Computes the common part of the answers to the session's requests. The returned function
    /// borrows the line alone: if it borrowed the proof, the compiler would have to keep the proof
    /// in memory.
    #[inline(always)]
    pub(crate) fn answer_template(&self) -> impl FnOnce() -> Template {
        let line = &*self.line;
        || line.answer_template()
    }

    #[inline(always)]
    pub(crate) fn session(&self) -> Session {
        self.line.handle()
    }

    #[inline(always)]
    pub(crate) fn index(&self) -> SessionIdx {
        self.index
    }

    /// Frees slot and credit, because the packet answers the slot's request. Calls may be waiting
    /// for them.
    #[inline(always)]
    pub(crate) fn release(self) -> &'a mut Line {
        self.line.release_slot(self.req);
        self.line
    }
}

impl<'a> Ready<'a> {
    #[inline(always)]
    pub(crate) fn index(&self) -> SessionIdx {
        self.index
    }

    #[inline(always)]
    pub(crate) fn session(&self) -> Session {
        self.line.handle()
    }

    /// The index of the slot that the request takes.
    #[inline(always)]
    pub(crate) fn slot(&self) -> SlotIdx {
        self.at
    }

    /// Takes slot and credit for the request, which leaves now.
    #[inline(always)]
    pub(crate) fn take(self) -> Left<'a> {
        self.line.take_slot();
        Left { line: self.line }
    }
}

impl Left<'_> {
    #[inline(always)]
    pub(crate) fn peer(&self) -> PeerId {
        self.line.peer()
    }

    /// The request's header.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a single packet")]
    pub(crate) fn words(&self, req_type: ReqType, len: usize, req: ReqNum) -> Words {
        self.line.request_words(req_type, len as u32, req)
    }
}

/// The request type of a REQ without flags; `None` for any other packet.
#[inline(always)]
pub(crate) fn plain_request_type(words: &Words) -> Option<ReqType> {
    let req_type = ReqType((low(words[0]) >> 16) as u16);
    (words[0] & 0xFFFF == PLAIN_REQUEST).then_some(req_type)
}
