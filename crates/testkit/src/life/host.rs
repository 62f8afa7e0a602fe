//! One endpoint of the world with its user: handlers of every kind, which obey the request, and a
//! continuation that reports to the ledger.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard};

use dunlin_core::{
    BackgroundRequest, Batch, CallId, Check, Config, Cx, DeferredRequest, Done, Endpoint,
    EndpointNum, Nanos, Request, Session, Tag,
};
use dunlin_wire::{ErrorCode, ReqType};

use super::ledger::{Ledger, Terms};
use super::letter::{Letter, Mode, write_answer};
use super::net::{Device, Inbox, JOBS, MAX_MESSAGE, Net, NetRx, NetTx, Outgoing};
use super::record::{self, Fact};
use crate::clock::StepClock;
use crate::workers::StepWorkers;
use dunlin_core::transport::{Halves, Limits};

pub(super) const DISPATCH: u8 = 0;
pub(super) const BATCH: u8 = 1;
pub(super) const BACKGROUND: u8 = 2;
pub(super) const NESTED: u8 = 3;
pub(super) const REJECTED: ErrorCode = ErrorCode::application(1);

/// Time that a slow handler takes: longer than `ack_delay`.
const SLOW: Nanos = Nanos::from_micros(200);

/// Whether a kind has a handler. Half of the kinds that a step can name have a plain dispatch
/// handler, and one has none.
pub(super) fn kind_is_known(kind: u8) -> bool {
    kind != 7
}

/// The request type of a kind.
pub(super) fn req_type(kind: u8) -> ReqType {
    ReqType(u16::from(kind))
}

pub(super) type SharedLedger = Arc<Mutex<Ledger>>;

/// The user's state of one host.
pub(super) struct App {
    me: usize,
    /// The most data bytes in one packet.
    data_size: usize,
    ledger: SharedLedger,
    clock: StepClock,
    pub(super) held: Vec<(DeferredRequest, Letter)>,
    /// Requests that wait for the call that they made, by that call's tag.
    nested: Vec<(Tag, DeferredRequest, Letter)>,
    /// Calls that may still be cancelled.
    pub(super) calls: Vec<(CallId, u32)>,
    /// Number of completions whose continuation makes another call.
    pub(super) again: usize,
    /// Whether nested requests are refused from now on.
    in_a_hurry: bool,
}

impl App {
    /// Refuses the requests that wait for calls to the other host, because these calls may in turn
    /// wait for this host.
    pub(super) fn hurry(&mut self, cx: &mut Cx<'_>) {
        self.in_a_hurry = true;
        self.again = 0;
        for (_, held, letter) in std::mem::take(&mut self.nested) {
            self.ledger().on_answer(letter);
            held.reject(cx, ErrorCode::OVERLOADED);
        }
    }

    /// Records an event of the user.
    fn note(&self, what: impl FnOnce() -> String) {
        let record = &self.ledger().record;
        record.note(|| Fact::Told(self.me, what()));
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("a failed checker ends the run")
    }
}

pub(super) struct Host {
    pub(super) rpc: Endpoint<Net, StepClock, App>,
    pub(super) inbox: Inbox,
    pub(super) out: Rc<RefCell<Outgoing>>,
    pub(super) jobs: StepWorkers,
}

impl Host {
    pub(super) fn new(
        me: usize,
        ledger: &SharedLedger,
        clock: &StepClock,
        config: Config,
        device: Device,
    ) -> Self {
        let (inbox, jobs) = (Inbox::default(), StepWorkers::new(JOBS));
        let record = ledger.lock().expect("it is new").record.clone();
        let out = Rc::new(RefCell::new(Outgoing::new(me, device, record)));
        let halves = Halves {
            rx: NetRx {
                inbox: Rc::clone(&inbox),
                burst: Vec::new(),
                generation: AtomicU32::new(1),
            },
            tx: NetTx(Rc::clone(&out)),
            limits: Limits {
                data_size: device.data_size,
                rx_queue: 1024,
                line_rate: 1 << 30,
            },
        };
        let app = App {
            me,
            data_size: device.data_size as usize,
            ledger: Arc::clone(ledger),
            clock: clock.clone(),
            held: Vec::new(),
            nested: Vec::new(),
            calls: Vec::new(),
            again: 0,
            in_a_hurry: false,
        };
        let workers = Box::new(jobs.clone());
        let mut rpc = Endpoint::new(
            app,
            clock.clone(),
            halves,
            config,
            me as u64,
            Some(workers),
            EndpointNum::chosen(u32::try_from(me).expect("two hosts") + 1),
        )
        .expect("the options are in range");
        register(&mut rpc, me, ledger);
        Self {
            rpc,
            inbox,
            out,
            jobs,
        }
    }
}

