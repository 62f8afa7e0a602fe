//! Layers around the handlers of a server: layers of these tests, and tower's.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use dunlin::service::Failure;
use dunlin::{
    AsyncError, Auto, ErrorCode, Handlers, HealthState, Inbound, Ran, ServeError, ask_health,
};
use tower::{Service, ServiceBuilder};

use crate::server::service::{
    Based, BasedClient, BasedServer, Book, Polled, WorkClient, WorkPoll, Worker,
};
use crate::server::{PATIENCE, WAYS, Way, block_on};

/// The requests that a layer has seen: method and tenant.
pub(crate) type Seen = Arc<Mutex<Vec<(String, String)>>>;

/// Notes all requests, and rejects requests of the tenant "red". It is not `Send`.
#[derive(Clone)]
pub(crate) struct Gate {
    inner: Handlers,
    seen: Seen,
    _thread: Rc<()>,
}

impl Gate {
    pub(crate) fn new(inner: Handlers, seen: &Seen) -> Self {
        Self {
            inner,
            seen: Arc::clone(seen),
            _thread: Rc::default(),
        }
    }
}

impl Service<Inbound> for Gate {
    type Response = ();
    type Error = AsyncError;
    type Future = Pin<Box<dyn Future<Output = Result<(), AsyncError>>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), AsyncError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Inbound) -> Self::Future {
        let context = request.context().unwrap();
        let tenant = context.metadata().get("tenant").unwrap_or_default();
        let (method, tenant) = (context.method().to_owned(), tenant.to_owned());
        let is_red = tenant == "red";
        self.seen.lock().unwrap().push((method, tenant));
        match is_red {
            true => Box::pin(std::future::ready(
                request.reject(ErrorCode::application(7)),
            )),
            false => Box::pin(self.inner.call(request)),
        }
    }
}

#[test]
fn a_layer_sees_and_rejects_requests() {
    for way in WAYS {
        let (book, seen) = (Arc::<Book>::default(), Seen::default());
        let noted = Arc::clone(&seen);
        let server = way.server().service(Worker::server(&book));
        let server = server.layer(move |handlers| Gate::new(handlers, &noted));
        let server = server.start("127.0.0.1:0").unwrap();
        let work = WorkClient::over(way.open(server.address()));
        assert_eq!(block_on(work.run(&(1, 0))).unwrap(), 1);
        let blue = work.run(&(2, 0)).meta("tenant", "blue").unwrap();
        assert_eq!(block_on(blue).unwrap(), 2);
        let red = work.run(&(3, 0)).meta("tenant", "red").unwrap();
        let rejected = block_on(red).unwrap_err();
        let Failure::Call(error) = rejected else {
            panic!("{rejected:?}");
        };
        assert_eq!(error.ran(), Ran::Yes);
        assert!(error.to_string().contains('7'), "{error}");
        assert_eq!(block_on(work.thread(&())).unwrap(), 0);
        let seen = seen.lock().unwrap();
        let expected = [
            ("Work.run", ""),
            ("Work.run", "blue"),
            ("Work.run", "red"),
            ("Work.thread", ""),
        ];
        assert_eq!(
            *seen,
            expected.map(|(method, tenant)| (method.to_owned(), tenant.to_owned()))
        );
        assert!(!book.runs.lock().unwrap().contains_key(&3));
    }
}

#[test]
fn a_request_that_a_layer_sheds_has_not_run() {
    for way in WAYS {
        let book = Arc::<Book>::default();
        let server = way.server().service(Worker::server(&book));
        let server = server.layer(|handlers| {
            let layers = ServiceBuilder::new().load_shed().concurrency_limit(1);
            layers.service(handlers)
        });
        let server = server.start("127.0.0.1:0").unwrap();
        let work = WorkClient::over(way.open(server.address()));
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(5));
        let hangs = || book.hangs.load(Ordering::Relaxed);
        block_on(async {
            let first = tokio::spawn(work.hang(&()));
            while hangs() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let shed = work.hang(&()).deadline(long).await.unwrap_err();
            assert_eq!((shed.ran(), hangs()), (Ran::No, 1));
            // The server drops the future of the first handler, which makes room for another.
            first.abort();
            while hangs() == 1 {
                work.hang(&()).deadline(short).await.unwrap_err();
            }
        });
    }
}

