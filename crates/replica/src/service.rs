//! The service: handlers of an endpoint, which note input for its replica.
//!
//! No handler starts or runs Raft, waits for a disk, or panics on any bytes. A handler copies at
//! most its request. Answers to operations, parcels and requests for a seat leave from
//! [`Replica::run`].

use dunlin_core::{Cx, Refuse, Register, Request as RpcRequest};
use dunlin_wire::ErrorCode;

use crate::replica::{Replica, SoughtSeat};
use crate::wire::{
    BOOTSTRAP, JOIN, Members, OPERATE, ORDER, Operation, Order, PARCEL, PIECE, Piece, Request,
    Roster, STATUS, STRANGER, UNABLE, VERSION,
};

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

/// Registers the service on an endpoint whose state has a replica. The owner also passes on the
/// ends of calls and the events of sessions, and calls [`Replica::run`] after each iteration.
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
    endpoint.register(JOIN, on_join::<App>);
    endpoint.register(ORDER, on_order::<App>);
    endpoint.register(PARCEL, on_parcel::<App>);
    endpoint.register(PIECE, on_piece::<App>);
}

fn on_operate<App: Host>(app: &mut App, incoming: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let bytes = incoming.data();
    let request = match Request::decode(bytes) {
        // Clients may not set the time.
        Ok(request) if !matches!(request.operation, Operation::Clock(_)) => request,
        _ => return incoming.refuse(cx, ErrorCode::UNDECODABLE),
    };
    let ticket = incoming.keep(cx);
    if let Some(answer) = app.replica().on_operation(&request, bytes, ticket) {
        // The client may have given up.
        let _ = cx.reply(ticket, answer.size(), |out| answer.encode(out));
    }
}

fn on_status<App: Host>(app: &mut App, incoming: RpcRequest<'_>, cx: &mut Cx<'_>) {
    match incoming.data() {
        [VERSION] => incoming.reply_bytes(cx, &app.replica().status().to_bytes()),
        _ => incoming.refuse(cx, ErrorCode::UNDECODABLE),
    }
}

fn on_bootstrap<App: Host>(app: &mut App, incoming: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let Ok(members) = Members::decode(incoming.data()) else {
        return incoming.refuse(cx, ErrorCode::UNDECODABLE);
    };
    let ticket = incoming.keep(cx);
    app.replica().on_asked(SoughtSeat::First(members), ticket);
}

fn on_join<App: Host>(app: &mut App, incoming: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let Ok(roster) = Roster::decode(incoming.data()) else {
        return incoming.refuse(cx, ErrorCode::UNDECODABLE);
    };
    let ticket = incoming.keep(cx);
    app.replica().on_asked(SoughtSeat::Later(roster), ticket);
}

fn on_order<App: Host>(app: &mut App, incoming: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let Ok(order) = Order::decode(incoming.data()) else {
        return incoming.refuse(cx, ErrorCode::UNDECODABLE);
    };
    match app.replica().on_order(order) {
        true => incoming.reply_bytes(cx, &app.replica().status().to_bytes()),
        false => incoming.reject(cx, UNABLE),
    }
}

fn on_parcel<App: Host>(app: &mut App, incoming: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let replica = app.replica();
    match replica.on_parcel(incoming.data(), incoming.session(), cx.now()) {
        Ok(place) => replica.on_kept(place, incoming.keep(cx)),
        Err(ErrorCode::UNDECODABLE) => incoming.refuse(cx, ErrorCode::UNDECODABLE),
        Err(code) => incoming.reject(cx, code),
    }
}

fn on_piece<App: Host>(app: &mut App, incoming: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let Ok(piece) = Piece::decode(incoming.data()) else {
        return incoming.refuse(cx, ErrorCode::UNDECODABLE);
    };
    let ticket = incoming.keep(cx);
    if !app.replica().on_piece(&piece, ticket) {
        // The sender may have given up.
        let _ = cx.reject(ticket, STRANGER);
    }
}
