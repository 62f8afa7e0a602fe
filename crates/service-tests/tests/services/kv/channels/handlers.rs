//! Servers that refuse requests, do not answer them, or answer them together.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dunlin_core::{Nanos, Refuse};
use dunlin_kv::store::{Delta, Mode};
use dunlin_kv::{
    Connections, Error, FleetOptions, KEYED, Keys, MAP, MULTI, Map, Partition, Store, WhenDown,
    serve,
};
use dunlin_nexus::{Nexus, Rpc};
use dunlin_testkit::wait::{self, block_on};
use dunlin_transport::auto::Auto;
use dunlin_wire::ErrorCode;

use crate::kv::channels::server::{Server, SetUp, open, open_with};

/// The requests that [`keep_silent`] has received.
static KEPT: AtomicU32 = AtomicU32::new(0);

/// Refuses operations, like an endpoint without memory for an answer.
fn refuse(rpc: &mut Rpc<Auto, Partition>) {
    serve(rpc);
    for req_type in [KEYED, MULTI] {
        rpc.on(req_type, |_, request, cx| {
            request.refuse(cx, ErrorCode::OVERLOADED)
        });
    }
}

fn refuse_map(rpc: &mut Rpc<Auto, Partition>) {
    serve(rpc);
    rpc.on(MAP, |_, request, cx| {
        request.refuse(cx, ErrorCode::OVERLOADED)
    });
}

fn keep_silent(rpc: &mut Rpc<Auto, Partition>) {
    keep_all(rpc);
    rpc.on(KEYED, |_, request, cx| {
        request.keep(cx);
        KEPT.fetch_add(1, Ordering::Relaxed);
    });
}

fn keep_all(rpc: &mut Rpc<Auto, Partition>) {
    serve(rpc);
    rpc.on(KEYED, |_, request, cx| {
        request.keep(cx);
    });
}

#[test]
fn a_get_is_not_a_miss_if_its_server_is_alive_and_refuses_it() {
    for set_up in [refuse as SetUp, refuse_map] {
        let map = Map::new(1, Mode::Cache, 0..1).unwrap();
        let start = |set_up| Server::start_some("127.0.0.1:0", &map, 0..1, set_up);
        // The first server is known to be a cache, so the other one may be assumed to be one.
        let servers = [start(serve), start(set_up)];
        let missing = open(&servers, WhenDown::Miss);
        let name = servers[1].address.to_string();
        let keys: Vec<Vec<u8>> = (0..30_u32).map(|it| it.to_le_bytes().to_vec()).collect();
        block_on(async {
            missing.map(&servers[0].address.to_string()).await.unwrap();
            let mut refused = Vec::new();
            for key in &keys {
                match missing.get(key).await {
                    Ok(item) => assert_eq!(item, None),
                    Err(error) => {
                        let reason = (error.error(), error.server());
                        assert_eq!(reason, (Error::Unavailable, Some(&*name)));
                        refused.push(&**key);
                    }
                }
            }
            let count = refused.len();
            assert!((3..28).contains(&count), "{count} of 30 gets are refused");
            let error = missing.get_many(&refused).await.unwrap_err();
            assert_eq!(error.error(), Error::Unavailable);
        });
    }
}

#[test]
fn a_write_without_an_answer_has_its_own_error() {
    let map = Map::new(1, Mode::Cache, 0..1).unwrap();
    let server = [Server::start_some("127.0.0.1:0", &map, 0..1, keep_all)];
    for when_down in [WhenDown::Fail, WhenDown::Miss, WhenDown::Wait] {
        let kv = open_with(&server, when_down, Nanos::from_millis(300));
        block_on(async {
            // Later operations need not wait for a session.
            wait::until(|| block_on(kv.map(&server[0].address.to_string())).is_ok());
            let unknown = kv.store(&Store::set(b"k", b"v")).await.unwrap_err().error();
            assert_eq!((unknown, unknown.is_uncertain()), (Error::Unknown, true));
            let counted = kv.count(b"k", Delta::Up(1)).await.unwrap_err();
            assert_eq!(counted.error(), Error::Unknown);
            let deleted = kv.delete(b"k", None).await.unwrap_err();
            assert_eq!(deleted.error(), Error::Unknown);
            let read = kv.get(b"k").await.unwrap_err();
            assert_eq!(read.error(), Error::DeadlinePassed, "{when_down:?}");
        });
    }
}

