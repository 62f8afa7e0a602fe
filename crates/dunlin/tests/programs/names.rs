//! Through `dunlin` alone, a program can name every type that it passes or receives: this program
//! spells out the signatures of its functions.

use std::net::SocketAddr;

use dunlin::transport::{AutoOptions, Counters as TransportCounters, Ecn, ShmOptions, UdpOptions};
use dunlin::{
    AddError, AllocError, Auto, BackgroundRequest, Batch, BatchFn, BatchItem, BytesPerSec,
    CallError, CallErrorKind, CallId, CallOptions, CompletionFn, Config, ConfigError,
    CongestionControl, ConnectError, ConnectFailure, ConnectOptions, Counters, Cx, DeferredRequest,
    DispatchFn, Done, EndpointBuilder, EndpointError, HandleError, Idle, MAX_BATCH, MsgBuf, Nanos,
    Nexus, NexusBuilder, NexusError, Open, PlaneCounters, Progress, RefuseCode, ReqType, Request,
    Rng, Rpc, Sample, Session, SessionEvent, SessionFn, SessionInfo, Shm, Tag, TimerFn, TimerToken,
    TooLong, WorkerOptions,
};

const ECHO: ReqType = ReqType(1);
const BATCH: ReqType = ReqType(2);
const SLOW: ReqType = ReqType(3);

#[derive(Default)]
struct App {
    held: Vec<DeferredRequest>,
    done: Vec<Done>,
    events: Vec<SessionEvent>,
    ticks: u64,
    dice: u64,
}

/// The handlers of a service, as a table.
struct Service {
    echo: DispatchFn<App>,
    batch: BatchFn<App>,
    done: CompletionFn<App>,
    session: SessionFn<App>,
    tick: TimerFn<App>,
}

const SERVICE: Service = Service {
    echo,
    batch,
    done,
    session,
    tick,
};

fn echo(app: &mut App, request: Request<'_>, cx: &mut Cx<'_>) {
    app.dice = roll(cx.rng());
    app.held.push(request.defer(cx));
    if let Some(held) = app.held.pop() {
        held.reply_bytes(cx, &app.dice.to_le_bytes());
    }
}

fn roll(rng: &mut Rng) -> u64 {
    rng.next_u64()
}

fn batch(_: &mut App, mut batch: Batch<'_>, _: &mut Cx<'_>) {
    let mut items: [Option<BatchItem<'_>>; MAX_BATCH] = [const { None }; MAX_BATCH];
    for (place, item) in items.iter_mut().zip(unanswered(&mut batch)) {
        *place = Some(item);
    }
    for item in items.into_iter().flatten() {
        answer(item).unwrap();
    }
    assert_eq!(unanswered(&mut batch).count(), 0);
}

/// The iterator lives as long as its borrow of the batch; the lifetime of the batch's own contents
/// does not limit it.
fn unanswered<'b>(batch: &'b mut Batch<'_>) -> impl Iterator<Item = BatchItem<'b>> + use<'b> {
    batch.iter_mut()
}

fn answer(item: BatchItem<'_>) -> Result<(), TooLong> {
    let data = item.data();
    item.reply(data.len(), |out| out.copy_from_slice(data))
}

fn slow(request: BackgroundRequest<'_>) {
    let answered: Result<(), TooLong> = request.reply(0, |_, _| {});
    answered.unwrap();
}

fn done(app: &mut App, done: Done, _: &mut Cx<'_>) {
    app.done.push(done);
}

fn session(app: &mut App, event: SessionEvent, _: &mut Cx<'_>) {
    app.events.push(event);
}

fn tick(app: &mut App, token: TimerToken, _: &mut Cx<'_>) {
    app.ticks += token.0;
}

fn register<T: Open>(rpc: &mut Rpc<T, App>, service: &Service) {
    rpc.on(ECHO, service.echo);
    rpc.on_batch(BATCH, service.batch);
    rpc.on_background(SLOW, 0, slow);
    rpc.on_completion(service.done);
    rpc.on_session(service.session);
    rpc.on_timer(service.tick);
}

