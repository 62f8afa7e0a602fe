//! The transport, the packet size and the addresses with which endpoints connect (design §9, §12).

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dunlin::{
    Auto, CallErrorKind, ConnectError, ConnectFailure, Done, Nexus, NexusBuilder, Open, RefuseCode,
    ReqType, Rpc, RpcError, Session, Shm, Tag, Udp,
};

const ECHO: ReqType = ReqType(1);

/// Data bytes per packet, by default.
const SHM_DATA: u32 = 32 << 10;
/// Over a loopback address, the size depends on the receive buffer that the system grants.
const UDP_DATA: std::ops::RangeInclusive<u32> = 1440..=16_320;
/// A message of more than one packet over UDP, and of one packet over shared memory.
const BEYOND_UDP: u32 = 20_000;

/// No wait takes this long unless a test fails.
const PATIENCE: Duration = Duration::from_secs(10);

type Client<T> = Rpc<T, Vec<Done>>;

/// Runs a server on `nexus` while `task` runs.
fn with_server<T: Open, R>(nexus: &Nexus, task: impl FnOnce() -> R) -> R {
    with_endpoint(|| nexus.endpoint::<T, ()>(()).unwrap(), task)
}

/// Runs a server at this endpoint while `task` runs.
fn with_endpoint<T: Open, R>(
    build: impl FnOnce() -> Rpc<T, ()> + Send,
    task: impl FnOnce() -> R,
) -> R {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rpc = build();
            rpc.on(ECHO, |(), request, cx| {
                let data = request.data();
                request.reply_bytes(cx, data);
            });
            rpc.run_until(|_| stop.load(Ordering::Relaxed));
        });
        let _stopper = Stopper(&stop);
        task()
    })
}

/// Stops the server, even if the test fails.
struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn client<T: Open>(nexus: &Nexus) -> Client<T> {
    let mut rpc: Client<T> = nexus.endpoint(Vec::new()).unwrap();
    rpc.on_completion(|ended, done, _| ended.push(done));
    rpc
}

fn call<T: Open>(rpc: &mut Client<T>, session: Session, len: u32) {
    let [mut request, response] = [(); 2].map(|()| rpc.buf(len as usize).unwrap());
    request.data_mut().fill(0xA5);
    rpc.call(session, ECHO, request, response, Tag(0)).unwrap();
}

/// Returns the call that ends next, or `None` if none ends within `limit`.
fn ended<T: Open>(rpc: &mut Client<T>, limit: Duration) -> Option<Done> {
    let end = std::time::Instant::now() + limit;
    rpc.run_until(|rpc| !rpc.app().is_empty() || std::time::Instant::now() > end);
    rpc.app_mut().pop()
}

fn exchange<T: Open>(rpc: &mut Client<T>, session: Session, len: u32) {
    call(rpc, session, len);
    let done = ended(rpc, PATIENCE).expect("an answer");
    assert_eq!(done.result, Ok(()));
    assert_eq!(done.response.data(), done.request.data());
}

fn nexus(at: &str) -> Nexus {
    Nexus::bind(at).unwrap()
}

/// Connects the two, checks that the most data bytes in a packet is one of these `sizes`, and
/// exchanges messages of any size.
fn meet<C: Open, S: Open>(sizes: std::ops::RangeInclusive<u32>) {
    let (server, client_nexus) = (nexus("127.0.0.1:0"), nexus("127.0.0.1:0"));
    with_server::<S, _>(&server, || {
        let mut rpc = client::<C>(&client_nexus);
        // The second session reuses the connection that the first has made.
        for _ in 0..2 {
            let session = rpc.connect_blocking(server.address()).unwrap();
            let data = rpc.session_info(session).unwrap().data_size;
            assert!(sizes.contains(&data), "{data}");
            for len in [32, data, data + 1, 100 * data + 7, 1 << 21] {
                exchange(&mut rpc, session, len);
            }
            let limit = rpc.session_info(session).unwrap().max_message;
            let (request, response) = (rpc.buf(limit as usize + 1).unwrap(), rpc.buf(8).unwrap());
            let refused = rpc.call(session, ECHO, request, response, Tag(0));
            let limit = CallErrorKind::TooLarge { limit };
            assert_eq!(refused.unwrap_err().kind, limit);
        }
        assert_eq!(rpc.transport_counters().tx_dropped_size, 0);
    });
}

