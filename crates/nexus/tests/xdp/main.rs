//! `xdp`: a server process that is killed or stopped during calls, and a network that loses all
//! packets, or those of one direction, until both sides have given up. Needs root and `ip`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use dunlin_core::{DeferredRequest, Done, RpcError, Session, SessionEvent, Tag};
use dunlin_nexus::{Nexus, Rpc};
use dunlin_testkit::child::Child;
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::wait::{PATIENCE, until};
use dunlin_wire::ReqType;
use dunlin_xdp::Xdp;

/// Answers with the bytes of the request in reverse order.
const REVERSE: ReqType = ReqType(1);
/// Never answers.
const NEVER: ReqType = ReqType(2);

/// The role of a server, whose address in the control plane follows.
const SERVES: &str = "serves ";

/// The time within which a client finds out that its peer has failed: the configured second, and
/// more, because a busy machine delays our threads.
const LIMIT: Duration = Duration::from_secs(5);

/// Calls in flight when the server stops: as many as a session has slots, and more.
const CALLS: usize = 12;

/// The state of an endpoint.
#[derive(Default)]
struct App {
    done: Vec<Done>,
    held: Vec<DeferredRequest>,
}

type Endpoint = Rpc<Xdp, App>;

/// Opens an endpoint at the interface of this thread's host.
fn endpoint(nexus: &Nexus) -> Endpoint {
    let builder = nexus.endpoint_builder::<Xdp>().transport(|options| {
        options.interface = "link0".to_owned();
        options.umem_bytes = 4 << 20;
    });
    let mut rpc = builder.build(App::default()).unwrap();
    rpc.on(REVERSE, |_, request, cx| {
        let data = request.data();
        request.reply(cx, data.len(), |out| {
            out.copy_from_slice(data);
            out.reverse();
        });
    });
    rpc.on(NEVER, |app: &mut App, request, cx| {
        app.held.push(request.defer(cx));
    });
    rpc.on_completion(|app, done, _| app.done.push(done));
    rpc
}

/// Plays the role of a child.
fn play(role: &str) {
    let nexus = Nexus::bind(role.strip_prefix(SERVES).unwrap()).unwrap();
    let mut rpc = endpoint(&nexus);
    rpc.on_session(|app, event, _| {
        if let SessionEvent::Closed { reason, .. } = event {
            app.held.clear();
            println!("#{reason:?}");
        }
    });
    println!("#{}", nexus.address());
    loop {
        rpc.run_once();
    }
}

/// Starts a server at this port; 0: any. Returns its address, too.
fn serve(host: &Host, port: u16) -> (Child, SocketAddr) {
    let child = host.run(|| Child::start(&format!("{SERVES}{}:{port}", host.address)));
    let address = child.line().parse().unwrap();
    (child, address)
}

/// A client at a host.
fn client(host: &Host) -> Endpoint {
    endpoint(&Nexus::bind(format!("{}:0", host.address)).unwrap())
}

fn issue(rpc: &mut Endpoint, session: Session, kind: ReqType) {
    let mut request = rpc.buf(8).unwrap();
    request.data_mut().copy_from_slice(b"stressed");
    let response = rpc.buf(64).unwrap();
    rpc.call(session, kind, request, response, Tag(0)).unwrap();
}

/// Waits until this number of calls have ended.
fn finish(rpc: &mut Endpoint, calls: usize, limit: Duration) -> Vec<Done> {
    let begin = Instant::now();
    while rpc.app().done.len() < calls {
        rpc.run_once();
        assert!(begin.elapsed() < limit, "calls do not end");
    }
    std::mem::take(&mut rpc.app_mut().done)
}

fn exchange(rpc: &mut Endpoint, session: Session) {
    issue(rpc, session, REVERSE);
    let done = finish(rpc, 1, PATIENCE).remove(0);
    assert_eq!(done.result, Ok(()));
    assert_eq!(done.response.data(), b"desserts");
}

