//! The service of these tests, and a record of its handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dunlin::service::{Context, Fixed, Postcard};
use dunlin::{Clock, TscClock, service};

#[service(codec = Postcard, send)]
pub(crate) trait Jobs {
    /// Fails for 0.
    #[method(1)]
    fn double(number: u64) -> Result<u64, String>;

    /// A message of this byte and length.
    #[method(2)]
    fn repeat(order: (u8, usize)) -> Vec<u8>;

    /// The length of a message.
    #[method(3)]
    fn length(bytes: Vec<u8>) -> usize;

    /// Never completes.
    #[method(4)]
    fn hang(nothing: ()) -> ();

    /// Panics at its second poll.
    #[method(5)]
    fn fall(nothing: ()) -> ();

    /// The name of the method, the tenant, and the milliseconds that the client still waits.
    #[method(6)]
    fn about(nothing: ()) -> (String, String, Option<u64>);

    #[notify(7)]
    fn note(number: u64);

    /// The next byte. The codec is `Fixed`: a handler of a service with `send` owns its message,
    /// other handlers borrow it.
    #[method(8, codec = Fixed)]
    fn next(byte: u8) -> u8;
}

/// Counts what handlers do.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) begun: AtomicU64,
    /// Handlers that never complete and were dropped.
    pub(crate) dropped: AtomicU64,
    pub(crate) noted: AtomicU64,
}

pub(crate) struct Worker(pub(crate) Arc<Seen>);

/// Counts its drop.
struct Guard<'a>(&'a Seen);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl JobsSend for Worker {
    async fn double(&self, number: u64, _: Context<'_>) -> Result<u64, String> {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        match number {
            0 => Err("nothing to double".to_owned()),
            _ => Ok(2 * number),
        }
    }

    async fn repeat(&self, (byte, length): (u8, usize), _: Context<'_>) -> Vec<u8> {
        vec![byte; length]
    }

    async fn length(&self, bytes: Vec<u8>, _: Context<'_>) -> usize {
        bytes.len()
    }

    async fn hang(&self, (): (), _: Context<'_>) {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        let _guard = Guard(&self.0);
        std::future::pending().await
    }

    async fn fall(&self, (): (), _: Context<'_>) {
        let mut is_second = false;
        std::future::poll_fn(|context| {
            assert!(
                !std::mem::replace(&mut is_second, true),
                "as the test wants"
            );
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        })
        .await
    }

    async fn about(&self, (): (), context: Context<'_>) -> (String, String, Option<u64>) {
        let tenant = context.metadata().get("tenant").unwrap_or_default();
        let method = context.method().to_owned();
        let left = context.left(TscClock::new().now());
        (
            method,
            tenant.to_owned(),
            left.map(|left| left.0 / 1_000_000),
        )
    }

    async fn note(&self, number: u64, _: Context<'_>) {
        self.0.noted.fetch_add(number, Ordering::SeqCst);
    }
    async fn next(&self, byte: u8, _: Context<'_>) -> u8 {
        byte + 1
    }
}
