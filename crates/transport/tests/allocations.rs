//! No memory is allocated for an RPC over shared memory, however it ends: the proofs of
//! `dunlin-core`, over the real transport in one thread.

use dunlin_testkit::allocations::World;
use dunlin_testkit::counting::Counting;
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo};
use dunlin_transport::shm::{Options, Shm};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn world(sessions: usize) -> World<Shm> {
    let open = || Shm::open(Options::default()).expect("shared memory");
    let (mut client, mut server) = (open(), open());
    let info = |uid| PeerInfo {
        endpoint: EndpointUid([uid; 16]),
        same_host: true,
        same_process: true,
        proves: true,
        local: None,
        remote: None,
    };
    let (pending, offer) =
        Shm::offer(&mut client.rx, &mut client.tx, &info(2)).expect("a new endpoint");
    let (to_client, answer) =
        Shm::accept(&mut server.rx, &mut server.tx, &info(1), offer).expect("a good offer");
    let to_server =
        Shm::complete(&mut client.rx, &mut client.tx, pending, answer).expect("a good answer");
    World::new([client, server], [to_server, to_client], sessions)
}

dunlin_testkit::prove_every_kind!(world);
