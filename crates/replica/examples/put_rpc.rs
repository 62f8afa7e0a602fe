//! Puts into three replicas over shared memory, in one thread and with a clock that only counts, so
//! that every run executes the same instructions. `cargo xtask budget` runs it under callgrind.
//!
//! ```text
//! cargo run --release -p dunlin-replica --example put_rpc -- \
//!     [PART] [IN_FLIGHT] [COUNT] [WINDOW] [KEYS]
//! ```
//!
//! A client makes `COUNT` puts of keys of 16 bytes and values of 64, as in `dunlin bench replica`,
//! with `IN_FLIGHT` of them outstanding. The logs are in memory. `PART` chooses the replicas whose
//! instructions count as those of the server: 0 the leader, 1 both followers. With many `KEYS`, the
//! items do not fit into caches, and most of the time goes into waiting for memory. The last
//! printed line is the number of counted puts.

use dunlin_core::transport::{Halves, PeerId, Transport};
use dunlin_core::{Endpoint, Nanos, Rng, SessionOptions};
use dunlin_replica::{
    Answer, Change, Client, ClientOptions, Member, Members, Options, Replica, Token, serve,
};
use dunlin_testkit::instructions::{SharedTicks, argument, count, endpoint};
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{self, Shm};

/// Replicas in the cluster.
const REPLICAS: usize = 3;

/// Puts before counting starts, which fill pools, rings and tables.
const WARM_UP: u64 = 2000;

/// Number of keys, from which each put draws one, unless `KEYS` sets another. They are few, so
/// nearly all counted puts replace an item, as in a store that has run for a while.
const KEYS: u64 = 1 << 10;

/// The window of the client's sessions, unless `WINDOW` sets another: one credit for each request.
const WINDOW: u64 = 64;

/// The time that the clock advances in each round until a replica leads.
const ROUND: Nanos = Nanos::from_millis(1);

/// At most this number of rounds pass until a replica is elected.
const MOST_ROUNDS: u32 = 10_000;

type ReplicaRpc = Endpoint<Shm, SharedTicks, Replica>;
type ClientRpc = Endpoint<Shm, SharedTicks, Client>;
type ShmHalves = Halves<<Shm as Transport>::Rx, <Shm as Transport>::Tx>;

/// `peers[a][b]` is the number by which the endpoint at place `a` knows the one at place `b`. The
/// client has the last place.
type Peers = [[PeerId; REPLICAS + 1]; REPLICAS + 1];

/// A client's endpoint, and its work.
struct Putter {
    rpc: ClientRpc,
    rng: Rng,
    keys: u32,
    begun: u64,
    ended: u64,
}

fn main() {
    let counts_leader = argument(0, 0) == 0;
    let in_flight = argument(1, 1);
    let clock = SharedTicks::default();
    let (mut seats, mut putter) = cluster(&clock);
    let leader = elect(&mut seats, &clock);
    for _ in 0..in_flight {
        putter.begin();
    }
    let done = count(WARM_UP, argument(2, 20_000), || {
        client_turn(&mut putter);
        for (place, seat) in seats.iter_mut().enumerate() {
            match (place == leader) == counts_leader {
                true => server_turn(seat),
                false => turn(seat),
            }
        }
        putter.ended
    });
    assert_eq!(putter.rpc.counters().retransmissions, 0);
    println!("{done}");
}

/// The client's turn: takes the answers and begins the next puts.
#[inline(never)]
fn client_turn(putter: &mut Putter) {
    putter.turn();
}

/// The turn of a replica whose instructions count.
#[inline(never)]
fn server_turn(seat: &mut ReplicaRpc) {
    turn(seat);
}

/// One turn of a replica, as in `Driver::turn`.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "the caller tells whether its instructions count"
)]
fn turn(rpc: &mut ReplicaRpc) {
    rpc.run_once();
    let (replica, mut cx) = rpc.with();
    if replica.run(&mut cx) {
        rpc.send_queued();
    }
}

impl Putter {
    fn begin(&mut self) {
        let mut key = *b"key-000000000000";
        key[12..].copy_from_slice(&self.rng.below(self.keys).to_be_bytes());
        self.begun += 1;
        let mut value = vec![0x76; 64];
        value[..8].copy_from_slice(&self.begun.to_le_bytes());
        let (client, mut cx) = self.rpc.with();
        let token = Token(self.begun);
        let begun = client.begin_change(&key, Change::Put(value), token, None, &mut cx);
        begun.expect("key and value are short");
    }

    fn turn(&mut self) {
        self.rpc.run_once();
        let (client, mut cx) = self.rpc.with();
        client.on_time(&mut cx);
        while let Some(end) = self.rpc.app_mut().next_end() {
            assert!(matches!(end.result, Ok(Answer::Written(_))), "{end:?}");
            self.ended += 1;
            self.begin();
        }
    }
}