/// Waits for the calls in flight. They and the session must fail, because the peer has failed.
fn expect_failure(rpc: &mut Endpoint) {
    for done in finish(rpc, CALLS, LIMIT) {
        let result = done.result;
        assert!(matches!(result, Err(RpcError::PeerFailed(_))), "{result:?}");
    }
    assert_eq!(rpc.session_count(), 0);
}

/// Fails when the server's end of a session closes for another reason than a failed peer.
fn expect_closed(server: &Child) {
    let reason = server.line();
    assert!(["PeerFailed", "Reset"].contains(&&*reason), "{reason}");
}

#[test]
fn a_killed_server_fails_its_calls_and_is_found_again() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut server, address) = serve(&network.right, 0);
    let network = &network;
    network.left.run(move || {
        let mut rpc = client(&network.left);
        let (_, before) = rpc.pool_use();
        for _ in 0..3 {
            let session = rpc.connect_blocking(address).unwrap();
            exchange(&mut rpc, session);
            (0..CALLS).for_each(|_| issue(&mut rpc, session, NEVER));
            rpc.run_for(Duration::from_millis(10));
            assert_eq!(network.right.xdp_programs(), 1);
            server.kill();
            expect_failure(&mut rpc);
            rpc.run_for(Duration::from_millis(5));
            assert_eq!(rpc.pool_use().1, before, "all msgbufs are back");
            until(|| network.right.xdp_programs() == 0);
            // Another process at the same address.
            (server, _) = serve(&network.right, address.port());
        }
        let session = rpc.connect_blocking(address).unwrap();
        exchange(&mut rpc, session);
    });
}

#[test]
fn a_stopped_server_fails_its_calls_and_serves_again_when_it_continues() {
    let Some(network) = Network::new() else {
        return;
    };
    let (server, address) = serve(&network.right, 0);
    let network = &network;
    network.left.run(move || {
        let mut rpc = client(&network.left);
        let session = rpc.connect_blocking(address).unwrap();
        exchange(&mut rpc, session);
        (0..CALLS / 2).for_each(|_| issue(&mut rpc, session, NEVER));
        rpc.run_once();
        server.signal("STOP");
        (0..CALLS / 2).for_each(|_| issue(&mut rpc, session, NEVER));
        expect_failure(&mut rpc);
        server.signal("CONT");
        assert_eq!(server.line(), "Reset", "its end of the session");
        let session = rpc.connect_blocking(address).unwrap();
        exchange(&mut rpc, session);
    });
}

/// Packets from one host to the other vanish, or arrive again.
fn hide(from: &Host, to: &Host, verb: &str) {
    from.ip(&format!("route {verb} blackhole {}/32", to.address))
        .unwrap();
}

#[test]
fn a_lasting_hole_in_one_direction_or_both_fails_the_session_at_both_ends() {
    let Some(network) = Network::new() else {
        return;
    };
    let (left, right) = (&network.left, &network.right);
    let (server, address) = serve(right, 0);
    left.run(move || {
        let mut rpc = client(left);
        let mut session = rpc.connect_blocking(address).unwrap();
        let (there, back) = ((left, right), (right, left));
        for hidden in [&[there, back][..], &[there], &[back]] {
            exchange(&mut rpc, session);
            hidden.iter().for_each(|(from, to)| hide(from, to, "add"));
            (0..CALLS).for_each(|_| issue(&mut rpc, session, NEVER));
            expect_failure(&mut rpc);
            expect_closed(&server);
            hidden.iter().for_each(|(from, to)| hide(from, to, "del"));
            // The first attempts may still meet the old connection of the control plane.
            let mended = Instant::now();
            session = loop {
                match rpc.connect_blocking(address) {
                    Ok(session) => break session,
                    Err(error) => assert!(mended.elapsed() < PATIENCE, "{error}"),
                }
            };
        }
        exchange(&mut rpc, session);
    });
}

#[test]
fn child() {
    if let Some(role) = dunlin_testkit::child::role() {
        play(&role);
    }
}
