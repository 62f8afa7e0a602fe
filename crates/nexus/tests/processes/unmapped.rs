//! Data by reference that the receiver cannot map, because of the system or of its own limit: the
//! sender puts the data into the ring, and the session survives.

use std::time::Duration;

use dunlin_core::{Session, Tag};
use dunlin_nexus::{Nexus, Rpc};
use dunlin_transport::shm::Shm;

use super::child::Server;
use super::{App, REVERSE, endpoint, exchange, finish, serve_all};

/// Bytes of a message of two packets, which go by reference.
const LEN: usize = 64 << 10;

/// Makes a call whose request and response go by reference, if possible.
fn exchange_large(rpc: &mut Rpc<Shm, App>, session: Session) {
    let mut request = rpc.buf(LEN).unwrap();
    for (index, byte) in request.data_mut().iter_mut().enumerate() {
        *byte = index.to_le_bytes()[0] ^ index.to_le_bytes()[1];
    }
    let mut reversed = request.data().to_vec();
    reversed.reverse();
    let response = rpc.buf(LEN).unwrap();
    rpc.call(session, REVERSE, request, response, Tag(0))
        .unwrap();
    let done = finish(rpc, Duration::from_secs(10));
    assert_eq!(done.result, Ok(()));
    assert!(done.response.data() == reversed);
}

/// Limits a process to the address space that it has now.
fn forbid_mapping(process: u32) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmSize:"));
    let kib: u64 = line
        .and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap();
    let limit = libc::rlimit {
        rlim_cur: kib << 10,
        rlim_max: kib << 10,
    };
    let process = libc::pid_t::try_from(process).unwrap();
    // SAFETY: the limit is read until the call returns, and none is written.
    let done = unsafe {
        libc::prlimit(
            process,
            libc::RLIMIT_AS,
            &raw const limit,
            std::ptr::null_mut(),
        )
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_server_that_can_map_nothing_gets_data_in_the_ring() {
    let server = Server::start::<Shm>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<Shm>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    exchange(&mut rpc, session, REVERSE);
    // After this call, the server has allocated the memory that it needs, and has mapped the memory
    // of another client.
    let mut first = endpoint::<Shm>(&nexus);
    let warm = first.connect_blocking(server.address).unwrap();
    exchange_large(&mut first, warm);
    first.disconnect(warm).unwrap();
    first.run_for(Duration::from_millis(300));
    forbid_mapping(server.id());
    exchange_large(&mut rpc, session);
    let before = rpc.transport_counters().tx_references;
    assert!(before > 0, "the client has sent references");
    exchange_large(&mut rpc, session);
    assert_eq!(rpc.transport_counters().tx_references, before);
    exchange(&mut rpc, session, REVERSE);
}

#[test]
fn a_client_maps_no_more_than_its_limits_allow() {
    let server = Server::start::<Shm>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let plenty = 64 << 30;
    for (peer, process, maps) in [
        (plenty, plenty, true),
        (4096, plenty, false),
        (plenty, 4096, false),
    ] {
        let mut rpc = nexus
            .endpoint_builder::<Shm>()
            .transport(|options| {
                options.map_limit = peer;
                options.map_limit_process = process;
            })
            .build(App::default())
            .unwrap();
        serve_all(&mut rpc);
        let session = rpc.connect_blocking(server.address).unwrap();
        exchange_large(&mut rpc, session);
        exchange_large(&mut rpc, session);
        let counters = rpc.transport_counters();
        assert_eq!(counters.rx_unmapped == 0, maps, "{counters:?}");
        assert_eq!(counters.rx_mapped_bytes != 0, maps, "{counters:?}");
    }
}
