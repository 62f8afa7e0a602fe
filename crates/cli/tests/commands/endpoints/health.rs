//! `dunlin health` against servers in each state: its exit codes, and its output.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dunlin::{
    Auto, ConnectOptions, Nexus, ReqType, Rpc, Running as Server, Server as Builder, Tag,
};
use dunlin_testkit::wait::until;

use super::{objects, run, text};

const TRAP: ReqType = ReqType(1);

/// A server whose only method keeps its thread until the trap is open.
struct Trap {
    server: Option<Server>,
    address: String,
    entered: Arc<AtomicUsize>,
    is_open: Arc<AtomicBool>,
}

impl Trap {
    fn start() -> Self {
        let (entered, is_open) = <(Arc<AtomicUsize>, Arc<AtomicBool>)>::default();
        let state = (Arc::clone(&entered), Arc::clone(&is_open));
        let server = Builder::builder().poll(
            move |_| state.clone(),
            |rpc| {
                rpc.add_service("Trap");
                rpc.on(TRAP, |(entered, is_open), request, cx| {
                    entered.fetch_add(1, Ordering::Relaxed);
                    until(|| is_open.load(Ordering::Relaxed));
                    request.reply_bytes(cx, b"");
                });
            },
        );
        let server = server.start("127.0.0.1:0").unwrap();
        Self {
            address: server.address().to_string(),
            server: Some(server),
            entered,
            is_open,
        }
    }

    /// Calls the method, and returns as soon as its handler runs.
    fn spring(&self) {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let mut rpc: Rpc<Auto, ()> = nexus.endpoint(()).unwrap();
        let options = ConnectOptions::default();
        let session = rpc.connect_with(self.address.as_str(), &options).unwrap();
        let (request, response) = (rpc.buf(1).unwrap(), rpc.buf(1).unwrap());
        rpc.call(session, TRAP, request, response, Tag(0)).unwrap();
        rpc.run_until(|_| self.entered.load(Ordering::Relaxed) == 1);
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.is_open.store(true, Ordering::Relaxed);
        drop(self.server.take());
    }
}

/// Runs the command; returns its exit code and its output.
fn health(args: &[&str]) -> (Option<i32>, String) {
    let out = run(&[&["health"], args].concat());
    (out.status.code(), text(&out.stdout).to_owned())
}

#[test]
fn each_answer_has_an_exit_code_of_its_own() {
    let mut trap = Trap::start();
    let address = trap.address.clone();
    for args in [&[&*address][..], &[&address, "Trap"]] {
        assert_eq!(health(args), (Some(0), "serving\n".to_owned()));
    }
    let (code, said) = health(&[&address, "Trip"]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("its services are Trap"), "{said}");

    trap.spring();
    until(|| health(&[&address]).0 == Some(1));
    let (code, said) = health(&[&address, "Trap"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("not serving: thread 0 has made no"), "{said}");
    trap.is_open.store(true, Ordering::Relaxed);
    until(|| health(&[&address]).0 == Some(0));

    drop(trap.server.take());
    let (code, said) = health(&[&address, "--timeout", "300ms"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.starts_with("unreachable: "), "{said}");
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let long = "x".repeat(256);
    for args in [
        &[][..],
        &["127.0.0.1:99999"],
        &["127.0.0.1:1", "--timeout", "soon"],
        &["127.0.0.1:1", "--set", "nexus.none=1"],
        &["127.0.0.1:1", &long],
    ] {
        assert_eq!(health(args).0, Some(2), "{args:?}");
    }
}

#[test]
fn json_has_the_same_answers() {
    let trap = Trap::start();
    for (service, status, code) in [("Trap", "serving", 0), ("Trip", "no such service", 4)] {
        let out = run(&["health", &trap.address, service, "--json"]);
        assert_eq!(out.status.code(), Some(code));
        let [answer] = &objects(&out.stdout)[..] else {
            panic!("{}", text(&out.stdout));
        };
        assert_eq!(answer["status"], status);
        assert_eq!(answer["service"], service);
        assert_eq!(answer["address"], *trap.address);
    }
}

/// A process that listens and sends nothing, and a process without a `Server`.
#[test]
fn a_process_without_health_is_unreachable_within_the_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    let (_echo, echo) = super::Running::server(&[]);
    for (address, said) in [(silent, "unreachable: "), (echo, "no endpoint for health")] {
        let begin = Instant::now();
        let (code, out) = health(&[&address, "--timeout", "500ms"]);
        assert_eq!(code, Some(3), "{out}");
        assert!(out.contains(said), "{out}");
        assert!(begin.elapsed() < Duration::from_secs(5));
    }
}
