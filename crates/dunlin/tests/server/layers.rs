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

use crate::service::{Book, Polled, WorkClient, WorkPoll, Worker};
use crate::{PATIENCE, WAYS, Way, block_on};

/// The requests that a layer has seen: method and tenant.
pub(crate) type Seen = Arc<Mutex<Vec<(String, String)>>>;

/// Notes all requests, and rejects those of the tenant "red". It is not `Send`.
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

/// Polls a handler once, and drops it.
#[derive(Clone)]
struct Hasty(Handlers);

impl Service<Inbound> for Hasty {
    type Response = ();
    type Error = AsyncError;
    type Future = Pin<Box<dyn Future<Output = Result<(), AsyncError>>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), AsyncError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Inbound) -> Self::Future {
        let mut handling = self.0.call(request);
        Box::pin(async move {
            match futures::poll!(&mut handling) {
                Poll::Ready(end) => end,
                Poll::Pending => Ok(()),
            }
        })
    }
}

#[test]
fn a_handler_that_a_layer_drops_has_failed() {
    let book = Arc::<Book>::default();
    let server = Way::Shm.server().service(Worker::server(&book));
    let server = server.layer(Hasty).start("127.0.0.1:0").unwrap();
    let work = WorkClient::over(Way::Shm.open(server.address()));
    for hangs in 1..4 {
        let failed = block_on(work.hang(&()).deadline(Duration::from_secs(10)));
        let failed = failed.unwrap_err();
        assert!(failed.to_string().contains("handler failed"), "{failed}");
        assert_eq!(book.hangs.load(Ordering::Relaxed), hangs);
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
