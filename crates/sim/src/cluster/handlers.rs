//! The handlers of every simulated process: one for each kind of request, including those that
//! fail.
//!
//! Invariant: each handler notifies the ledger that it runs, before it answers or fails. Called by
//! the endpoint; registered by `node`.

use std::panic::resume_unwind;

use dunlin_core::{BackgroundRequest, Batch, BatchItem, Cx, Nanos, Request, Session};

use super::app::App;
use super::fact::EndpointFact;
use super::ledger::{GARBAGE, REJECTED, Shared};
use super::message::{Ask, Kind};
use crate::world::clock::SimClock;
use crate::world::net::{PortId, SimTransport};

/// The endpoint of a simulated process.
pub(super) type Endpoint = dunlin_core::Endpoint<SimTransport, SimClock, App>;

/// The value with which a handler panics on purpose.
#[derive(Clone, Copy, Debug)]
pub struct PlannedPanic;

/// Registers all handlers. `room`: bytes of the largest answer that batch and background handlers
/// must give.
pub(super) fn register(rpc: &mut Endpoint, shared: &Shared, port: PortId, room: usize) {
    rpc.on(Kind::Echo.req_type(), on_echo);
    rpc.on(Kind::Nested.req_type(), on_nested);
    rpc.on(Kind::Reject.req_type(), on_reject);
    rpc.on(Kind::Panic.req_type(), on_panic);
    rpc.on(Kind::Forget.req_type(), on_forget);
    rpc.on(Kind::Slow.req_type(), on_slow);
    rpc.on(Kind::Later.req_type(), |app, req, cx| {
        on_kept(app, req, cx, Kind::Later)
    });
    rpc.on(Kind::Lose.req_type(), |app, req, cx| {
        on_kept(app, req, cx, Kind::Lose)
    });
    rpc.on(Kind::TooMuch.req_type(), on_too_much);
    rpc.on(Kind::Empty.req_type(), on_empty);
    rpc.on_batch_up_to(Kind::Batch.req_type(), room, on_batch);
    rpc.on_batch_up_to(Kind::MixedBatch.req_type(), room, on_mixed_batch);
    let kinds = [Kind::Background, Kind::FailingBackground];
    for kind in kinds {
        let shared = shared.clone();
        rpc.on_background(kind.req_type(), room, move |req| {
            on_background(&shared, port, kind, req);
        });
    }
    rpc.on_completion(App::on_completion);
    rpc.on_session(App::on_session);
    rpc.on_given_up(App::on_given_up);
    rpc.on_timer(App::on_timer);
}

/// Records that a handler has received a request.
fn note(app: &App, cx: &Cx<'_>, kind: Kind, session: Session, request: &[u8]) {
    let fact = EndpointFact::Handles {
        session: Some(session),
        kind,
        request,
    };
    app.note(cx, &fact);
}

/// Notifies the ledger that a handler runs, and returns the decoded request. `None` if the request
/// is malformed, or the ledger does not know its call.
fn begin(shared: &Shared, port: PortId, kind: Kind, data: &[u8]) -> Option<Ask> {
    let ask = Ask::read(data);
    let fine = shared.lock().execute(ask.map(|ask| ask.call), kind, port);
    ask.filter(|_| fine)
}

/// Begins most handlers: decodes the request, or rejects it if it is malformed.
fn open<'a>(
    app: &App,
    req: Request<'a>,
    cx: &mut Cx<'_>,
    kind: Kind,
) -> Option<(Request<'a>, Ask)> {
    note(app, cx, kind, req.session(), req.data());
    match begin(&app.shared, app.id.port, kind, req.data()) {
        Some(ask) => Some((req, ask)),
        None => {
            req.reject(cx, GARBAGE);
            None
        }
    }
}

fn reply(req: Request<'_>, ask: &Ask, cx: &mut Cx<'_>) {
    req.reply(cx, ask.answer_len as usize, |out| ask.answer(out));
}

fn on_echo(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let Some((req, ask)) = open(app, req, cx, Kind::Echo) else {
        return;
    };
    reply(req, &ask, cx);
}

fn on_too_much(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let Some((req, ask)) = open(app, req, cx, Kind::TooMuch) else {
        return;
    };
    reply(req, &ask, cx);
}

fn on_empty(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    note(app, cx, Kind::Empty, req.session(), req.data());
    app.shared.lock().execute_empty(req.data(), app.id.port);
    req.reply(cx, 0, |_| {});
}

