//! Marks of a session: flags in one word.

/// The flags of a session, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Marks(u16);

impl Marks {
    /// This side accepted the session; the peer opened it.
    pub(super) const ACCEPTED: u16 = 1;
    /// Packets of this session are paced: its rate is below line rate, or the rate limiter is not
    /// bypassed.
    pub(super) const PACED: u16 = 2;
    /// Calls wait for a slot or a credit.
    pub(super) const WAITING: u16 = 4;
    /// The session is in the stall queue.
    pub(super) const STALLED: u16 = 8;

    /// The session has asked because no packet came, and none has come since.
    pub(super) const ASKS: u16 = 16;
    /// No network lies between this side and the peer.
    pub(super) const NEAR: u16 = 32;
    /// The peer obeys the rules of error codes (rule W13).
    pub(super) const CODES: u16 = 64;
    /// The transport declares the path to the peer: its rate, and the round trip without a queue.
    pub(super) const DECLARED: u16 = 128;
    /// The common path is off: no request takes it.
    pub(super) const GENERAL: u16 = 256;
    /// A message's short last packet may overtake the packets before it.
    pub(super) const REORDERED: u16 = 512;

    /// Whether one of these marks is set.
    #[inline]
    pub(super) const fn has(self, mark: u16) -> bool {
        self.0 & mark != 0
    }

    #[inline]
    pub(super) const fn set(&mut self, mark: u16, on: bool) {
        self.0 = if on { self.0 | mark } else { self.0 & !mark };
    }
}
