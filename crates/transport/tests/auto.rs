//! The `auto` transport: which transport carries a peer's packets, peers on both transports, and
//! when an endpoint polls its socket.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::net::UdpSocket;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem, TxSeq};
use dunlin_msgbuf::BufRef;
use dunlin_transport::auto::{Auto, AutoRx, AutoTx, Options};
use dunlin_transport::connect::{
    Arm, Connect, ConnectError, EndpointUid, Offer, PeerInfo, Pending,
};
use dunlin_transport::shm;
use dunlin_transport::udp;
use dunlin_wire::control::TransportKind;

const UDP_BIT: u32 = 1 << 31;

struct Endpoint {
    rx: AutoRx,
    tx: AutoTx,
    uid: u8,
}

impl Endpoint {
    fn new(uid: u8) -> Self {
        let Halves { rx, tx, .. } = Auto::open(&Options::default()).unwrap();
        Self { rx, tx, uid }
    }

    fn info(&self, same_host: bool) -> PeerInfo {
        PeerInfo {
            endpoint: EndpointUid([self.uid; 16]),
            same_host,
            same_process: false,
            proves: true,
            local: None,
            remote: (!same_host).then_some([127, 0, 0, 1].into()),
        }
    }

    fn offer(&mut self, to: &PeerInfo) -> (Pending, Offer) {
        Auto::offer(&mut self.rx, &mut self.tx, to).unwrap()
    }

    fn accept(&mut self, from: &PeerInfo, offer: Offer) -> (PeerId, Offer) {
        Auto::accept(&mut self.rx, &mut self.tx, from, offer).unwrap()
    }

    fn complete(&mut self, pending: Pending, answer: Offer) -> Result<PeerId, ConnectError> {
        Auto::complete(&mut self.rx, &mut self.tx, pending, answer)
    }

    fn release(&mut self, peer: PeerId) {
        Auto::release(&mut self.rx, &mut self.tx, peer);
    }

    fn send(&mut self, peer: PeerId, byte: u8) {
        self.tx.burst(&[item(peer, byte)]);
    }

    /// Polls until frames come, at most `bursts` times; returns the first byte of each frame.
    fn take(&mut self, bursts: usize) -> Vec<u8> {
        let count = (0..bursts)
            .map(|_| self.rx.burst())
            .find(|count| *count > 0)
            .unwrap_or(0);
        (0..count)
            .map(|index| self.rx.frame(index).bytes[0])
            .collect()
    }

    fn arm(&mut self) -> Arm {
        Auto::arm(&mut self.rx, &mut self.tx)
    }

    fn disarm(&mut self) {
        Auto::disarm(&mut self.rx, &mut self.tx);
    }

    /// The first byte of each frame of the next burst that has any.
    fn next(&mut self) -> Vec<u8> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(5) {
            let got = self.take(1);
            if !got.is_empty() {
                return got;
            }
        }
        panic!("nothing came");
    }

    /// Waits until a datagram is in the socket.
    fn await_datagram(&self) {
        let mut fds: Vec<RawFd> = Vec::new();
        Auto::fds(&self.rx, &self.tx, &mut fds);
        let mut poll = libc::pollfd {
            fd: fds[1],
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one live pollfd.
        assert_eq!(unsafe { libc::poll(&raw mut poll, 1, 5000) }, 1);
    }

    fn is_readable(&self, within_ms: i32) -> bool {
        let mut fds: Vec<RawFd> = Vec::new();
        Auto::fds(&self.rx, &self.tx, &mut fds);
        assert_eq!(fds.len(), 2);
        let poll = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut polls = [poll(fds[0]), poll(fds[1])];
        // SAFETY: two live pollfds.
        unsafe { libc::poll(polls.as_mut_ptr(), 2, within_ms) > 0 }
    }

    fn syscalls(&self) -> u64 {
        Auto::counters(&self.rx, &self.tx).syscalls
    }
}

fn item(peer: PeerId, byte: u8) -> TxItem {
    TxItem {
        peer,
        inline_len: 32,
        inline: [byte; MAX_INLINE],
        data: BufRef::EMPTY,
    }
}

/// Connects the two; returns the number that each has for the other.
fn connect(a: &mut Endpoint, b: &mut Endpoint, same_host: bool) -> (PeerId, PeerId) {
    let (pending, offer) = a.offer(&b.info(same_host));
    let (to_a, answer) = b.accept(&a.info(same_host), offer);
    (a.complete(pending, answer).unwrap(), to_a)
}

fn is_udp(peer: PeerId) -> bool {
    peer.0 & UDP_BIT != 0
}

