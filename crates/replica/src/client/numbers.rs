//! The numbers of a client's writes. Called by `client`.

use crate::wire::WINDOW;

/// The bit of the oldest number that can be open while another one is given.
const OLDEST: u64 = 1 << (WINDOW - 1);

const _: () = assert!(
    WINDOW <= 64,
    "a word has a bit for each number of the window"
);

/// Gives numbers in order, and knows which of them belong to writes that have not ended.
///
/// Invariant: all open numbers are among the last [`WINDOW`] ones.
#[derive(Debug)]
pub(super) struct Numbers {
    next: u64,
    /// The lowest bit is that of the number before the next one; a set bit means that the write has
    /// not ended.
    open: u64,
}

impl Numbers {
    pub(super) const fn new() -> Self {
        Self { next: 1, open: 0 }
    }

    /// The first number whose write has not ended, or the next number.
    pub(super) fn first(&self) -> u64 {
        self.next - u64::from(u64::BITS - self.open.leading_zeros())
    }

    /// Gives a write its number; `None` if the window is full.
    pub(super) const fn take(&mut self) -> Option<u64> {
        if self.open & OLDEST != 0 {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.open = self.open << 1 | 1;
        Some(number)
    }

    /// Notes that the write with this number has ended.
    pub(super) const fn end(&mut self, number: u64) {
        self.open &= !(1 << (self.next - 1 - number));
    }
}

#[cfg(test)]
mod tests;
