//! Clients that are killed at random points of their lives, under load: another client notices
//! nothing, and the server gets all its resources back.

use std::net::SocketAddr;
use std::time::Duration;

use dunlin::{Auto, Cx, Done, Nexus, ReqType, Rng, Shm, Tag, Udp};

use crate::end_to_end::Named;
use crate::end_to_end::client::Client;
use crate::end_to_end::process::{Process, Server};
use crate::end_to_end::server::{BACKGROUND, ECHO, HOLD};

/// Sessions of one client.
const SESSIONS: usize = 4;
/// Requests that a client keeps in flight on each session: more than the window.
const CALLS: u64 = 12;
/// Set it to 1000 for the long run.
const KILLS: &str = "DUNLIN_KILLS";

/// Runs a client that connects and sends requests until it is killed.
pub(crate) fn run<T: Named>(server: SocketAddr) {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = nexus.endpoint::<T, _>(()).unwrap();
    rpc.on_completion(|(), done, cx| again(done, cx));
    for _ in 0..SESSIONS {
        let session = rpc.connect(server).unwrap();
        for tag in 0..CALLS {
            let (request, response) = (rpc.cx().copy(&[7; 32]).unwrap(), rpc.buf(64).unwrap());
            let called = rpc.call(session, kind_of(tag), request, response, Tag(tag));
            called.unwrap();
        }
    }
    loop {
        rpc.run_once();
    }
}

/// A mixture of types. On each session, a request that is never answered keeps one slot.
fn kind_of(tag: u64) -> ReqType {
    match tag {
        0 => HOLD,
        1 | 2 => BACKGROUND,
        _ => ECHO,
    }
}

fn again(done: Done, cx: &mut Cx<'_>) {
    let kind = kind_of(done.tag.0);
    if let Err(refused) = cx.call(done.session, kind, done.request, done.response, done.tag) {
        cx.recycle([refused.request, refused.response]);
    }
}

fn kills() -> u32 {
    std::env::var(KILLS).map_or(30, |count| count.parse().unwrap())
}

fn killed_clients<T: Named>() {
    let server = Server::start::<T>("127.0.0.1:0");
    let mut stays = Client::<T>::new();
    let session = stays.connect(server.address);
    stays.exchange(session);
    let before = stays.stats_at_rest(session);
    // A kill comes at any time between the start of the process and some time after its sessions
    // are busy.
    let mut rng = Rng::new(0x5EED);
    let mut exchanges = 0;
    for _ in 0..kills() {
        let life = Duration::from_micros(rng.below(60_000).into());
        let victim = Process::load::<T>(server.address);
        exchanges += stays.exchange_for(session, life);
        drop(victim);
    }
    println!(
        "{}: {exchanges} exchanges during {} kills",
        T::NAME,
        kills()
    );
    stays.exchange(session);
    let after = stays.stats_at_rest(session);
    println!("before {before:?}, after {after:?}");
    assert_eq!((before.sessions, after.sessions), (1, 1), "sessions leak");
    assert!(
        after.bufs <= before.bufs,
        "msgbufs leak: {before:?}, {after:?}"
    );
    assert_eq!(after.twice, 0);
    assert_eq!(stays.rpc.app().events.len(), 1, "others notice nothing");
}

#[test]
fn clients_killed_under_load_leave_nothing_behind_over_shared_memory() {
    killed_clients::<Shm>();
}

#[test]
fn clients_killed_under_load_leave_nothing_behind_over_udp() {
    killed_clients::<Udp>();
}

#[test]
fn clients_killed_under_load_leave_nothing_behind_over_auto() {
    killed_clients::<Auto>();
}
