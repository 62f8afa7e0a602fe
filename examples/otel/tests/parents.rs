//! Spans as OpenTelemetry exports them: each has the right parent, in the task that calls, across
//! processes' borders, and on the threads of another executor. Each test looks at its own trace.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use dunlin::service::{Context, Postcard};
use dunlin::spans::{TraceParent, set_traces};
use dunlin::{
    Channel, ChannelBuilder, Cx, ErrorCode, Hub, Offload, ReqType, Running, Server, Spawn, service,
};
use dunlin_otel_example::{
    Counter, OpenTelemetry, ShopClient, ShopSendServer, ShopServer, StockClient, StockServer,
    Storehouse,
};
use dunlin_testkit::wait::until;
use opentelemetry::trace::{SpanKind, Status, TraceId, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing::{Instrument, Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;

/// The spans of the process.
fn exporter() -> &'static InMemorySpanExporter {
    static EXPORTER: OnceLock<InMemorySpanExporter> = OnceLock::new();
    EXPORTER.get_or_init(|| {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone());
        let layer = tracing_opentelemetry::layer().with_tracer(provider.build().tracer("test"));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::set_global_default(subscriber).unwrap();
        set_traces(OpenTelemetry).unwrap();
        exporter
    })
}

/// Runs a task. This does not use the executor of `futures`, because the exporter uses it, and such
/// executors cannot run within each other.
fn block_on<F: Future>(task: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(task)
}

/// The spans of a trace, when there are `count` of them.
struct Trace(Vec<SpanData>);

impl Trace {
    fn of(id: TraceId, count: usize) -> Self {
        let all = || exporter().get_finished_spans().unwrap().into_iter();
        let own = || all().filter(|span| span.span_context.trace_id() == id);
        until(|| own().count() >= count);
        let spans: Vec<_> = own().collect();
        assert_eq!(spans.len(), count, "{spans:#?}");
        Self(spans)
    }

    fn find(&self, name: &str, kind: SpanKind) -> &SpanData {
        let mut all = self.0.iter();
        let found = all.find(|span| span.name == name && span.span_kind == kind);
        found.unwrap_or_else(|| panic!("no {name} {kind:?} in {:#?}", self.0))
    }

    /// Checks that each span is a child of the one before it.
    fn check_line(&self, line: &[(&str, SpanKind)]) {
        for pair in line.windows(2) {
            let [parent, child] = [0, 1].map(|at| self.find(pair[at].0, pair[at].1.clone()));
            let expected = parent.span_context.span_id();
            assert_eq!(child.parent_span_id, expected, "{parent:#?}\n{child:#?}");
        }
    }
}

fn field(span: &SpanData, key: &str) -> Option<String> {
    let mut fields = span.attributes.iter();
    let found = fields.find(|field| field.key.as_str() == key);
    found.map(|field| field.value.as_str().into_owned())
}

/// Runs a task within a new span, whose trace it returns.
fn within<F: Future>(task: F) -> (F::Output, TraceId) {
    exporter();
    let span = info_span!("test");
    let output = block_on(task.instrument(span.clone()));
    let id = opentelemetry::trace::TraceContextExt::span(&span.context())
        .span_context()
        .trace_id();
    (output, id)
}

fn channel(server: &Running) -> ChannelBuilder {
    let hub = Hub::builder().listen("127.0.0.1:0").start().unwrap();
    hub.channel().address(server.address().to_string())
}

fn start_stock() -> Running {
    let stock = Server::builder().service(|_| StockServer(Storehouse));
    stock.start("127.0.0.1:0").unwrap()
}

/// The spans of a purchase, from the span of a test on.
const PURCHASE: [(&str, SpanKind); 5] = [
    ("test", SpanKind::Internal),
    ("Shop.buy", SpanKind::Client),
    ("Shop.buy", SpanKind::Server),
    ("Stock.take", SpanKind::Client),
    ("Stock.take", SpanKind::Server),
];

