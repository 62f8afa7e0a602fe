//! Typed services over channels: values and failures, tasks of tokio, deadlines, methods that may
//! be repeated, and notifications.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dunlin::service::{Context, Failure, Postcard};
use dunlin::{Auto, Caller, ChannelError, Local, Ran, Tasks, service};
use futures::channel::oneshot;

use crate::channel::{WAYS, Way, block_on, free_port, own_host, until};

const SHORT: Duration = Duration::from_millis(50);

#[service(codec = Postcard)]
pub(crate) trait Store {
    /// The value of an even key.
    #[method(1)]
    fn get(key: u64) -> Result<String, u64>;

    /// The client's patience in microseconds; 0: forever.
    #[method(2)]
    fn patience(nothing: ()) -> u64;

    /// The number of the server; a server that holds requests never answers.
    #[method(3)]
    fn take(nothing: ()) -> u32;

    /// Like `take`, but may run twice.
    #[method(4, idempotent)]
    fn read(nothing: ()) -> u32;

    #[notify(5)]
    fn touch(key: u64);
}

/// The same service, in a later version.
#[service(codec = Postcard)]
trait Later {
    #[method(1)]
    fn get(key: ()) -> ();

    #[method(99)]
    fn added(nothing: ()) -> ();
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) held: AtomicU32,
    touched: AtomicU64,
}

struct Values {
    cx: Caller,
    seen: Arc<Seen>,
    number: u32,
}

impl Values {
    async fn number(&self) -> u32 {
        self.seen.held.fetch_add(1, Ordering::Relaxed);
        match self.number {
            HOLDS => std::future::pending().await,
            number => number,
        }
    }
}

impl Store for Values {
    async fn get(&self, key: u64, _: Context<'_>) -> Result<String, u64> {
        match key.is_multiple_of(2) {
            true => Ok(format!("value {key}")),
            false => Err(key),
        }
    }

    async fn patience(&self, (): (), context: Context<'_>) -> u64 {
        context.left(self.cx.now()).map_or(0, |left| left.0 / 1000)
    }

    async fn take(&self, (): (), _: Context<'_>) -> u32 {
        self.number().await
    }

    async fn read(&self, (): (), _: Context<'_>) -> u32 {
        self.number().await
    }

    async fn touch(&self, key: u64, _: Context<'_>) {
        self.seen.touched.fetch_add(key, Ordering::Relaxed);
    }
}

/// The number of a server that holds the requests for its number.
pub(crate) const HOLDS: u32 = 0;

pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) seen: Arc<Seen>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(way: Way, address: &str, number: u32) -> Self {
        let seen = Arc::<Seen>::default();
        let (stop, stopped) = oneshot::channel();
        let (started, at) = std::sync::mpsc::channel();
        let (address, ours) = (address.to_owned(), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            let nexus = way.nexus().bind(address).unwrap();
            let rpc = nexus.endpoint(Tasks::default()).unwrap();
            let mut local: Local<Auto> = Local::new(rpc);
            local.serve_typed(StoreServer(Values {
                cx: local.caller(),
                seen: ours,
                number,
            }));
            started.send(nexus.address()).unwrap();
            let _ = local.block_on(|_| stopped);
            // Disconnects before the futures end, because a future that is dropped answers its
            // request.
            local.inspect(|rpc| {
                for session in rpc.sessions().collect::<Vec<_>>() {
                    rpc.disconnect(session).unwrap();
                }
            });
        });
        Self {
            address: at.recv().unwrap().to_string(),
            seen,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

#[test]
fn a_typed_client_calls_over_a_channel() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", 7);
        let channel = way.open(&server.address);
        let store = StoreClient::over(channel.clone());
        let later = LaterClient::over(channel);
        block_on(async {
            assert_eq!(store.get(&8).await.unwrap(), "value 8");
            assert!(matches!(store.get(&9).await, Err(Failure::Method(9))));
            assert_eq!(store.take(&()).await.unwrap(), 7);
            let unknown = later.added(&()).await;
            assert!(matches!(unknown, Err(Failure::UnknownMethod(Ran::No))));
            let bad = later.get(&()).await;
            assert!(matches!(bad, Err(Failure::BadRequest(Ran::No))));
        });
    }
}

#[test]
fn a_typed_call_is_a_task_of_tokio() {
    let server = Server::start(Way::Shm, "127.0.0.1:0", 7);
    let channel = Way::Shm.open(&server.address);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        // The call borrows neither the client nor the key.
        let calls = (0..64).map(|key| {
            let store = StoreClient::over(channel.clone());
            tokio::spawn(store.get(&(2 * key)))
        });
        for (key, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
            let value = call.await.unwrap().unwrap();
            assert_eq!(value, format!("value {}", 2 * key));
        }
    });
}

#[test]
fn the_server_gets_the_time_that_is_left() {
    for way in WAYS {
        let address = free_port();
        let store = StoreClient::over(way.open(&address));
        let (left, _server) = block_on(async {
            let call = store.patience(&()).deadline(Duration::from_secs(10));
            let mut call = std::pin::pin!(call);
            assert!(futures::poll!(call.as_mut()).is_pending());
            // The call has begun, so its wait for the server counts towards its deadline.
            std::thread::sleep(Duration::from_millis(500));
            let server = Server::start(way, &address, 7);
            (call.await.unwrap(), server)
        });
        assert!((1..=9_500_000).contains(&left), "{left}");
        assert_eq!(block_on(store.patience(&())).unwrap(), 0);
        let span = Duration::from_secs(20);
        let channel = way.channel(&address).deadline(span).open().unwrap();
        let left = block_on(StoreClient::over(channel).patience(&())).unwrap();
        assert!((1..=20_000_000).contains(&left), "{left}");
    }
}

#[test]
fn a_method_is_repeated_after_an_uncertain_end_only_if_it_is_idempotent() {
    for way in WAYS {
        let server = Server::start(way, &own_host(), HOLDS);
        let address = server.address.clone();
        let store = StoreClient::over(way.open(&address));
        let calls = std::thread::spawn(move || {
            block_on(async { futures::join!(store.read(&()), store.take(&())) })
        });
        until(|| server.seen.held.load(Ordering::Relaxed) == 2);
        drop(server);
        let second = Server::start(way, &address, 2);
        let (read, taken) = calls.join().unwrap();
        assert_eq!(read.unwrap(), 2);
        let failure = taken.unwrap_err();
        assert!(matches!(failure, Failure::Call(ChannelError::Call { .. })));
        assert!(failure.is_uncertain(), "{failure}");
        assert_eq!(second.seen.held.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_notification_is_sent_once_and_frees_its_place() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", HOLDS);
        let channel = way.channel(&server.address).queue(1).open().unwrap();
        let store = StoreClient::over(channel);
        for _ in 0..20 {
            until(|| store.touch(&3).is_ok());
        }
        until(|| server.seen.touched.load(Ordering::Relaxed) >= 60);
        // Time for a second copy to arrive. A test can wait for something, but not for its absence.
        std::thread::sleep(SHORT);
        assert_eq!(server.seen.touched.load(Ordering::Relaxed), 60);
        until(|| block_on(store.get(&2)).is_ok());
    }
}

#[test]
fn a_notification_without_a_server_is_given_up() {
    let channel = Way::Shm.channel(free_port()).patience(SHORT).queue(1);
    let channel = channel.open().unwrap();
    let store = StoreClient::over(channel);
    store.touch(&1).unwrap();
    let full = store.touch(&1).unwrap_err();
    assert!(matches!(full, Failure::Call(ChannelError::Full)), "{full}");
    until(|| store.touch(&1).is_ok());
}
