//! A receiver that parks its rings at the very moment in which a packet comes.

use dunlin_core::transport::{MAX_INLINE, Tx, TxItem};
use dunlin_msgbuf::BufRef;

use crate::connect::{Connect, EndpointUid, PeerInfo};
use crate::shm::{Options, Shm};

#[test]
fn a_sender_that_settles_wakes_who_parked_just_then() {
    let open = || Shm::open(Options::default()).expect("memory can be shared here");
    let (mut a, mut b) = (open(), open());
    let info = |n| PeerInfo {
        endpoint: EndpointUid([n; 16]),
        same_host: true,
        same_process: true,
        local: None,
    };
    let (pending, offer) = Shm::offer(&mut a.rx, &mut a.tx, &info(2)).expect("a new endpoint");
    let (_, answer) = Shm::accept(&mut b.rx, &mut b.tx, &info(1), offer).expect("our own offer");
    let peer = Shm::complete(&mut a.rx, &mut a.tx, pending, answer).expect("our own answer");
    a.tx.burst(&[TxItem {
        peer,
        inline_len: 24,
        inline: [0; MAX_INLINE],
        data: BufRef::EMPTY,
    }]);
    assert_eq!(a.tx.counters().wakeups_sent, 0, "it was awake");
    // It has looked before the packet came, and its mark shows only after the sender has looked.
    b.rx.mark_active(true);
    assert!(b.rx.bell.fall_asleep());
    a.tx.settle();
    assert_eq!(a.tx.counters().wakeups_sent, 1);
    a.tx.settle();
    assert_eq!(a.tx.counters().wakeups_sent, 1, "once is enough");
}
