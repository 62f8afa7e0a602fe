//! One round of calls, for every kind of call. Each function returns when the round's calls have
//! completed; held responses and timers may remain for the next round.

use dunlin_core::Nanos;
use dunlin_core::transport::Transport;
use dunlin_wire::ReqType;

use super::world::*;

/// Calls of a round in most kinds: the window of a session.
const ROUND: usize = 8;

fn round<T: Transport>(world: &mut World<T>, req_type: ReqType, calls: usize) {
    for _ in 0..calls {
        world.call(req_type, None);
    }
    world.settle();
}

/// Makes calls that the handler answers itself.
pub fn dispatch<T: Transport>(world: &mut World<T>) {
    round(world, ECHO, ROUND);
}

/// Makes calls that are answered when a timer fires.
pub fn deferred<T: Transport>(world: &mut World<T>) {
    round(world, LATER, ROUND);
}

/// Makes calls that the server answers after it has called back.
pub fn nested<T: Transport>(world: &mut World<T>) {
    round(world, NESTED, ROUND);
}

/// Makes calls of two batch types and to a dispatch handler in one burst, so that the endpoint must
/// collect the batches.
pub fn batch<T: Transport>(world: &mut World<T>) {
    for _ in 0..ROUND {
        world.call(BATCH, None);
        world.call(ECHO, None);
        world.call(BATCH_LATER, None);
    }
    world.settle();
}

/// Makes calls that a worker answers.
pub fn background<T: Transport>(world: &mut World<T>) {
    round(world, BACKGROUND, ROUND);
}

/// Makes calls that are rejected, calls of an unknown type, and calls whose requests the handler
/// drops.
pub fn errors<T: Transport>(world: &mut World<T>) {
    for _ in 0..4 {
        world.call(REJECT, None);
        world.call(UNKNOWN, None);
        world.call(DROP, None);
    }
    world.settle();
}

/// Calls slow handlers, and then fast ones.
pub fn slow<T: Transport>(world: &mut World<T>) {
    round(world, SLOW, ROUND);
    round(world, ECHO, ROUND);
}

/// Makes more calls than the window holds; the rest waits.
pub fn backlog<T: Transport>(world: &mut World<T>) {
    round(world, ECHO, 200);
}

/// Makes calls whose handler keeps the request beyond its deadline, and then learns that the client
/// cancelled it.
pub fn deadlines<T: Transport>(world: &mut World<T>) {
    for _ in 0..ROUND {
        world.call(HOLD, Some(Nanos::from_micros(500)));
        world.call(ECHO, Some(Nanos::from_millis(500)));
    }
    world.pass(Nanos::from_millis(1));
    answer_held(world);
    world.settle();
}

/// Cancels calls in flight, in the backlog, and while the server holds their requests.
pub fn cancels<T: Transport>(world: &mut World<T>) {
    let window = 8 * world.sessions.len();
    for turn in 0..window + ROUND {
        let req_type = if turn % 2 == 0 { HOLD } else { ECHO };
        let call = world.call(req_type, None);
        if turn % 3 == 0 {
            world.step();
        }
        if turn % 4 != 1 {
            world.client.cx().cancel(call).expect("it waits");
        }
    }
    world.exchange();
    answer_held(world);
    world.settle();
    // The waiting calls have been sent only now.
    answer_held(world);
    world.settle();
}

/// Cancels calls that wait for the server's slots, all of which stay occupied.
pub fn cancels_behind_a_full_window<T: Transport>(world: &mut World<T>) {
    for _ in 0..8 * world.sessions.len() {
        world.call(HOLD, None);
    }
    world.exchange();
    for _ in 0..1000 {
        let waiting = world.call(ECHO, None);
        world.client.cx().cancel(waiting).expect("it waits");
        world.step();
    }
    answer_held(world);
    world.settle();
}

/// Calls a handler so slow that the client sends probes.
pub fn probes<T: Transport>(world: &mut World<T>) {
    for _ in 0..ROUND {
        world.call(HOLD, None);
    }
    world.pass(Nanos::from_millis(50));
    answer_held(world);
    world.settle();
}

/// Makes calls while every seventh packet is lost.
pub fn losses<T: Transport>(world: &mut World<T>) {
    world.loss.set(7);
    for req_type in [ECHO, LATER, NESTED, BATCH, BACKGROUND] {
        for _ in 0..2 {
            world.call(req_type, None);
        }
    }
    for _ in 0..4 {
        let call = world.call(ECHO, None);
        world.step();
        world.client.cx().cancel(call).expect("it waits");
    }
    world.settle();
    world.loss.set(0);
}

/// Makes calls; before the next round the server gives back every response that it has held.
pub fn holds<T: Transport>(world: &mut World<T>) {
    for req_type in [ECHO, LATER, BATCH, BACKGROUND] {
        for _ in 0..4 {
            world.call(req_type, None);
        }
    }
    world.settle();
    world.pass(Nanos::from_millis(5));
}

fn answer_held<T: Transport>(world: &mut World<T>) {
    let (app, mut cx) = world.server.with();
    while let Some(held) = app.held.pop() {
        held.reply_bytes(&mut cx, &[1; SIZE]);
    }
}
