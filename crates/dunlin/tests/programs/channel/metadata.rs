//! Metadata of calls, the context that handlers get of them, and calls that handlers make to serve
//! a request: over channels, on sessions, by futures and by the poll API.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel as queue};
use std::time::Duration;

use dunlin::service::{Context, Failure, META, Meta, MetaError, Peers, Postcard, poll};
use dunlin::{
    Auto, CallOptions, Caller, Channel, ChannelError, Cx, Done, Local, Nanos, Nexus, ReqType, Rpc,
    Running, Server, Tag, Tasks, service,
};

use crate::channel::{PATIENCE, WAYS, Way, block_on};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const DEADLINE: Duration = Duration::from_secs(10);

/// A handler's context: metadata, trace, method, address of the client, time left in µs.
type Facts = (
    Vec<(String, String)>,
    String,
    String,
    Option<SocketAddr>,
    u64,
);

#[service(codec = Postcard)]
trait Mirror {
    /// The facts about the request.
    #[method(1)]
    fn facts(nothing: ()) -> Facts;

    /// The facts about a call that the handler makes to serve this one.
    #[method(2)]
    fn pass(nothing: ()) -> Facts;

    /// The handler makes calls to serve this one, and polls them later: the time that each of them
    /// has left.
    #[method(3)]
    fn pass_late(nothing: ()) -> Vec<u64>;

    /// Sends notifications to serve this call.
    #[method(4)]
    fn tell(nothing: ()) -> ();

    /// Keeps the trace.
    #[notify(5)]
    fn told(nothing: ());
}

/// The time from the creation of a late call to its first poll.
const LATE: Duration = Duration::from_millis(50);

fn facts(context: &Context<'_>, at: &impl Peers, now: Nanos) -> Facts {
    let pairs = context.metadata().iter();
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let trace = context.metadata().trace_parent();
    let process = context.peer(at).and_then(|peer| peer.process);
    let left = context.left(now).map_or(0, |left| left.0 / 1000);
    (
        pairs.collect(),
        trace.map_or_else(String::new, |trace| trace.to_string()),
        context.method().to_owned(),
        process,
        left,
    )
}

struct Futures {
    cx: Caller,
    onward: Option<Channel>,
    asked: Arc<AtomicU64>,
    told: Option<Sender<String>>,
}

impl Futures {
    /// Clients of the other server: over a channel, and on a session.
    async fn others(&self) -> (MirrorClient<Channel>, MirrorClient<Caller>) {
        let onward = self.onward.clone().unwrap();
        let address = onward.state().addresses[0].address.clone();
        let session = self.cx.connect(address).await.unwrap();
        let on_session = MirrorClient::new(self.cx.clone(), session);
        (MirrorClient::over(onward), on_session)
    }
}

impl Mirror for Futures {
    async fn facts(&self, (): (), context: Context<'_>) -> Facts {
        self.asked.fetch_add(1, Ordering::Relaxed);
        facts(&context, &self.cx, self.cx.now())
    }

    async fn pass(&self, (): (), context: Context<'_>) -> Facts {
        let next = MirrorClient::over(self.onward.clone().unwrap());
        let long = DEADLINE * 100;
        let passed = next.facts(&()).deadline(long).under(&context).await;
        passed.unwrap()
    }

    async fn pass_late(&self, (): (), context: Context<'_>) -> Vec<u64> {
        let (over, on) = self.others().await;
        let long = DEADLINE * 100;
        let over = [
            over.facts(&()).under(&context),
            over.facts(&()).under(&context).deadline(long),
            over.facts(&()).deadline(long).under(&context),
        ];
        let on = [
            on.facts(&()).under(&context),
            on.facts(&()).under(&context).deadline(long),
            on.facts(&()).deadline(long).under(&context).within(None),
        ];
        self.cx.sleep(LATE).await;
        let mut left = Vec::new();
        for call in over {
            left.push(call.await.unwrap().4);
        }
        for call in on {
            left.push(call.await.unwrap().4);
        }
        left
    }

    async fn tell(&self, (): (), context: Context<'_>) {
        let (over, on) = self.others().await;
        over.told_notice(&()).under(&context).send().unwrap();
        on.told_notice(&()).under(&context).send().unwrap();
    }

    async fn told(&self, (): (), context: Context<'_>) {
        let trace = context.metadata().trace_parent().map(|it| it.to_string());
        let told = self.told.as_ref().unwrap();
        told.send(trace.unwrap_or_default()).unwrap();
    }
}

struct Polled;

impl MirrorPoll for Polled {
    fn facts(&mut self, (): (), cx: &mut Cx<'_>, context: Context<'_>) -> Facts {
        facts(&context, cx, cx.now())
    }

