//! Values of all lengths in flight at the same time over shared memory, which loses nothing. So no
//! packet is sent twice, even if an endpoint takes long turns.
//!
//! Both endpoints are in one thread, and their clock advances only when it is read and with each
//! turn. So the test does not depend on the system's scheduler.

use dunlin_core::{Endpoint, Nanos, SessionOptions};
use dunlin_kv::store::{Config, MAX_VALUE, Mode, Region, Seed, Table};
use dunlin_kv::{Client, Map, Options, Partition, Reply, Request, Store, Token, serve};
use dunlin_testkit::instructions::{SharedTicks, endpoint};
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{Options as ShmOptions, Shm};

/// Lengths of values: in one cell, in one packet, in several packets, by reference, and in slices.
const LENGTHS: [usize; 8] = [1, 100, 1000, 5000, 65_536, 65_537, 300_001, MAX_VALUE];

/// Operations in flight: those with the longest values, and all.
const LONG: usize = 2;
const ALL: usize = 24;

/// Operations of a run.
const OPERATIONS: usize = 2000;

type ClientRpc = Endpoint<Shm, SharedTicks, Client>;
type ServerRpc = Endpoint<Shm, SharedTicks, Partition>;

fn partition() -> Partition {
    let config = Config {
        mode: Mode::Cache,
        seed: Seed::new([17, 4]),
        first_version: 1,
    };
    let region = Region::new(32 << 20).expect("there is memory");
    let table = Table::new(region, config).expect("it is large enough");
    let map = Map::new(17, Mode::Cache, [0]).expect("one partition");
    Partition::new(table, map, 0)
}

fn connected(clock: &SharedTicks) -> (ClientRpc, ServerRpc) {
    let [mut near, mut far] =
        [(); 2].map(|()| Shm::open(ShmOptions::default()).expect("shared memory"));
    let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
    let met = meet::<Shm>([&mut near, &mut far], &infos);
    let [to_far, to_near] = met.expect("the ends fit each other");
    let kv = Client::new(Options::DEFAULT);
    let mut client = endpoint(kv, clock.clone(), near, 1);
    let mut server = endpoint(partition(), clock.clone(), far, 2);
    serve(&mut server);
    client.on_completion(|kv, done, cx| {
        let None = kv.on_done(done, cx) else {
            panic!("a call is not the client's");
        };
    });
    client.on_session(|kv, event, cx| kv.on_session(event, cx));
    let first = client.app_mut().wish(Nanos::ZERO);
    let first = first.expect("a new client wants a session");
    let options = SessionOptions::DEFAULT;
    let session = connect(&mut client, &mut server, [to_far, to_near], &options)[0];
    client.app_mut().on_connecting(first, session);
    (client, server)
}

/// Reads and writes values of all lengths in turn; `span` passes between two turns of an endpoint.
fn exchange(span: Nanos) -> (ClientRpc, ServerRpc) {
    let clock = SharedTicks::default();
    let (mut client, mut server) = connected(&clock);
    let long = vec![7; MAX_VALUE];
    let (mut begun, mut ended, mut long_under_way) = (0, 0, 0);
    while ended < OPERATIONS {
        clock.pass(span);
        client.run_once();
        let (kv, mut cx) = client.with();
        kv.on_time(&mut cx);
        while let Some(end) = kv.next_end() {
            match &end.result {
                Ok(Reply::Found(_) | Reply::Missing | Reply::Written(_)) => {}
                other => panic!("{other:?}"),
            }
            ended += 1;
            long_under_way -= usize::from(end.token.0 == 1);
            end.recycle(&mut cx);
        }
        while begun - ended < ALL && begun < OPERATIONS {
            let number = begun % LENGTHS.len();
            let is_long = LENGTHS[number] == MAX_VALUE;
            if is_long && long_under_way == LONG {
                break;
            }
            let key = [number.to_le_bytes()[0]];
            let request = match begun / LENGTHS.len() % 2 {
                0 => Request::Write(Store::set(&key, &long[..LENGTHS[number]])),
                _ => Request::Get { key: &key },
            };
            let token = Token(is_long.into());
            kv.begin(&request, token, None, &mut cx)
                .expect("there is memory");
            begun += 1;
            long_under_way += usize::from(is_long);
        }
        clock.pass(span);
        server.run_once();
    }
    (client, server)
}

#[test]
fn nothing_is_sent_twice_with_long_values() {
    for span_ns in [0, 1_000, 30_000, 300_000, 2_000_000] {
        let (client, server) = exchange(Nanos(span_ns));
        let (ours, theirs) = (client.counters(), server.counters());
        assert!(ours.large_sent > 400, "{ours:?}");
        let again = [ours.retransmissions, ours.probes, theirs.responses_resent];
        assert_eq!(again, [0; 3], "turns of {span_ns} ns");
    }
}

/// The handler is called for each part, but the request counts once.
#[test]
fn a_long_value_counts_once_however_many_parts_it_takes() {
    let clock = SharedTicks::default();
    let (mut client, mut server) = connected(&clock);
    let value = vec![7; 300_001];
    let (kv, mut cx) = client.with();
    let set = Request::Write(Store::set(b"key", &value));
    kv.begin(&set, Token(1), None, &mut cx)
        .expect("there is memory");
    let mut end = None;
    for _ in 0..1000 {
        clock.pass(Nanos(1_000));
        client.run_once();
        server.run_once();
        let (kv, mut cx) = client.with();
        kv.on_time(&mut cx);
        end = end.or(kv.next_end());
    }
    let end = end.expect("a thousand turns are enough");
    assert!(matches!(end.result, Ok(Reply::Written(_))), "{end:?}");
    let figures = server.app().figures();
    assert_eq!((figures.requests, figures.batches), (1, 1));
}
