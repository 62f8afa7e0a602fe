//! Gets from an index between two endpoints over shared memory, in one thread and with a clock that
//! only counts, so that every run executes the same instructions. `cargo xtask budget` runs it
//! under callgrind.
//!
//! ```text
//! cargo run --release -p dunlin-index --example get_rpc -- [IN_FLIGHT] [COUNT]
//! ```
//!
//! Keys and values have 8 bytes, as in `dunlin bench index`. The client begins gets in batches of
//! up to 16, and checks every value. The last printed line is the number of counted gets.

use dunlin_core::{Cx, Endpoint, Nanos, Rng, Session, SessionOptions};
use dunlin_index::{Answer, Client as Gets, End, Index, Request, Token, serve_in_dispatch};
use dunlin_testkit::instructions::{Ticks, argument, count, endpoint};
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{Options as ShmOptions, Shm};

/// Items of the index.
const ITEMS: u32 = 1 << 15;

/// Gets that begin together.
const BATCH: usize = 16;

/// Gets before counting starts, which fill pools and rings.
const WARM_UP: u64 = 4000;

struct Client {
    gets: Gets,
    session: Option<Session>,
    draws: Rng,
    in_flight: usize,
    completed: u64,
}

type ClientRpc = Endpoint<Shm, Ticks, Client>;
type ServerRpc = Endpoint<Shm, Ticks, Index>;

fn main() {
    let in_flight = usize::try_from(argument(0, 60)).expect("few");
    let (mut client, mut server) = connected(in_flight);
    let done = count(WARM_UP, argument(1, 100_000), || {
        client_turn(&mut client);
        server_turn(&mut server);
        client.app().completed
    });
    assert_eq!(client.counters().retransmissions, 0);
    println!("{done}");
}

/// The client's turn: takes the answers and begins the next gets.
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
        while let Some(end) = self.gets.next_end() {
            self.on_end(end, cx);
        }
        let batch = BATCH.min(self.in_flight);
        while self.gets.under_way() + batch <= self.in_flight {
            for _ in 0..batch {
                self.begin(cx);
            }
        }
    }

    fn begin(&mut self, cx: &mut Cx<'_>) {
        let number = self.draws.below(ITEMS);
        let session = self.session.expect("it was made before");
        let key = key(number);
        let (request, token) = (Request::Get { key: &key }, Token(number.into()));
        let deadline = cx.now() + Nanos::from_secs(10);
        let begun = self.gets.begin(session, &request, token, deadline, cx);
        begun.expect("there is memory");
    }

    fn on_end(&mut self, end: End, cx: &mut Cx<'_>) {
        let value = end.token.0.to_le_bytes();
        assert_eq!(end.answer(), Ok(Answer::Found(&value)));
        end.recycle(cx);
        self.completed += 1;
    }
}

/// The key of an item.
fn key(number: u32) -> [u8; 8] {
    let word = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word.to_le_bytes()
}

fn connected(in_flight: usize) -> (ClientRpc, ServerRpc) {
    let [mut near, mut far] =
        [(); 2].map(|()| Shm::open(ShmOptions::default()).expect("shared memory"));
    let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
    let met = meet::<Shm>([&mut near, &mut far], &infos);
    let [to_far, to_near] = met.expect("the ends fit each other");
    let index = Index::new();
    for number in 0..ITEMS {
        index.put(&key(number), &u64::from(number).to_le_bytes());
    }
    let app = Client {
        gets: Gets::default(),
        session: None,
        draws: Rng::new(7),
        in_flight,
        completed: 0,
    };
    let mut client = endpoint(app, Ticks::default(), near, 1);
    let mut server = endpoint(index, Ticks::default(), far, 2);
    serve_in_dispatch(&mut server);
    client.on_completion(|app, done, cx| {
        let None = app.gets.on_done(done, cx) else {
            panic!("a call is not the client's");
        };
    });
    let options = SessionOptions::DEFAULT.with_window(64).with_credits(64);
    let peers = [to_far, to_near];
    let session = connect(&mut client, &mut server, peers, &options)[0];
    client.app_mut().session = Some(session);
    (client, server)
}
