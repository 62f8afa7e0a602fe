//! No allocation per typed call of a fixed layout after set-up, on either side and by either face
//! (design §11).

use std::task::{self, Poll};
use std::time::Duration;

use dunlin::service::Context;
use dunlin::{
    Auto, CallOptions, Caller, Cx, Handlers, Inbound, Local, MsgBuf, Nexus, Rpc, Session, Shm, Tag,
    Tasks,
};
use tower::Service;
use zerocopy::little_endian::U64;

use crate::typed::{
    Asynchronous, KvClient, KvPoll, KvServer, KvStub, KvSum, PATIENCE, Pair, Polled, pair,
};
use dunlin_testkit::counting::{allocations_in, first_allocation};

const WARM_UP: u64 = 2_000;
const CALLS: u64 = 10_000;

/// Calls with a value, with an error of the method's own, with a deadline, and a notification.
async fn call(cx: Caller, session: Session, count: u64) {
    let kv = KvClient::new(cx, session);
    for number in 1..=count {
        assert_eq!(kv.sum(&pair(number, 1)).await, Ok(U64::new(number + 1)));
        assert!(kv.put(&pair(0, 1)).deadline(PATIENCE).await.is_err());
        kv.touch(&U64::new(1)).unwrap();
    }
}

/// An endpoint that calls itself, so that one thread does what both sides do.
#[test]
fn typed_futures_allocate_nothing() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut local: Local<Shm> = Local::new(nexus.endpoint(Tasks::default()).unwrap());
    let (cx, touched) = (local.caller(), std::cell::Cell::new(0));
    local.serve_typed(KvServer(Asynchronous { cx, touched }));
    let session = local.connect(nexus.address()).unwrap();
    local.block_on(|cx| call(cx, session, WARM_UP));
    let count = allocations_in(|| local.block_on(|cx| call(cx, session, CALLS)));
    assert_eq!(count, 0, "first: {}", first_allocation());
}

/// A layer that passes everything on.
#[derive(Clone)]
struct Empty(Handlers);

impl Service<Inbound> for Empty {
    type Response = ();
    type Error = <Handlers as Service<Inbound>>::Error;
    type Future = <Handlers as Service<Inbound>>::Future;

    fn poll_ready(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Inbound) -> Self::Future {
        self.0.call(request)
    }
}

#[test]
fn a_layer_allocates_nothing() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default()).unwrap());
    let (cx, touched) = (local.caller(), std::cell::Cell::new(0));
    let service = KvServer(Asynchronous { cx, touched });
    dunlin::serve_layered(&mut local, service, Empty);
    let session = local.connect(nexus.address()).unwrap();
    local.block_on(|cx| call(cx, session, WARM_UP));
    let count = allocations_in(|| local.block_on(|cx| call(cx, session, CALLS)));
    assert_eq!(count, 0, "first: {}", first_allocation());
}

/// A server, and a client that issues the next call when one has ended.
struct Both {
    server: Polled,
    kv: Option<KvStub>,
    left: u64,
}

impl Both {
    fn issue(&mut self, bufs: [MsgBuf; 2], cx: &mut Cx<'_>) {
        let Some(kv) = self.kv.filter(|_| self.left != 0) else {
            return cx.recycle(bufs);
        };
        self.left -= 1;
        let deadline = self.left.is_multiple_of(2).then_some(PATIENCE.into());
        let options = CallOptions { deadline };
        kv.sum_with(cx, &pair(self.left, 1), bufs, Tag(self.left), options)
            .unwrap();
    }
}

#[test]
fn typed_calls_of_the_poll_api_allocate_nothing() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc: Rpc<Shm, Both> = nexus
        .endpoint(Both {
            server: Polled::default(),
            kv: None,
            left: 0,
        })
        .unwrap();
    dunlin::service::poll::register::<KvSum, _, _>(&mut rpc, |app, request, cx| {
        let sum = |app: &mut Both, pair: &Pair, cx: &mut Cx<'_>, context: Context<'_>| {
            app.server.sum(pair, cx, context)
        };
        dunlin::service::poll::serve::<KvSum, Both>(app, request, cx, sum);
    });
    rpc.on_completion(|app, done, cx| {
        assert_eq!(KvStub::sum_response(&done), Ok(&U64::new(done.tag.0 + 1)));
        app.issue([done.request, done.response], cx);
    });
    let session = rpc.connect_blocking(nexus.address()).unwrap();
    rpc.app_mut().kv = Some(KvStub(session));
    let mut run = |count| {
        let bufs = [rpc.buf(16).unwrap(), rpc.buf(16).unwrap()];
        let (app, mut cx) = rpc.with();
        app.left = count;
        app.issue(bufs, &mut cx);
        let end = rpc.counters().completions + count;
        rpc.run_until(|rpc| rpc.counters().completions >= end);
    };
    run(WARM_UP);
    let count = allocations_in(|| run(CALLS));
    assert_eq!(count, 0, "first: {}", first_allocation());
}

/// The proofs above can fail: postcard makes values on the heap.
#[test]
fn a_codec_that_allocates_is_seen() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut local: Local<Shm> = Local::new(nexus.endpoint(Tasks::default()).unwrap());
    let (cx, touched) = (local.caller(), std::cell::Cell::new(0));
    local.serve_typed(KvServer(Asynchronous { cx, touched }));
    let session = local.connect(nexus.address()).unwrap();
    let names = vec!["a".to_owned()];
    let mut ask = || {
        local.block_on(|cx| async {
            let kv = KvClient::new(cx, session);
            let found = kv.find(&names).deadline(Duration::from_secs(10)).await;
            assert_eq!(found, Ok(vec![1]));
        });
    };
    ask();
    assert_ne!(allocations_in(ask), 0);
    let _ = first_allocation();
}
