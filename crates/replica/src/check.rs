//! Properties that hold for any bytes. The tests of this crate and the fuzz target share them.
//!
//! Each function panics if its property does not hold.

use crate::machine::{Budget, Machine};
use crate::wire::{Answer, Members, Operation, Order, Parcel, Piece, Request, Roster, Status};

/// Decodes the bytes as each kind of message. A message that decodes must encode to the same bytes.
///
/// # Panics
/// If it does not.
pub fn message(bytes: &[u8]) {
    let same = |again: Vec<u8>, what: &dyn std::fmt::Debug| assert_eq!(again, bytes, "{what:?}");
    if let Ok(it) = Request::decode(bytes) {
        assert!(it.is_in_range(), "{it:?}");
        same(it.to_bytes(), &it);
    }
    if let Ok(it) = Answer::decode(bytes) {
        let mut again = vec![0xff; it.size()];
        it.encode(&mut again);
        same(again, &it);
    }
    if let Ok(it) = Parcel::decode(bytes) {
        same(it.to_bytes(), &it);
    }
    if let Ok(it) = Piece::decode(bytes) {
        let mut again = vec![0xff; Piece::HEAD + it.bytes.len()];
        it.encode(&mut again);
        same(again, &it);
    }
    if let Ok(it) = Members::decode(bytes) {
        same(it.to_bytes(), &it);
    }
    if let Ok(it) = Roster::decode(bytes) {
        same(it.to_bytes(), &it);
    }
    if let Ok(it) = Status::decode(bytes) {
        same(it.to_bytes(), &it);
    }
    if let Ok(it) = Order::decode(bytes) {
        same(it.to_bytes(), &it);
    }
}

/// Applies the bytes as entries; the two bytes before each entry are its length. Malformed entries
/// must change nothing. Meanwhile, an image of the state is made in slices. When it is restored, it
/// must give the state as it was when the image was begun.
///
/// # Panics
/// If a malformed entry changes the state, or the image restores to another state.
pub fn entries(bytes: &[u8]) {
    let mut machine = Machine::new(1, 5);
    let (mut rest, mut index) = (bytes, 1);
    let mut begun = None;
    while let Some((len, after)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_le_bytes(*len)).min(after.len());
        let (entry, after) = after.split_at(len);
        rest = after;
        // No member proposes a read.
        let is_read = Request::decode(entry).is_ok_and(|it| {
            matches!(
                it.operation,
                Operation::Get | Operation::Range(..) | Operation::Watch(_)
            )
        });
        if is_read {
            continue;
        }
        match machine.apply(index + 1, entry) {
            Ok(_) => index += 1,
            Err(_) => assert_eq!(machine.applied(), index, "nothing was applied"),
        }
        if begun.is_none() {
            machine.begin_image(Vec::new());
            begun = Some((machine.applied(), machine.digest()));
        }
        if let Some(image) = machine.go_on(Budget::slice(50))
            && let Some((applied, digest)) = begun.take()
        {
            let mut other = Machine::new(0, 5);
            assert!(other.restore(&image).is_ok(), "an image is one");
            assert_eq!((other.applied(), other.digest()), (applied, digest));
        }
    }
    let mut machine = Machine::new(1, 5);
    if machine.restore(bytes).is_ok() {
        let open = machine.apply(machine.applied() + 1, &Request::OPEN.to_bytes());
        assert!(open.is_ok(), "a state that is restored goes on");
        let _ = (machine.digest(), machine.next_expiry());
    }
}

#[cfg(test)]
mod tests;