/// Makes three replicas with seats and a client, and connects them all.
fn cluster(clock: &SharedTicks) -> (Vec<ReplicaRpc>, Putter) {
    let open = |_| Shm::open(shm::Options::default()).expect("shared memory");
    let mut halves: Vec<_> = (0..=REPLICAS).map(open).collect();
    let mut peers: Peers = [[PeerId(0); REPLICAS + 1]; REPLICAS + 1];
    let pairs = |near| (near + 1..=REPLICAS).map(move |far| (near, far));
    for (near, far) in (0..=REPLICAS).flat_map(pairs) {
        (peers[near][far], peers[far][near]) = channel(&mut halves, near, far);
    }
    let client_halves = halves.pop().expect("it is the last");
    let mut seats: Vec<_> = (1..)
        .zip(halves)
        .map(|(id, halves)| {
            let replica = Replica::new(id, Options::DEFAULT);
            set_up(endpoint(replica, clock.clone(), halves, id))
        })
        .collect();
    let client = Client::new(addresses(), ClientOptions::DEFAULT);
    let mut client = endpoint(client, clock.clone(), client_halves, 0);
    client.on_completion(|client, done, cx| {
        if let Some(other) = client.on_done(done, cx) {
            cx.recycle([other.request, other.response]);
        }
    });
    client.on_session(|client, event, cx| client.on_session(event, cx));
    let members = (1..).zip(addresses());
    let members = members.map(|(id, address)| Member { id, address });
    let members = Members::new(members.collect::<Vec<_>>()).expect("three are a cluster");
    for seat in &mut seats {
        let seated = seat.app_mut().on_bootstrap(members.clone());
        seated.expect("the replica is a member");
    }
    grant_wishes(&mut seats, &mut client, &peers);
    let putter = Putter {
        rpc: client,
        rng: Rng::new(7),
        keys: u32::try_from(argument(4, KEYS)).expect("a key has a number of four bytes"),
        begun: 0,
        ended: 0,
    };
    (seats, putter)
}

/// The addresses of the replicas, which are their places.
fn addresses() -> impl Iterator<Item = String> {
    (0..REPLICAS).map(|place| place.to_string())
}

/// Registers the replica, as `Driver::new` does.
fn set_up(mut rpc: ReplicaRpc) -> ReplicaRpc {
    serve(&mut rpc);
    rpc.on_completion(|replica, done, cx| {
        if let Some(other) = replica.on_done(done, cx) {
            cx.recycle([other.request, other.response]);
        }
    });
    rpc.on_session(|replica, event, cx| replica.on_session(event, cx));
    rpc
}

/// Makes a channel between two endpoints, and returns the number that each has for the other.
fn channel(halves: &mut [ShmHalves], near: usize, far: usize) -> (PeerId, PeerId) {
    let info = |place: usize| {
        let uid = u8::try_from(place).expect("there are four");
        PeerInfo::of_this_host(EndpointUid([uid; 16]))
    };
    let (first, second) = halves.split_at_mut(far);
    let ends = [&mut first[near], &mut second[0]];
    let met = meet::<Shm>(ends, &[info(near), info(far)]);
    met.expect("the ends fit each other").into()
}

/// Makes the sessions that the replicas and the client ask for.
fn grant_wishes(seats: &mut [ReplicaRpc], client: &mut ClientRpc, peers: &Peers) {
    let (options, now) = (SessionOptions::DEFAULT, Nanos(1));
    // One credit for each request in flight, like the client of `dunlin bench replica`.
    let window = u32::try_from(argument(3, WINDOW)).expect("a window is small");
    let wide = options.with_window(window).with_credits(window);
    let place = |address: &String| address.parse::<usize>().expect("it is a place");
    for near in 0..REPLICAS {
        while let Some(address) = seats[near].app_mut().wish(now) {
            let far = place(&address);
            let numbers = [peers[near][far], peers[far][near]];
            let both = seats.get_disjoint_mut([near, far]);
            let [near, far] = both.expect("no replica connects to itself");
            let [session, _] = connect(near, far, numbers, &options);
            near.app_mut().on_connecting(&address, session);
        }
    }
    while let Some(address) = client.app_mut().wish(now) {
        let far = place(&address);
        let numbers = [peers[REPLICAS][far], peers[far][REPLICAS]];
        let [session, _] = connect(client, &mut seats[far], numbers, &wide);
        client.app_mut().on_connecting(&address, session);
    }
}

/// Runs the replicas until one leads, and has applied an entry of its term. Returns its place.
fn elect(seats: &mut [ReplicaRpc], clock: &SharedTicks) -> usize {
    let leads = |seat: &ReplicaRpc| {
        let node = seat.app().node();
        node.is_some_and(|node| node.leads() && node.applied() == node.log().last())
    };
    for _ in 0..MOST_ROUNDS {
        clock.pass(ROUND);
        seats.iter_mut().for_each(turn);
        if let Some(place) = seats.iter().position(leads) {
            return place;
        }
    }
    panic!("no replica leads");
}