#[test]
fn endpoints_of_one_transport_meet() {
    meet::<Shm, Shm>(SHM_DATA..=SHM_DATA);
    meet::<Udp, Udp>(UDP_DATA);
    meet::<Auto, Auto>(SHM_DATA..=SHM_DATA);
}

#[test]
fn auto_meets_peers_with_only_shared_memory() {
    meet::<Auto, Shm>(SHM_DATA..=SHM_DATA);
    meet::<Shm, Auto>(SHM_DATA..=SHM_DATA);
}

#[test]
fn auto_meets_peers_with_only_udp() {
    meet::<Auto, Udp>(UDP_DATA);
    meet::<Udp, Auto>(UDP_DATA);
}

fn pass_by<C: Open, S: Open>(server: NexusBuilder) {
    let (server, client_nexus) = (server.bind("127.0.0.1:0").unwrap(), nexus("127.0.0.1:0"));
    with_server::<S, _>(&server, || {
        let mut rpc = client::<C>(&client_nexus);
        let refused = rpc.connect_blocking(server.address()).unwrap_err();
        let none = ConnectFailure::Refused(RefuseCode::NoCommonTransport);
        assert!(
            matches!(refused, ConnectError::Failed(why) if why == none),
            "{refused}"
        );
    });
}

#[test]
fn endpoints_without_a_common_transport_get_that_error() {
    pass_by::<Shm, Udp>(Nexus::builder());
    pass_by::<Udp, Shm>(Nexus::builder());
    // Without a UNIX socket `Auto` cannot pass descriptors, and the peer has only shared memory.
    pass_by::<Auto, Shm>(Nexus::builder().without_unix(true));
    pass_by::<Shm, Auto>(Nexus::builder().without_unix(true));
}

#[test]
fn one_endpoint_of_auto_has_sessions_of_both_sizes_at_once() {
    let nexuses = [(); 3].map(|()| nexus("127.0.0.1:0"));
    let [near, far, client_nexus] = &nexuses;
    with_server::<Shm, _>(near, || {
        with_server::<Udp, _>(far, || {
            let mut rpc = client::<Auto>(client_nexus);
            let near = rpc.connect_blocking(near.address()).unwrap();
            let far = rpc.connect_blocking(far.address()).unwrap();
            for _ in 0..100 {
                exchange(&mut rpc, near, SHM_DATA);
                exchange(&mut rpc, far, BEYOND_UDP);
            }
        });
    });
}

#[test]
fn a_waiting_call_too_large_for_its_session_ends() {
    let (server, client_nexus) = (nexus("127.0.0.1:0"), nexus("127.0.0.1:0"));
    let endpoint = server.endpoint_builder::<Udp>();
    let endpoint = endpoint.config(|config| config.max_message = BEYOND_UDP);
    let task = || {
        let mut rpc = client::<Auto>(&client_nexus);
        let session = rpc.connect(server.address()).unwrap();
        call(&mut rpc, session, BEYOND_UDP + 1);
        let done = ended(&mut rpc, PATIENCE).expect("its end");
        let limit = BEYOND_UDP;
        assert_eq!(done.result, Err(RpcError::TooLarge { limit }));
        assert!(!done.transmitted());
        exchange(&mut rpc, session, BEYOND_UDP);
    };
    with_endpoint(|| endpoint.build(()).unwrap(), task);
}

