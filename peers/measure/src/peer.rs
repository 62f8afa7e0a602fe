//! The peers: one file each, and their common code. A server has one thread and answers
//! until it is killed; a client has one thread and one connection, and keeps the given number of
//! calls in flight. The code for each peer follows the peer's own documentation, with the options
//! that make it fast (`docs/peers.md` names them).

mod channel;
mod dunlin;
mod futex;
mod grpc;
mod quic;
mod server;
mod stream;
mod tarpc;
mod udp;

use std::cell::RefCell;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::try_join_all;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

pub(crate) use crate::args::LARGEST;
use crate::args::Name;
use crate::load::Load;

/// Bytes of each buffer of a socket, as many as Dunlin asks for. TCP chooses its own size.
const BUFFER: usize = 4 << 20;

/// A way to call another process.
pub(crate) trait Peer {
    /// Answers calls until the process is killed. Passes the server's address to `ready` first.
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()>;

    /// Calls the server at `address`, until `load` has enough.
    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()>;

    /// The number of calls of this size to keep in flight: `wanted`, or fewer if that is the peer's
    /// limit.
    fn inflight(&self, _size: usize, wanted: usize) -> usize {
        wanted
    }
}

impl Name {
    pub(crate) fn peer(self) -> Box<dyn Peer> {
        match self {
            Self::DunlinShm => Box::new(dunlin::Polled::<::dunlin::Shm>::default()),
            Self::DunlinShmAsync => Box::new(dunlin::Futures::<::dunlin::Shm>::default()),
            Self::DunlinUdp => Box::new(dunlin::Polled::<::dunlin::Udp>::default()),
            Self::DunlinUdpAsync => Box::new(dunlin::Futures::<::dunlin::Udp>::default()),
            Self::DunlinShmChannel => Box::new(channel::Channels { is_udp: false }),
            Self::DunlinUdpChannel => Box::new(channel::Channels { is_udp: true }),
            Self::DunlinShmServer => Box::new(server::PolledServer),
            Self::DunlinShmTyped => Box::new(server::Typed::Local),
            Self::DunlinShmServerTyped => Box::new(server::Typed::Server),
            Self::DunlinShmServerTokio => Box::new(server::Typed::Tokio),
            Self::Futex => Box::new(futex::Futex),
            Self::Unix => Box::new(stream::Unix),
            Self::Tcp => Box::new(stream::Tcp),
            Self::Udp => Box::new(udp::Udp),
            Self::Tarpc => Box::new(tarpc::Tarpc),
            Self::Tonic => Box::new(grpc::Grpc),
            Self::Quinn => Box::new(quic::Quic),
        }
    }
}

/// Keeps calls in flight, for peers whose futures stay in one thread.
async fn drive<R: AsRef<[u8]>>(
    load: &mut Load,
    call: impl AsyncFn(Vec<u8>) -> anyhow::Result<R>,
) -> anyhow::Result<()> {
    let inflight = load.inflight();
    let load = RefCell::new(load);
    let one_at_a_time = |_| async {
        loop {
            let mut request = vec![0; load.borrow().size()];
            let number = load.borrow_mut().next(&mut request);
            let Some(number) = number else { return Ok(()) };
            let response = call(request).await?;
            load.borrow_mut().end(number, response.as_ref())?;
        }
    };
    try_join_all((0..inflight).map(one_at_a_time))
        .await
        .map(drop)
}

/// Keeps calls in flight, each in a task of its own on this runtime, as ordinary programs do.
async fn drive_tasks<F, R>(
    load: &mut Load,
    call: impl Fn(Vec<u8>) -> F + Clone + Send + 'static,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<R>> + Send,
    R: AsRef<[u8]>,
{
    let shared = Arc::new(Mutex::new(load.clone()));
    let task = |_| {
        let (shared, call) = (Arc::clone(&shared), call.clone());
        tokio::spawn(async move {
            // The runtime has one thread, so no task waits for the lock.
            let load = || shared.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                let mut request = vec![0; load().size()];
                let number = load().next(&mut request);
                let Some(number) = number else {
                    return anyhow::Ok(());
                };
                let response = call(request).await?;
                load().end(number, response.as_ref())?;
            }
        })
    };
    let tasks: Vec<_> = (0..load.inflight()).map(task).collect();
    for task in tasks {
        task.await??;
    }
    load.clone_from(&shared.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(())
}

/// Gives a socket large buffers; the kernel may grant less.
fn roomy<S: AsFd>(socket: S) -> io::Result<S> {
    set_socket_recv_buffer_size(&socket, BUFFER)?;
    set_socket_send_buffer_size(&socket, BUFFER)?;
    Ok(socket)
}

/// Makes a runtime with one thread.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
