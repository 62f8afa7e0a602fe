//! Inbound requests as other parts see them: their handles, the packets that bring them, and their
//! effects on reassembly. This file has plain values; `requests.rs` has the state.

use dunlin_wire::Header;

use crate::handle::{AssemblyIdx, RequestIdx, SessionIdx, SlotIdx};
use crate::session::line::Line;

/// A valid packet from a peer, with its session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) session: SessionIdx,
    pub(crate) line: &'a Line,
    pub(crate) header: &'a Header,
    /// True if the network has marked the packet, which passed a long queue.
    pub(crate) congestion: bool,
}

impl<'a> Received<'a> {
    #[inline(always)]
    pub(crate) fn new(
        session: SessionIdx,
        line: &'a Line,
        header: &'a Header,
        congestion: bool,
    ) -> Self {
        Self {
            session,
            line,
            header,
            congestion,
        }
    }

    /// The place of its slot.
    #[inline]
    pub(super) fn slot(&self) -> SlotIdx {
        self.line.slot_at(self.header.req)
    }
}

/// A partly arrived request: reassembly has its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Partial {
    pub(crate) request: RequestIdx,
    pub(crate) session: SessionIdx,
    /// Its place in reassembly.
    pub(crate) place: AssemblyIdx,
}

/// The effect of a request's event on reassembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum Effect {
    None,
    /// A CR is due at the end of the burst.
    CreditDue(Partial),
    /// The request is over, and its memory is returned.
    GivenUp(Partial),
}

/// The role of one packet of a request that needs several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Large {
    /// The first packet: the request needs room.
    New(RequestIdx),
    /// A further packet.
    Part(Partial),
    /// The request does not accept the packet; only this effect must still be applied.
    Over(Effect),
}
