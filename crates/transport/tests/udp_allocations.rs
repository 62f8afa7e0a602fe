//! After set-up the data path of `udp` and `auto` allocates nothing, whatever the traffic.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Transport, Tx, TxItem};
use dunlin_msgbuf::{BufRef, MsgBuf, Pool, PoolConfig};
use dunlin_testkit::counting::{Counting, allocations_in};
use dunlin_transport::auto::{self, Auto};
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo, meet};
use dunlin_transport::udp::{Ecn, Options, Udp};

#[global_allocator]
static COUNTING: Counting = Counting;

type Endpoint<T> = Halves<<T as Transport>::Rx, <T as Transport>::Tx>;

fn item(peer: PeerId, data: BufRef) -> TxItem {
    TxItem {
        peer,
        inline_len: 24,
        inline: [7; MAX_INLINE],
        data,
    }
}

/// One endpoint that sends to several others, and its ids for them.
fn star<T: Connect>(
    open: impl Fn() -> Endpoint<T>,
    same_host: [bool; 3],
) -> (Endpoint<T>, Vec<(Endpoint<T>, PeerId)>) {
    let mut from = open();
    let to = same_host.into_iter().zip(1..).map(|(same_host, uid)| {
        let mut to = open();
        let info = |uid| PeerInfo {
            endpoint: EndpointUid([uid; 16]),
            same_host,
            same_process: same_host,
            proves: true,
            local: None,
            remote: Some(std::net::Ipv4Addr::LOCALHOST.into()),
        };
        let met = meet::<T>([&mut from, &mut to], &[info(9), info(uid)]);
        (to, met.unwrap()[0])
    });
    let to = to.collect();
    (from, to)
}

/// Bursts of one packet, many, small, large, to one peer and to all.
fn bursts(peers: &[PeerId], small: &MsgBuf, large: &MsgBuf) -> Vec<Vec<TxItem>> {
    let (small, large) = (small.lend(), large.lend());
    let one = |data, count| vec![item(peers[0], data); count];
    let all = |data: BufRef| peers.iter().map(move |peer| item(*peer, data));
    let mixed = || all(small).chain(all(large)).chain(all(BufRef::EMPTY));
    vec![
        one(small, 1),
        one(large, 1),
        one(small, 40),
        one(large, 50),
        mixed().collect(),
        mixed().cycle().take(300).collect(),
    ]
}

fn assert_no_allocation<T: Connect>(open: impl Fn() -> Endpoint<T>, same_host: [bool; 3]) {
    let (mut from, mut to) = star::<T>(open, same_host);
    let mut pool = Pool::new(PoolConfig::default()).unwrap();
    let (mut small, mut large) = (pool.alloc(32).unwrap(), pool.alloc(1440).unwrap());
    small.data_mut().fill(1);
    large.data_mut().fill(2);
    let peers: Vec<_> = to.iter().map(|(_, peer)| *peer).collect();
    let bursts = bursts(&peers, &small, &large);
    let mut frames = 0;
    let mut exchange = |burst: &Vec<TxItem>| {
        from.tx.burst(burst);
        from.tx.done();
        for (to, _) in &mut to {
            for _ in 0..20 {
                frames += to.rx.burst();
            }
        }
    };
    let count = allocations_in(|| (0..20).for_each(|_| bursts.iter().for_each(&mut exchange)));
    assert_eq!(count, 0);
    // A frame may hold a burst of small packets.
    assert!(frames > 20 * 20, "{frames} frames");
}

#[test]
fn udp_allocates_nothing() {
    let plain = Options {
        pack: false,
        gso: false,
        gro: false,
        ..Options::default()
    };
    let marked = Options {
        ecn: Ecn::On,
        ..Options::default()
    };
    for options in [Options::default(), plain, marked] {
        assert_no_allocation::<Udp>(|| Udp::open(&options).unwrap(), [true; 3]);
    }
}

#[test]
fn auto_allocates_nothing() {
    let options = auto::Options::default();
    for same_host in [[true; 3], [false; 3], [true, false, true]] {
        assert_no_allocation::<Auto>(|| Auto::open(&options).unwrap(), same_host);
    }
}
