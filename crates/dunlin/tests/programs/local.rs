//! The asynchronous face (design §11) over shared memory: calls, handlers, deadlines, cancellation
//! and timers as futures see them, and the state that they leave at their endpoint.

mod allocations;
mod calls;
mod connect;
mod handlers;
mod outside;
mod panics;
mod timers;

use std::net::SocketAddr;
use std::time::Duration;

use dunlin::{Local, Nexus, ReqType, Session, Shm, Tasks};
use futures::channel::oneshot;

const ECHO: ReqType = ReqType(1);
const NEVER: ReqType = ReqType(2);
const NESTED: ReqType = ReqType(3);
const PANIC: ReqType = ReqType(4);
const FORGET: ReqType = ReqType(5);

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

fn local(nexus: &Nexus) -> Local<Shm> {
    Local::new(nexus.endpoint(Tasks::default()).unwrap())
}

/// Runs `task` while a server made by `set_up` runs in another thread; returns the state of the
/// server at its end, and the result of the task.
fn beside<R, S: Send>(
    set_up: impl FnOnce(&mut Local<Shm>) + Send,
    task: impl FnOnce(SocketAddr) -> R,
    look: impl FnOnce(&Local<Shm>) -> S + Send,
) -> (R, S) {
    let (started, address) = std::sync::mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let nexus = Nexus::bind("127.0.0.1:0").unwrap();
            let mut local = local(&nexus);
            set_up(&mut local);
            started.send(nexus.address()).unwrap();
            // This also ends when the task panics, because the panic drops the sender.
            let _ = local.block_on(|_| stopped);
            look(&local)
        });
        let result = task(address.recv_timeout(PATIENCE).unwrap());
        drop(stop);
        (result, server.join().unwrap())
    })
}

fn echo(local: &mut Local<Shm>) {
    local.serve(ECHO, |request, _| async move {
        let body = request.to_buf()?;
        request.reply(body.data())
    });
    local.serve(NEVER, |request, _| async move {
        std::future::pending::<()>().await;
        request.reply([])
    });
}

/// A client and its session with the server at `address`.
fn client(address: SocketAddr) -> (Local<Shm>, Session) {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut local = local(&nexus);
    let session = local.connect(address).unwrap();
    local
        .block_on(|cx| async move { cx.connected(session).await })
        .unwrap();
    (local, session)
}
