//! A batch handler gets all requests of its type that came in one receive burst. It can start the
//! memory accesses of all of them before it needs the first, instead of waiting for one cache miss
//! after the other (HERD §4.1.1).

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use dunlin::{Auto, ErrorCode, Nexus, ReqType, Rpc, SessionOptions, Tag};

const LOOK_UP: ReqType = ReqType(1);

/// Entries of the table: 32 MiB, more than the caches hold.
const ENTRIES: usize = 1 << 22;

/// Requests that the client keeps in flight.
const IN_FLIGHT: u64 = 32;
const REQUESTS: u64 = 20_000;

struct Server {
    table: Vec<u64>,
    /// Where the table has the entry of each request of the current batch. The `Vec` is reused, so
    /// a batch allocates nothing.
    places: Vec<Option<usize>>,
    batches: u64,
    largest: usize,
}

fn main() -> anyhow::Result<()> {
    let (server, client) = (Nexus::bind("127.0.0.1:0")?, Nexus::bind("127.0.0.1:0")?);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&server, &stop));
        let asked = ask(&client, server.address());
        stop.store(true, Ordering::Relaxed);
        serving.join().expect("the server does not panic")?;
        asked
    })
}

fn serve(nexus: &Nexus, stop: &AtomicBool) -> anyhow::Result<()> {
    let table = (0..ENTRIES as u64).map(|key| key * key).collect();
    let mut rpc: Rpc<Auto, Server> = nexus.endpoint(Server {
        table,
        places: Vec::with_capacity(64),
        batches: 0,
        largest: 0,
    })?;
    // Each item has its response buffer before the handler runs; 8 bytes are all that we need.
    rpc.on_batch_up_to(LOOK_UP, 8, |server, mut batch, _| {
        server.batches += 1;
        server.largest = server.largest.max(batch.len());
        // First pass: find all places. None of these loads depends on another, so the processor
        // overlaps them. A real table would prefetch here.
        server.places.clear();
        server.places.extend(batch.iter_mut().map(|item| {
            let key = u64::from_le_bytes(item.data().try_into().ok()?);
            let place = usize::try_from(key).ok()?;
            server.table.get(place).map(|_| place)
        }));
        // Second pass: answer. An item that is left unanswered would fail.
        for (item, place) in batch.iter_mut().zip(&server.places) {
            match place {
                Some(place) => {
                    let value = server.table[*place].to_le_bytes();
                    // `reply` fails only if the response exceeds the 8 bytes that were asked for.
                    let _ = item.reply(8, |out| out.copy_from_slice(&value));
                }
                None => item.reject(ErrorCode::application(1)),
            }
        }
    });
    rpc.run_until(|_| stop.load(Ordering::Relaxed));
    let Server {
        batches, largest, ..
    } = rpc.app();
    println!("{REQUESTS} requests came in {batches} batches, the largest of {largest}");
    Ok(())
}

#[derive(Default)]
struct Client {
    issued: u64,
    correct: u64,
    ended: u64,
}

fn ask(nexus: &Nexus, server: SocketAddr) -> anyhow::Result<()> {
    let mut rpc: Rpc<Auto, Client> = nexus.endpoint(Client::default())?;
    rpc.on_completion(|client, done, cx| {
        client.ended += 1;
        let key = key_of(done.tag.0);
        client.correct += u64::from(done.response.data() == (key * key).to_le_bytes());
        if client.issued == REQUESTS {
            return cx.recycle([done.request, done.response]);
        }
        // The buffers of the request that has ended carry the next one.
        let tag = Tag(client.issued);
        client.issued += 1;
        let (mut request, response) = (done.request, done.response);
        request
            .data_mut()
            .copy_from_slice(&key_of(tag.0).to_le_bytes());
        // A refusal leaves `ended` short, and the loop below reports it.
        let _ = cx.call(done.session, LOOK_UP, request, response, tag);
    });
    let options = dunlin::ConnectOptions {
        session: SessionOptions::DEFAULT.with_window(32).with_credits(32),
        ..Default::default()
    };
    let session = rpc.connect_with(server, &options)?;
    rpc.wait_connected(session)?;
    for tag in 0..IN_FLIGHT {
        let (request, response) = (rpc.cx().copy(&key_of(tag).to_le_bytes())?, rpc.buf(8)?);
        rpc.app_mut().issued += 1;
        rpc.call(session, LOOK_UP, request, response, Tag(tag))?;
    }
    rpc.run_until(|rpc| rpc.app().ended == REQUESTS || rpc.session_info(session).is_err());
    anyhow::ensure!(
        rpc.app().correct == REQUESTS,
        "an answer was wrong or did not come"
    );
    Ok(())
}

/// A key for this request; successive keys lie far apart in the table.
fn key_of(tag: u64) -> u64 {
    tag.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - ENTRIES.trailing_zeros())
}