#[test]
fn peers_on_this_host_meet_on_shared_memory_and_others_over_udp() {
    for same_host in [true, false] {
        let (mut a, mut b) = (Endpoint::new(1), Endpoint::new(2));
        let (to_b, to_a) = connect(&mut a, &mut b, same_host);
        assert_eq!([is_udp(to_b), is_udp(to_a)], [!same_host; 2]);
        for byte in 0..100 {
            a.send(to_b, byte);
            assert_eq!(b.next(), [byte]);
            b.send(to_a, byte);
            assert_eq!(a.next(), [byte]);
        }
    }
}

#[test]
fn an_acceptor_that_cannot_use_shared_memory_takes_udp() {
    let (mut a, mut b) = (Endpoint::new(1), Endpoint::new(2));
    let (pending, mut offer) = a.offer(&b.info(true));
    assert!(!offer.fds.is_empty());
    offer.fds.clear();
    let (to_a, answer) = b.accept(&a.info(true), offer);
    let to_b = a.complete(pending, answer).unwrap();
    assert!(is_udp(to_a) && is_udp(to_b));
    a.send(to_b, 7);
    assert_eq!(b.next(), [7]);
    let (to_b, _) = connect(&mut a, &mut b, true);
    assert!(!is_udp(to_b), "the next session tries shared memory again");
}

#[test]
fn a_side_that_cannot_complete_shared_memory_offers_only_udp_next() {
    let (mut a, mut b) = (Endpoint::new(1), Endpoint::new(2));
    let (pending, offer) = a.offer(&b.info(true));
    let (to_a, mut answer) = b.accept(&a.info(true), offer);
    assert!(!is_udp(to_a));
    answer.fds.clear();
    // "Gone" makes the nexus offer again.
    assert!(matches!(
        a.complete(pending, answer),
        Err(ConnectError::Gone)
    ));
    b.release(to_a);
    let (to_b, to_a) = connect(&mut a, &mut b, true);
    assert!(is_udp(to_a) && is_udp(to_b));
    a.send(to_b, 7);
    assert_eq!(b.next(), [7]);
    let (to_a, _) = connect(&mut b, &mut a, true);
    assert!(
        is_udp(to_a),
        "the endpoint does not accept shared memory from that peer either"
    );
}

#[test]
fn a_mixed_burst_reaches_both_peers_in_order() {
    let (mut a, mut near, mut far) = (Endpoint::new(1), Endpoint::new(2), Endpoint::new(3));
    let (to_near, _) = connect(&mut a, &mut near, true);
    let (to_far, _) = connect(&mut a, &mut far, false);
    let items: Vec<_> = (0..200)
        .map(|byte| item(if byte % 3 == 0 { to_near } else { to_far }, byte))
        .collect();
    let mut given = TxSeq(0);
    for part in items.chunks(150) {
        given = a.tx.burst(part);
    }
    assert_eq!(given, TxSeq(200));
    assert_eq!(a.tx.done(), given);
    let mut got = Vec::new();
    while got.len() < 67 {
        got.extend(near.take(10_000));
    }
    assert!(
        got.iter()
            .copied()
            .eq((0..200).filter(|byte| byte % 3 == 0))
    );
    let mut got = Vec::new();
    while got.len() < 133 {
        let count = far.rx.burst();
        for index in 0..count {
            // These packets of 32 bytes share a datagram.
            got.extend(far.rx.frame(index).bytes.chunks(32).map(|packet| packet[0]));
        }
    }
    assert!(
        got.iter()
            .copied()
            .eq((0..200).filter(|byte| byte % 3 != 0))
    );
}

#[test]
fn busy_shared_memory_does_not_keep_datagrams_waiting() {
    let (mut a, mut near, mut far) = (Endpoint::new(1), Endpoint::new(2), Endpoint::new(3));
    let (_, near_to_a) = connect(&mut a, &mut near, true);
    let (_, far_to_a) = connect(&mut a, &mut far, false);
    for _ in 0..10 {
        far.send(far_to_a, 99);
        a.await_datagram();
        let mut bursts = 0;
        loop {
            near.send(near_to_a, 1);
            bursts += 1;
            let got = a.take(1);
            assert_eq!(got.len(), 1);
            if got == [99] {
                break;
            }
        }
        assert!(bursts <= 33, "{bursts}");
        // This packet was sent before the datagram.
        assert_eq!(a.take(1), [1]);
    }
}

