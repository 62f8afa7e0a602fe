//! Typed services over shared memory (`docs/services.md`): both kinds of server and client, every
//! codec, and versions of a service that do not fit together.

mod allocations;
mod edges;
mod evolution;
mod old_server;
mod wrong;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use dunlin::service::{Codec, Context, DecodeError, EncodeError, Failure, Fixed, Postcard, ViewOf};
use dunlin::{
    AsyncError, Caller, Cx, Done, Local, Nanos, Nexus, Ran, Rpc, RpcError, Session, Shm, Tag,
    Tasks, service,
};
use futures::channel::oneshot;
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// No wait takes this long unless a test fails.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Debug,
)]
#[repr(C)]
struct Pair {
    key: U64,
    value: U64,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum Trouble {
    Unknown { name: String },
    Busy,
}

/// Text, unchanged: a codec of the user's own.
struct Text;

impl Codec<String> for Text {
    type View<'a> = &'a str;

    fn size(value: &String) -> Result<usize, EncodeError> {
        // Some values cannot be encoded.
        if value.contains('\0') {
            Err(EncodeError)
        } else {
            Ok(value.len())
        }
    }

    fn encode(value: &String, out: &mut [u8]) {
        out.copy_from_slice(value.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<&str, DecodeError> {
        std::str::from_utf8(bytes).map_err(|_| DecodeError::Malformed)
    }

    fn to_owned(view: &str) -> String {
        view.into()
    }
}

#[service(codec = Fixed)]
trait Kv {
    /// Stores a pair, unless the key is 0.
    #[method(10)]
    fn put(pair: Pair) -> Result<U64, u8>;

    /// The address at which the handler saw the message, counted from the start of the frame.
    #[method(11)]
    fn sum(pair: Pair) -> U64;

    #[notify(12)]
    fn touch(key: U64);

    #[method(13, codec = Postcard)]
    fn find(names: Vec<String>) -> Result<Vec<u32>, Trouble>;

    #[method(14, codec = Text)]
    fn shout(text: String) -> String;

    /// The client's patience in microseconds; 0: forever.
    #[method(15)]
    fn patience(nothing: ()) -> U64;

    #[method(16)]
    fn sleep(nothing: ()) -> ();

    /// How often `touch` was called.
    #[method(17)]
    fn touches(nothing: ()) -> U64;
}

struct Asynchronous {
    cx: Caller,
    touched: Cell<u64>,
}

fn left_us(context: &Context<'_>, now: Nanos) -> U64 {
    U64::new(context.left(now).map_or(0, |left| left.0 / 1000))
}

/// The text in capitals; the codec cannot encode the answer to "nothing".
fn shouted(text: &str) -> String {
    match text {
        "nothing" => "\0".to_owned(),
        text => text.to_uppercase(),
    }
}

fn found(names: &[String]) -> Result<Vec<u32>, Trouble> {
    match names.iter().find(|name| name.len() > 3) {
        Some(name) => Err(Trouble::Unknown { name: name.clone() }),
        None if names.is_empty() => Err(Trouble::Busy),
        None => Ok(names
            .iter()
            .map(|name| u32::try_from(name.len()).unwrap())
            .collect()),
    }
}

impl Kv for Asynchronous {
    async fn put(&self, pair: &Pair, _: Context<'_>) -> Result<U64, u8> {
        self.cx.sleep(Duration::from_micros(10)).await;
        if pair.key.get() == 0 {
            Err(9)
        } else {
            Ok(pair.value)
        }
    }

    async fn sum(&self, pair: &Pair, _: Context<'_>) -> U64 {
        U64::new(pair.key.get() + pair.value.get())
    }

    async fn touch(&self, key: &U64, _: Context<'_>) {
        self.touched.set(self.touched.get() + key.get());
    }

    async fn find(&self, names: Vec<String>, _: Context<'_>) -> Result<Vec<u32>, Trouble> {
        found(&names)
    }

    async fn shout(&self, text: &str, _: Context<'_>) -> String {
        shouted(text)
    }

    async fn patience(&self, (): &(), context: Context<'_>) -> U64 {
        left_us(&context, self.cx.now())
    }

    async fn sleep(&self, (): &(), _: Context<'_>) {
        self.cx.sleep(Duration::from_millis(50)).await;
    }

    async fn touches(&self, (): &(), _: Context<'_>) -> U64 {
        U64::new(self.touched.get())
    }
}

#[derive(Default)]
struct Polled {
    touched: u64,
}

impl KvPoll for Polled {
    fn put(&mut self, pair: &Pair, _: &mut Cx<'_>, _: Context<'_>) -> Result<U64, u8> {
        if pair.key.get() == 0 {
            Err(9)
        } else {
            Ok(pair.value)
        }
    }

    fn sum(&mut self, pair: &Pair, _: &mut Cx<'_>, _: Context<'_>) -> U64 {
        U64::new(pair.key.get() + pair.value.get())
    }

    fn touch(&mut self, key: &U64, _: &mut Cx<'_>, _: Context<'_>) {
        self.touched += key.get();
    }

    fn find(
        &mut self,
        names: Vec<String>,
        _: &mut Cx<'_>,
        _: Context<'_>,
    ) -> Result<Vec<u32>, Trouble> {
        found(&names)
    }

    fn shout(&mut self, text: &str, _: &mut Cx<'_>, _: Context<'_>) -> String {
        shouted(text)
    }

    fn patience(&mut self, (): &(), cx: &mut Cx<'_>, context: Context<'_>) -> U64 {
        left_us(&context, cx.now())
    }

    fn sleep(&mut self, (): &(), _: &mut Cx<'_>, _: Context<'_>) {
        // Longer than the deadline of the caller.
        std::thread::sleep(Duration::from_millis(50));
    }

    fn touches(&mut self, (): &(), _: &mut Cx<'_>, _: Context<'_>) -> U64 {
        U64::new(self.touched)
    }
}

/// Runs `task` while a thread serves as `serve` does, until the receiver gets a message.
fn beside(serve: impl FnOnce(&Nexus, oneshot::Receiver<()>) + Send, task: impl FnOnce(SocketAddr)) {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let address = nexus.address();
    let (stop, stopped) = oneshot::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || serve(&nexus, stopped));
        task(address);
        // Stops the server also when the task panics, because the sender is dropped then.
        drop(stop);
    });
}