    fn pass(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) -> Facts {
        Facts::default()
    }

    fn pass_late(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) -> Vec<u64> {
        Vec::new()
    }

    fn tell(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) {}

    fn told(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) {}
}

fn futures(way: Way, onward: Option<Channel>) -> (Running, Arc<AtomicU64>) {
    telling(way, onward, None)
}

fn telling(
    way: Way,
    onward: Option<Channel>,
    told: Option<Sender<String>>,
) -> (Running, Arc<AtomicU64>) {
    let asked = Arc::<AtomicU64>::default();
    let ours = Arc::clone(&asked);
    let server = Server::builder().nexus(way.nexus()).service(move |thread| {
        MirrorServer(Futures {
            cx: thread.caller(),
            onward: onward.clone(),
            asked: Arc::clone(&ours),
            told: told.clone(),
        })
    });
    (server.start("127.0.0.1:0").unwrap(), asked)
}

fn polled(way: Way) -> Running {
    let server = Server::builder().nexus(way.nexus());
    let server = server.poll(|_| Polled, MirrorPoll::register);
    server.start("127.0.0.1:0").unwrap()
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = of
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()));
    owned.collect()
}

#[test]
fn a_handler_gets_the_metadata_of_a_call_over_a_channel() {
    for way in WAYS {
        let servers = [futures(way, None).0, polled(way)];
        for server in &servers {
            let channel = way.open(server.address());
            let client = channel.hub().nexus().address();
            let mirror = MirrorClient::over(channel);
            let plain = block_on(mirror.facts(&())).unwrap();
            let method = "Mirror.facts".to_owned();
            let nothing = (pairs(&[]), String::new(), method.clone(), Some(client), 0);
            assert_eq!(plain, nothing);
            let call = mirror.facts(&()).meta("tenant", "a").unwrap();
            let call = call.meta("traceparent", TRACE).unwrap();
            let got = block_on(call.meta("k", "Zo\u{eb}").unwrap()).unwrap();
            let both = pairs(&[("tenant", "a"), ("k", "Zo\u{eb}")]);
            let trace = TRACE.to_owned();
            assert_eq!(got, (both, trace, method, Some(client), 0));
            // The longest metadata, and a deadline with them.
            let long = "x".repeat(900);
            let call = mirror.facts(&()).deadline(DEADLINE).meta("k", &long);
            let got = block_on(call.unwrap()).unwrap();
            assert_eq!(got.0, pairs(&[("k", &long)]));
            assert!((1..=10_000_000).contains(&got.4), "{}", got.4);
        }
    }
}

#[test]
fn a_handler_gets_the_metadata_of_a_call_on_a_session() {
    let server = polled(Way::Shm);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default()).unwrap());
    let session = local.connect(server.address()).unwrap();
    local.block_on(|cx| async move {
        let mirror = MirrorClient::new(cx, session);
        let call = mirror.facts(&()).meta("tenant", "a").unwrap();
        let got = call.deadline(DEADLINE).await.unwrap();
        assert_eq!(got.0, pairs(&[("tenant", "a")]));
        assert!(got.4 > 0);
        let twice = mirror.facts(&()).meta("k", "").unwrap().meta("k", "");
        assert_eq!(twice.unwrap_err(), MetaError::Twice);
    });
}

#[test]
fn a_poll_program_sends_metadata() {
    let server = polled(Way::Shm);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc: Rpc<Auto, Option<Done>> = nexus.endpoint(None).unwrap();
    rpc.on_completion(|last, done, _| *last = Some(done));
    let session = rpc.connect_blocking(server.address()).unwrap();
    let mut meta = Meta::new();
    meta.add("tenant", "a").unwrap();
    let bufs = [rpc.buf(0).unwrap(), rpc.buf(4096).unwrap()];
    let options = CallOptions::default();
    let (_, mut cx) = rpc.with();
    poll::call_with_meta::<MirrorFacts>(&mut cx, session, &(), bufs, Tag(0), options, &meta)
        .unwrap();
    rpc.run_until(|rpc| rpc.app().is_some());
    let done = rpc.app_mut().take().unwrap();
    let got = MirrorStub::facts_response(&done).unwrap();
    assert_eq!(got.0, pairs(&[("tenant", "a")]));
}

