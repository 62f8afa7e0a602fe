//! The handlers. An endpoint reads the time of an iteration after the last request of its burst has
//! arrived. The lease is compared with that time, so it was valid while each of the requests was in
//! progress. Requests for numbers have a handler that runs for each request: a batch handler has
//! more work for each request, and there is no work here that a whole burst could share.

use dunlin_core::{Cx, Refuse, Register, Request};
use dunlin_wire::ErrorCode;

use crate::desk::Desk;
use crate::wire::{Figures, OPEN, Open, STATUS, TAKE};

/// The state of an endpoint that serves numbers.
pub trait Host {
    /// The server.
    fn desk(&mut self) -> &mut Desk;
}

impl Host for Desk {
    fn desk(&mut self) -> &mut Desk {
        self
    }
}

/// Registers the service on an endpoint whose state has a [`Desk`].
///
/// ```
/// use dunlin_core::Register;
/// use dunlin_sequencer::{Desk, serve};
///
/// fn set_up(endpoint: &mut impl Register<Desk>) {
///     serve(endpoint);
/// }
/// ```
pub fn serve<App: Host>(endpoint: &mut impl Register<App>) {
    endpoint.register(TAKE, on_take::<App>);
    endpoint.register(OPEN, on_open::<App>);
    endpoint.register(STATUS, on_status::<App>);
}

fn on_take<App: Host>(app: &mut App, request: Request<'_>, cx: &mut Cx<'_>) {
    let usual = app.desk().take_usual(request.data(), cx);
    let Some(first) = usual else {
        return on_other_take(app, request, cx);
    };
    // `reply_bytes` would pass a closure that many calls share, and which is therefore not inlined.
    // With a closure of its own, the answer is written in this function.
    let bytes = first.to_le_bytes();
    request.reply(cx, bytes.len(), |out| out.copy_from_slice(&bytes));
}

/// Handles a request for numbers that is not of the usual kind. It is a function of its own, which
/// is called last, so that requests of the usual kind do not save registers for it.
#[inline(never)]
fn on_other_take<App: Host>(app: &mut App, request: Request<'_>, cx: &mut Cx<'_>) {
    app.desk().on_take(request, cx);
}

fn on_open<App: Host>(app: &mut App, request: Request<'_>, cx: &mut Cx<'_>) {
    let Ok(open) = Open::decode(request.data()) else {
        return request.refuse(cx, ErrorCode::UNDECODABLE);
    };
    let sequencer = app.desk().sequencer();
    match sequencer.open(open.known_epoch, open.name, open.create) {
        Ok(opened) => request.reply_bytes(cx, &opened.encode()),
        Err(status) => request.reply_bytes(cx, &[status.number()]),
    }
}

fn on_status<App: Host>(app: &mut App, request: Request<'_>, cx: &mut Cx<'_>) {
    if request.data() != Figures::REQUEST {
        return request.refuse(cx, ErrorCode::UNDECODABLE);
    }
    let figures = app.desk().sequencer().figures(cx.now());
    request.reply_bytes(cx, &figures.encode());
}