#[test]
fn an_idle_endpoint_finds_a_datagram_soon() {
    let (mut a, mut near, mut far) = (Endpoint::new(1), Endpoint::new(2), Endpoint::new(3));
    connect(&mut a, &mut near, true);
    let (_, far_to_a) = connect(&mut a, &mut far, false);
    // These bursts come long after the last datagram.
    assert_eq!(a.take(1_000_000), []);
    let before = a.syscalls();
    far.send(far_to_a, 1);
    a.await_datagram();
    assert_eq!(a.take(1025), [1]);
    assert_eq!(a.syscalls(), before + 1);
    far.send(far_to_a, 2);
    a.await_datagram();
    assert_eq!(a.take(2), [2], "the next one is expected");
}

#[test]
fn the_socket_is_left_alone_while_all_peers_share_memory() {
    let (mut a, mut b) = (Endpoint::new(1), Endpoint::new(2));
    let (to_b, to_a) = connect(&mut a, &mut b, true);
    let before = [a.syscalls(), b.syscalls()];
    for byte in 0..200 {
        a.send(to_b, byte);
        assert_eq!(b.take(1), [byte]);
        b.send(to_a, byte);
        assert_eq!(a.take(1), [byte]);
        assert_eq!(a.take(2000), []);
    }
    assert_eq!([a.syscalls(), b.syscalls()], before);
    // An offer reveals the address of `a`, and then ends without an answer.
    let stranger = PeerInfo {
        endpoint: EndpointUid([9; 16]),
        ..a.info(false)
    };
    let (pending, _) = a.offer(&stranger);
    a.take(2000);
    assert!(a.syscalls() > before[0]);
    Auto::abandon(&mut a.rx, &mut a.tx, pending);
    let before = a.syscalls();
    a.take(10_000);
    assert_eq!(a.syscalls(), before);
}

#[test]
fn both_transports_end_a_wait() {
    let (mut a, mut near, mut far) = (Endpoint::new(1), Endpoint::new(2), Endpoint::new(3));
    let (_, near_to_a) = connect(&mut a, &mut near, true);
    let (_, far_to_a) = connect(&mut a, &mut far, false);
    assert_eq!(a.take(5000), []);
    for round in 0..10 {
        let (sender, to_a) = if round % 2 == 0 {
            (&mut near, near_to_a)
        } else {
            (&mut far, far_to_a)
        };
        assert_eq!(a.arm(), Arm::Wait);
        assert!(!a.is_readable(0));
        sender.send(to_a, round);
        assert!(a.is_readable(5000));
        a.disarm();
        assert_eq!(a.take(1), [round], "the first burst after a wait finds it");

        sender.send(to_a, round);
        if round % 2 != 0 {
            a.await_datagram();
        }
        assert_eq!(a.arm(), Arm::Ready);
        a.disarm();
        assert_eq!(a.take(1), [round]);
    }
}

#[test]
fn a_stranger_s_datagram_cannot_keep_an_endpoint_awake() {
    let (mut a, mut b) = (Endpoint::new(1), Endpoint::new(2));
    connect(&mut a, &mut b, true);
    // No peer reaches `a` over UDP, so its bursts do not look at the socket, but `arm` does.
    let mut fds = Vec::new();
    Auto::fds(&a.rx, &a.tx, &mut fds);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for byte in 0..3 {
        stranger.send_to(&[byte], address_of(fds[1])).unwrap();
        a.await_datagram();
        assert_eq!(a.take(10_000), []);
        assert_eq!(a.arm(), Arm::Ready);
        a.disarm();
        assert_eq!(a.take(1), [byte]);
        assert_eq!(a.arm(), Arm::Wait);
        a.disarm();
        assert_eq!(a.take(1), []);
    }
}

fn address_of(fd: RawFd) -> std::net::SocketAddr {
    use std::os::fd::BorrowedFd;
    // SAFETY: the endpoint that owns the descriptor outlives the call.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    UdpSocket::from(fd.try_clone_to_owned().unwrap())
        .local_addr()
        .unwrap()
}

#[test]
fn released_and_removed_peers_get_nothing_and_cost_nothing() {
    for same_host in [true, false] {
        let (mut a, mut b) = (Endpoint::new(1), Endpoint::new(2));
        let (to_b, _) = connect(&mut a, &mut b, same_host);
        assert_eq!(connect(&mut a, &mut b, same_host).0, to_b);
        a.release(to_b);
        a.send(to_b, 1);
        assert_eq!(b.next(), [1]);
        Auto::remove(&mut a.rx, &mut a.tx, to_b);
        a.send(to_b, 2);
        assert_eq!(b.take(2000), []);
        assert_eq!(Auto::counters(&a.rx, &a.tx).tx_dropped_peer, 1);
        let before = a.syscalls();
        assert_eq!(a.take(5000), []);
        assert_eq!(a.syscalls(), before);
        a.release(to_b);
        a.release(PeerId(u32::MAX));
        Auto::remove(&mut a.rx, &mut a.tx, PeerId(12345));
    }
}

