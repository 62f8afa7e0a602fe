//! Transports that finish packets at different times.

use super::*;

fn place(own: u64, shm: u64, remote: u64) -> SentPositions {
    SentPositions {
        own: TxSeq(own),
        shm: TxSeq(shm),
        remote: TxSeq(remote),
    }
}

/// A finished call must complete even while a device has packets of a long message.
#[test]
fn a_transport_that_always_has_packets_does_not_hold_up_earlier_ones() {
    let mut released = Released::default();
    let window = 8;
    for sent in window..1_000 {
        let done = released.look(place(sent, 0, sent), TxSeq(0), TxSeq(sent - window));
        assert!(done.0 <= sent - window, "{done:?} of {sent} is too early");
        assert!(sent < 3 * window + done.0, "{done:?} of {sent} is late");
    }
    assert_eq!(
        released.look(place(999, 0, 999), TxSeq(0), TxSeq(999)).0,
        999
    );
}

#[test]
fn a_position_is_passed_when_both_transports_have_passed_it() {
    let mut released = Released::default();
    // Three packets were sent over shared memory, and then two over the other transport.
    let given = place(5, 3, 2);
    assert_eq!(released.look(given, TxSeq(0), TxSeq(0)).0, 0);
    assert_eq!(released.look(given, TxSeq(3), TxSeq(1)).0, 0);
    assert_eq!(released.look(given, TxSeq(2), TxSeq(2)).0, 0);
    // Two more packets are sent over each, before the first ones are done.
    let more = place(9, 5, 4);
    assert_eq!(released.look(more, TxSeq(3), TxSeq(2)).0, 5);
    assert_eq!(released.look(more, TxSeq(4), TxSeq(4)).0, 5);
    assert_eq!(released.look(more, TxSeq(5), TxSeq(4)).0, 9);
}
