//! Sessions that a client opens before the server starts, and sessions that end cleanly. Both sides
//! get events of them.

use std::time::Duration;

use dunlin::{
    Auto, CallErrorKind, CloseReason, ConnectError, HandleError, Nexus, Ran, RpcError,
    SessionEvent, Shm, Tag, Udp,
};

use crate::end_to_end::Named;
use crate::end_to_end::client::{Client, PATIENCE};
use crate::end_to_end::process::Server;
use crate::end_to_end::server::{HOLD, LEAVE, answer_to};

fn before_the_server<T: Named>() {
    // A port that was free a moment ago.
    let port = Nexus::bind("127.0.0.1:0").unwrap().address().port();
    let mut client = Client::<T>::new();
    let session = client.rpc.connect(("127.0.0.1", port)).unwrap();
    client.mark(session);
    client.rpc.run_for(Duration::from_millis(200));
    assert!(client.rpc.app().done.is_empty());
    let _server = Server::start::<T>(&format!("127.0.0.1:{port}"));
    let done = client.finish(1, PATIENCE).remove(0);
    assert_eq!(done.result, Ok(()));
    assert_eq!(done.response.data(), answer_to(done.tag.0).to_le_bytes());
}

#[test]
fn a_call_may_come_before_its_server() {
    before_the_server::<Shm>();
    before_the_server::<Udp>();
    before_the_server::<Auto>();
}

fn disconnect<T: Named>() {
    let server = Server::start::<T>("127.0.0.1:0");
    let mut client = Client::<T>::new();
    let session = client.connect(server.address);
    client.exchange(session);
    client.call(session, HOLD, b"under way", 1);
    client.rpc.run_for(Duration::from_millis(5));
    assert!(client.rpc.disconnect(session).is_ok());
    let done = client.finish(1, PATIENCE).remove(0);
    let reason = CloseReason::Disconnected;
    assert_eq!(
        done.result,
        Err(RpcError::SessionClosed(reason, Ran::Unknown))
    );
    client.run_within(PATIENCE, "the event", |heard| heard.events.len() == 2);
    assert_eq!(
        client.rpc.app().events,
        [
            SessionEvent::Connected(session),
            SessionEvent::Closed { session, reason }
        ]
    );
    assert_eq!(server.expect("closed"), "Disconnected");
    assert!(client.rpc.disconnect(session).is_err(), "it has ended");
    let bufs = (client.rpc.buf(8).unwrap(), client.rpc.buf(8).unwrap());
    let refused = client.rpc.call(session, HOLD, bufs.0, bufs.1, Tag(0));
    assert_eq!(refused.unwrap_err().kind, CallErrorKind::NoSession);
}

/// The server ends the session, in a handler.
fn disconnected_by_the_server<T: Named>() {
    let server = Server::start::<T>("127.0.0.1:0");
    let mut client = Client::<T>::new();
    let (kept, session) = (
        client.connect(server.address),
        client.connect(server.address),
    );
    client.call(session, HOLD, b"under way", 1);
    client.call(session, LEAVE, b"", 2);
    for done in client.finish(2, PATIENCE) {
        assert!(
            matches!(done.result, Err(RpcError::SessionClosed(..))),
            "{done:?}"
        );
    }
    assert_eq!(server.expect("closed"), "Disconnected");
    assert!(client.rpc.session_info(session).is_err());
    client.exchange(kept);
}

#[test]
fn both_sides_learn_of_an_orderly_end() {
    disconnect::<Shm>();
    disconnect::<Udp>();
    disconnect::<Auto>();
}

#[test]
fn a_server_may_end_a_session() {
    disconnected_by_the_server::<Shm>();
    disconnected_by_the_server::<Udp>();
    disconnected_by_the_server::<Auto>();
}

/// Two endpoints of a process have a session each with the same server. Neither endpoint accepts
/// the other's handle.
fn keep_apart<T: Named>() {
    let server = Server::start::<T>("127.0.0.1:0");
    let (mut one, mut other) = (Client::<T>::new(), Client::<T>::new());
    let (ours, theirs) = (one.connect(server.address), other.connect(server.address));
    let bufs = (one.rpc.buf(8).unwrap(), one.rpc.buf(16).unwrap());
    let before = one.rpc.counters().tx_packets;
    let refused = one.rpc.call(theirs, HOLD, bufs.0, bufs.1, Tag(2));
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, CallErrorKind::WrongEndpoint);
    assert_eq!((refused.request.len(), refused.response.len()), (8, 16));
    let wrong = Some(HandleError::WrongEndpoint);
    assert_eq!(one.rpc.disconnect(theirs).err(), wrong);
    assert_eq!(one.rpc.session_info(theirs).err(), wrong);
    let waited = one.rpc.wait_connected(theirs);
    assert!(matches!(waited, Err(ConnectError::WrongEndpoint)));
    let bufs = (other.rpc.buf(8).unwrap(), other.rpc.buf(16).unwrap());
    let held = other.rpc.call(theirs, HOLD, bufs.0, bufs.1, Tag(3));
    let held = held.unwrap();
    assert_eq!(one.rpc.cx().cancel(held).err(), wrong);
    assert_eq!(one.rpc.counters().tx_packets, before);
    assert_eq!(other.rpc.cx().cancel(held), Ok(()));
    let ended = other.finish(1, PATIENCE).remove(0);
    assert!(matches!(ended.result, Err(RpcError::Cancelled(_))));
    one.exchange(ours);
    other.exchange(theirs);
}

#[test]
fn a_session_works_only_at_its_endpoint() {
    keep_apart::<Shm>();
    keep_apart::<Udp>();
}