impl Host {
    /// Everything that the endpoint counts and holds, by name.
    pub(super) fn standing(&mut self) -> Vec<(&'static str, u64)> {
        let (bytes, bufs) = self.rpc.pool_use();
        let rpc = &self.rpc;
        let mut all: Vec<_> = record::shared_counters(rpc.counters()).collect();
        let measured = rpc.histograms().named();
        all.extend(measured.map(|(name, histogram)| (name, histogram.sum_ns())));
        all.extend([
            ("pool bytes", bytes as u64),
            ("pool msgbufs", bufs as u64),
            ("receiving", rpc.receiving()),
            ("sessions", rpc.session_count() as u64),
            ("calls", rpc.call_count() as u64),
            ("wake-up", rpc.next_wakeup().0),
        ]);
        all
    }
}

/// Options with short times, so that everything happens within a second.
pub(super) fn config() -> Config {
    Config {
        rto_floor: Nanos::from_millis(1),
        rto_initial: Nanos::from_millis(2),
        response_hold: Nanos::from_millis(20),
        failure_timeout: Nanos::from_millis(100),
        probe_max: Nanos::from_millis(10),
        hugepages: false,
        pool_bytes: 1 << 20,
        max_message: MAX_MESSAGE,
        receive_budget: 4 * u64::from(MAX_MESSAGE),
        session_receive_budget: 2 * u64::from(MAX_MESSAGE),
        readable_buffers: true,
        check: Check::Event,
        ..Config::default()
    }
}

fn register(rpc: &mut Endpoint<Net, StepClock, App>, me: usize, ledger: &SharedLedger) {
    for kind in [DISPATCH, 4, 5, 6] {
        rpc.on(req_type(kind), dispatch);
    }
    rpc.on(req_type(NESTED), nested);
    rpc.on_batch(req_type(BATCH), batch);
    let ledger = Arc::clone(ledger);
    let room = rpc.app().data_size;
    rpc.on_background(req_type(BACKGROUND), room, move |req| {
        let letter = ledger
            .lock()
            .expect("a failed checker ends the run")
            .on_run(me, req.data());
        background(letter, req);
    });
    rpc.on_completion(complete);
    rpc.on_session(|app, event, _| app.note(|| format!("{event:?}")));
    rpc.on_given_up(|app, ticket, _| app.note(|| format!("{} is given up", ticket.index())));
}

/// Ends the handler as a panic does, without printing a message.
fn panic_quietly() -> ! {
    std::panic::resume_unwind(Box::new("a handler that panics"))
}

fn dispatch(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let letter = app.ledger().on_run(app.me, req.data());
    match letter.mode {
        Mode::Reject => return req.reject(cx, REJECTED),
        Mode::Hold => return app.held.push((req.defer(cx), letter)),
        Mode::Silent => return,
        Mode::Panic => panic_quietly(),
        Mode::Drop => return drop(req.defer(cx)),
        Mode::Disconnect => {
            // Another request of the burst may have ended the session.
            let _ = cx.disconnect(req.session());
        }
        Mode::Slow => app.clock.pass(SLOW),
        Mode::Reply => {}
    }
    req.reply(cx, usize::from(letter.answer_len), |out| {
        write_answer(letter.id, out);
    });
}

