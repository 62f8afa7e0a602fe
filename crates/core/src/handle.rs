//! Handles of sessions, calls, requests and timers. They are plain values of one or two words. The
//! tables that they index recognise the handle of an entry that is gone, and the handle of another
//! endpoint's entry.
//!
//! Every folder uses them, so they depend on nothing in the crate but the tables' index type.

use std::sync::atomic::{AtomicU32, Ordering};

use dunlin_wire::{ReqNum, SessionNum};

use crate::config::MAX_SESSIONS;
use crate::error::HandleError;
use crate::slab::Index;

/// Types of indexes, one for each table.
macro_rules! indexes {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) struct $name(pub(crate) u32);

        impl $name {
            /// No index: the end of a list, or a place without an entry.
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
    /// The place of a packet that waits in the timing wheel.
    PacedIdx
    /// A slot's place in the slot tables of both sides: see `session/slots.rs`.
    SlotIdx
}

impl SlotIdx {
    /// The index in a table.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of an endpoint. Its handles carry it, so that other endpoints reject them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EndpointNum(u32);

/// The next number that this process gives out.
static NEXT: AtomicU32 = AtomicU32::new(1);

impl EndpointNum {
    const BITS: u32 = 24;
    /// The largest number: a process can make this many endpoints.
    pub const MAX: u32 = (1 << Self::BITS) - 1;

    /// A number that no other endpoint of this process ever has. `None`: the process has made
    /// [`Self::MAX`] endpoints.
    ///
    /// ```
    /// # use dunlin_core::EndpointNum;
    /// assert_ne!(EndpointNum::take(), EndpointNum::take());
    /// ```
    pub fn take() -> Option<Self> {
        take_from(&NEXT)
    }

    /// Makes an endpoint with a number of its own. If that fails, the number is free again, unless
    /// another endpoint has taken the next one meanwhile. `None`: as for [`Self::take`].
    ///
    /// ```
    /// # use dunlin_core::EndpointNum;
    /// let made: Option<Result<_, ()>> = EndpointNum::take_for(Ok);
    /// assert_ne!(made, EndpointNum::take().map(Ok));
    /// ```
    pub fn take_for<T, E>(make: impl FnOnce(Self) -> Result<T, E>) -> Option<Result<T, E>> {
        take_from_for(&NEXT, make)
    }

    /// An endpoint number that the caller chooses. Simulators and tests use it, because the same
    /// endpoint must have the same number in every run. Endpoints that could see each other's
    /// handles need different numbers.
    ///
    /// # Panics
    /// If it is 0 or above [`Self::MAX`].
    pub const fn chosen(number: u32) -> Self {
        assert!(number != 0 && number <= Self::MAX, "1 to 2^24 - 1");
        Self(number)
    }
}

fn take_from(next: &AtomicU32) -> Option<EndpointNum> {
    let taken = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| {
        (number <= EndpointNum::MAX).then_some(number + 1)
    });
    taken.ok().map(EndpointNum)
}

fn take_from_for<T, E>(
    next: &AtomicU32,
    make: impl FnOnce(EndpointNum) -> Result<T, E>,
) -> Option<Result<T, E>> {
    let number = take_from(next)?;
    let made = make(number);
    if made.is_err() {
        let (taken, relaxed) = (number.0 + 1, Ordering::Relaxed);
        // Fails if a later number is taken: then this one is lost.
        let _ = next.compare_exchange(taken, number.0, relaxed, relaxed);
    }
    Some(made)
}

/// A session as the user names it. The endpoint recognises handles of closed sessions and of other
/// endpoints, and never reuses them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session {
    /// Index, generation and number of the endpoint, from the upper bits to the lower. They are one
    /// word for two reasons. A handle is moved right after it was made, and a load of several words
    /// that were just stored separately stalls. And one comparison finds any wrong handle.
    word: u64,
}

const GENERATION_BITS: u32 = 16;
const INDEX_SHIFT: u32 = GENERATION_BITS + EndpointNum::BITS;

const _: () = assert!(MAX_SESSIONS <= 1 << (u64::BITS - INDEX_SHIFT));

impl Session {
    /// A handle that names no session: a placeholder until `connect` has returned one.
    pub const NONE: Self = Self {
        word: u64::MAX << INDEX_SHIFT,
    };

    /// The last generation of an index. After it, the index is not used again.
    pub(crate) const LAST_GENERATION: u16 = u16::MAX;

    #[inline]
    pub(crate) const fn new(index: SessionIdx, generation: u16, endpoint: EndpointNum) -> Self {
        let word = (index.0 as u64) << INDEX_SHIFT
            | (generation as u64) << EndpointNum::BITS
            | endpoint.0 as u64;
        Self { word }
    }

    #[inline]
    pub(crate) const fn index(self) -> SessionIdx {
        SessionIdx((self.word >> INDEX_SHIFT) as u32)
    }