#[test]
fn offers_that_no_endpoint_makes_are_refused() {
    let (mut a, mut b) = (Endpoint::new(1), Endpoint::new(2));
    let (pending, good) = b.offer(&a.info(true));
    let info = b.info(true);
    for n in 0..20_000_usize {
        let mut bytes = good.bytes.clone();
        bytes[n % good.bytes.len()] ^= (n % 255 + 1).to_le_bytes()[0];
        bytes.truncate(if n % 3 == 0 { n % 60 } else { 60 });
        let offer = Offer {
            bytes,
            fds: Vec::new(),
        };
        if let Ok((id, _)) = Auto::accept(&mut a.rx, &mut a.tx, &info, offer) {
            a.release(id);
        }
    }
    Auto::abandon(&mut b.rx, &mut b.tx, pending);
    assert!(matches!(
        b.complete(Pending(77), Offer::default()),
        Err(ConnectError::Gone)
    ));
    let (pending, _) = b.offer(&a.info(true));
    let bad = b.complete(pending, Offer::default());
    assert!(matches!(bad, Err(ConnectError::Malformed)));
    let (to_b, _) = connect(&mut a, &mut b, true);
    assert!(!is_udp(to_b));
}

#[test]
fn an_offer_has_a_part_for_each_transport_and_one_part_will_do() {
    let (mut a, mut b) = (Endpoint::new(1), Endpoint::new(2));
    for (kind, over_udp) in [(TransportKind::SHM, false), (TransportKind::UDP, true)] {
        let (pending, offer) = a.offer(&b.info(true));
        let mut parts = <Auto>::parts(offer);
        let kinds: Vec<_> = parts.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [TransportKind::SHM, TransportKind::UDP]);
        parts.retain(|(part, _)| *part == kind);
        parts.push((TransportKind::SIM, Offer::default()));
        let (to_a, answer) = b.accept(&a.info(true), <Auto>::whole(parts).unwrap());
        let mut answer = <Auto>::parts(answer);
        assert_eq!(answer.len(), 1);
        assert_eq!(answer[0].0, kind);
        answer.insert(0, (TransportKind(0), Offer::default()));
        let answer = <Auto>::whole(answer).unwrap();
        let to_b = a.complete(pending, answer).unwrap();
        assert_eq!([is_udp(to_a), is_udp(to_b)], [over_udp; 2]);
        a.send(to_b, 7);
        assert_eq!(b.next(), [7]);
        a.release(to_b);
        b.release(to_a);
    }
    let unknown = vec![(TransportKind::SIM, Offer::default())];
    assert!(matches!(
        <Auto>::whole(unknown),
        Err(ConnectError::Unreachable)
    ));
    assert!(matches!(
        <Auto>::whole(Vec::new()),
        Err(ConnectError::Unreachable)
    ));
}

#[test]
fn packets_have_the_size_of_the_transport_that_carries_them() {
    let (mut a, mut near, mut far) = (Endpoint::new(1), Endpoint::new(2), Endpoint::new(3));
    let (to_near, _) = connect(&mut a, &mut near, true);
    let (to_far, _) = connect(&mut a, &mut far, false);
    let limit = Auto::open(&Options::default()).unwrap().limits.data_size;
    assert!(Auto::data_size(&a.rx, &a.tx, to_near) >= limit);
    let udp = udp::Options::default();
    let sizes = udp.data_size..=udp.loopback_data_size;
    let far_size = Auto::data_size(&a.rx, &a.tx, to_far);
    assert!(sizes.contains(&far_size) && far_size < limit);
}

#[test]
fn limits_are_those_of_shared_memory_and_bad_options_are_refused() {
    let halves = Auto::open(&Options::default()).unwrap();
    assert_eq!(halves.limits.data_size, shm::Options::default().data_size);
    let shm = shm::Options {
        max_peers: 0,
        ..shm::Options::default()
    };
    let error = Auto::open(&Options {
        shm,
        ..Options::default()
    })
    .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    let udp = udp::Options {
        data_size: 0,
        ..udp::Options::default()
    };
    let error = Auto::open(&Options {
        udp,
        ..Options::default()
    })
    .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}
