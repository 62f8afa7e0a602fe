//! Gets and sets between two endpoints over shared memory, in one thread and with a clock that only
//! counts, so that every run executes the same instructions. `cargo xtask budget` runs it under
//! callgrind.
//!
//! ```text
//! cargo run --release -p dunlin-kv --example kv_rpc -- [GETS] [IN_FLIGHT] [COUNT]
//! ```
//!
//! `GETS` in a hundred operations are gets and the others sets, on items of 16 + 32 bytes that are
//! drawn at random. The client begins them in batches of up to 16, as `dunlin bench kv` does, and
//! checks every result. The last printed line is the number of counted operations.

use dunlin_core::{Cx, Endpoint, Nanos, Rng, SessionOptions};
use dunlin_kv::store::{Config as TableConfig, Mode, Region, Seed, Table};
use dunlin_kv::{Client as Kv, End, Map, Options, Partition, Reply, Request, Store, Token};
use dunlin_store::{Seconds, Write};
use dunlin_testkit::instructions::{Ticks, argument, count, endpoint};
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{Options as ShmOptions, Shm};

/// Items of the table: enough that some buckets need a second line, as in a large table.
const ITEMS: u32 = 1 << 15;

/// Bytes of the table.
const MEMORY: usize = 8 << 20;

/// Operations that begin together.
const BATCH: usize = 16;

/// Operations before counting starts, which fill pools and rings.
const WARM_UP: u64 = 4000;

struct Client {
    kv: Kv,
    draws: Rng,
    /// The number of gets in a hundred operations.
    gets: u64,
    /// For each slot, the item's number and whether its operation is a get.
    slots: Vec<(u32, bool)>,
    free: Vec<u32>,
    completed: u64,
}

type ClientRpc = Endpoint<Shm, Ticks, Client>;
type ServerRpc = Endpoint<Shm, Ticks, Partition>;

fn main() {
    let (gets, in_flight) = (argument(0, 95), argument(1, 60));
    let in_flight = u32::try_from(in_flight).expect("few");
    let (mut client, mut server) = connected(gets, in_flight);
    let done = count(WARM_UP, argument(2, 100_000), || {
        client_turn(&mut client);
        server_turn(&mut server);
        client.app().completed
    });
    assert_eq!(client.counters().retransmissions, 0);
    println!("{done}");
}

/// The client's turn: takes the answers and begins the next operations.
#[inline(never)]
fn client_turn(client: &mut ClientRpc) {
    client.run_once();
    let (app, mut cx) = client.with();
    app.turn(&mut cx);
}

/// The server's turn: takes the requests and sends the answers.
#[inline(never)]
fn server_turn(server: &mut ServerRpc) {
    server.run_once();
}

impl Client {
    fn turn(&mut self, cx: &mut Cx<'_>) {
        self.kv.on_time(cx);
        while let Some(end) = self.kv.next_end() {
            self.on_end(end, cx);
        }
        let batch = BATCH.min(self.slots.len());
        for _ in 0..self.free.len() / batch * batch {
            self.begin(cx);
        }
    }

    fn begin(&mut self, cx: &mut Cx<'_>) {
        let slot = self.free.pop().expect("there are as many as begin");
        let draw = self.draws.next_u64();
        let number = u32::try_from(draw % u64::from(ITEMS)).expect("it is below a u32");
        let is_get = (draw >> 32) % 100 < self.gets;
        self.slots[slot as usize] = (number, is_get);
        let (key, value) = (key(number), value(number));
        let request = match is_get {
            true => Request::Get { key: &key },
            false => Request::Write(Store::set(&key, &value)),
        };
        let begun = self.kv.begin(&request, Token(slot.into()), None, cx);
        begun.expect("there is memory");
    }

    fn on_end(&mut self, end: End, cx: &mut Cx<'_>) {
        let slot = u32::try_from(end.token.0).expect("the token is a slot");
        let (number, is_get) = self.slots[slot as usize];
        match &end.result {
            Ok(Reply::Found(found)) => assert!(is_get && found.value() == value(number)),
            Ok(Reply::Written(_)) => assert!(!is_get),
            other => panic!("{other:?}"),
        }
        end.recycle(cx);
        self.free.push(slot);
        self.completed += 1;
    }
}

/// The key of an item.
fn key(number: u32) -> [u8; 16] {
    let word = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&word.to_le_bytes());
    key[8..].copy_from_slice(&word.swap_bytes().to_le_bytes());
    key
}

/// The value of an item.
fn value(number: u32) -> [u8; 32] {
    let mut value = [0; 32];
    for word in value.as_chunks_mut::<4>().0 {
        *word = number.to_le_bytes();
    }
    value
}

/// A partition with all items.
fn partition() -> Partition {
    let config = TableConfig {
        mode: Mode::Store,
        seed: Seed::new([17, 4]),
        first_version: 1,
    };
    let region = Region::new(MEMORY).expect("there is memory");
    let mut table = Table::new(region, config).expect("it is large enough");
    for number in 0..ITEMS {
        let (key, value) = (key(number), value(number));
        let key = table.key(&key).expect("a key of 16 bytes is allowed");
        let written = table.write(&key, &Write::set(&value), Seconds(1));
        written.expect("the table has room");
    }
    let map = Map::new(17, Mode::Store, [0]).expect("one partition");
    Partition::new(table, map, 0)
}

fn connected(gets: u64, in_flight: u32) -> (ClientRpc, ServerRpc) {
    let [mut near, mut far] =
        [(); 2].map(|()| Shm::open(ShmOptions::default()).expect("shared memory"));
    let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
    let met = meet::<Shm>([&mut near, &mut far], &infos);
    let [to_far, to_near] = met.expect("the ends fit each other");
    let app = Client {
        kv: Kv::new(Options {
            expected_value: 32,
            ..Options::DEFAULT
        }),
        draws: Rng::new(7),
        gets,
        slots: vec![(0, false); in_flight as usize],
        free: (0..in_flight).collect(),
        completed: 0,
    };
    let mut client = endpoint(app, Ticks::default(), near, 1);
    let mut server = endpoint(partition(), Ticks::default(), far, 2);
    dunlin_kv::serve(&mut server);
    client.on_completion(|app, done, cx| {
        let None = app.kv.on_done(done, cx) else {
            panic!("a call is not the client's");
        };
    });
    client.on_session(|app, event, cx| app.kv.on_session(event, cx));
    let wish = client.app_mut().kv.wish(Nanos::ZERO);
    let first = wish.expect("a new client wants a session");
    let options = SessionOptions::DEFAULT.with_window(64).with_credits(64);
    let peers = [to_far, to_near];
    let session = connect(&mut client, &mut server, peers, &options)[0];
    client.app_mut().kv.on_connecting(first, session);
    (client, server)
}
