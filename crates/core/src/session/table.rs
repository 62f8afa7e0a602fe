//! A session's persistent state, and the table of sessions.
//!
//! A session that was used and is idle is this struct and its slots' numbers, nothing else: at
//! most 512 bytes a side with the default window (design §5), which `const` assertions keep.
//! Calls, work and buffers live in pools and go back when they are done.

use dunlin_wire::{ReqNum, SessionNum, Token};

use crate::congestion::Scheme;
use crate::session::rtt::Rtt;
use crate::time::Nanos;
use crate::transport::PeerId;

/// A session as the user names it. Handles of closed sessions are recognised, not reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session {
    /// The index in the upper half, the generation in the lower: one word, because it is moved
    /// right after it was made, and reading in one piece what was written in two stalls.
    word: u64,
}

impl Session {
    /// A handle that names no session: a placeholder until `connect` has returned one.
    pub const NONE: Self = Self::new(u32::MAX, 0);

    #[inline]
    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        let word = (index as u64) << 32 | generation as u64;
        Self { word }
    }

    #[inline]
    pub(crate) const fn index(self) -> u32 {
        (self.word >> 32) as u32
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    const fn generation(self) -> u32 {
        self.word as u32
    }

    /// This side's number for the session, as packets carry it.
    pub const fn number(self) -> SessionNum {
        SessionNum(self.index())
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("index", &self.index())
            .field("generation", &self.generation())
            .finish()
    }
}

/// Where a session is between opening and end.
///
/// ```text
/// Free ──open──▶ Connecting ──opened──▶ Open ──close──▶ Free
///   └───────────────accept──────────────▲
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum State {
    #[default]
    Free,
    /// This side asked; calls queue in the backlog.
    Connecting,
    /// Packets flow.
    Open,
}

/// No index: the end of a list, or a slot without call or work.
pub(crate) const NONE: u32 = u32::MAX;

/// State of one session. The first half is what a packet touches.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct SessionState {
    /// What packets to this side must carry (rule W5).
    pub(crate) token: Token,
    pub(crate) state: State,
    /// The session waits in the stall queue to be looked at.
    pub(crate) stalled: bool,
    /// Concurrent requests in each direction, a power of two.
    pub(crate) window: u8,
    /// Packets of this session wait for their time: it is below line rate, or the rate limiter is
    /// not bypassed.
    pub(crate) paced: bool,
    /// Where the session's slots start in both slot tables.
    pub(crate) slots: u32,
    /// Packets that may still be sent (rule S7).
    pub(crate) credits: u32,
    /// Bit i: this side may issue a request in slot i.
    pub(crate) free: u64,
    pub(crate) remote: SessionNum,
    pub(crate) remote_token: Token,
    pub(crate) peer: PeerId,
    /// Most data bytes in a packet.
    pub(crate) data_size: u32,
    /// Largest message that is a single packet, within `max_message`.
    pub(crate) single: u32,
    /// First call that waits for a slot or a credit.
    pub(crate) backlog_head: u32,
    pub(crate) backlog_len: u32,
    /// Calls that hold a slot, zombies included.
    pub(crate) in_flight: u16,
    /// This side accepted the session; the other opened it.
    pub(crate) accepted: bool,
    /// Its congestion control; `None`: what the transport says, once the peer is known.
    pub(crate) scheme: Option<Scheme>,

    pub(crate) rtt: Rtt,
    /// A request from then on asks for a round-trip sample.
    pub(crate) sample_due: Nanos,
    /// When the last valid packet came, on the clock that silence is measured on.
    pub(crate) heard: Nanos,
    /// Bit i: the response of slot i's latest request has arrived, and the server may not know.
    pub(crate) unacked: u64,
    /// When the last acknowledgement vector was sent.
    pub(crate) acked: Nanos,
    /// What the credits were at the opening.
    pub(crate) credit_limit: u32,
    /// Largest message in bytes that this session carries.
    pub(crate) max_message: u32,
    pub(crate) generation: u32,
    /// Start of the request numbers.
    pub(crate) first_req: ReqNum,
    /// Last call that waits for a slot or a credit.
    pub(crate) backlog_tail: u32,
    /// Its flow, or [`NONE`] if it has credits alone.
    pub(crate) flow: u32,
}

impl SessionState {
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// A request may be sent right now.
    #[inline]
    pub(crate) fn can_send(&self) -> bool {
        self.is_open() && self.free != 0 && self.credits > 0
    }

    /// The bits of all slots.
    pub(crate) fn all_slots(window: u32) -> u64 {
        u64::MAX >> (u64::BITS - window)
    }
}

impl Default for SessionState {
    fn default() -> Self {
        Self {
            token: Token(0),
            state: State::Free,
            stalled: false,
            window: 1,
            paced: false,
            slots: 0,
            credits: 0,
            free: 0,
            remote: SessionNum(0),
            remote_token: Token(0),
            peer: PeerId(0),
            data_size: 0,
            single: 0,
            backlog_head: NONE,
            backlog_tail: NONE,
            backlog_len: 0,
            in_flight: 0,
            accepted: false,
            scheme: None,
            rtt: Rtt::default(),
            sample_due: Nanos::ZERO,
            heard: Nanos::ZERO,
            unacked: 0,
            acked: Nanos::ZERO,
            credit_limit: 0,
            max_message: 0,
            generation: 0,
            first_req: ReqNum(0),
            flow: NONE,
        }
    }
}

/// A slot in which this side issues requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientSlot {
    /// Number of the current request, or of the next one if there is none.
    pub(crate) req: ReqNum,
    /// The call in the slot, or [`NONE`].
    pub(crate) call: u32,
}

