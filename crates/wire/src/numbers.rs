//! The numbers of the protocol as types, so that the compiler distinguishes a session number from a
//! token (rules W5, W9 and S1). Used by every crate that handles packets.

use core::fmt;

#[cfg(test)]
mod tests;

/// Number of a session at the side that receives the packet: an index into its session table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SessionNum(pub u32);

/// Random number that a side draws at the handshake; packets to that side carry it (rule W5).
///
/// It stops accidents and blind guesses, and gives no cryptographic protection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Token(pub u32);

impl fmt::Debug for Token {
    /// Hides the token, because a token in a log would help to forge packets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Index of a packet in its message, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PktNum(pub u32);

/// Type of a request, which selects its handler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ReqType(pub u16);

/// Number of a request in its slot, in serial-number arithmetic (RFC 1982; rule W9).
///
/// A slot starts at its own index and steps by the window, so the low bits of a number give its
/// slot. The window divides 2³², so this remains true across the wrap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ReqNum(pub u32);

impl ReqNum {
    /// The slot that this number belongs to, in a session of `window` slots (a power of two).
    #[inline]
    pub const fn slot(self, window: u32) -> u32 {
        self.0 & (window - 1)
    }

    /// The next number of the same slot.
    #[inline]
    #[must_use]
    pub const fn next(self, window: u32) -> Self {
        Self(self.0.wrapping_add(window))
    }

    /// The previous number of the same slot.
    #[inline]
    #[must_use]
    pub const fn previous(self, window: u32) -> Self {
        Self(self.0.wrapping_sub(window))
    }

    /// True if `self` was issued before `other`, which holds for numbers less than 2³¹ apart.
    #[inline]
    pub const fn is_before(self, other: Self) -> bool {
        // The sign bit of the difference is the answer of RFC 1982, section 3.2.
        (self.0.wrapping_sub(other.0) as i32) < 0
    }
}