/// The number of gets of many keys that partitions have received. The handler of each waits for
/// those of the other partitions.
static MET: AtomicU32 = AtomicU32::new(0);

/// Partitions in [`meet`]'s test: two of each of two servers.
const MEETING: u32 = 4;

/// Answers a get of many keys once all partitions have one, and finds nothing. If they never have
/// one at the same time, refuses it.
fn meet(rpc: &mut Rpc<Auto, Partition>) {
    serve(rpc);
    rpc.on(MULTI, |_, request, cx| {
        let (_, keys) = Keys::decode(request.data()).unwrap();
        MET.fetch_add(1, Ordering::Relaxed);
        let begin = Instant::now();
        while !MET.load(Ordering::Relaxed).is_multiple_of(MEETING) {
            if begin.elapsed() > Duration::from_secs(2) {
                return request.refuse(cx, ErrorCode::HANDLER_FAILED);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut answer = vec![6, 0];
        answer.extend(u16::try_from(keys.len()).unwrap().to_le_bytes());
        answer.extend([0; 4]);
        let missing = [16, 0, 0, 0, 0, 0, 0, 0];
        answer.extend(missing.repeat(keys.len()));
        request.reply_bytes(cx, &answer);
    });
}

#[test]
fn a_get_of_many_keys_asks_all_partitions_of_all_servers_at_the_same_time() {
    let map = Map::new(1, Mode::Cache, 0..2).unwrap();
    let start = |_| Server::start_some("127.0.0.1:0", &map, 0..2, meet);
    let servers: Vec<Server> = (0..2).map(start).collect();
    let keys: Vec<Vec<u8>> = (0..60_u32).map(|it| it.to_le_bytes().to_vec()).collect();
    let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let none = vec![Ok(None); keys.len()];
    let kv = open(&servers, WhenDown::Fail);
    assert_eq!(block_on(kv.get_many(&asked)), Ok(none.clone()));
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let names: Vec<String> = servers.iter().map(|it| it.address.to_string()).collect();
    let names = names.iter().map(String::as_str);
    let options = FleetOptions {
        when_down: WhenDown::Wait,
        ..FleetOptions::DEFAULT
    };
    let endpoint = nexus.endpoint_builder();
    let mut kv = Connections::<Auto>::open(endpoint, names, options).unwrap();
    assert_eq!(kv.get_many(&asked), Ok(none));
}

/// An overloaded server uses up the budget of repeats, and then a server crashes.
#[test]
fn reads_wait_for_a_server_that_has_crashed_although_no_repeats_are_left() {
    const READS: u32 = 6;
    let map = Map::new(1, Mode::Store, 0..1).unwrap();
    let start = |address: &str, set_up| Server::start_some(address, &map, 0..1, set_up);
    let server = [start("127.0.0.1:0", refuse)];
    let address = server[0].address.to_string();
    let kv = open(&server, WhenDown::Wait);
    let are_refused = || (0..15).all(|_| block_on(kv.get(b"key")).is_err());
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..10).map(|_| scope.spawn(are_refused)).collect();
        all.into_iter().for_each(|it| assert!(it.join().unwrap()));
    });
    drop(server);
    let silent = start(&address, keep_silent);
    let get = |_| {
        let kv = kv.clone();
        std::thread::spawn(move || block_on(kv.get(b"key")))
    };
    let reads: Vec<_> = (0..READS).map(get).collect();
    wait::until(|| KEPT.load(Ordering::Relaxed) == READS);
    drop(silent);
    let _server = start(&address, serve);
    for read in reads {
        assert_eq!(read.join().unwrap(), Ok(None));
    }
}