fn serve_async(nexus: &Nexus, stopped: oneshot::Receiver<()>) {
    let mut local: Local<Shm> = Local::new(nexus.endpoint(Tasks::default()).unwrap());
    let (cx, touched) = (local.caller(), Cell::new(0));
    local.serve_typed(KvServer(Asynchronous { cx, touched }));
    let _ = local.block_on(|_| stopped);
}

fn serve_poll(nexus: &Nexus, stopped: oneshot::Receiver<()>) {
    serve_app(nexus, stopped, Polled::default(), |rpc| {
        KvPoll::register(rpc)
    });
}

fn serve_app<App>(
    nexus: &Nexus,
    mut stopped: oneshot::Receiver<()>,
    app: App,
    register: impl FnOnce(&mut Rpc<Shm, App>),
) {
    let mut rpc = nexus.endpoint(app).unwrap();
    register(&mut rpc);
    rpc.run_until(|_| !matches!(stopped.try_recv(), Ok(None)));
}

fn connect(address: SocketAddr) -> (Local<Shm>, Session) {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut local = Local::new(nexus.endpoint(Tasks::default()).unwrap());
    let session = local.connect(address).unwrap();
    (local, session)
}

fn pair(key: u64, value: u64) -> Pair {
    let (key, value) = (U64::new(key), U64::new(value));
    Pair { key, value }
}

/// Every method, from futures.
async fn use_everything(cx: Caller, session: Session) {
    let kv = KvClient::new(cx.clone(), session);
    assert_eq!(kv.put(&pair(1, 2)).await, Ok(U64::new(2)));
    assert_eq!(kv.put(&pair(0, 2)).await, Err(Failure::Method(9)));
    assert_eq!(kv.sum(&pair(40, 2)).await, Ok(U64::new(42)));
    let names = ["a", "bc"].map(String::from).to_vec();
    assert_eq!(kv.find(&names).await, Ok(vec![1, 2]));
    assert_eq!(
        kv.find(&Vec::new()).await,
        Err(Failure::Method(Trouble::Busy))
    );
    let unknown = Trouble::Unknown {
        name: "long".into(),
    };
    assert_eq!(
        kv.find(&vec!["long".into()]).await,
        Err(Failure::Method(unknown))
    );
    assert_eq!(kv.shout(&"word".into()).await, Ok("WORD".to_owned()));
    assert_eq!(kv.shout(&"\0".into()).await, Err(Failure::BadValue));
    assert_eq!(kv.patience(&()).await, Ok(U64::new(0)));
    let left = kv.patience(&()).deadline(PATIENCE).await.unwrap().get();
    assert!((9_000_000..=10_000_000).contains(&left), "{left}");
    let late = kv
        .sleep(&())
        .deadline(Duration::from_millis(5))
        .await
        .unwrap_err();
    assert_eq!(
        late,
        Failure::Call(AsyncError::Rpc(RpcError::DeadlinePassed(Ran::Unknown)))
    );
    assert!(late.is_uncertain());
    for _ in 0..10 {
        kv.touch(&U64::new(3)).unwrap();
    }
    // Notifications and calls of a session may overtake each other.
    while kv.touches(&()).await.unwrap().get() < 30 {
        cx.sleep(Duration::from_micros(100)).await;
    }
}

