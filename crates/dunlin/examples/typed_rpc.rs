//! Typed RPCs of 32 bytes each way as futures, between two endpoints over shared memory in one
//! thread: plain, with two entries of metadata, or with an empty layer of tower around the
//! handlers; or over a channel, plain or with such a layer, where only the caller's thread is
//! counted. The differences of the counts are the costs of metadata and layers. `cargo xtask budget
//! --build layer` counts all but the calls with metadata.
//!
//! ```text
//! cargo run --release -p dunlin --example typed_rpc -- [FACE] [COUNT]
//! ```
//!
//! The faces are `plain`, `meta`, `layer`, `channel` and `channel-layer`. The last printed line is
//! the number of counted RPCs.

use std::cell::Cell;
use std::error::Error;
use std::fmt::Display;
use std::hint::black_box;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{self, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use dunlin::service::{Context, Fixed};
use dunlin::{Auto, Caller, Hub, Local, Nexus, Server, Session, Tasks, service};
use dunlin_testkit::instructions::count;
use tower::Service;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const IN_FLIGHT: u64 = 32;
const SESSIONS: usize = 4;

/// RPCs that are not counted, in which pools and rings fill.
const WARM_UP: u64 = 2000;

/// A message of 32 bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct Words([U64; 4]);

#[service(codec = Fixed)]
trait Sum {
    #[method(1)]
    fn sum(words: Words) -> Words;
}

/// Answers with the sum of the request's words.
struct Adder {
    /// The entries of metadata that each request must have.
    entries: usize,
}

impl Sum for Adder {
    async fn sum(&self, words: &Words, context: Context<'_>) -> Words {
        if self.entries > 0 {
            assert_eq!(context.metadata().iter().count(), self.entries);
        }
        let sum = words.0.iter().map(|word| word.get()).sum();
        Words([U64::new(sum); 4])
    }
}

/// A layer that passes everything on.
#[derive(Clone)]
struct Empty<S>(S);

impl<S: Service<R>, R> Service<R> for Empty<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.0.call(request)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let face = args.next().unwrap_or_else(|| "plain".into());
    let rpcs = args.next().map_or(Ok(100_000), |number| number.parse())?;
    let counted = match face.as_str() {
        "plain" | "meta" | "layer" => on_sessions(&face, rpcs)?,
        "channel" | "channel-layer" => over_channel(&face, rpcs)?,
        other => return Err(format!("{other} is not a face: see the head of this file").into()),
    };
    println!("{counted}");
    Ok(())
}

/// Both sides in this thread. Returns the number of counted RPCs.
fn on_sessions(face: &str, rpcs: u64) -> Result<u64, Box<dyn Error>> {
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let local = |index| {
        let builder = nexus.endpoint_builder::<Auto>().index(index);
        builder.build(Tasks::default()).map(Local::new)
    };
    let (mut server, mut client) = (local(0)?, local(1)?);
    let entries = if face == "meta" { 2 } else { 0 };
    match face {
        "layer" => dunlin::serve_layered(&mut server, SumServer(Adder { entries }), Empty),
        _ => server.serve_typed(SumServer(Adder { entries })),
    }
    let cx = client.caller();
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        let session = client.connect(nexus.address())?;
        while !cx.session_info(session)?.open {
            client.turn();
            server.turn();
            // Under valgrind, one thread runs at a time, and the others connect.
            thread::sleep(Duration::from_millis(1));
        }
        sessions.push(session);
    }
    let (next, completed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for slot in 0..IN_FLIGHT {
        let session = sessions[usize::try_from(slot)? % SESSIONS];
        let counts = [Rc::clone(&next), Rc::clone(&completed)];
        cx.spawn(one_at_a_time(cx.clone(), session, entries > 0, counts));
    }
    Ok(count(WARM_UP, rpcs, || {
        assert_eq!(client.panics(), 0, "a future has found something wrong");
        client_turn(|| client.turn());
        server_turn(|| server.turn());
        completed.get()
    }))
}

/// The server and the channel have threads of their own. Returns the number of counted RPCs.
fn over_channel(face: &str, rpcs: u64) -> Result<u64, Box<dyn Error>> {
    let server = Server::builder().service(|_thread| SumServer(Adder { entries: 0 }));
    let server = server.start("127.0.0.1:0")?;
    let hub = Hub::builder().listen("127.0.0.1:0").start()?;
    let channel = hub.channel().address(server.address().to_string()).open()?;
    Ok(if face == "channel" {
        let client = SumClient::over(channel);
        one_after_the_other(rpcs, |words| client.sum(words))
    } else {
        let client = SumClient::over(channel.through(Empty(channel.clone())));
        one_after_the_other(rpcs, |words| client.sum(words))
    })
}

/// Makes calls in this thread, which polls each once to send it and again when it is woken.
fn one_after_the_other<F, E>(rpcs: u64, call: impl Fn(&Words) -> F) -> u64
where
    F: Future<Output = Result<Words, E>>,
    E: Display,
{
    let unpark = Arc::new(Unpark(thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = task::Context::from_waker(&waker);
    let mut under_way = pin!(None);
    let mut first = 0;
    count(WARM_UP, rpcs, || {
        let words = words(first);
        client_turn(|| under_way.set(Some(call(&words))));
        let mut sum = Poll::Pending;
        while sum.is_pending() {
            unpark.1.store(false, Ordering::SeqCst);
            client_turn(|| {
                let call = under_way.as_mut().as_pin_mut().expect("it has been made");
                sum = call.poll(&mut context).map(|ended| {
                    let sum = ended.unwrap_or_else(|error| panic!("{error}"));
                    under_way.set(None);
                    sum.0[0].get()
                });
            });
            while sum.is_pending() && !unpark.1.load(Ordering::SeqCst) {
                thread::park();
            }
        }
        assert_eq!(sum, Poll::Ready(4 * first + 6), "a wrong response");
        first += 1;
        first
    })
}

/// A thread that waits, and whether it has been woken.
struct Unpark(Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// The client's work, which is counted.
#[inline(never)]
fn client_turn<R>(turn: impl FnOnce() -> R) -> R {
    black_box("client");
    turn()
}

/// The server's work, which is counted.
#[inline(never)]
fn server_turn<R>(turn: impl FnOnce() -> R) -> R {
    black_box("server");
    turn()
}

async fn one_at_a_time(
    cx: Caller,
    session: Session,
    has_meta: bool,
    [next, completed]: [Rc<Cell<u64>>; 2],
) {
    let client = SumClient::new(cx, session);
    loop {
        let first = next.get();
        next.set(first + 1);
        let words = words(first);
        let mut call = client.sum(&words);
        if has_meta {
            let tenant = call.meta("tenant", "blue").expect("it is valid");
            call = tenant.meta("request", "0123456789").expect("it is valid");
        }
        let answer = call.await.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(answer.0[0].get(), 4 * first + 6, "a wrong response");
        completed.set(completed.get() + 1);
    }
}

/// The message of an RPC.
fn words(first: u64) -> Words {
    Words([0, 1, 2, 3].map(|more| U64::new(first + more)))
}