#[test]
fn a_call_for_a_request_has_its_deadline_and_its_trace() {
    for way in WAYS {
        let (second, _) = futures(way, None);
        let (first, _) = futures(way, Some(way.open(second.address())));
        let mirror = MirrorClient::over(way.open(first.address()));
        let call = mirror.pass(&()).meta("traceparent", TRACE).unwrap();
        let call = call.meta("tenant", "a").unwrap().deadline(DEADLINE);
        let (others, trace, _, _, left) = block_on(call).unwrap();
        assert_eq!((others, &trace[..]), (pairs(&[]), TRACE));
        assert!((1..=10_000_000).contains(&left), "{left}");
        // If the request has no deadline, the call that serves it keeps its own.
        let (_, trace, _, _, left) = block_on(mirror.pass(&())).unwrap();
        assert_eq!(trace, "");
        assert!(left > 10_000_000, "{left}");
    }
}

#[test]
fn a_late_call_for_a_request_ends_with_the_request() {
    for way in WAYS {
        let (second, _) = futures(way, None);
        let (first, _) = futures(way, Some(way.open(second.address())));
        let mirror = MirrorClient::over(way.open(first.address()));
        let all = block_on(mirror.pass_late(&()).deadline(DEADLINE)).unwrap();
        // The time between the creation of a call and its first poll belongs to its request.
        let most = u64::try_from((DEADLINE - LATE).as_micros()).unwrap();
        assert!(all.iter().all(|left| (1..=most).contains(left)), "{all:?}");
    }
}

#[test]
fn a_notification_for_a_request_has_its_trace() {
    for way in WAYS {
        let (told, traces) = queue();
        let (second, _) = telling(way, None, Some(told));
        let (first, _) = futures(way, Some(way.open(second.address())));
        let mirror = MirrorClient::over(way.open(first.address()));
        for trace in [TRACE, ""] {
            let call = mirror.tell(&());
            let call = match trace {
                "" => call,
                trace => call.meta("traceparent", trace).unwrap(),
            };
            block_on(call).unwrap();
            for _ in 0..2 {
                assert_eq!(traces.recv_timeout(PATIENCE).unwrap(), trace);
            }
        }
    }
}

#[test]
fn a_call_without_a_type_has_metadata_too() {
    let (server, _) = futures(Way::Shm, None);
    let channel = Way::Shm.open(server.address());
    let facts = ReqType(1);
    let call = channel.call(facts, b"").meta("tenant", "a").unwrap();
    let copy = call.duplicate().unwrap();
    for call in [call, copy] {
        let answer = block_on(call).unwrap();
        assert!(answer.windows(7).any(|part| part == b"\x06tenant"));
    }
    let full = channel.call(ReqType(META), b"").meta("tenant", "a");
    assert_eq!(full.unwrap_err(), MetaError::Type);
}

#[test]
fn metadata_that_are_not_valid_reach_no_handler() {
    for way in WAYS {
        let (server, asked) = futures(way, None);
        let channel = way.open(server.address());
        let whole = [12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, b'k'];
        let with = |at: usize, byte: u8| {
            let mut bytes = whole.to_vec();
            bytes[at] = byte;
            bytes
        };
        let requests = [
            with(0, 7),
            with(0, 13),
            with(0, 0),
            with(8, 2),
            with(9, 1),
            with(11, b'K'),
            // A value that is not UTF-8, an entry too many, and metadata that are too long.
            front(&[("key", b"\xff")]),
            front(&[("key", b"caf\xc3")]),
            front(&[("k", b""); 33]),
            front(&[("k", &[b'v'; 1013])]),
            front(&[("traceparent", b"00")]),
        ];
        let valid = [
            front(&[("key", "caf\u{e9}".as_bytes())]),
            front(&[("k", b""); 32]),
            front(&[("k", &[b'v'; 1012])]),
        ];
        for request in requests {
            let call = channel.call(ReqType(1 | META), &request);
            let Err(ChannelError::Call { error, .. }) = block_on(call) else {
                panic!("{request:?} is accepted");
            };
            let failure = Failure::<()>::from(error);
            assert!(matches!(failure, Failure::BadRequest(_)), "{failure:?}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        for (count, request) in (1..).zip([&whole[..], &valid[0], &valid[1], &valid[2]]) {
            assert!(block_on(channel.call(ReqType(1 | META), request)).is_ok());
            assert_eq!(asked.load(Ordering::Relaxed), count);
        }
    }
}

/// A front with these entries, as another library may write it.
fn front<V: AsRef<[u8]>>(entries: &[(&str, V)]) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    for (key, value) in entries {
        let value = value.as_ref();
        bytes.push(u8::try_from(key.len()).unwrap());
        bytes.extend(u16::try_from(value.len()).unwrap().to_le_bytes());
        bytes.extend([key.as_bytes(), value].concat());
    }
    let len = u32::try_from(bytes.len()).unwrap();
    match u8::try_from(len) {
        Ok(len) => bytes[0] = len,
        Err(_) => bytes[1..4].copy_from_slice(&len.to_le_bytes()[..3]),
    }
    bytes
}
