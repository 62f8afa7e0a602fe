//! The names of what an endpoint has: sessions, calls, requests and timers. They are plain values
//! of one or two words; the tables to which they belong recognise the name of an entry that is
//! gone.
//!
//! Every folder uses them, so they depend on nothing in the crate but the tables' index type.

use dunlin_wire::{ReqNum, SessionNum};

use crate::slab::Index;

/// Types of indexes, one for each table.
macro_rules! indexes {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) struct $name(pub(crate) u32);

        impl $name {
            /// No index: the end of a list, or a place without entry.
            pub(crate) const NONE: Self = Self(u32::MAX);
        }

        impl Default for $name {
            fn default() -> Self {
                Self::NONE
            }
        }

        impl Index for $name {
            #[inline]
            fn new(index: u32) -> Self {
                Self(index)
            }

            #[inline]
            fn get(self) -> u32 {
                self.0
            }
        }
    )*};
}

indexes! {
    /// A session's place in the table of sessions: its number at this side.
    SessionIdx
    /// A call's place in the table of calls.
    CallIdx
    /// An inbound request's place in the table of requests.
    RequestIdx
    /// The place of a large message of the client side in the table of transfers.
    TransferIdx
    /// The place of a request that arrives in parts in the table of assemblies.
    AssemblyIdx
    /// The place of a session's flows in the table of flows.
    FlowIdx
}

/// A session as the user names it. The endpoint recognises handles of closed sessions, and never
/// reuses them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session {
    /// The index in the upper half, the generation in the lower: one word, because it is moved
    /// right after it was made, and a read in one piece of two smaller writes stalls.
    word: u64,
}

impl Session {
    /// A handle that names no session: a placeholder until `connect` has returned one.
    pub const NONE: Self = Self::new(SessionIdx::NONE, 0);

    #[inline]
    pub(crate) const fn new(index: SessionIdx, generation: u32) -> Self {
        let word = (index.0 as u64) << 32 | generation as u64;
        Self { word }
    }

    #[inline]
    pub(crate) const fn index(self) -> SessionIdx {
        SessionIdx((self.word >> 32) as u32)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    pub(crate) const fn generation(self) -> u32 {
        self.word as u32
    }

    /// This side's number for the session, as packets carry it.
    pub const fn number(self) -> SessionNum {
        SessionNum(self.index().0)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("index", &self.index().0)
            .field("generation", &self.generation())
            .finish()
    }
}

/// Names a call, to cancel it. The endpoint recognises identifiers of completed calls, and never
/// reuses them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallId {
    /// The index in the lower half, the generation in the upper: one word, because it is moved
    /// right after it was made.
    word: u64,
}

impl CallId {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    pub(crate) const fn index(self) -> CallIdx {
        CallIdx(self.word as u32)
    }

    #[inline]
    pub(crate) const fn new(index: CallIdx, generation: u32) -> Self {
        let word = (generation as u64) << 32 | index.0 as u64;
        Self { word }
    }

    #[inline]
    pub(crate) const fn generation(self) -> u32 {
        (self.word >> 32) as u32
    }
}

/// Names a request, for handles that outlive the iteration. The endpoint recognises stale ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RequestId {
    pub(crate) index: RequestIdx,
    pub(crate) generation: u32,
    pub(crate) req: ReqNum,
}

/// Names a request that was kept without a guard ([`Request::keep`](crate::Request::keep)), for
/// layers that have a guard of their own: a layer that loses the ticket leaves the client waiting.
/// The endpoint recognises the ticket of an answered request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(pub(crate) RequestId);

impl Ticket {
    /// A small number that no other unanswered request has, for tables of kept requests.
    #[inline]
    pub const fn index(self) -> usize {
        self.0.index.0 as usize
    }
}

/// The number that the user gives with a timer and gets back when it fires.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TimerToken(pub u64);
