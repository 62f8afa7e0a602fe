//! Requests of one burst: sets come before gets, and with other requests among them, all run in
//! order of arrival.

use dunlin_core::{Endpoint, Nanos, SessionOptions};
use dunlin_kv::store::{Config, Delta, MAX_VALUE, Mode, Region, Seed, Table};
use dunlin_kv::{Client, Error, Map, Options, Partition, Reply, Request, Store, Token};
use dunlin_testkit::instructions::{Ticks, endpoint};
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{Options as ShmOptions, Shm};

/// A client and a server of one partition, in one thread.
struct Pair {
    client: Endpoint<Shm, Ticks, Client>,
    server: Endpoint<Shm, Ticks, Partition>,
}

impl Pair {
    fn new() -> Self {
        let [mut near, mut far] = [(); 2].map(|()| Shm::open(ShmOptions::default()).unwrap());
        let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
        let [to_far, to_near] = meet::<Shm>([&mut near, &mut far], &infos).unwrap();
        let config = Config {
            mode: Mode::Store,
            seed: Seed::new([17, 4]),
            first_version: 1,
        };
        let table = Table::new(Region::new(16 << 20).unwrap(), config).unwrap();
        let map = Map::new(17, Mode::Store, [0]).unwrap();
        let partition = Partition::new(table, map, 0);
        let app = Client::new(Options::DEFAULT);
        let mut client = endpoint(app, Ticks::default(), near, 1);
        let mut server = endpoint(partition, Ticks::default(), far, 2);
        dunlin_kv::serve(&mut server);
        client.on_completion(|app, done, cx| assert!(app.on_done(done, cx).is_none()));
        client.on_session(|app, event, cx| app.on_session(event, cx));
        let first = client.app_mut().wish(Nanos::ZERO).unwrap();
        let options = SessionOptions::DEFAULT.with_window(64).with_credits(64);
        let peers = [to_far, to_near];
        let session = connect(&mut client, &mut server, peers, &options)[0];
        client.app_mut().on_connecting(first, session);
        let mut pair = Self { client, server };
        pair.turn(16);
        pair
    }

    fn turn(&mut self, times: u32) {
        for _ in 0..times {
            self.client.run_once();
            let (app, mut cx) = self.client.with();
            app.on_time(&mut cx);
            self.server.run_once();
        }
    }

    /// Runs these requests in one burst of the server, and returns what they have read or written.
    fn burst(&mut self, requests: &[Request<'_>]) -> Vec<Result<String, Error>> {
        let before = self.server.app().figures().batches;
        let (app, mut cx) = self.client.with();
        for (request, number) in requests.iter().zip(0..) {
            app.begin(request, Token(number), None, &mut cx).unwrap();
        }
        self.client.run_once();
        self.server.run_once();
        let batches = self.server.app().figures().batches - before;
        assert_eq!(batches, 1, "the requests have come in one burst");
        let mut ends = vec![Err(Error::Unknown); requests.len()];
        for _ in requests {
            let end = loop {
                match self.client.app_mut().next_end() {
                    Some(end) => break end,
                    None => self.turn(1),
                }
            };
            ends[usize::try_from(end.token.0).unwrap()] = end.result.map(|reply| text(&reply));
        }
        ends
    }
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Found(found) => String::from_utf8_lossy(found.value()).into_owned(),
        Reply::Written(version) => format!("version {version}"),
        other => format!("{other:?}"),
    }
}

fn ends(expected: &[&str]) -> Vec<Result<String, Error>> {
    expected.iter().map(|it| Ok((*it).to_owned())).collect()
}

fn get(key: &[u8]) -> Request<'_> {
    Request::Get { key }
}

fn set<'a>(key: &'a [u8], value: &'a [u8]) -> Request<'a> {
    Request::Write(Store::set(key, value))
}

#[test]
fn gets_see_all_sets_of_their_burst() {
    let mut pair = Pair::new();
    let requests = [
        get(b"a"),
        set(b"a", b"first"),
        get(b"a"),
        get(b"missing"),
        set(b"b", b"other"),
        set(b"a", b"second, which is longer"),
        get(b"b"),
    ];
    let (first, second) = ("second, which is longer", "other");
    let expected = [
        first,
        "version 1",
        first,
        "Missing",
        "version 2",
        "version 3",
        second,
    ];
    assert_eq!(pair.burst(&requests), ends(&expected));
    // Now the items exist, and the sets write over them.
    let again = pair.burst(&requests[..3]);
    assert_eq!(again, ends(&["first", "version 4", "first"]));
}

#[test]
fn other_requests_of_a_burst_run_in_order() {
    let mut pair = Pair::new();
    let conditional = Store {
        if_version: Some(1),
        ..Store::set(b"a", b"9")
    };
    let delete = |key| Request::Delete {
        key,
        if_version: None,
    };
    let count = Request::Count {
        key: b"a",
        delta: Delta::Up(1),
        if_version: None,
    };
    let requests = [
        get(b"a"),
        set(b"a", b"5"),
        get(b"a"),
        Request::Write(conditional),
        count,
        get(b"a"),
        delete(b"a"),
        get(b"a"),
    ];
    let expected = [
        "Missing",
        "version 1",
        "5",
        "version 2",
        "Counted(10, 3)",
        "10",
        "Done",
    ];
    let expected = [&expected[..], &["Missing"]].concat();
    assert_eq!(pair.burst(&requests), ends(&expected));
}

#[test]
fn flags_lifetimes_and_long_values_of_sets_arrive() {
    let mut pair = Pair::new();
    let store = Store {
        flags: 7,
        lifetime: 100,
        ..Store::set(b"a", b"short")
    };
    pair.burst(&[Request::Write(store), get(b"b")]);
    let (app, mut cx) = pair.client.with();
    app.begin(&get(b"a"), Token(0), None, &mut cx).unwrap();
    pair.turn(4);
    let end = pair.client.app_mut().next_end().unwrap();
    let Ok(Reply::Found(found)) = end.result else {
        panic!("{end:?}");
    };
    assert_eq!((found.flags(), found.value()), (7, &b"short"[..]));
    assert!((99..=100).contains(&found.lifetime()));
    let long = vec![b'x'; MAX_VALUE];
    let (app, mut cx) = pair.client.with();
    let request = set(b"a", &long);
    app.begin(&request, Token(1), None, &mut cx).unwrap();
    let end = loop {
        match pair.client.app_mut().next_end() {
            Some(end) => break end,
            None => pair.turn(1),
        }
    };
    assert!(matches!(end.result, Ok(Reply::Written(2))), "{end:?}");
}
