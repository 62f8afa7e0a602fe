//! A handler that must ask another process before it can answer: it keeps the request, calls, and
//! answers when the nested call has completed. Meanwhile its thread serves others.
//!
//! Three endpoints, a thread each: a client, a front that the client calls, and the storage that
//! the front calls.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use dunlin::{Auto, DeferredRequest, Done, ErrorCode, Nexus, ReqType, Rpc, Session, Tag};

const PUT: ReqType = ReqType(1);
const REPLICATE: ReqType = ReqType(2);

/// All state of the front's thread. Handlers capture nothing; they get this.
#[derive(Default)]
struct Front {
    /// Set before the first request can come.
    storage: Option<Session>,
    /// Requests that wait for the storage, by the tag of the nested call.
    waiting: HashMap<u64, DeferredRequest>,
    next_tag: u64,
}

fn main() -> anyhow::Result<()> {
    let [storage, front, client] = [(); 3].map(|()| Nexus::bind("127.0.0.1:0"));
    let (storage, front, client) = (storage?, front?, client?);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = [
            scope.spawn(|| serve_storage(&storage, &stop)),
            scope.spawn(|| serve_front(&front, storage.address(), &stop)),
        ];
        let asked = ask(&client, front.address());
        stop.store(true, Ordering::Relaxed);
        for server in serving {
            server.join().expect("a server does not panic")?;
        }
        asked
    })
}

fn serve_storage(nexus: &Nexus, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut rpc: Rpc<Auto, Vec<Vec<u8>>> = nexus.endpoint(Vec::new())?;
    rpc.on(REPLICATE, |log, request, cx| {
        log.push(request.data().to_vec());
        let position = log.len() as u64;
        request.reply_bytes(cx, &position.to_le_bytes());
    });
    rpc.run_until(|_| stop.load(Ordering::Relaxed));
    Ok(())
}

fn serve_front(nexus: &Nexus, storage: SocketAddr, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut rpc: Rpc<Auto, Front> = nexus.endpoint(Front::default())?;
    // Handlers come first: as soon as the event loop runs, clients may connect and call.
    rpc.on(PUT, |front, request, cx| {
        let Some(storage) = front.storage else {
            return request.reject(cx, ErrorCode::OVERLOADED);
        };
        // The request's bytes lie in the receive frame, which is reused when this handler returns,
        // so the nested call sends a copy.
        let (Ok(body), Ok(answer)) = (cx.copy(request.data()), cx.buf(8)) else {
            return request.reject(cx, ErrorCode::OVERLOADED);
        };
        front.next_tag += 1;
        let tag = Tag(front.next_tag);
        // From here on the request is ours to answer. Dropping it would answer with an error.
        let held = request.defer(cx);
        match cx.call(storage, REPLICATE, body, answer, tag) {
            Ok(_) => {
                front.waiting.insert(tag.0, held);
            }
            // A refused call returns its msgbufs immediately.
            Err(refused) => {
                held.reject(cx, ErrorCode::OVERLOADED);
                cx.recycle([refused.request, refused.response]);
            }
        }
    });
    rpc.on_completion(|front, done, cx| {
        if let Some(held) = front.waiting.remove(&done.tag.0) {
            match done.result {
                Ok(()) => held.reply_bytes(cx, done.response.data()),
                Err(_) => held.reject(cx, ErrorCode::application(1)),
            }
        }
        cx.recycle([done.request, done.response]);
    });
    // This does not block. Nested calls wait in the session's backlog until it is connected.
    // (`connect_blocking` would run the event loop, and so serve requests before it returns.)
    let storage = rpc.connect(storage)?;
    rpc.app_mut().storage = Some(storage);
    rpc.run_until(|_| stop.load(Ordering::Relaxed));
    Ok(())
}

fn ask(nexus: &Nexus, front: SocketAddr) -> anyhow::Result<()> {
    let mut rpc: Rpc<Auto, Vec<Done>> = nexus.endpoint(Vec::new())?;
    rpc.on_completion(|ended, done, _| ended.push(done));
    let session = rpc.connect_blocking(front)?;
    let words = ["one", "two", "three", "four"];
    for (tag, word) in (0..).zip(words) {
        let (request, response) = (rpc.cx().copy(word.as_bytes())?, rpc.buf(8)?);
        rpc.call(session, PUT, request, response, Tag(tag))?;
    }
    rpc.run_until(|rpc| rpc.app().len() == words.len());
    // Requests of one session may complete in any order; the tag tells them apart.
    for done in rpc.app_mut().drain(..) {
        done.result?;
        let position = u64::from_le_bytes(done.response.data().try_into()?);
        let word = String::from_utf8_lossy(done.request.data()).into_owned();
        println!("{word} is number {position} in the log");
        anyhow::ensure!((1..=4).contains(&position), "a position that cannot be");
    }
    Ok(())
}
