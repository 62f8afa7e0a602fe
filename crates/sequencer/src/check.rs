//! Properties that hold for any bytes: the tests of this crate and the fuzz target share them.
//!
//! Each function panics if its property does not hold.

use crate::wire::{Answer, Figures, Open, Opened, Take};

/// Reads bytes as each kind of message. One that is accepted encodes to the same bytes.
///
/// # Panics
/// If it does not.
pub fn message(bytes: &[u8]) {
    if let Ok(take) = Take::decode(bytes) {
        assert_eq!(take.encode(), bytes, "{take:?}");
        // Whatever the client expects, it finds the number that the server gives.
        for first in [1, u64::from(take.count) << 30, u64::MAX] {
            let upper = take.expected.unwrap_or(0);
            assert_eq!(take.answer(first).first(upper), Ok(first), "{take:?}");
        }
    }
    if let Ok(answer) = Answer::decode(bytes) {
        let mut again = vec![0xff; answer.size()];
        answer.encode(&mut again);
        assert_eq!(again, bytes, "{answer:?}");
    }
    if let Ok(open) = Open::decode(bytes) {
        assert_eq!(open.encode(), bytes, "{open:?}");
    }
    if let Ok(Ok(opened)) = Opened::decode(bytes) {
        assert_eq!(opened.encode(), bytes, "{opened:?}");
    }
    if let Ok(figures) = Figures::decode(bytes) {
        assert_eq!(figures.encode(), bytes, "{figures:?}");
    }
}

#[cfg(test)]
mod tests;