fn on_reject(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let Some((req, _)) = open(app, req, cx, Kind::Reject) else {
        return;
    };
    app.maybe_disconnect(req.session(), cx);
    req.reject(cx, REJECTED);
}

fn on_panic(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    if open(app, req, cx, Kind::Panic).is_some() {
        planned_panic();
    }
}

fn on_forget(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    // This handler intentionally never answers.
    let _ = open(app, req, cx, Kind::Forget);
}

fn on_slow(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let Some((req, ask)) = open(app, req, cx, Kind::Slow) else {
        return;
    };
    app.clock.spend(time_of(&ask));
    reply(req, &ask, cx);
}

fn on_kept(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>, kind: Kind) {
    let Some((req, ask)) = open(app, req, cx, kind) else {
        return;
    };
    let session = req.session();
    app.maybe_disconnect(session, cx);
    let key = app.keep(req.defer(cx), ask);
    app.check_kept(session, cx);
    app.answer_later(key, kind == Kind::Lose, time_of(&ask), cx);
}

fn on_nested(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let Some((req, ask)) = open(app, req, cx, Kind::Nested) else {
        return;
    };
    let session = req.session();
    let key = app.keep(req.defer(cx), ask);
    app.check_kept(session, cx);
    if !app.call_for(key, cx) {
        app.answer(key, false, cx);
    }
}

fn on_batch(app: &mut App, mut batch: Batch<'_>, cx: &mut Cx<'_>) {
    // Reads all items before it answers the first: an answer must not disturb the other items.
    let items: Vec<_> = batch
        .iter_mut()
        .map(|item| {
            note(app, cx, Kind::Batch, item.session(), item.data());
            let ask = begin(&app.shared, app.id.port, Kind::Batch, item.data());
            (ask, item)
        })
        .collect();
    for (ask, item) in items.into_iter().rev() {
        answer_item(item, ask, app);
    }
}

fn on_mixed_batch(app: &mut App, mut batch: Batch<'_>, cx: &mut Cx<'_>) {
    for item in batch.iter_mut() {
        note(app, cx, Kind::MixedBatch, item.session(), item.data());
        let Some(ask) = begin(&app.shared, app.id.port, Kind::MixedBatch, item.data()) else {
            item.reject(GARBAGE);
            continue;
        };
        let session = item.session();
        app.maybe_disconnect(session, cx);
        match ask.param % 8 {
            0 => item.reject(REJECTED),
            // Left unanswered.
            1 => {}
            2 => planned_panic(),
            3 | 4 => {
                let key = app.keep(item.defer(cx), ask);
                app.check_kept(session, cx);
                let lose = ask.param % 8 == 3;
                app.answer_later(key, lose, Nanos(u64::from(ask.param % 1_000_000)), cx);
            }
            5 => {
                let held = item.defer(cx);
                held.reply(cx, ask.answer_len as usize, |out| ask.answer(out));
            }
            _ => answer_item(item, Some(ask), app),
        }
    }
}

fn answer_item(item: BatchItem<'_>, ask: Option<Ask>, app: &App) {
    let Some(ask) = ask else {
        return item.reject(GARBAGE);
    };
    if item
        .reply(ask.answer_len as usize, |out| ask.answer(out))
        .is_err()
    {
        app.shared.lock().no_room(Kind::Batch);
    }
}

fn on_background(shared: &Shared, port: PortId, kind: Kind, req: BackgroundRequest<'_>) {
    let fact = EndpointFact::Handles {
        session: None,
        kind,
        request: req.data(),
    };
    shared.record().note_next(port, &fact);
    let Some(ask) = begin(shared, port, kind, req.data()) else {
        return req.reject(GARBAGE);
    };
    if kind == Kind::FailingBackground {
        match ask.param % 4 {
            0 => return req.reject(REJECTED),
            // Left unanswered.
            1 => return,
            2 => planned_panic(),
            _ => {}
        }
    }
    if req
        .reply(ask.answer_len as usize, |_, out| ask.answer(out))
        .is_err()
    {
        shared.lock().no_room(kind);
    }
}

fn time_of(ask: &Ask) -> Nanos {
    Nanos::from_micros(u64::from(ask.param))
}

/// Panics without printing a message.
fn planned_panic() -> ! {
    resume_unwind(Box::new(PlannedPanic))
}
