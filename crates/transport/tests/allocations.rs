//! An RPC over shared memory allocates nothing, however it ends, and neither does an endpoint that
//! goes to sleep. The first part repeats tests of `dunlin-core` over the real transport, in one
//! thread.

use dunlin_core::transport::{MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_msgbuf::BufRef;
use dunlin_testkit::allocations::World;
use dunlin_testkit::counting::{self, Counting};
use dunlin_transport::connect::{Arm, Connect, EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{Options, Shm};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const fn info(uid: u8) -> PeerInfo {
    PeerInfo {
        endpoint: EndpointUid([uid; 16]),
        same_host: true,
        same_process: true,
        proves: true,
        local: None,
        remote: None,
    }
}

fn world(sessions: usize) -> World<Shm> {
    let open = || Shm::open(Options::default()).expect("shared memory");
    let (mut client, mut server) = (open(), open());
    let met = meet::<Shm>([&mut client, &mut server], &[1, 2].map(info));
    let [to_server, to_client] = met.expect("the ends fit each other");
    World::new([client, server], [to_server, to_client], sessions)
}

dunlin_testkit::prove_every_kind!(world);

/// This includes the first sleep, and bursts after all parked peers have sent.
#[test]
fn sleeping_and_waking_up_allocate_nothing() {
    // Rings are parked if there are more than eight.
    for peers in [1, 8, 20] {
        let open = || Shm::open(Options::default()).expect("shared memory");
        let mut server = open();
        let mut clients = Vec::new();
        for uid in 1..=peers {
            let mut client = open();
            let infos = [uid, 200].map(info);
            let met = meet::<Shm>([&mut client, &mut server], &infos);
            clients.push((client, met.expect("the ends fit each other")[0]));
            // The rings of earlier clients are parked before the next one connects.
            (0..200).for_each(|_| assert_eq!(server.rx.burst(), 0));
        }
        for _ in 0..3 {
            let count = counting::allocations_in(|| {
                assert_eq!(Shm::arm(&mut server.rx, &mut server.tx), Arm::Wait);
                Shm::disarm(&mut server.rx, &mut server.tx);
                (0..200).for_each(|_| assert_eq!(server.rx.burst(), 0));
            });
            let from = counting::first_allocation();
            assert_eq!(count, 0, "{peers} peers: the first came from\n{from}");
            for (client, peer) in &mut clients {
                client.tx.burst(&[item(*peer)]);
                client.tx.settle();
            }
            let mut came = 0;
            let count = counting::allocations_in(|| {
                (0..200).for_each(|_| came += server.rx.burst());
            });
            let from = counting::first_allocation();
            assert_eq!(came, usize::from(peers));
            assert_eq!(count, 0, "{peers} peers: the first came from\n{from}");
        }
    }
}

const fn item(peer: PeerId) -> TxItem {
    TxItem {
        peer,
        inline_len: 24,
        inline: [7; MAX_INLINE],
        data: BufRef::EMPTY,
    }
}
