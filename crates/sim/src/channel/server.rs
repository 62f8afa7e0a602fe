//! A server: its handlers answer immediately or later, refuse, fail, and drain. Called by the
//! world.

use std::collections::BTreeMap;

use dunlin_core::{Cx, DeferredRequest, Refuse, Request, TimerToken};
use dunlin_wire::{ErrorCode, ReqType};

use super::bug::Bug;
use super::ledger::Shared;
use super::plan::{self, ServerPlan};
use crate::world::net::{NetHandle, PortId, SimEndpoint, SimTransport};
use crate::world::rng::Rng;

pub(super) const CALL: ReqType = ReqType(1);

pub(super) type ServerRpc = SimEndpoint<Server>;

/// The state of a server's handlers.
pub(super) struct Server {
    /// The number of the server, which is also its port number.
    number: usize,
    plan: ServerPlan,
    ledger: Shared,
    rng: Rng,
    is_draining: bool,
    bug: Option<Bug>,
    /// Requests that are answered later, by the number of their timer.
    kept: BTreeMap<u64, (DeferredRequest, u64)>,
    timers: u64,
}

pub(super) fn boot(
    net: &NetHandle,
    port: PortId,
    (plan, bug): (ServerPlan, Option<Bug>),
    ledger: Shared,
    mut rng: Rng,
) -> ServerRpc {
    let seed = rng.next_u64();
    let app = Server {
        number: port.0,
        plan,
        ledger,
        rng,
        is_draining: false,
        bug,
        kept: BTreeMap::new(),
        timers: 0,
    };
    let mut rpc = SimTransport::endpoint(net, port, app, plan::endpoint(), seed);
    rpc.on(CALL, on_call);
    rpc.on_timer(on_timer);
    rpc
}

/// Begins the drain of a server: its endpoint refuses new requests from now on.
pub(super) fn drain(rpc: &mut ServerRpc) {
    rpc.app_mut().is_draining = true;
    if rpc.app().bug != Some(Bug::DrainTakesRequests) {
        rpc.drain();
    }
}

impl Server {
    /// Whether it accepts no more sessions.
    pub(super) fn is_closed(&self) -> bool {
        self.is_draining && self.bug != Some(Bug::DrainTakesSessions)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining
    }

    pub(super) fn is_precise(&self) -> bool {
        self.plan.precise
    }

    /// Ends all refusals.
    pub(super) fn heal(&mut self) {
        self.plan.refuses = crate::world::rng::Ppm::NEVER;
    }
}

fn on_call(app: &mut Server, req: Request<'_>, cx: &mut Cx<'_>) {
    let Some(name) = req
        .data()
        .first_chunk()
        .map(|name| u64::from_le_bytes(*name))
    else {
        return req.refuse(cx, ErrorCode::UNDECODABLE);
    };
    let refuses = app.rng.chance(app.plan.refuses);
    // An imprecise server answers with codes that do not say whether the request ran.
    if refuses && (app.plan.precise || app.rng.one_in(2)) {
        return req.refuse(cx, ErrorCode::OVERLOADED);
    }
    let mut ledger = app.ledger.borrow_mut();
    ledger.run(index(name), app.number);
    if app.is_draining {
        ledger.violate(format!(
            "server {} is draining, but runs call {name}",
            app.number
        ));
    }
    drop(ledger);
    if refuses {
        return req.refuse(cx, ErrorCode::OVERLOADED);
    }
    if app.rng.chance(app.plan.fails) {
        let codes = [
            ErrorCode::application(1),
            ErrorCode::OVERLOADED,
            ErrorCode::SHUTTING_DOWN,
            ErrorCode::HANDLER_FAILED,
        ];
        if app.rng.one_in(4) {
            return req.refuse(cx, ErrorCode::NO_RESPONSE_MEMORY);
        }
        // No code with which a handler rejects may claim that the handler did not run.
        return req.reject(cx, *app.rng.pick(&codes));
    }
    let takes = app.plan.takes.draw(&mut app.rng);
    app.timers += 1;
    cx.timer(cx.now() + takes, TimerToken(app.timers));
    let later = req.defer(cx);
    app.kept.insert(app.timers, (later, name));
}

fn on_timer(app: &mut Server, TimerToken(timer): TimerToken, cx: &mut Cx<'_>) {
    if let Some((request, name)) = app.kept.remove(&timer) {
        request.reply_bytes(cx, &name.to_le_bytes());
    }
}

pub(super) fn index(name: u64) -> usize {
    usize::try_from(name).unwrap_or(usize::MAX)
}
