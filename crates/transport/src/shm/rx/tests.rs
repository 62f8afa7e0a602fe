//! A receiver that parks its rings just when a packet comes, and one that moves with its frames.

use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_msgbuf::BufRef;

use crate::connect::{Connect, EndpointUid, PeerInfo};
use crate::shm::{Options, Shm, ShmRx, ShmTx};

type End = Halves<ShmRx, ShmTx>;

/// Two ends of a channel, and the number by which the first knows the second.
fn connected() -> (End, End, PeerId) {
    let open = || Shm::open(Options::default()).expect("memory can be shared here");
    let (mut a, mut b) = (open(), open());
    let info = |n| PeerInfo {
        endpoint: EndpointUid([n; 16]),
        same_host: true,
        same_process: false,
        local: None,
        remote: None,
    };
    let (pending, offer) = Shm::offer(&mut a.rx, &mut a.tx, &info(2)).expect("a new endpoint");
    let (_, answer) = Shm::accept(&mut b.rx, &mut b.tx, &info(1), offer).expect("our own offer");
    let peer = Shm::complete(&mut a.rx, &mut a.tx, pending, answer).expect("our own answer");
    (a, b, peer)
}

const fn item(peer: PeerId, byte: u8) -> TxItem {
    TxItem {
        peer,
        inline_len: 24,
        inline: [byte; MAX_INLINE],
        data: BufRef::EMPTY,
    }
}

#[test]
fn frames_stay_readable_when_the_half_moves() {
    let (mut a, mut b, peer) = connected();
    // The first burst looks at everything, the later ones only at one ring.
    for byte in 1..4 {
        a.tx.burst(&[item(peer, byte), item(peer, byte)]);
        assert_eq!(b.rx.burst(), 2);
        std::mem::swap(&mut a.rx, &mut b.rx);
        assert_eq!(a.rx.frame(0).bytes, [byte; 24]);
        assert_eq!(a.rx.frame(1).bytes, [byte; 24]);
        std::mem::swap(&mut a.rx, &mut b.rx);
    }
}

#[test]
fn a_sender_that_settles_wakes_who_parked_just_then() {
    let (mut a, b, peer) = connected();
    a.tx.burst(&[item(peer, 0)]);
    assert_eq!(a.tx.counters().wakeups_sent, 0, "it was awake");
    // The receiver has looked before the packet came, and its mark shows only after the sender has
    // looked.
    b.rx.mark_active(true);
    assert!(b.rx.bell.fall_asleep());
    a.tx.settle();
    assert_eq!(a.tx.counters().wakeups_sent, 1);
    a.tx.settle();
    assert_eq!(a.tx.counters().wakeups_sent, 1, "once is enough");
}

#[test]
fn a_packet_that_its_peer_takes_back_leaves_the_next_look_at_the_head() {
    let (mut a, mut b, peer) = connected();
    for byte in 1..4 {
        a.tx.burst(&[item(peer, byte)]);
        assert_eq!(b.rx.burst(), 1);
    }
    // A look has found a long packet, which is gone when the burst reads it.
    b.rx.count = 0;
    assert_eq!(b.rx.go_on(), 0);
    assert_eq!(b.rx.burst(), 0, "no packet is there");
    a.tx.burst(&[item(peer, 9)]);
    assert_eq!(b.rx.burst(), 1);
    assert_eq!(b.rx.frame(0).bytes, [9; 24]);
}
