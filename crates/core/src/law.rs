//! Laws: conditions between the parts of an endpoint that hold whatever peers and programs do.
//!
//! Each part keeps its own state consistent. A law compares the states of two parts. For example,
//! the credits that a session lacks are those that its calls and transfers hold. The endpoint
//! checks its laws itself (`protocol/laws.rs`, [`Check`]). A broken law ends the endpoint's
//! sessions, because its answers can no longer be trusted. The process continues.
//!
//! No law concerns a ring's memory. Core borrows no cell: it stages short packets in lines of its
//! own (`transport/lane.rs`). The sender of a shared-memory ring does keep free cells at hand from
//! one iteration to the next, but only it and its ring know them, so no other part's state could
//! be compared with them. The ring's property tests compare them with a queue after each step
//! (`transport/src/shm/ring/lent/tests.rs`).

use std::fmt;

/// A condition between the parts of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Law {
    /// The state that a session prepares for ordinary packets follows from its other state.
    Prepared,
    /// A slot is free exactly if no call is in it.
    Slots,
    /// A slot awaits a whole response exactly if its call waits for nothing else.
    Awaited,
    /// The credits that a session lacks are those that its calls hold.
    Credits,
    /// A session has a backlog exactly if calls wait.
    Backlog,
    /// The bytes that a session receives are those of its partly arrived requests.
    Receiving,
    /// The prepared answers in the slots of a session are those that the session's terms prescribe.
    Answers,
    /// Each live call is in a slot or waits.
    Calls,
    /// Each large message on its way has a call, which names it.
    Transfers,
    /// Each flow has a session, which names it.
    Flows,
    /// The promised credits are the sum of all sessions' credits.
    Promises,
    /// Each slot belongs to a session, or waits for one.
    SlotRanges,
    /// Each live request is in a slot, or its session is gone.
    Requests,
}

impl Law {
    /// Its bit in a set of laws.
    pub(crate) const fn bit(self) -> u32 {
        1 << self as u8
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prepared => "prepared session state",
            Self::Slots => "slots and calls",
            Self::Awaited => "awaited responses",
            Self::Credits => "credits",
            Self::Backlog => "backlogs",
            Self::Receiving => "bytes of large requests",
            Self::Answers => "prepared answers",
            Self::Calls => "calls",
            Self::Transfers => "large messages",
            Self::Flows => "flows",
            Self::Promises => "promised credits",
            Self::SlotRanges => "ranges of slots",
            Self::Requests => "requests",
        })
    }
}

/// How often an endpoint checks its [`Law`]s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Check {
    /// Never.
    Never,
    /// One session at each sweep of held responses.
    #[default]
    Sweep,
    /// After each iteration, the sessions that its packets named. All sessions, and the
    /// laws over all of them, after an iteration that did more than handle packets (timers, calls,
    /// events of the control plane), at each sweep and after every thousand frames. For tests.
    Event,
}
