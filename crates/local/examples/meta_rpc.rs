//! Typed calls with metadata between two endpoints over shared memory, in one thread and with a
//! clock that only counts, so that every run executes the same instructions. `cargo xtask budget`
//! runs it under callgrind, with and without metadata.
//!
//! ```text
//! cargo run --release -p dunlin-local --example meta_rpc -- [KEYS] [COUNT]
//! ```
//!
//! Each of `COUNT` calls has `KEYS` keys of metadata, at most 2, which the client adds to the call
//! and the handler reads. The last printed line is the number of counted calls.

use dunlin_core::{
    CallOptions, Clock, Config, Cx, Done, Endpoint, EndpointNum, Nanos, Session, SessionOptions,
    Tag,
};
use dunlin_msgbuf::MsgBuf;
use dunlin_service::{Context, Fixed, Meta, poll, service};
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo};
use dunlin_transport::shm::{Options, Shm};
use zerocopy::little_endian::U64;

#[service(codec = Fixed, crate = dunlin_service)]
trait Double {
    #[method(1)]
    fn double(number: U64) -> U64;
}

/// The values of the keys.
const TENANT: &str = "north";
const USER: &str = "7f9c24e8";

/// Most keys of a call.
const KEYS: usize = 2;

/// Calls that are not counted, in which pools and rings fill.
const WARM_UP: u64 = 2000;

/// Each reading of the clock advances it by this much.
const TICK: Nanos = Nanos(100);

struct Ticks(Nanos);

impl Clock for Ticks {
    #[inline]
    fn now(&mut self) -> Nanos {
        self.0 += TICK;
        self.0
    }
}

/// The keys that each request has.
struct Server(usize);

impl DoublePoll for Server {
    fn double(&mut self, number: &U64, _: &mut Cx<'_>, context: Context<'_>) -> U64 {
        let metadata = context.metadata();
        if self.0 > 0 {
            assert_eq!(metadata.get("tenant").map(str::len), Some(TENANT.len()));
        }
        if self.0 > 1 {
            assert_eq!(metadata.get("user").map(str::len), Some(USER.len()));
        }
        U64::new(2 * number.get())
    }
}

struct Client {
    /// The keys of each call.
    keys: usize,
    /// The metadata of the last call, whose memory the next one uses, as in the slots of channels.
    meta: Meta,
    next: u64,
    completed: u64,
}

type ClientRpc = Endpoint<Shm, Ticks, Client>;
type ServerRpc = Endpoint<Shm, Ticks, Server>;

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u64| {
        let text = args.next();
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let (keys, count) = (number(2), number(100_000));
    let keys = usize::try_from(keys).expect("few").min(KEYS);
    let (mut client, mut server, session) = connected(keys);
    let bufs = [(); 2].map(|()| client.buf(256).expect("there is memory"));
    let (app, mut cx) = client.with();
    call(app, session, bufs, &mut cx);
    exchange(&mut client, &mut server, WARM_UP);
    let done = counted(|| exchange(&mut client, &mut server, count));
    assert_eq!(client.counters().retransmissions, 0);
    println!("{done}");
}

/// Runs the counted part.
#[inline(never)]
fn counted(work: impl FnOnce() -> u64) -> u64 {
    work()
}

/// Takes turns until at least `calls` more are complete; returns their number.
fn exchange(client: &mut ClientRpc, server: &mut ServerRpc, calls: u64) -> u64 {
    let begin = client.app().completed;
    // A call takes a turn or two. Without this limit, the program would wait for a lost call for
    // ever.
    for _ in 0..10 * (calls + WARM_UP) {
        client_turn(client);
        server_turn(server);
        let done = client.app().completed - begin;
        if done >= calls {
            return done;
        }
    }
    panic!("{calls} calls do not complete");
}

/// The client's work: takes the response, makes the next call.
#[inline(never)]
fn client_turn(client: &mut ClientRpc) {
    client.run_once();
}

/// The server's work: takes the request, sends the response.
#[inline(never)]
fn server_turn(server: &mut ServerRpc) {
    server.run_once();
}

fn connected(keys: usize) -> (ClientRpc, ServerRpc, Session) {
    let open = || Shm::open(Options::default()).expect("shared memory");
    let (mut a, mut b) = (open(), open());
    let info = |uid| PeerInfo {
        endpoint: EndpointUid([uid; 16]),
        same_host: true,
        same_process: false,
        proves: true,
        local: None,
        remote: None,
    };
    let (pending, offer) = Shm::offer(&mut a.rx, &mut a.tx, &info(2)).expect("a new endpoint");
    let (to_client, answer) =
        Shm::accept(&mut b.rx, &mut b.tx, &info(1), offer).expect("a good offer");
    let to_server = Shm::complete(&mut a.rx, &mut a.tx, pending, answer).expect("a good answer");
    let config = Config {
        hugepages: false,
        ..Config::default()
    };
    let clock = || Ticks(Nanos::ZERO);
    let number = || EndpointNum::take().expect("they are the first");
    let app = Client {
        keys,
        meta: Meta::new(),
        next: 0,
        completed: 0,
    };
    let mut client = Endpoint::new(app, clock(), a, config.clone(), 1, None, number())
        .expect("the options are in range");
    let mut server = Endpoint::new(Server(keys), clock(), b, config, 2, None, number())
        .expect("the options are in range");
    DoublePoll::register(&mut server);
    client.on_completion(complete);
    let peers = [to_server, to_client];
    let session = connect(&mut client, &mut server, peers, &SessionOptions::DEFAULT)[0];
    (client, server, session)
}

fn call(app: &mut Client, session: Session, bufs: [MsgBuf; 2], cx: &mut Cx<'_>) {
    let (number, tag) = (U64::new(app.next), Tag(app.next));
    let options = CallOptions::default();
    let called = match app.keys {
        0 => DoubleStub(session).double_with(cx, &number, bufs, tag, options),
        keys => {
            app.meta.clear();
            app.meta.add("tenant", TENANT).expect("it is valid");
            if keys > 1 {
                app.meta.add("user", USER).expect("it is valid");
            }
            let meta = &app.meta;
            poll::call_with_meta::<DoubleDouble>(cx, session, &number, bufs, tag, options, meta)
        }
    };
    called.expect("a slot is free");
    app.next += 1;
}

fn complete(app: &mut Client, done: Done, cx: &mut Cx<'_>) {
    let doubled = DoubleStub::double_response(&done).expect("it has a value");
    assert_eq!(doubled.get(), 2 * done.tag.0);
    app.completed += 1;
    call(app, done.session, [done.request, done.response], cx);
}