fn options<T: Open>(
    builder: EndpointBuilder<T>,
    change: impl FnOnce(&mut T::Options),
) -> EndpointBuilder<T> {
    let builder = builder.config(|config: &mut Config| config.backlog = 10);
    builder.idle(Idle::default()).transport(change)
}

fn change(options: &mut AutoOptions) {
    let (shm, udp): (&mut ShmOptions, &mut UdpOptions) = (&mut options.shm, &mut options.udp);
    shm.cells = 256;
    udp.ecn = Ecn::Off;
}

fn bufs<T: Open>(rpc: &mut Rpc<T, App>) -> Result<[MsgBuf; 2], AllocError> {
    Ok([rpc.buf(8)?, rpc.buf(8)?])
}

fn issue<T: Open>(
    rpc: &mut Rpc<T, App>,
    session: Session,
    [request, response]: [MsgBuf; 2],
) -> Result<CallId, CallError> {
    let options = CallOptions {
        deadline: Some(Nanos::from_secs(5)),
    };
    rpc.call_with(session, ECHO, request, response, Tag(0), options)
}

/// A scheme that lets everything pass.
#[derive(Debug)]
struct Free;

impl CongestionControl for Free {
    fn on_answer(&mut self, _: Sample) {}

    fn on_timeout(&mut self, _: Nanos) {}

    fn rate(&self) -> Option<BytesPerSec> {
        None
    }
}

/// Whether an operator must act: a decision that a program makes from the kind of error.
fn is_for_the_operator(error: &ConnectError) -> bool {
    let ConnectError::Failed(ConnectFailure::Refused(code)) = error else {
        return false;
    };
    matches!(*code, RefuseCode::NoCommonTransport | RefuseCode::Version)
}

fn taken(error: &EndpointError) -> Option<&AddError> {
    match error {
        EndpointError::Index(error) => Some(error),
        EndpointError::Config(ConfigError::Memory) => None,
        _ => None,
    }
}

fn start(builder: NexusBuilder) -> Result<(Nexus, SocketAddr), NexusError> {
    let nexus = builder
        .worker_options(WorkerOptions::default())
        .bind("127.0.0.1:0")?;
    let address = nexus.address();
    Ok((nexus, address))
}

#[test]
fn a_program_names_all_that_it_uses() {
    let (nexus, address) = start(Nexus::builder()).unwrap();
    let builder = options(nexus.endpoint_builder::<Auto>(), change);
    let mut rpc: Rpc<Auto, App> = builder.build(App::default()).unwrap();
    register(&mut rpc, &SERVICE);
    // An endpoint may call itself.
    let session = rpc.connect_with(address, &ConnectOptions::default());
    let session = session.inspect_err(|error| assert!(!is_for_the_operator(error)));
    let session = session.unwrap();
    rpc.wait_connected(session).unwrap();
    rpc.set_own_scheme(session, Box::new(Free)).unwrap();
    let pair = bufs(&mut rpc).unwrap();
    let id: CallId = issue(&mut rpc, session, pair).unwrap();
    let _ = id;
    let progress: Progress = rpc.run_once();
    let _ = progress;
    rpc.run_until(|rpc| !rpc.app().done.is_empty());
    assert_eq!(rpc.app().done[0].result, Ok(()));
    let info: Result<SessionInfo, HandleError> = rpc.session_info(session);
    assert!(info.is_ok());
    let counters: &Counters = rpc.counters();
    assert_eq!(counters.retransmissions, 0);
    let moved: TransportCounters = rpc.transport_counters();
    assert!(moved.tx_packets > 0);
    let plane: Option<PlaneCounters> = nexus.counters();
    assert_eq!(plane.map(|it| it.bad_messages), Some(0));
    let again = nexus.endpoint_builder::<Shm>().index(rpc.index());
    let error = again.build(App::default()).unwrap_err();
    assert!(taken(&error).is_some(), "{error}");
    let unknown = bufs(&mut rpc).unwrap();
    assert!(rpc.disconnect(session).is_ok());
    let refused: CallError = issue(&mut rpc, session, unknown).unwrap_err();
    assert_eq!(refused.kind, CallErrorKind::NoSession);
}
