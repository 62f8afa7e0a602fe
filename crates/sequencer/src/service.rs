//! The handlers. One batch handler gets all requests of a receive burst that take numbers. It reads
//! the clock once, after the last of them has arrived, and compares the lease with that time.

use dunlin_core::{Batch, Cx, Refuse, Register, Request};
use dunlin_wire::ErrorCode;

use crate::desk::Desk;
use crate::wire::{Answer, Figures, OPEN, Open, STATUS, TAKE, Take};

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
    endpoint.register_batch(TAKE, Answer::MAX_SIZE, on_takes::<App>);
    endpoint.register(OPEN, on_open::<App>);
    endpoint.register(STATUS, on_status::<App>);
}

fn on_takes<App: Host>(app: &mut App, mut batch: Batch<'_>, cx: &mut Cx<'_>) {
    let desk = app.desk();
    desk.sequencer().on_burst(cx.now());
    for item in batch.iter_mut() {
        match Take::decode(item.data()) {
            Ok(take) => desk.on_take(take, item, cx),
            Err(_) => item.refuse(cx, ErrorCode::UNDECODABLE),
        }
    }
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