fn batch(app: &mut App, mut batch: Batch<'_>, cx: &mut Cx<'_>) {
    for item in batch.iter_mut() {
        let letter = app.ledger().on_run(app.me, item.data());
        match letter.mode {
            Mode::Reject => {
                item.reject(REJECTED);
                continue;
            }
            Mode::Hold => {
                app.held.push((item.defer(cx), letter));
                continue;
            }
            Mode::Silent => continue,
            Mode::Panic => panic_quietly(),
            Mode::Drop => {
                drop(item.defer(cx));
                continue;
            }
            Mode::Disconnect => {
                let _ = cx.disconnect(item.session());
            }
            Mode::Slow | Mode::Reply => {}
        }
        let len = usize::from(letter.answer_len);
        let fits = item.reply(len, |out| write_answer(letter.id, out));
        let fits = fits.is_ok() == (len <= app.data_size);
        app.ledger()
            .demand(fits, "a batch item's response has another size");
    }
}

fn background(letter: Letter, req: BackgroundRequest<'_>) {
    match letter.mode {
        Mode::Reject => return req.reject(REJECTED),
        Mode::Silent | Mode::Drop => return,
        Mode::Panic => panic_quietly(),
        Mode::Reply | Mode::Hold | Mode::Disconnect | Mode::Slow => {}
    }
    let len = usize::from(letter.answer_len);
    // If the answer is too long, the client gets an error.
    let _fits = req.reply(len, |_, out| write_answer(letter.id, out));
}

/// Calls back on the same session, and answers when that call has completed.
fn nested(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let letter = app.ledger().on_run(app.me, req.data());
    if app.in_a_hurry {
        app.ledger().on_answer(letter);
        return req.reject(cx, ErrorCode::OVERLOADED);
    }
    let session = req.session();
    let held = req.defer(cx);
    if letter.mode == Mode::Hold {
        return app.held.push((held, letter));
    }
    let inner = if letter.mode == Mode::Panic {
        Mode::Reply
    } else {
        letter.mode
    };
    match call(app, cx, session, inner) {
        Some(tag) => app.nested.push((tag, held, letter)),
        None => {
            app.ledger().on_answer(letter);
            held.reject(cx, ErrorCode::OVERLOADED);
        }
    }
    if letter.mode == Mode::Panic {
        panic_quietly();
    }
}

/// A small call that the user code itself makes; `None` if it is refused.
fn call(app: &App, cx: &mut Cx<'_>, session: Session, mode: Mode) -> Option<Tag> {
    let (len, room) = (20, 40);
    let mut ledger = app.ledger();
    let pair = ledger.pair_of(app.me, session)?;
    let id = ledger.add_call(Terms {
        issuer: app.me,
        pair,
        kind: DISPATCH,
        mode,
        len,
        answer_len: 30,
        room,
        limit: MAX_MESSAGE,
        deadline: Nanos::MAX,
    });
    let (mut request, response) = (cx.buf(len).ok()?, cx.buf(room).ok()?);
    ledger.letter(id).write(request.data_mut());
    let tag = Tag(u64::from(id));
    match cx.call(session, req_type(DISPATCH), request, response, tag) {
        Ok(_) => Some(tag),
        Err(refused) => {
            ledger.refuse(id);
            cx.recycle([refused.request, refused.response]);
            None
        }
    }
}

fn complete(app: &mut App, done: Done, cx: &mut Cx<'_>) {
    let open = cx.session_info(done.session).is_ok();
    app.ledger().on_done(app.me, &done, cx.now(), open);
    app.calls.retain(|(_, id)| Tag(u64::from(*id)) != done.tag);
    if let Some(at) = app.nested.iter().position(|(tag, ..)| *tag == done.tag) {
        let (_, held, letter) = app.nested.swap_remove(at);
        app.ledger().on_answer(letter);
        match done.result {
            Ok(()) => held.reply(cx, usize::from(letter.answer_len), |out| {
                write_answer(letter.id, out);
            }),
            Err(_) => held.reject(cx, REJECTED),
        }
    }
    cx.recycle([done.request, done.response]);
    if app.again > 0 {
        app.again -= 1;
        let _refused_or_not = call(app, cx, done.session, Mode::Reply);
    }
}
