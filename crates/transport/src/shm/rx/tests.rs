//! A receiver that parks its rings just when a packet comes, and one that is moved while its frames
//! are in use.

use dunlin_core::transport::{Halves, Lane, MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_msgbuf::{BufRef, Pool, PoolConfig};

use crate::connect::{Arm, Connect, EndpointUid, PeerInfo, meet};
use crate::shm::ffi;
use crate::shm::options::INLINE;
use crate::shm::ring::Parked;
use crate::shm::{Options, Shm, ShmRx, ShmTx};

type End = Halves<ShmRx, ShmTx>;

fn open() -> End {
    Shm::open(Options::default()).expect("memory can be shared here")
}

/// Two ends of a channel, and the first end's number for the second.
fn connected() -> (End, End, PeerId) {
    let mut b = open();
    let (a, peer) = connect_to(&mut b, 1);
    (a, b, peer)
}

/// A new end with a channel to `b`, and its number for `b`.
fn connect_to(b: &mut End, n: u8) -> (End, PeerId) {
    let mut a = open();
    let info = |n| PeerInfo::of_this_host(EndpointUid([n; 16]));
    let met = meet::<Shm>([&mut a, b], &[info(n), info(200)]);
    (a, met.expect("the ends fit each other")[0])
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
    // The first burst checks everything, later ones only one ring.
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
fn a_sender_that_settles_wakes_a_receiver_that_parked_just_then() {
    let (mut a, b, peer) = connected();
    a.tx.burst(&[item(peer, 0)]);
    assert_eq!(a.tx.counters().wakeups_sent, 0, "the receiver was awake");
    // A race: the receiver found the ring empty before the packet came, but the mark that it set
    // becomes visible only after the sender has read the mark.
    b.rx.mark(Parked::Awake, Parked::Awake);
    assert!(b.rx.bell.fall_asleep());
    a.tx.settle();
    assert_eq!(a.tx.counters().wakeups_sent, 1);
    a.tx.settle();
    assert_eq!(a.tx.counters().wakeups_sent, 1, "one wake-up is enough");
}

#[test]
fn a_sender_of_lone_packets_that_settles_wakes_a_receiver_that_parked_just_then() {
    // One, two and several cells.
    [32, 80, 200].into_iter().for_each(settle_after_parking);
}

fn settle_after_parking(len: usize) {
    let (mut a, mut b, peer) = connected();
    let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
    let message = pool.alloc(len).expect("memory");
    let mut lane = Lane::new(a.tx.lane());
    let mut send = |a: &mut End| {
        assert!(lane.push(peer, [0; 3], &message));
        a.tx.send(&lane, &[]);
        lane.clear();
    };
    for wakeups in 1..40 {
        for _ in 0..wakeups {
            send(&mut a);
            assert_eq!(b.rx.burst(), 1);
        }
        a.tx.settle();
        send(&mut a);
        // The mark that the receiver has set becomes visible only now.
        b.rx.mark(Parked::Awake, Parked::Awake);
        assert!(b.rx.bell.fall_asleep());
        a.tx.settle();
        assert_eq!(a.tx.counters().wakeups_sent, wakeups);
        zero(&b);
        b.rx.mark(Parked::No, Parked::Awake);
        assert_eq!(b.rx.burst(), 1);
    }
}

#[test]
fn a_sender_of_pairs_of_lone_packets_looks_again_at_a_receiver_that_parked_just_then() {
    [32, 80, 200].into_iter().for_each(look_again_after_pairs);
}

/// Every second packet leaves in lent cells, and no such packet is one at which the sender pauses
/// to check its unsettled peers.
fn look_again_after_pairs(len: usize) {
    let (mut sender, mut receivers) = (open(), [open(), open(), open()]);
    let info = |n| PeerInfo::of_this_host(EndpointUid([n; 16]));
    let mut connect = |(n, receiver): (u8, &mut End)| {
        let met = meet::<Shm>([&mut sender, receiver], &[info(200), info(n)]);
        met.expect("the ends fit each other")[0]
    };
    let mut numbered = (1..).zip(&mut receivers);
    let peers = [(); 3].map(|()| connect(numbered.next().expect("three")));
    let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
    let message = pool.alloc(len).expect("memory");
    let mut lane = Lane::new(sender.tx.lane());
    let mut send = |to: usize, parks: bool| {
        assert!(lane.push(peers[to], [0; 3], &message));
        sender.tx.send(&lane, &[]);
        lane.clear();
        assert_eq!(receivers[to].rx.burst(), 1);
        if parks {
            receivers[to].rx.mark(Parked::Awake, Parked::Awake);
            assert!(receivers[to].rx.bell.fall_asleep());
        }
        sender.tx.counters().wakeups_sent
    };
    for to in 0..3 {
        send(to, false);
    }
    assert_eq!(send(0, true), 0, "the mark was not there yet");
    let mut pairs = [1, 1, 2, 2].into_iter().cycle().take(40);
    assert!(
        pairs.any(|to| send(to, false) == 1),
        "the receiver is not woken"
    );
}

#[test]
fn a_lone_packet_that_is_longer_than_its_ring_carries_closes_the_ring() {
    let options = Options {
        data_size: 100,
        ..Options::default()
    };
    let mut ends = [(); 2].map(|()| Shm::open(options).expect("memory can be shared here"));
    let [a, b] = &mut ends;
    let info = |n| PeerInfo::of_this_host(EndpointUid([n; 16]));
    let met = meet::<Shm>([a, b], &[info(1), info(2)]).expect("the ends fit each other");
    let channel = a.tx.channels.channel(met[0]).expect("it is live");
    let longest = options.data_size + INLINE;
    // SAFETY: the channel's own producer is never used, and `a` keeps the channel.
    let mut producer = unsafe { channel.producer(2 * longest) };
    let mut send = |len: u32| {
        let bytes = vec![7; len as usize];
        // SAFETY: the bytes are a slice, outside of the ring.
        unsafe { producer.push(&bytes, bytes.as_ptr(), 0) }.expect("there is room");
        b.rx.burst()
    };
    // After the first lone packet, plain bursts take the next ones without the help of their ring.
    for _ in 0..3 {
        assert_eq!(send(longest), 1);
    }
    assert_eq!(send(longest + 1), 0);
    assert_eq!(b.rx.counters().rx_corrupt, 1);
}

/// Undoes everything that peers have written into a doorbell, as any peer can.
fn zero(end: &End) {
    end.rx.bell.take(|_| {});
    end.rx.bell.wake_up();
}

#[test]
fn a_zeroed_doorbell_delays_no_packet_to_a_receiver_that_sleeps() {
    let (mut a, mut b, peer) = connected();
    for sleep in 1..4 {
        assert_eq!(Shm::arm(&mut b.rx, &mut b.tx), Arm::Wait);
        zero(&b);
        a.tx.burst(&[item(peer, 7)]);
        a.tx.settle();
        assert_eq!(a.tx.counters().wakeups_sent, sleep);
        zero(&b);
        Shm::disarm(&mut b.rx, &mut b.tx);
        assert_eq!(b.rx.burst(), 1);
    }
}

#[test]
fn a_receiver_that_is_awake_again_gets_one_message_for_a_ring_that_sleeps() {
    let (mut a, mut b, peer) = connected();
    for _ in 0..2 {
        // The ring stays parked over the second sleep.
        assert_eq!(Shm::arm(&mut b.rx, &mut b.tx), Arm::Wait);
        Shm::disarm(&mut b.rx, &mut b.tx);
    }
    for _ in 0..8 {
        a.tx.burst(&[item(peer, 7)]);
        a.tx.settle();
    }
    assert_eq!(a.tx.counters().wakeups_sent, 1);
    assert_eq!(b.rx.burst(), 8);
    // There is no message for a ring that was active just before.
    assert_eq!(Shm::arm(&mut b.rx, &mut b.tx), Arm::Wait);
    Shm::disarm(&mut b.rx, &mut b.tx);
    a.tx.burst(&[item(peer, 7)]);
    assert_eq!(a.tx.counters().wakeups_sent, 1);
    assert_eq!(b.rx.burst(), 1);
}

#[test]
fn a_thread_that_was_woken_for_nothing_is_woken_again() {
    let (mut a, mut b, peer) = connected();
    let sleep_on = |b: &mut End| {
        for _ in 0..2 {
            assert_eq!(Shm::arm(&mut b.rx, &mut b.tx), Arm::Wait);
            Shm::disarm(&mut b.rx, &mut b.tx);
        }
    };
    sleep_on(&mut b);
    // The sender replaces the mark `Asleep` and sends a wake-up message. The thread sees the
    // doorbell and receives the packet, but has not read the message yet.
    a.tx.burst(&[item(peer, 7)]);
    a.tx.settle();
    assert_eq!(a.tx.counters().wakeups_sent, 1);
    assert_eq!(Shm::arm(&mut b.rx, &mut b.tx), Arm::Ready);
    Shm::disarm(&mut b.rx, &mut b.tx);
    assert_eq!(b.rx.burst(), 1);
    for wakeups in 2..5 {
        sleep_on(&mut b);
        assert_eq!(Shm::arm(&mut b.rx, &mut b.tx), Arm::Wait);
        ffi::wake(a.tx.channels.channel(peer).expect("it is live").line());
        zero(&b);
        Shm::disarm(&mut b.rx, &mut b.tx);
        assert_eq!(Shm::arm(&mut b.rx, &mut b.tx), Arm::Wait);
        zero(&b);
        a.tx.burst(&[item(peer, 7)]);
        a.tx.settle();
        assert_eq!(a.tx.counters().wakeups_sent, wakeups);
        Shm::disarm(&mut b.rx, &mut b.tx);
        assert_eq!(b.rx.burst(), 1);
    }
}

/// Bursts in 100 µs, if one that polls eight empty rings takes 250 ns.
const SOON: u32 = 400;

/// `others` runs before each burst: it zeroes the doorbell, or rings it without end.
fn bursts_until_shown(others: impl Fn(&End)) -> u32 {
    let mut b = open();
    let mut ends: Vec<_> = (1..=64).map(|n| connect_to(&mut b, n)).collect();
    for _ in 0..200 {
        assert_eq!(b.rx.burst(), 0);
    }
    let (a, peer) = &mut ends[40];
    a.tx.burst(&[item(*peer, 7)]);
    a.tx.settle();
    let mut bursts = 0;
    loop {
        others(&b);
        bursts += 1;
        if b.rx.burst() > 0 || bursts > 100 * SOON {
            return bursts;
        }
    }
}

#[test]
fn a_zeroed_doorbell_hides_a_parked_ring_for_less_than_100_us() {
    let bursts = bursts_until_shown(zero);
    assert!(bursts < SOON, "{bursts}");
}

#[test]
fn a_doorbell_that_one_peer_rings_without_end_delays_no_other_peer() {
    let bursts = bursts_until_shown(|b| {
        zero(b);
        b.rx.bell.ring(3);
    });
    assert!(bursts < SOON, "{bursts}");
}

/// Every second burst shows only references of one peer: in one run the bursts with even numbers,
/// in the other those with odd numbers.
#[test]
fn references_do_not_delay_the_look_at_parked_rings() {
    for first in 0..2 {
        let mut b = open();
        let mut ends: Vec<_> = (1..=16).map(|n| connect_to(&mut b, n)).collect();
        for _ in 0..200 + first {
            assert_eq!(b.rx.burst(), 0);
        }
        let mut pool = Pool::new(PoolConfig::default()).expect("the default works");
        let large = pool.alloc(30_000).expect("the pool has room");
        let reference = |peer| TxItem {
            data: large.lend(),
            ..item(peer, 9)
        };
        let (flood, quiet) = (0, 12);
        for _ in 0..SOON {
            let (a, peer) = &mut ends[flood];
            a.tx.burst(&[reference(*peer)]);
        }
        let (a, peer) = &mut ends[quiet];
        a.tx.burst(&[item(*peer, 7)]);
        a.tx.settle();
        let mut bursts = 0;
        loop {
            zero(&b);
            let (a, peer) = &mut ends[flood];
            if bursts % 2 == 0 {
                a.tx.burst(&[item(*peer, 8)]);
            }
            let shown = b.rx.burst();
            if (0..shown).any(|index| b.rx.frame(index).bytes[0] == 7) {
                break;
            }
            bursts += 1;
            assert!(bursts < SOON, "the parked ring is not checked");
        }
        assert!(!b.rx.waiting.is_empty(), "references wait in each turn");
    }
}