    /// Counts the sessions that had this index; 0 belongs to [`Self::NONE`].
    #[expect(clippy::cast_possible_truncation, reason = "the part in the middle")]
    pub(crate) const fn generation(self) -> u16 {
        (self.word >> EndpointNum::BITS) as u16
    }

    /// The number of its endpoint; 0 belongs to [`Self::NONE`].
    #[expect(clippy::cast_possible_truncation, reason = "it has 24 bits")]
    const fn endpoint(self) -> u32 {
        (self.word & EndpointNum::MAX as u64) as u32
    }

    /// Whether the endpoint with this number made the handle.
    #[inline]
    pub(crate) const fn is_of(self, endpoint: EndpointNum) -> bool {
        self.endpoint() == endpoint.0
    }

    /// Why an endpoint with this number has no session with this handle. A placeholder counts as
    /// the handle of a session that has ended.
    #[cold]
    pub(crate) fn stray(self, endpoint: EndpointNum) -> HandleError {
        match self == Self::NONE || self.is_of(endpoint) {
            true => HandleError::Ended,
            false => HandleError::WrongEndpoint,
        }
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
            .field("endpoint", &self.endpoint())
            .finish()
    }
}

/// The handle of a call, for cancelling it. The endpoint recognises handles of completed calls and
/// of other endpoints; it reuses one after 2^32 further calls of its session at the earliest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallId {
    /// The session's handle also carries the endpoint's number.
    session: Session,
    /// The entry of the call in the lower half, its generation in the upper.
    entry: u64,
}

impl CallId {
    /// The session of the call.
    #[inline]
    pub const fn session(self) -> Session {
        self.session
    }

    /// A placeholder until a call of this session is issued; it names no call.
    #[inline]
    pub const fn none_of(session: Session) -> Self {
        Self::new(session, CallIdx::NONE, 0)
    }

    /// The call's name among the calls of its session, in one word, for [`Self::of`].
    #[inline]
    pub const fn entry(self) -> u64 {
        self.entry
    }

    /// The call of this session that has this name ([`Self::entry`]).
    #[inline]
    pub const fn of(session: Session, entry: u64) -> Self {
        Self { session, entry }
    }

    #[inline]
    pub(crate) const fn new(session: Session, index: CallIdx, generation: u32) -> Self {
        let entry = word(index.0, generation);
        Self { session, entry }
    }

    #[inline]
    pub(crate) const fn index(self) -> CallIdx {
        CallIdx(halves(self.entry)[0])
    }

    #[inline]
    pub(crate) const fn generation(self) -> u32 {
        halves(self.entry)[1]
    }
}

/// A handle of a request that may outlive the iteration. The endpoint recognises stale ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RequestId {
    pub(crate) index: RequestIdx,
    pub(crate) generation: u32,
    pub(crate) req: ReqNum,
}

impl RequestId {
    /// No request.
    pub(crate) const NONE: Self = Self {
        index: RequestIdx::NONE,
        generation: 0,
        req: ReqNum(0),
    };
}

/// The handle of a request that was kept without a guard ([`Request::keep`](crate::Request::keep)),
/// for layers that have a guard of their own: a layer that loses the ticket leaves the client
/// waiting. The endpoint recognises tickets of answered requests, and of other endpoints.
///
/// Two words, each made in a register: a ticket moves into a future right after it was made, and a
/// wide load stalls after four narrower stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// The entry of the request in the lower half, its generation in the upper.
    entry: u64,
    /// The number of the endpoint in the lower half, the request's number in the upper.
    request: u64,
}

impl Ticket {
    #[inline]
    pub(crate) fn new(id: RequestId, endpoint: EndpointNum) -> Self {
        Self {
            entry: word(id.index.0, id.generation),
            request: word(endpoint.0, id.req.0),
        }
    }

    /// The request, if the endpoint with this number made the ticket.
    ///
    /// # Errors
    /// If another endpoint made it.
    #[inline]
    pub(crate) fn at(self, endpoint: EndpointNum) -> Result<RequestId, HandleError> {
        let ([index, generation], [number, req]) = (halves(self.entry), halves(self.request));
        if number != endpoint.0 {
            return Err(HandleError::WrongEndpoint);
        }
        Ok(RequestId {
            index: RequestIdx(index),
            generation,
            req: ReqNum(req),
        })
    }

    /// A small number that no other unanswered request has, for tables of kept requests. A ticket
    /// that was made with another endpoint's `Cx` has the number `u32::MAX` and names no request:
    /// make no room for it in a table.
    #[inline]
    pub const fn index(self) -> usize {
        halves(self.entry)[0] as usize
    }
}

#[inline]
const fn word(lower: u32, upper: u32) -> u64 {
    (upper as u64) << 32 | lower as u64
}

/// The lower and the upper half of a word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "each half has 32 bits")]
const fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// The number that the user gives with a timer and gets back when it fires.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TimerToken(pub u64);

#[cfg(test)]
mod tests;
