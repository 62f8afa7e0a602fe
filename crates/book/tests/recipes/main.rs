//! The programs on the pages of the book, run: each against servers or clients of these tests.
//! `build.rs` takes them out of the pages, so a page shows what runs here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "a page shows more than the test of its program uses"
)]

mod r#async;
mod channel;
mod configuration;
mod poll;
mod reflection;
mod server;
mod services;
mod tokio;
mod tuning;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use dunlin::{Channel, ReqType, Rpc, Running, Server};
use dunlin_testkit::child::{Child, catches, role};
use dunlin_testkit::wait::{block_on_tokio as block_on, until};

type Places = BTreeMap<&'static str, String>;

thread_local! {
    static PLACES: RefCell<Places> = RefCell::default();
}

/// The address or path that a test last gave for each text of a page. Threads that a program starts
/// look here.
static OF_ANY: Mutex<Places> = Mutex::new(Places::new());

/// The address or path that takes the place of a text on a page, such as `"host:31850"`.
fn at(shown: &str) -> String {
    let own = PLACES.with_borrow(|places| places.get(shown).cloned());
    let place = own.or_else(|| OF_ANY.lock().unwrap().get(shown).cloned());
    place.unwrap_or_else(|| panic!("the test names no place for {shown}"))
}

/// Gives an address or path that takes the place of a text on a page, in the programs that this
/// thread runs.
fn place(shown: &'static str, stands_for: impl ToString) {
    let place = stands_for.to_string();
    OF_ANY.lock().unwrap().insert(shown, place.clone());
    PLACES.with_borrow_mut(|places| places.insert(shown, place));
}

fn open(address: impl ToString) -> Channel {
    let channel = Channel::builder().address(address.to_string());
    channel.open().unwrap()
}

/// A server whose endpoint has the handlers that `on` registers.
fn polled(on: fn(&mut Rpc<dunlin::Auto, ()>)) -> (Running, SocketAddr) {
    running(Server::builder().poll(|_| (), on))
}

fn running(server: dunlin::ServerBuilder) -> (Running, SocketAddr) {
    let server = server.start("127.0.0.1:0").unwrap();
    let address = server.address();
    (server, address)
}

/// A server that answers requests of type 1.
fn named(req_type: ReqType) -> (Running, SocketAddr) {
    assert_eq!(req_type, ReqType(1), "the type that pages use");
    polled(|rpc| {
        rpc.on(ReqType(1), |(), request, cx| {
            request.reply_bytes(cx, b"name")
        });
    })
}

/// Runs a program with a `main` that serves, in a process of its own. The role is the name of the
/// program and the address at which it serves.
#[test]
fn child() {
    let Some(role) = role() else { return };
    let (program, address) = role.split_once(' ').unwrap();
    place("0.0.0.0:31850", address);
    std::thread::spawn(|| {
        until(takes_signals);
        println!("#takes signals");
    });
    match program {
        "server" => server::counter::serve(),
        "reflection" => reflection::store::serve(),
        "tokio" => tokio::handlers::serve(),
        "configuration" => configuration::loaded(address),
        other => panic!("{other}"),
    }
}

/// Whether this process handles SIGINT and SIGTERM. Before it does, they would kill it.
fn takes_signals() -> bool {
    [2, 15]
        .into_iter()
        .all(|signal| catches(std::process::id(), signal))
}

/// Serves in a process of its own while `work` runs, and ends it with a signal.
fn while_serving(program: &str, signal: &str, work: impl FnOnce(Channel)) {
    let address = dunlin_testkit::address::free_port();
    let server = Child::start(&format!("{program} {address}"));
    work(open(&address));
    assert_eq!(server.line(), "takes signals");
    server.signal(signal);
    assert!(server.wait().success());
}
