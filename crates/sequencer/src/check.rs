//! Properties that hold for any bytes. The tests of this crate and the fuzz target share them.
//!
//! Each function panics if its property does not hold.

use crate::state::{SLOT, State, seal};
use crate::wire::{Answer, Figures, Head, Malformed, Open, Opened, Take, Words, halves};

/// Decodes the bytes as each kind of message. A message that decodes must encode to the same bytes.
///
/// # Panics
/// If it does not.
pub fn message(bytes: &[u8]) {
    words(bytes);
    if let Ok(take) = Take::decode(bytes) {
        assert_eq!(take.encode(), bytes, "{take:?}");
        // Whatever upper bytes the client expects, it must find the number that the server gives.
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

/// A request that a server recognizes by its words must be one that decodes, and the other way
/// round.
fn words(bytes: &[u8]) {
    let take = Take::decode(bytes);
    let Some(words) = Words::of(bytes) else {
        return assert!(take.is_err(), "{take:?}");
    };
    let sequence = u16::from_le_bytes([bytes[2], bytes[3]]);
    let epoch = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    let (head, (upper, count)) = (Head::new(sequence, epoch), halves(words.rest));
    assert_eq!(words.head.sequence(), usize::from(sequence));
    let recognized = match words.head {
        it if it == head && upper == 0 => Ok(None),
        it if it == head.speculating() => Ok(Some(upper)),
        _ => Err(Malformed),
    };
    let recognized = recognized.map(|expected| Take {
        sequence,
        epoch,
        count,
        expected,
    });
    assert_eq!(recognized, take);
}

/// Reads the bytes as a server's file, and then as both slots of a file, with the present version
/// and a correct checksum. A state that is accepted must be the same after it is written and read
/// again. If one of its slots then decays, each limit must rise by the state's `raise`.
///
/// # Panics
/// If it is not.
pub fn file(bytes: &[u8]) {
    // Refusing the bytes is as good as reading a state.
    let _ = State::recover(bytes);
    let mut slot = bytes.to_vec();
    slot.resize(SLOT, 0);
    slot[..6].copy_from_slice(b"DSEQ\x01\x00");
    seal(&mut slot);
    let Ok(state) = State::recover(&slot.repeat(2)) else {
        return;
    };
    let mut again = state.encode_file();
    assert_eq!(State::recover(&again).as_ref(), Ok(&state));
    again[SLOT + 8] ^= 1;
    let raised = State::recover(&again).expect("one slot is whole");
    let limits = state.sequences.iter().zip(&raised.sequences);
    for ((name, limit), raised) in limits {
        let expected = (name.clone(), limit.saturating_add(state.raise));
        assert_eq!(*raised, expected);
    }
}

#[cfg(test)]
mod tests;