#[test]
fn a_call_its_request_and_the_call_made_for_it_follow_each_other() {
    let stock = start_stock();
    let to_stock = channel(&stock).open().unwrap();
    let shop = Server::builder()
        .service(move |_| ShopServer(Counter(StockClient::over(to_stock.clone()))))
        .start("127.0.0.1:0")
        .unwrap();
    let customer = ShopClient::over(channel(&shop).open().unwrap());
    let (bought, id) = within(async { customer.buy(&2).await });
    assert_eq!(bought.unwrap(), 6);
    let trace = Trace::of(id, PURCHASE.len());
    trace.check_line(&PURCHASE);
    for (name, kind) in &PURCHASE[1..] {
        let span = trace.find(name, kind.clone());
        let (service, method) = name.split_once('.').unwrap();
        assert_eq!(field(span, "service").as_deref(), Some(service));
        assert_eq!(field(span, "method").as_deref(), Some(method));
        assert_eq!(field(span, "code").as_deref(), Some("ok"));
        assert!(field(span, "peer").is_some_and(|peer| peer.starts_with("127.0.0.1:")));
    }
    let call = trace.find("Stock.take", SpanKind::Client);
    assert_eq!(field(call, "peer"), Some(stock.address().to_string()));
    assert_eq!(field(call, "attempts").as_deref(), Some("1"));
}

/// An executor with a thread for each future.
struct Threads;

impl Spawn for Threads {
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        std::thread::spawn(|| block_on(future));
    }
}

#[test]
fn handlers_on_other_threads_continue_the_trace() {
    let stock = start_stock();
    let to_stock = channel(&stock).open().unwrap();
    let shop = Server::builder()
        .service(move |_| {
            let counter = Counter(StockClient::over(to_stock.clone()));
            Offload::new(ShopSendServer(counter), Threads)
        })
        .start("127.0.0.1:0")
        .unwrap();
    let customer = ShopClient::over(channel(&shop).open().unwrap());
    let (bought, id) = within(async { customer.buy(&2).await });
    assert_eq!(bought.unwrap(), 6);
    Trace::of(id, PURCHASE.len()).check_line(&PURCHASE);
}

/// A service that fails, hangs, or reports its trace.
#[service(codec = Postcard)]
trait Odd {
    /// Fails.
    #[method(1)]
    fn fail(nothing: ()) -> u32;
    /// Never answers.
    #[method(2)]
    fn hang(nothing: ()) -> u32;
    /// Returns the trace that the request has, if it has one.
    #[method(3)]
    fn trace(nothing: ()) -> Option<String>;
}

/// Notes whether a client hangs.
#[derive(Clone, Default)]
struct Oddity(Arc<AtomicBool>);

impl Odd for Oddity {
    async fn fail(&self, (): (), _: Context<'_>) -> u32 {
        panic!("as the client wishes")
    }

    async fn hang(&self, (): (), _: Context<'_>) -> u32 {
        self.0.store(true, Ordering::Relaxed);
        std::future::pending().await
    }

    async fn trace(&self, (): (), context: Context<'_>) -> Option<String> {
        context
            .metadata()
            .trace_parent()
            .map(|trace| trace.to_string())
    }
}

impl OddPoll for Oddity {
    fn fail(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) -> u32 {
        0
    }

    fn hang(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) -> u32 {
        0
    }

    fn trace(&mut self, (): (), _: &mut Cx<'_>, context: Context<'_>) -> Option<String> {
        info_span!("inside").in_scope(|| {});
        context
            .metadata()
            .trace_parent()
            .map(|trace| trace.to_string())
    }
}

fn start_odd() -> Running {
    start(Oddity::default())
}

fn start(oddity: Oddity) -> Running {
    let odd = Server::builder().service(move |_| OddServer(oddity.clone()));
    odd.start("127.0.0.1:0").unwrap()
}

#[test]
fn spans_of_failures_have_codes_and_are_errors() {
    let server = start_odd();
    let odd = OddClient::over(channel(&server).open().unwrap());
    let (failed, id) = within(async { odd.fail(&()).await });
    failed.unwrap_err();
    let trace = Trace::of(id, 3);
    let failed = ErrorCode::HANDLER_FAILED.to_string();
    for kind in [SpanKind::Client, SpanKind::Server] {
        let span = trace.find("Odd.fail", kind);
        assert_eq!(field(span, "code"), Some(failed.clone()));
        assert!(matches!(span.status, Status::Error { .. }), "{span:#?}");
    }
    assert!(field(trace.find("Odd.fail", SpanKind::Client), "error").is_some());
}

