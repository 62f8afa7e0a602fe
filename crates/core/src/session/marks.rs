//! Marks of a session: its flags, in one byte.

/// The flags of a session, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Marks(u8);

impl Marks {
    /// This side accepted the session; the peer opened it.
    pub(super) const ACCEPTED: u8 = 1;
    /// Packets of this session are paced: its rate is below line rate, or the rate limiter is not
    /// bypassed.
    pub(super) const PACED: u8 = 2;
    /// Calls wait for a slot or a credit.
    pub(super) const WAITING: u8 = 4;
    /// The session is in the stall queue, to be looked at.
    pub(super) const STALLED: u8 = 8;

    /// The session has asked because no packet came, and none has come since.
    pub(super) const ASKS: u8 = 16;
    /// No network lies on the way to the peer.
    pub(super) const NEAR: u8 = 32;
    /// The peer keeps the rules of error codes (rule W13).
    pub(super) const CODES: u8 = 64;
    /// The transport declares the path to the peer: its rate, and the round trip without a queue.
    pub(super) const DECLARED: u8 = 128;

    #[inline]
    pub(super) const fn has(self, mark: u8) -> bool {
        self.0 & mark != 0
    }

    #[inline]
    pub(super) const fn set(&mut self, mark: u8, on: bool) {
        self.0 = if on { self.0 | mark } else { self.0 & !mark };
    }
}