#[test]
fn a_request_waits_in_a_layer_that_is_not_ready() {
    let book = Arc::<Book>::default();
    let server = Way::Shm.server().service(Worker::server(&book));
    let server = server.layer(|handlers| {
        let layers = ServiceBuilder::new().concurrency_limit(1);
        layers.service(handlers)
    });
    let server = server.start("127.0.0.1:0").unwrap();
    let work = WorkClient::over(Way::Shm.open(server.address()));
    block_on(async {
        let calls = (0..20).map(|job| work.run(&(job, 1)));
        let ended = futures::future::join_all(calls).await;
        for (job, end) in (0..20).zip(ended) {
            assert_eq!(end.unwrap(), job);
        }
    });
}

/// Polls a handler once, or never, and drops it.
#[derive(Clone)]
struct Hasty {
    inner: Handlers,
    polls: bool,
}

impl Service<Inbound> for Hasty {
    type Response = ();
    type Error = AsyncError;
    type Future = Pin<Box<dyn Future<Output = Result<(), AsyncError>>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), AsyncError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Inbound) -> Self::Future {
        let mut handling = self.inner.call(request);
        let polls = self.polls;
        Box::pin(async move {
            if polls && let Poll::Ready(end) = futures::poll!(&mut handling) {
                return end;
            }
            Ok(())
        })
    }
}

/// How three calls end whose handlers a layer drops, and the handlers that have run.
fn drop_handlers(polls: bool, ran: Ran) -> usize {
    let book = Arc::<Book>::default();
    let server = Way::Shm.server().service(Worker::server(&book));
    let server = server.layer(move |inner| Hasty { inner, polls });
    let server = server.start("127.0.0.1:0").unwrap();
    let work = WorkClient::over(Way::Shm.open(server.address()));
    for _ in 0..3 {
        let failed = block_on(work.hang(&()).deadline(Duration::from_secs(10)));
        let failed = failed.unwrap_err();
        assert_eq!(failed.ran(), ran, "{failed}");
    }
    book.hangs.load(Ordering::Relaxed)
}

#[test]
fn a_handler_that_a_layer_drops_has_failed() {
    assert_eq!(drop_handlers(true, Ran::Unknown), 3);
}

#[test]
fn a_handler_that_a_layer_drops_before_its_first_poll_has_not_run() {
    assert_eq!(drop_handlers(false, Ran::No), 0);
}

/// Panics with odd numbers.
struct Even;

impl Based for Even {
    async fn twice(&self, number: u64, _: dunlin::service::Context<'_>) -> u64 {
        assert!(number.is_multiple_of(2), "a handler fails");
        2 * number
    }
}

#[test]
fn a_handler_below_layers_that_panics_fails_alone() {
    let server = Way::Shm.server().service(|_| BasedServer(Even));
    let server = server.layer(|handlers| handlers);
    let server = server.start("127.0.0.1:0").unwrap();
    let even = BasedClient::over(Way::Shm.open(server.address()));
    for number in 0..10 {
        let end = block_on(even.twice(&number).deadline(Duration::from_secs(10)));
        match number % 2 {
            0 => assert_eq!(end.unwrap(), 2 * number),
            _ => assert_eq!(end.unwrap_err().ran(), Ran::Unknown),
        }
    }
}

#[test]
fn layers_wrap_no_poll_service() {
    let server = Way::Shm.server().poll(Polled, WorkPoll::register);
    let server = server.layer(|handlers| handlers);
    let refused = server.start("127.0.0.1:0").unwrap_err();
    assert!(matches!(refused, ServeError::LayersOfPolls), "{refused}");
}

#[test]
fn a_service_below_layers_has_health_by_name() {
    let seen = Seen::default();
    let server = Way::Shm.server();
    let server = server.service(Worker::server(&Arc::default()));
    let server = server.layer(move |inner| Gate::new(inner, &seen));
    let server = server.start("127.0.0.1:0").unwrap();
    let nexus = Way::Shm.nexus().bind("127.0.0.1:0").unwrap();
    let from = nexus.endpoint_builder::<Auto>();
    let asked = ask_health(from, server.address(), "Work", PATIENCE);
    assert_eq!(asked.unwrap(), HealthState::Serving);
}
