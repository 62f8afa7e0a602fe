//! A server in a thread of the test.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dunlin::{Auto, DeferredRequest, Nexus, NexusError, Rpc, SessionEvent, Ticket};

use crate::channel::{ECHO, HOLD, WHICH, Way};

/// The server's treatment of requests of the type `HOLD`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Answers,
    /// Answers no request, and drops requests that their clients give up.
    Holds,
    /// Answers no request until the test allows it, and keeps requests that their clients give up.
    Keeps,
}

/// Counts that the test reads.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Requests of the type `HOLD`.
    pub(crate) held: AtomicUsize,
    /// Requests that their client gave up.
    pub(crate) given_up: AtomicUsize,
    pub(crate) sessions: AtomicUsize,
    /// Set by the test: from then on, the server answers the requests that it has kept.
    pub(crate) may_answer: AtomicBool,
}

struct App {
    role: Role,
    address: String,
    held: Vec<(Ticket, DeferredRequest)>,
    seen: Arc<Seen>,
}

/// A server. Dropping it ends its endpoint and its nexus, and so all its sessions.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(way: Way, address: &str, role: Role) -> Self {
        let (seen, stop) = (Arc::<Seen>::default(), Arc::<AtomicBool>::default());
        let (ours, stopped) = (Arc::clone(&seen), Arc::clone(&stop));
        let (started, at) = std::sync::mpsc::channel();
        let address = address.to_owned();
        let thread = std::thread::spawn(move || {
            serve(way, &address, role, ours, &stopped, |at| {
                started.send(at).unwrap();
            });
        });
        Self {
            address: at.recv().unwrap(),
            seen,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

/// Binds a nexus, perhaps to the address that an ended server had. For a moment, the kernel may
/// refuse such an address: a process that another test has just forked has copies of all
/// descriptors, so also of the ended server's, until it runs its program.
fn bind(way: Way, address: &str) -> Nexus {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        match way.nexus().bind(address) {
            Err(NexusError::Listen { source, .. })
                if source.kind() == ErrorKind::AddrInUse && Instant::now() < until =>
            {
                std::thread::yield_now();
            }
            bound => return bound.unwrap(),
        }
    }
}

/// Serves until it is stopped.
pub(crate) fn serve(
    way: Way,
    address: &str,
    role: Role,
    seen: Arc<Seen>,
    stopped: &AtomicBool,
    started: impl FnOnce(SocketAddr),
) {
    let nexus = bind(way, address);
    let app = App {
        role,
        address: nexus.address().to_string(),
        held: Vec::new(),
        seen,
    };
    let mut rpc: Rpc<Auto, App> = nexus.endpoint(app).unwrap();
    rpc.on(ECHO, |_, request, cx| {
        let body = request.data().to_vec();
        request.reply_bytes(cx, &body);
    });
    rpc.on(WHICH, |app, request, cx| {
        request.reply_bytes(cx, app.address.as_bytes());
    });
    rpc.on(HOLD, |app, request, cx| {
        app.seen.held.fetch_add(1, Ordering::Relaxed);
        match app.role {
            Role::Answers => {
                let body = request.data().to_vec();
                request.reply_bytes(cx, &body);
            }
            Role::Holds | Role::Keeps => {
                let ticket = request.ticket(cx);
                app.held.push((ticket, request.defer(cx)));
            }
        }
    });
    rpc.on_given_up(|app, ticket, _| {
        app.seen.given_up.fetch_add(1, Ordering::Relaxed);
        let keeps = app.role == Role::Keeps;
        app.held.retain(|(held, _)| keeps || *held != ticket);
    });
    rpc.on_session(|app, event, _| {
        match event {
            SessionEvent::Accepted(_) => app.seen.sessions.fetch_add(1, Ordering::Relaxed),
            SessionEvent::Closed { .. } => app.seen.sessions.fetch_sub(1, Ordering::Relaxed),
            SessionEvent::Connected(_) => 0,
        };
    });
    started(nexus.address());
    rpc.run_until(|rpc| {
        if rpc.app().seen.may_answer.load(Ordering::Relaxed) {
            for (_, request) in std::mem::take(&mut rpc.app_mut().held) {
                request.reply_bytes(&mut rpc.cx(), b"late");
            }
        }
        stopped.load(Ordering::Relaxed)
    });
}