/// If the two sides have different data sizes, packets have the smaller one.
#[test]
fn the_smaller_data_size_of_the_common_transport_holds() {
    let (server, client_nexus) = (nexus("127.0.0.1:0"), nexus("127.0.0.1:0"));
    let sizes = [(8000, 1000, 1000), (1000, 8000, 1000), (3000, 4000, 3000)];
    for (ours, theirs, both) in sizes {
        let endpoint = server.endpoint_builder::<Auto>();
        let endpoint = endpoint.transport(|options| options.udp.loopback_data_size = theirs);
        let task = || {
            let endpoint = client_nexus.endpoint_builder::<Udp>();
            let endpoint = endpoint.transport(|options| options.loopback_data_size = ours);
            let mut rpc: Client<Udp> = endpoint.build(Vec::new()).unwrap();
            rpc.on_completion(|ended, done, _| ended.push(done));
            let session = rpc.connect_blocking(server.address()).unwrap();
            assert_eq!(rpc.session_info(session).unwrap().data_size, both);
            exchange(&mut rpc, session, both);
            exchange(&mut rpc, session, 10 * both);
        };
        with_endpoint(|| endpoint.build(()).unwrap(), task);
    }
}

/// A client bound to `at` reaches a server bound to `server` at the address `via`, over UDP.
fn reach<T: Open>(server: &str, via: &str, at: &str, unix: bool) {
    let bind = |at: &str| {
        let builder = Nexus::builder().without_unix(!unix);
        builder.bind(at).unwrap()
    };
    let (server, client_nexus) = (bind(server), bind(at));
    let ip: IpAddr = via.parse().unwrap();
    with_server::<T, _>(&server, || {
        let mut rpc = client::<Udp>(&client_nexus);
        let to = SocketAddr::new(ip, server.address().port());
        let session = rpc.connect_blocking(to).unwrap();
        exchange(&mut rpc, session, 32);
    });
}

#[test]
fn a_nexus_of_every_ipv4_address_is_reached_at_each() {
    for unix in [false, true] {
        reach::<Udp>("0.0.0.0:0", "127.0.0.1", "127.0.0.1:0", unix);
        reach::<Udp>("0.0.0.0:0", "127.0.0.3", "0.0.0.0:0", unix);
        reach::<Auto>("127.0.0.1:0", "127.0.0.1", "0.0.0.0:0", unix);
        reach::<Auto>("0.0.0.0:0", "127.0.0.1", "127.0.0.2:0", unix);
    }
}

#[test]
fn a_nexus_of_every_address_is_reached_by_both_families() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        println!("this machine has no IPv6");
        return;
    }
    for unix in [false, true] {
        reach::<Udp>("[::]:0", "::1", "[::1]:0", unix);
        reach::<Auto>("[::]:0", "::1", "[::]:0", unix);
        reach::<Udp>("[::]:0", "127.0.0.1", "127.0.0.1:0", unix);
        reach::<Auto>("[::]:0", "127.0.0.3", "[::]:0", unix);
        reach::<Auto>("127.0.0.1:0", "127.0.0.1", "[::]:0", unix);
        reach::<Udp>("0.0.0.0:0", "127.0.0.1", "[::]:0", unix);
    }
}

#[test]
fn peers_get_the_address_that_the_operator_advertises() {
    let everywhere = Nexus::builder().advertise("127.0.0.9".parse().unwrap());
    let at_one = everywhere.clone();
    // The second server's socket is not at the address that its peers get.
    let servers = [
        (everywhere.bind("0.0.0.0:0").unwrap(), true),
        (at_one.bind("127.0.0.1:0").unwrap(), false),
    ];
    let client_nexus = nexus("127.0.0.1:0");
    for (server, reached) in servers {
        with_server::<Udp, _>(&server, || {
            let mut rpc = client::<Udp>(&client_nexus);
            let to = ("127.0.0.1", server.address().port());
            let session = rpc.connect_blocking(to).unwrap();
            call(&mut rpc, session, 32);
            let limit = if reached {
                PATIENCE
            } else {
                Duration::from_millis(100)
            };
            let done = ended(&mut rpc, limit);
            assert_eq!(done.is_some_and(|done| done.result == Ok(())), reached);
        });
    }
}
