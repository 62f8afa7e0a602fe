//! The memory that slots keep.

use dunlin_mailbox::Letter as _;

use super::*;
use crate::places::Places;

/// A slot in use by a call, and the memory that is left of its request after an event.
fn kept(bytes: usize, event: impl FnOnce(&mut Letter)) -> usize {
    let mut letter = Letter::default();
    let place = Places::new(1).take().expect("it is the first");
    letter.on_call(0, place, ReqType(1), &vec![0; bytes]);
    event(&mut letter);
    letter.body.capacity()
}

#[test]
fn a_slot_lets_a_large_request_go_however_its_call_ends() {
    let ends: [fn(&mut Letter); 3] = [
        |letter| letter.on_end(Err(ChannelError::Full)),
        |letter| drop(letter.on_dropped()),
        Letter::on_closed,
    ];
    for end in ends {
        assert_eq!(kept(1 << 20, end), 0);
        assert!(kept(1000, end) >= 1000, "the next one needs no memory");
    }
}