/// A slot in which the other side issues requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerSlot {
    /// Number of the last request that was accepted (rule S2).
    pub(crate) last: ReqNum,
    /// Its work, or [`NONE`] if its response was given back.
    pub(crate) work: u32,
}

const _: () = {
    use crate::config::DEFAULT_WINDOW;
    let slots = size_of::<ClientSlot>() + size_of::<ServerSlot>();
    assert!(size_of::<SessionState>() + slots * DEFAULT_WINDOW as usize <= 384);
    // Two cache lines.
    assert!(size_of::<SessionState>() == 128);
};

/// All sessions of an endpoint, with their slots.
#[derive(Debug)]
pub(crate) struct SessionTable {
    sessions: Vec<SessionState>,
    free: Vec<u32>,
    limit: usize,
    live: usize,
    pub(crate) client_slots: Vec<ClientSlot>,
    pub(crate) server_slots: Vec<ServerSlot>,
    /// Freed slot ranges, by the logarithm of their length.
    free_slots: [Vec<u32>; 7],
}

impl SessionTable {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            sessions: Vec::new(),
            free: Vec::new(),
            limit,
            live: 0,
            client_slots: Vec::new(),
            server_slots: Vec::new(),
            free_slots: Default::default(),
        }
    }

    /// Sessions in use.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// One more than the highest index ever used.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&SessionState> {
        self.sessions.get(index as usize)
    }

    /// The session that a packet names, if packets may flow on it.
    #[inline]
    pub(crate) fn get_open(&self, index: u32) -> Option<&SessionState> {
        self.sessions
            .get(index as usize)
            .filter(|state| state.is_open())
    }

    /// The session at an index that this endpoint stored itself.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> &SessionState {
        &self.sessions[index as usize]
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> &mut SessionState {
        &mut self.sessions[index as usize]
    }

    /// A session together with the slots in which this side issues requests.
    #[inline]
    pub(crate) fn with_client_slots(
        &mut self,
        index: u32,
    ) -> (&mut SessionState, &mut [ClientSlot]) {
        let state = &mut self.sessions[index as usize];
        let start = state.slots as usize;
        let slots = &mut self.client_slots[start..start + usize::from(state.window)];
        (state, slots)
    }

    /// The index behind a user's handle, unless that session has ended.
    #[inline]
    pub(crate) fn find(&self, session: Session) -> Option<u32> {
        let state = self.sessions.get(session.index() as usize)?;
        let current = state.generation == session.generation() && state.state != State::Free;
        current.then_some(session.index())
    }

    /// The session behind a user's handle, unless it has ended.
    #[inline]
    pub(crate) fn find_state(&self, session: Session) -> Option<&SessionState> {
        self.sessions
            .get(session.index() as usize)
            .filter(|state| state.generation == session.generation() && state.state != State::Free)
    }

    #[inline]
    pub(crate) fn handle(&self, index: u32) -> Session {
        Session::new(index, self.at(index).generation)
    }

    /// Makes a session with `window` slots in each direction that start below `first_req`, or
    /// `None` if there are too many.
    pub(crate) fn insert(&mut self, window: u32, first_req: ReqNum) -> Option<u32> {
        if self.live >= self.limit {
            return None;
        }
        let slots = self.insert_slots(window, first_req);
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.sessions.push(SessionState::default());
                u32::try_from(self.sessions.len() - 1).expect("max_sessions fits in 24 bits")
            }
        };
        let state = &mut self.sessions[index as usize];
        // Generation 0 belongs to `Session::NONE`.
        let generation = state.generation.wrapping_add(1).max(1);
        *state = SessionState {
            window: u8::try_from(window).expect("a window is at most 64"),
            slots,
            free: SessionState::all_slots(window),
            generation,
            ..SessionState::default()
        };
        self.live += 1;
        Some(index)
    }

    fn insert_slots(&mut self, window: u32, first_req: ReqNum) -> u32 {
        let class = window.trailing_zeros() as usize;
        let reused = self.free_slots[class].pop();
        let start = reused.unwrap_or_else(|| {
            let start = self.client_slots.len();
            let empty = ClientSlot {
                req: ReqNum(0),
                call: NONE,
            };
            self.client_slots.resize(start + window as usize, empty);
            let empty = ServerSlot {
                last: ReqNum(0),
                work: NONE,
            };
            self.server_slots.resize(start + window as usize, empty);
            u32::try_from(start).expect("2^24 sessions of 64 slots fit in 32 bits")
        });
        for slot in 0..window {
            let req = ReqNum(first_req.0.wrapping_add(slot));
            let at = (start + slot) as usize;
            self.client_slots[at] = ClientSlot { req, call: NONE };
            self.server_slots[at] = ServerSlot {
                last: req.previous(window),
                work: NONE,
            };
        }
        start
    }

    /// Gives the session's number and slots back. Its calls and work must be gone already.
    pub(crate) fn remove(&mut self, index: u32) {
        let state = &mut self.sessions[index as usize];
        debug_assert!(state.state != State::Free && state.in_flight == 0);
        state.state = State::Free;
        self.free_slots[state.window.trailing_zeros() as usize].push(state.slots);
        self.free.push(index);
        self.live -= 1;
    }

    /// Lowers the window of a session that has not issued anything yet.
    pub(crate) fn narrow(&mut self, index: u32, window: u32, first_req: ReqNum) {
        let (old_window, old_slots) = {
            let state = self.at(index);
            (state.window, state.slots)
        };
        self.free_slots[old_window.trailing_zeros() as usize].push(old_slots);
        let slots = self.insert_slots(window, first_req);
        let state = self.at_mut(index);
        state.slots = slots;
        state.window = u8::try_from(window).expect("a window is at most 64");
        state.free = SessionState::all_slots(window);
    }
}