#[test]
fn futures_call_a_service_of_futures() {
    beside(serve_async, |address| {
        let (mut local, session) = connect(address);
        local.block_on(|cx| use_everything(cx, session));
    });
}

#[test]
fn futures_call_a_service_of_the_poll_api() {
    beside(serve_poll, |address| {
        let (mut local, session) = connect(address);
        local.block_on(|cx| use_everything(cx, session));
    });
}

#[test]
fn the_poll_api_calls_a_typed_service() {
    beside(serve_async, |address| {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let mut rpc: Rpc<Shm, Vec<Done>> = nexus.endpoint(Vec::new()).unwrap();
        rpc.on_completion(|ended, done, _| ended.push(done));
        let kv = KvStub(rpc.connect_blocking(address).unwrap());
        let next = |rpc: &mut Rpc<Shm, Vec<Done>>| {
            rpc.run_until(|rpc| !rpc.app().is_empty());
            rpc.app_mut().pop().unwrap()
        };
        kv.put(&mut rpc.cx(), &pair(1, 5), Tag(1)).unwrap();
        let done = next(&mut rpc);
        assert_eq!(
            (done.tag, KvStub::put_response(&done)),
            (Tag(1), Ok(&U64::new(5)))
        );
        // The msgbufs are reused, also for a longer request.
        let options = dunlin::CallOptions {
            deadline: Some(PATIENCE.into()),
        };
        let bufs = [done.request, done.response];
        let names = vec!["n".repeat(3); 500];
        kv.find_with(&mut rpc.cx(), &names, bufs, Tag(2), options)
            .unwrap();
        let done = next(&mut rpc);
        assert_eq!(KvStub::find_response(&done), Err(too_large(&done)));
        kv.put(&mut rpc.cx(), &pair(0, 5), Tag(3)).unwrap();
        let done = next(&mut rpc);
        assert_eq!(KvStub::put_response(&done), Err(Failure::Method(9)));
        rpc.disconnect(kv.0).unwrap();
        let not_sent = kv.put(&mut rpc.cx(), &pair(1, 1), Tag(4)).unwrap_err();
        assert_eq!(not_sent.bufs.len(), 2);
        assert!(matches!(not_sent.failure, Failure::Call(error) if error.is_closed()));
    });
}

/// The failure of a call whose msgbuf, made for a shorter response, has no room for 500 numbers.
fn too_large(done: &Done) -> Failure<Trouble> {
    let Err(error @ RpcError::ResponseTooLarge { .. }) = done.result else {
        panic!("{:?}", done.result);
    };
    Failure::Call(AsyncError::Rpc(error))
}

/// A handler sees a request of a fixed layout in the frame that received it.
#[test]
fn a_fixed_layout_is_not_copied() {
    #[derive(Default)]
    struct App {
        same: Rc<Cell<bool>>,
    }
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let same = Rc::new(Cell::new(false));
    let mut rpc: Rpc<Shm, App> = nexus
        .endpoint(App {
            same: Rc::clone(&same),
        })
        .unwrap();
    rpc.on(dunlin::ReqType(10), |app, request, cx| {
        let received = request.data().as_ptr();
        dunlin::service::poll::serve::<KvPut, App>(app, request, cx, |app, pair, _, _| {
            let pair: ViewOf<'_, KvPut> = pair;
            app.same
                .set(std::ptr::eq(received, std::ptr::from_ref(pair).cast()));
            Ok(pair.key)
        });
    });
    rpc.on_completion(|_, _, _| {});
    let session = rpc.connect(nexus.address()).unwrap();
    KvStub(session)
        .put(&mut rpc.cx(), &pair(1, 1), Tag(0))
        .unwrap();
    rpc.run_until(|rpc| rpc.counters().completions == 1);
    assert!(
        same.get(),
        "the message was copied before its handler saw it"
    );
}
