//! Looks up a server's addresses, as a future. Unless the addresses are known, a separate thread
//! looks them up, so the endpoint's thread can work.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use dunlin_nexus::Resolve;

/// The state that the look-up's thread and the future share.
#[derive(Default)]
struct Shared(Mutex<Found>);

#[derive(Default)]
struct Found {
    addresses: Option<io::Result<Vec<SocketAddr>>>,
    waker: Option<Waker>,
}

/// The server's addresses, at least one.
pub(super) async fn look_up(server: impl Resolve) -> io::Result<Vec<SocketAddr>> {
    if server.is_quick() {
        return run(&server);
    }
    let shared = Arc::<Shared>::default();
    let theirs = Arc::clone(&shared);
    let thread = std::thread::Builder::new().name("dunlin-names".into());
    thread.spawn(move || theirs.end(run(&server)))?;
    std::future::poll_fn(|context| {
        let mut found = shared.lock();
        match found.addresses.take() {
            Some(addresses) => Poll::Ready(addresses),
            None => {
                found.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}

fn run(server: &impl Resolve) -> io::Result<Vec<SocketAddr>> {
    // A resolver is code of the program. If its panic ended the thread, the future would wait
    // forever.
    let found = catch_unwind(AssertUnwindSafe(|| server.resolve()));
    let found = found.unwrap_or_else(|_| Err(io::Error::other("the resolver panicked")))?;
    match found.is_empty() {
        true => Err(io::Error::other("the name has no address")),
        false => Ok(found),
    }
}

impl Shared {
    fn end(&self, addresses: io::Result<Vec<SocketAddr>>) {
        let waker = {
            let mut found = self.lock();
            found.addresses = Some(addresses);
            found.waker.take()
        };
        waker.inspect(Waker::wake_by_ref);
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
