//! The service: handlers of an endpoint, which note what comes in for its replica.
//!
//! No handler runs Raft, allocates more than a copy of its request, or panics on any bytes. Answers
//! leave from [`Replica::run`].

use dunlin_core::{Cx, Refuse, Register, Request as RpcRequest};
use dunlin_wire::ErrorCode;

use crate::replica::{Replica, SeatError};
use crate::wire::{
    BOOTSTRAP, JOIN, Members, OPERATE, ORDER, Operation, Order, PARCEL, PIECE, Piece, Request,
    Roster, STATUS, STRANGER, VERSION,
};

/// The code of a bootstrap to a replica of another cluster.
pub const TAKEN: ErrorCode = ErrorCode::application(1);
/// The code of a bootstrap that the replica's disk does not take.
pub const UNSAVED: ErrorCode = ErrorCode::application(3);

/// The code of an order that the replica cannot carry out: it does not lead, or the member that is
/// to lead is none.
pub const UNABLE: ErrorCode = ErrorCode::application(4);

/// The code of a bootstrap to a replica with other restored items than those that the cluster is to
/// begin with, and of a join to one with restored items.
pub const OTHER_ITEMS: ErrorCode = ErrorCode::application(5);

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
    endpoint.register(JOIN, on_join::<App>);
    endpoint.register(ORDER, on_order::<App>);
    endpoint.register(PARCEL, on_parcel::<App>);
    endpoint.register(PIECE, on_piece::<App>);
}

fn on_operate<App: Host>(app: &mut App, incoming: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let bytes = incoming.data();
    let request = match Request::decode(bytes) {
        // No client sets the time.
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
    let seated = app.replica().on_bootstrap(members);
    answer_seat(app, seated, incoming, cx);
}

fn on_join<App: Host>(app: &mut App, incoming: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let Ok(roster) = Roster::decode(incoming.data()) else {
        return incoming.refuse(cx, ErrorCode::UNDECODABLE);
    };
    let seated = app.replica().on_join(roster);
    answer_seat(app, seated, incoming, cx);
}

fn answer_seat<App: Host>(
    app: &mut App,
    seated: Result<(), SeatError>,
    incoming: RpcRequest<'_>,
    cx: &mut Cx<'_>,
) {
    match seated {
        Ok(()) => incoming.reply_bytes(cx, &app.replica().status().to_bytes()),
        Err(SeatError::Taken) => incoming.reject(cx, TAKEN),
        Err(SeatError::Stranger) => incoming.reject(cx, STRANGER),
        Err(SeatError::Unsaved) => incoming.reject(cx, UNSAVED),
        Err(SeatError::OtherItems) => incoming.reject(cx, OTHER_ITEMS),
    }
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
    match app.replica().on_parcel(incoming.data(), cx.now()) {
        Ok(place) => {
            let ticket = incoming.keep(cx);
            app.replica().on_kept(place, ticket);
        }
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
