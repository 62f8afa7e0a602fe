//! The fate of calls that wait for a slot or for their session.

use dunlin_core::{Config, Nanos, SessionOptions, Tag};
use dunlin_testkit::pair::*;

const ONE_SLOT: SessionOptions = options(1, 1);

#[test]
fn an_endpoint_with_nothing_left_to_do_sleeps() {
    let mut pair = Pair::with(Config::default(), ONE_SLOT);
    pair.call(ECHO, b"a", 1);
    let last = pair.call(ECHO, b"b", 2);
    assert!(pair.client.rpc.cx().cancel(last).is_ok());
    pair.run();
    assert_eq!(pair.done().len(), 2);
    assert!(pair.done().contains(&(Tag(1), Ok(b"a".to_vec()))));
    pair.pass(Nanos::from_secs(2));
    assert_eq!(pair.client.rpc.next_wakeup(), Nanos::MAX);
}

#[test]
fn a_call_that_waited_for_its_session_is_resent_when_it_is_lost() {
    let mut pair = Pair::new();
    let session = pair.client.open(&ONE_SLOT);
    let [request, response] = [(); 2].map(|()| pair.client.rpc.buf(1).unwrap());
    let rpc = &mut pair.client.rpc;
    rpc.call(session, ECHO, request, response, Tag(1)).unwrap();
    // A scan finds that the call waits, and that it has no deadline.
    pair.pass(Nanos::from_millis(1));
    pair.complete(session);
    pair.step_client();
    assert_eq!(take(&pair.client.out).len(), 1, "the request is lost");
    pair.pass(Nanos::from_secs(1));
    assert_eq!(pair.done().len(), 1);
}

#[test]
fn a_call_that_waited_for_a_slot_is_resent_when_it_is_lost() {
    let mut pair = Pair::with(Config::default(), ONE_SLOT);
    pair.call(ECHO, b"a", 1);
    pair.call(ECHO, b"b", 2);
    pair.step_client();
    let frame = pair.client.out.borrow_mut().pop_front().unwrap();
    pair.server.inbox.borrow_mut().push_back(frame);
    pair.step_server();
    let answer = pair.server.out.borrow_mut().pop_front().unwrap();
    // The answer arrives when the scan is due: the scan visits the second call before that call is
    // sent.
    pair.clock.pass(Nanos(1_000_000));
    pair.client.inbox.borrow_mut().push_back(answer);
    pair.step_client();
    assert_eq!(
        take(&pair.client.out).len(),
        1,
        "the second request is lost"
    );
    pair.pass(Nanos::from_secs(1));
    assert_eq!(pair.done().len(), 2);
}

/// Otherwise the next call, and each later call of the session, would have to wait too.
#[test]
fn a_call_that_waits_leaves_before_the_next_one_is_made() {
    for common in [true, false] {
        let mut config = Config::default();
        config.bypasses.common = common;
        let mut pair = Pair::with(config, options(2, 32));
        pair.client.rpc.on_completion(|app, done, cx| {
            let tag = done.tag;
            app.done.push((tag, Ok(done.response.data().to_vec())));
            // Two answers come together. The third call takes the slot that the first one frees.
            if tag == Tag(1) {
                cx.call(done.session, ECHO, done.request, done.response, Tag(3))
                    .unwrap();
            }
        });
        for tag in 0..3 {
            pair.call(ECHO, b"x", tag);
        }
        pair.run();
        let tags: Vec<u64> = pair.done().iter().map(|(tag, _)| tag.0).collect();
        assert_eq!(tags, [0, 1, 2, 3]);
        assert_eq!(
            pair.client.rpc.counters().stalls,
            1,
            "only the third call waited"
        );
        pair.assert_clean();
    }
}