#[test]
fn a_call_without_a_server_has_no_answer() {
    let server = start_odd();
    let patience = std::time::Duration::ZERO;
    let channel = channel(&server).patience(patience).open().unwrap();
    drop(server);
    let (ended, id) = within(async { OddClient::over(channel).hang(&()).await });
    ended.unwrap_err();
    let trace = Trace::of(id, 2);
    let call = trace.find("Odd.hang", SpanKind::Client);
    assert_eq!(field(call, "code").as_deref(), Some("no answer"));
    assert_eq!(field(call, "attempts").as_deref(), Some("0"));
}

#[test]
fn spans_of_dropped_calls_are_cancelled() {
    let oddity = Oddity::default();
    let server = start(oddity.clone());
    let odd = OddClient::over(channel(&server).open().unwrap());
    let ((), id) = within(async {
        let mut call = pin!(odd.hang(&()));
        // Drops the call when the server has it.
        poll_fn(|context| {
            assert!(call.as_mut().poll(context).is_pending());
            context.waker().wake_by_ref();
            match oddity.0.load(Ordering::Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    });
    let trace = Trace::of(id, 3);
    let cancelled = ErrorCode::CANCELLED.to_string();
    for kind in [SpanKind::Client, SpanKind::Server] {
        let code = field(trace.find("Odd.hang", kind), "code");
        assert_eq!(code.as_ref(), Some(&cancelled));
    }
}

#[test]
fn the_server_reads_the_trace_of_the_calls_span_and_the_poll_api_enters_its_own() {
    let server = Server::builder()
        .poll(|_| Oddity::default(), OddPoll::register)
        .start("127.0.0.1:0")
        .unwrap();
    let odd = OddClient::over(channel(&server).open().unwrap());
    let (read, id) = within(async { odd.trace(&()).await });
    let read: TraceParent = read.unwrap().unwrap().parse().unwrap();
    let trace = Trace::of(id, 4);
    let call = trace.find("Odd.trace", SpanKind::Client);
    assert_eq!(read.trace(), id.to_bytes());
    assert_eq!(read.span(), call.span_context.span_id().to_bytes());
    trace.check_line(&[
        ("test", SpanKind::Internal),
        ("Odd.trace", SpanKind::Client),
        ("Odd.trace", SpanKind::Server),
        ("inside", SpanKind::Internal),
    ]);
}

const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_trace_that_the_program_gives_goes_to_the_server_as_it_is() {
    exporter();
    let server = start_odd();
    let odd = OddClient::over(channel(&server).open().unwrap());
    let call = odd.trace(&()).meta("traceparent", GIVEN).unwrap();
    assert_eq!(block_on(call).unwrap().as_deref(), Some(GIVEN));
    let given: TraceParent = GIVEN.parse().unwrap();
    let trace = Trace::of(TraceId::from_bytes(given.trace()), 2);
    for span in &trace.0 {
        assert_eq!(span.parent_span_id.to_bytes(), given.span());
    }
}

#[test]
fn a_call_without_metadata_keeps_its_request_type() {
    exporter();
    let server = Server::builder()
        .poll(
            |_| (),
            |rpc| {
                rpc.on(ReqType(7), |(), request, cx| {
                    request.reply_bytes(cx, b"here")
                });
            },
        )
        .start("127.0.0.1:0")
        .unwrap();
    let channel: Channel = channel(&server).open().unwrap();
    let (answer, id) = within(async { channel.call(ReqType(7), b"").await });
    assert_eq!(answer.unwrap().data(), b"here");
    let trace = Trace::of(id, 2);
    let call = trace
        .0
        .iter()
        .find(|span| span.span_kind == SpanKind::Client);
    assert_eq!(field(call.unwrap(), "method").as_deref(), Some("7"));
    assert!(Span::current().is_none());
}
