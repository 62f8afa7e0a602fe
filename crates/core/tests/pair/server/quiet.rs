//! Memory of requests after the server's load has ended.

use std::cell::RefCell;

use dunlin_core::{Cx, Nanos, Request, SessionOptions, Ticket};
use dunlin_testkit::pair::{App, Pair};
use dunlin_wire::ReqType;

const KEEP: ReqType = ReqType(60);
const SESSIONS: usize = 10;
const WINDOW: usize = 64;

thread_local! {
    static KEPT: RefCell<Vec<Ticket>> = const { RefCell::new(Vec::new()) };
}

fn keep(_: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let ticket = req.keep(cx);
    KEPT.with_borrow_mut(|kept| kept.push(ticket));
}

/// Fills the windows of new sessions with requests, and returns their tickets.
fn fill(pair: &mut Pair) -> Vec<Ticket> {
    let options = SessionOptions::DEFAULT.with_window(64).with_credits(64);
    for _ in 0..SESSIONS {
        pair.session = pair.client.open(&options);
        pair.complete(pair.session);
        for tag in 0..WINDOW as u64 {
            pair.call(KEEP, b"x", tag);
        }
        pair.run();
    }
    let kept = KEPT.take();
    assert_eq!(kept.len(), SESSIONS * WINDOW);
    kept
}

fn answer(pair: &mut Pair, kept: &[Ticket]) {
    for ticket in kept {
        let mut cx = pair.server.rpc.cx();
        cx.reply(*ticket, 1, |out| out[0] = b'k').expect("it waits");
    }
    pair.run();
}

#[test]
fn a_quiet_server_forgets_the_places_of_old_requests_but_not_their_tickets() {
    let mut pair = Pair::new();
    pair.server.rpc.on(KEEP, keep);
    let old = fill(&mut pair);
    answer(&mut pair, &old);
    pair.pass(Nanos::from_secs(2));

    // The server no longer holds any responses, and its table has 256 places left.
    pair.call(KEEP, b"x", 1);
    pair.run();
    let one = KEPT.take();
    assert!(one[0].index() < 256, "{one:?}");
    answer(&mut pair, &one);
    pair.pass(Nanos::from_secs(2));

    // Later requests have the same places and numbers, but other tickets.
    let new = fill(&mut pair);
    let places = |kept: &[Ticket]| kept.iter().map(|ticket| ticket.index()).max();
    assert!(places(&new) >= places(&old));
    let cx = pair.server.rpc.cx();
    assert!(
        old.iter()
            .all(|ticket| cx.is_cancelled(*ticket) == Ok(true))
    );
    assert!(
        new.iter()
            .all(|ticket| cx.is_cancelled(*ticket) == Ok(false))
    );
    answer(&mut pair, &new);
    pair.assert_clean();
}
