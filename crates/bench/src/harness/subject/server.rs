//! The passive process of an experiment: it answers requests, and reports its counts when asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dunlin::{ErrorCode, Rpc};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::side::Side;
use super::{
    ANSWER, ECHO, LARGE, MIRROR, Medium, SINK, SLOW, SLOW_BACKGROUND, SOURCE, Setting, over_lossy,
};
use crate::harness::work;
use harness::process::{Parent, Role};
use harness::sys;

/// Serves RPCs.
pub(crate) const ROLE: Role = Role::new("serve", run);

/// Parameters of a server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Params {
    pub(crate) setting: Setting,
    /// The time that its slow handlers take.
    pub(crate) handler: Duration,
}

impl Params {
    /// Parameters of a server whose handlers all answer immediately.
    pub(crate) fn prompt(setting: Setting) -> Self {
        Self {
            setting,
            handler: Duration::ZERO,
        }
    }
}

/// The most bytes in a response of a background handler.
const MAX_RESPONSE: usize = 1024;

/// Times that slow handlers took, in ns; worker threads record them too.
type Took = Arc<Mutex<Histogram<u64>>>;

struct App {
    handler: Duration,
    took: Took,
}

/// Serves until the parent kills it. Each line from the parent is answered with a [`Side`].
///
/// # Errors
/// The endpoint cannot be opened, or the parent has ended.
pub(crate) fn run(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over_lossy!(params.setting, serve(parent, &params))
}

fn serve<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let asked = listen_to_parent();
    if params.setting.workers > 0 {
        // Background handlers sleep. Worker threads inherit this setting from the thread that
        // starts them.
        sys::set_exact_timers()?;
    }
    let took = Took::new(Mutex::new(Histogram::new_with_bounds(1, 1 << 40, 3)?));
    let mut rpc: Rpc<T, App> = params.setting.open(App {
        handler: params.handler,
        took: Arc::clone(&took),
    })?;
    on_echo(&mut rpc);
    on_large(&mut rpc);
    rpc.on(SLOW, |app, request, cx| {
        let begin = Instant::now();
        while begin.elapsed() < app.handler {
            std::hint::spin_loop();
        }
        record(&app.took, begin);
        let data = request.data();
        request.reply(cx, data.len(), |out| work::answer(data, out));
    });
    let (handler, taken) = (params.handler, Arc::clone(&took));
    rpc.on_background(SLOW_BACKGROUND, MAX_RESPONSE, move |request| {
        let begin = Instant::now();
        thread::sleep(handler);
        record(&taken, begin);
        let len = request.data().len();
        // If the request is too long, `reply` itself answers with an error.
        let _ = request.reply(len, work::answer);
    });
    parent.say(&rpc.nexus().address())?;
    loop {
        rpc.run_once();
        if asked.load(Ordering::Relaxed) {
            asked.store(false, Ordering::Relaxed);
            let mut side = Side::read(&mut rpc)?;
            side.handler = median(&took);
            parent.say(&side)?;
        }
    }
}

/// Registers the handler that answers immediately.
pub(crate) fn on_echo<T: Medium, App>(rpc: &mut Rpc<T, App>) {
    rpc.on(ECHO, |_, request, cx| {
        let data = request.data();
        request.reply(cx, data.len(), |out| work::answer(data, out));
    });
}

/// Registers the handlers of large requests, and of requests with large responses.
fn on_large<T: Medium, App>(rpc: &mut Rpc<T, App>) {
    rpc.on(SINK, |_, request, cx| {
        let data = request.data();
        match work::counter(data).filter(|counter| work::is_marked(data, *counter)) {
            Some(counter) => request.reply(cx, ANSWER, |out| work::fill(out, counter)),
            None => request.reject(cx, ErrorCode::application(1)),
        }
    });
    rpc.on(MIRROR, |_, request, cx| request.echo(cx));
    rpc.on(SOURCE, |_, request, cx| {
        match work::counter(request.data()) {
            Some(counter) => {
                request.reply(cx, LARGE as usize, |out| work::mark(out, counter));
            }
            None => request.reject(cx, ErrorCode::application(1)),
        }
    });
}

/// A flag that becomes true when the parent sends a line.
pub(crate) fn listen_to_parent() -> Arc<AtomicBool> {
    let asked = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&asked);
    thread::spawn(move || {
        while Parent.receive::<()>().is_ok() {
            flag.store(true, Ordering::Relaxed);
        }
    });
    asked
}

/// Runs `work` on a thread of its own, which may take a seat. The threads of a nexus and the thread
/// that reads orders must not share the seat of a thread that spins.
#[cfg(any(feature = "index", feature = "kv", feature = "replica"))]
pub(crate) fn apart<R: Send>(work: impl FnOnce() -> anyhow::Result<R> + Send) -> anyhow::Result<R> {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn record(took: &Took, begin: Instant) {
    let ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut histogram = took.lock().unwrap_or_else(PoisonError::into_inner);
    histogram.saturating_record(ns);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a handler are far below 2^53"
)]
fn median(took: &Took) -> Option<f64> {
    let histogram = took.lock().unwrap_or_else(PoisonError::into_inner);
    (!histogram.is_empty()).then(|| histogram.value_at_quantile(0.5) as f64)
}
