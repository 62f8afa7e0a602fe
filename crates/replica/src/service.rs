//! The service: handlers of an endpoint, which note what comes in for its replica.
//!
//! No handler runs Raft, allocates more than a copy of its request, or panics on any bytes. Answers
//! leave from [`Replica::run`].

use dunlin_core::{Cx, Refuse, Register, Request as Incoming};
use dunlin_wire::ErrorCode;

use crate::replica::{Replica, SeatError};
use crate::wire::{
    BOOTSTRAP, Members, OPERATE, PARCEL, PIECE, Parcel, Piece, Request, STATUS, VERSION,
};

/// The code of a bootstrap to a replica of another cluster.
pub const TAKEN: ErrorCode = ErrorCode::application(1);
/// The code of a bootstrap, or of messages, to a replica that is not the one of that number; and of
/// a part of a snapshot that is not the next one.
pub const STRANGER: ErrorCode = ErrorCode::application(2);

/// The state of an endpoint that serves a replica.
pub trait Host {
    /// The replica.
    fn replica(&mut self) -> &mut Replica;
}

impl Host for Replica {
    fn replica(&mut self) -> &mut Replica {
        self
    }
}

/// Registers the service on an endpoint whose state has a replica. The owner also passes the ends
/// of calls and the events of sessions on, and calls [`Replica::run`] after each iteration.
///
/// ```
/// use dunlin_core::Register;
/// use dunlin_replica::{Replica, serve};
///
/// fn set_up(endpoint: &mut impl Register<Replica>) {
///     serve(endpoint);
/// }
/// ```
pub fn serve<App: Host>(endpoint: &mut impl Register<App>) {
    endpoint.register(OPERATE, on_operate::<App>);
    endpoint.register(STATUS, on_status::<App>);
    endpoint.register(BOOTSTRAP, on_bootstrap::<App>);
    endpoint.register(PARCEL, on_parcel::<App>);
    endpoint.register(PIECE, on_piece::<App>);
}

fn on_operate<App: Host>(app: &mut App, incoming: Incoming<'_>, cx: &mut Cx<'_>) {
    let Ok(request) = Request::decode(incoming.data()) else {
        return incoming.refuse(cx, ErrorCode::UNDECODABLE);
    };
    let ticket = incoming.keep(cx);
    if let Some(answer) = app.replica().on_operation(&request, ticket) {
        // The client may have given up.
        let _ = cx.reply(ticket, answer.size(), |out| answer.encode(out));
    }
}

fn on_status<App: Host>(app: &mut App, incoming: Incoming<'_>, cx: &mut Cx<'_>) {
    match incoming.data() {
        [VERSION] => incoming.reply_bytes(cx, &app.replica().status().to_bytes()),
        _ => incoming.refuse(cx, ErrorCode::UNDECODABLE),
    }
}

fn on_bootstrap<App: Host>(app: &mut App, incoming: Incoming<'_>, cx: &mut Cx<'_>) {
    let Ok(members) = Members::decode(incoming.data()) else {
        return incoming.refuse(cx, ErrorCode::UNDECODABLE);
    };
    match app.replica().on_bootstrap(members) {
        Ok(()) => incoming.reply_bytes(cx, &app.replica().status().to_bytes()),
        Err(SeatError::Taken) => incoming.reject(cx, TAKEN),
        Err(SeatError::Stranger) => incoming.reject(cx, STRANGER),
    }
}

fn on_parcel<App: Host>(app: &mut App, incoming: Incoming<'_>, cx: &mut Cx<'_>) {
    let Ok(parcel) = Parcel::decode(incoming.data()) else {
        return incoming.refuse(cx, ErrorCode::UNDECODABLE);
    };
    let ticket = incoming.keep(cx);
    if !app.replica().on_parcel(parcel, ticket) {
        // The other member may have given up.
        let _ = cx.reject(ticket, STRANGER);
    }
}

fn on_piece<App: Host>(app: &mut App, incoming: Incoming<'_>, cx: &mut Cx<'_>) {
    match Piece::decode(incoming.data()) {
        Ok(piece) if app.replica().on_piece(&piece) => incoming.reply_bytes(cx, b""),
        Ok(_) => incoming.reject(cx, STRANGER),
        Err(_) => incoming.refuse(cx, ErrorCode::UNDECODABLE),
    }
}
