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

use dunlin_core::{CallOptions, Cx, Done, Endpoint, Session, SessionOptions, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_service::{Context, Fixed, Meta, poll, service};
use dunlin_testkit::instructions::{Ticks, argument, count, endpoint};
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
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

/// The most keys of a call.
const KEYS: usize = 2;

/// Calls before the counted ones. They fill pools and rings.
const WARM_UP: u64 = 2000;

/// A server, with the number of keys that it expects in each request.
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
    /// The number of keys that each call gets.
    keys: usize,
    /// The metadata of the last call. The next call writes its own into the same memory, as in the
    /// slots of channels.
    meta: Meta,
    next: u64,
    completed: u64,
}

type ClientRpc = Endpoint<Shm, Ticks, Client>;
type ServerRpc = Endpoint<Shm, Ticks, Server>;

fn main() {
    let keys = usize::try_from(argument(0, 2)).expect("few").min(KEYS);
    let (mut client, mut server, session) = connected(keys);
    let bufs = [(); 2].map(|()| client.buf(256).expect("there is memory"));
    let (app, mut cx) = client.with();
    call(app, session, bufs, &mut cx);
    let done = count(WARM_UP, argument(1, 100_000), || {
        client_turn(&mut client);
        server_turn(&mut server);
        client.app().completed
    });
    assert_eq!(client.counters().retransmissions, 0);
    println!("{done}");
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
    let [mut near, mut far] =
        [(); 2].map(|()| Shm::open(Options::default()).expect("shared memory"));
    let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
    let met = meet::<Shm>([&mut near, &mut far], &infos);
    let [to_far, to_near] = met.expect("the ends fit each other");
    let app = Client {
        keys,
        meta: Meta::new(),
        next: 0,
        completed: 0,
    };
    let mut client = endpoint(app, Ticks::default(), near, 1);
    let mut server = endpoint(Server(keys), Ticks::default(), far, 2);
    DoublePoll::register(&mut server);
    client.on_completion(complete);
    let peers = [to_far, to_near];
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
