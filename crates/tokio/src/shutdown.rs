//! The end of a server in a tokio program: a drain that leaves the runtime free, so that handlers
//! on it can finish, and signals through `tokio::signal`.

use std::io;
use std::panic::resume_unwind;

use dunlin::{Drained, Running};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A process that a signal ends exits with this code plus the signal's number, as in shells.
const BY_SIGNAL: i32 = 128;

/// Drains a server as `Running::drain` does. That call blocks, so this function makes it on a
/// thread for blocking work, and handlers on the runtime can finish meanwhile.
///
/// If the future is dropped after its first poll, the drain goes on; before that, the server ends
/// without one.
///
/// # Panics
/// If a thread of the server has panicked.
pub async fn drain(running: Running) -> Drained {
    match tokio::task::spawn_blocking(|| running.drain()).await {
        Ok(drained) => drained,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is being shut down, and drops this future too.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Serves until SIGINT or SIGTERM comes, and then drains: `ServerBuilder::serve` for a program
/// whose signals tokio handles. The future catches signals from its first poll on. A second signal
/// ends the process with an exit code of 128 plus the signal's number, as soon as a thread of the
/// runtime polls this future. Other tasks of the program can wait for the same signals.
///
/// If the future is dropped before a signal has come, the server ends without a drain. The drop
/// blocks until the server's threads have ended.
///
/// # Errors
/// If signals cannot be caught.
///
/// # Panics
/// As for [`drain`]; or if the runtime has no driver for I/O (`enable_all`).
pub async fn drain_on_signal(running: Running) -> io::Result<Drained> {
    let mut signals = Signals::new()?;
    signals.next().await;
    let again = async {
        let number = signals.next().await;
        std::process::exit(BY_SIGNAL + number);
    };
    Ok(first(drain(running), again).await)
}

/// The signals that ask a process to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal, and returns its number.
    async fn next(&mut self) -> i32 {
        let interrupt = async {
            self.interrupt.recv().await;
            SignalKind::interrupt().as_raw_value()
        };
        let terminate = async {
            self.terminate.recv().await;
            SignalKind::terminate().as_raw_value()
        };
        first(interrupt, terminate).await
    }
}

/// The result of the future that ends first.
async fn first<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    std::future::poll_fn(|context| {
        let ready = one.as_mut().poll(context);
        match ready.is_ready() {
            true => ready,
            false => other.as_mut().poll(context),
        }
    })
    .await
}
