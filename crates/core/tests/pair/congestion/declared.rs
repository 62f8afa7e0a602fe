//! Large responses over a path whose round trip the transport declares: then the endpoint trusts
//! the line rate, and the server sends packets no faster (rule S13).

use dunlin_core::{Nanos, SessionOptions, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::ReqType;

/// The server answers a request of this type with [`PACKETS`] packets.
const EIGHT: ReqType = ReqType(70);
const PACKETS: usize = 8;

const TAG: Tag = Tag(1);

/// A pair with a new session over a path of this round trip.
fn pair(base_rtt: Nanos) -> Pair {
    let mut pair = Pair::new();
    pair.server.rpc.on(EIGHT, |_, req, cx| {
        req.reply(cx, PACKETS * DATA_SIZE as usize, |out| out.fill(8));
    });
    for host in [&pair.client, &pair.server] {
        host.base_rtt.set(base_rtt);
    }
    pair.session = pair.client.open(&SessionOptions::DEFAULT.with_credits(64));
    pair.back = pair.complete(pair.session);
    pair
}

/// The number of packets that the server sends for a response while no time passes.
fn sent_at_once(pair: &mut Pair) -> u64 {
    let before = pair.server.rpc.counters().tx_packets;
    let rpc = &mut pair.client.rpc;
    let [request, response] = [1, PACKETS * DATA_SIZE as usize].map(|len| rpc.buf(len).unwrap());
    let call = rpc.call(pair.session, EIGHT, request, response, TAG);
    call.unwrap();
    pair.run();
    pair.server.rpc.counters().tx_packets - before
}

#[test]
fn packets_of_a_response_leave_at_line_rate_from_the_first_on() {
    let mut pair = pair(Nanos::from_micros(10));
    pair.client.rpc.on_completion(|app, done, cx| {
        assert!(done.response.data().iter().all(|byte| *byte == 8));
        app.done.push((done.tag, done.result.map(|()| Vec::new())));
        cx.recycle([done.request, done.response]);
    });
    for round in 1..4 {
        // One packet is on the cable, and two wait in the NIC.
        assert_eq!(sent_at_once(&mut pair), 3, "{round}");
        // Each further packet takes a microsecond.
        pair.pass(Nanos::from_micros(100));
        assert_eq!(pair.done(), vec![(TAG, Ok(Vec::new())); round]);
        pair.pass(Nanos::from_millis(1));
    }
    pair.assert_clean();
}

#[test]
fn packets_of_a_response_leave_at_once_if_the_line_rate_may_be_wrong() {
    let mut pair = pair(Nanos::ZERO);
    assert_eq!(sent_at_once(&mut pair), PACKETS as u64);
}
