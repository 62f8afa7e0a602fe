//! Typed RPCs of 32 bytes each way as futures, between two endpoints over shared memory in one
//! thread: without anything, with two entries of metadata, and with a layer of tower that does
//! nothing around the handlers. The differences of their counts are the prices of the two.
//!
//! ```text
//! cargo build --release -p dunlin --example typed_rpc
//! for face in plain meta layer; do for rpcs in 2000 12000; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!         --toggle-collect='*typed_rpc::turn*' \
//!         target/release/examples/typed_rpc $face $rpcs 2>&1 | grep -o 'Collected : [0-9]*'
//! done; done
//! ```
//!
//! The difference of the two counts of a face, divided by 10 000, are the instructions of an RPC at
//! both sides together, without the set-up.

use std::cell::Cell;
use std::error::Error;
use std::hint::black_box;
use std::rc::Rc;
use std::task::{self, Poll};

use dunlin::service::{Context, Fixed};
use dunlin::{Auto, Caller, Handlers, Inbound, Local, Nexus, Session, Tasks, service};
use tower::Service;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const IN_FLIGHT: u64 = 32;
const SESSIONS: usize = 4;

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
struct Empty(Handlers);

impl Service<Inbound> for Empty {
    type Response = ();
    type Error = <Handlers as Service<Inbound>>::Error;
    type Future = <Handlers as Service<Inbound>>::Future;

    fn poll_ready(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Inbound) -> Self::Future {
        self.0.call(request)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let face = args.next().unwrap_or_else(|| "plain".into());
    let rpcs = args.next().map_or(Ok(100_000), |number| number.parse())?;
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let local = |index| {
        let builder = nexus.endpoint_builder::<Auto>().index(index);
        builder.build(Tasks::default()).map(Local::new)
    };
    let (mut server, mut client) = (local(0)?, local(1)?);
    let entries = match face.as_str() {
        "plain" | "layer" => 0,
        "meta" => 2,
        other => return Err(format!("the face is plain, meta or layer, not {other}").into()),
    };
    match face.as_str() {
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
        }
        sessions.push(session);
    }
    let (next, completed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for slot in 0..IN_FLIGHT {
        let session = sessions[usize::try_from(slot)? % SESSIONS];
        let counts = [Rc::clone(&next), Rc::clone(&completed)];
        cx.spawn(one_at_a_time(cx.clone(), session, entries > 0, counts));
    }
    while completed.get() < rpcs {
        assert_eq!(client.panics(), 0, "a future has found something wrong");
        turn(|| {
            client.turn();
            server.turn();
        });
    }
    println!("{rpcs} RPCs");
    Ok(())
}

/// The counted part.
#[inline(never)]
fn turn(mut turn: impl FnMut()) {
    black_box("both sides");
    turn();
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
        let words = Words([0, 1, 2, 3].map(|more| U64::new(first + more)));
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
