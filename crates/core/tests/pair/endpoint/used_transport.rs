//! An endpoint whose transport has sent packets before counts positions from there on (rule S12).

use dunlin_core::transport::{MAX_INLINE, Tx, TxItem};
use dunlin_core::{Config, Endpoint, EndpointNum, Tag};
use dunlin_msgbuf::BufRef;
use dunlin_testkit::clock::StepClock;
use dunlin_testkit::pair::{App, ECHO, Pair, TestRpc, deliver, options};
use dunlin_testkit::session::connect;
use dunlin_testkit::wire::{End, Wire};

/// A request that is longer than a cache line, so that the endpoint lends it.
const LONG: [u8; 300] = [5; 300];

/// An endpoint whose transport has sent three packets before, and is done with them.
fn endpoint_of_used_transport(end: &End, clock: &StepClock) -> TestRpc {
    let mut halves = end.halves(clock);
    let packet = TxItem {
        peer: Wire::PEER,
        inline_len: 24,
        inline: [0; MAX_INLINE],
        data: BufRef::EMPTY,
    };
    let end_of_burst = halves.tx.burst(&[packet; 3]);
    assert_eq!(halves.tx.done(), end_of_burst);
    end.out.borrow_mut().clear();
    let number = EndpointNum::chosen(3);
    let config = Config {
        readable_buffers: true,
        ..Config::default()
    };
    let (app, clock) = (App::default(), clock.clone());
    Endpoint::new(app, clock, halves, config, 3, None, number).expect("the options are in range")
}

#[test]
fn a_request_stays_lent_until_the_transport_is_done_with_it() {
    let mut pair = Pair::new();
    let end = End::default();
    let mut client = endpoint_of_used_transport(&end, &pair.clock);
    client.on_completion(|app, done, _| app.done.push((done.tag, done.result.map(|()| vec![]))));
    let peers = [Wire::PEER; 2];
    let [session, _] = connect(&mut client, &mut pair.server.rpc, peers, &options(8, 8));
    end.stuck.set(true);
    let mut cx = client.cx();
    let (request, response) = (cx.copy(&LONG).unwrap(), cx.buf(LONG.len()).unwrap());
    cx.call(session, ECHO, request, response, Tag(1)).unwrap();
    for _ in 0..4 {
        client.run_once();
        deliver(&end.out, &pair.server.inbox);
        pair.server.rpc.run_once();
        deliver(&pair.server.out, &end.inbox);
    }
    let done = &client.app().done;
    assert!(done.is_empty(), "the transport still reads the request");
    // A program that waits for the end of all calls before it drops the endpoint loses none.
    assert_eq!(client.call_count(), 1);
    end.stuck.set(false);
    client.run_once();
    client.run_once();
    assert_eq!((client.app().done.len(), client.call_count()), (1, 0));
}
