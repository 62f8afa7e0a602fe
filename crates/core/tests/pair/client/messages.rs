//! Long messages that are staged and stay in their msgbufs until the packets leave.

use dunlin_core::{RpcError, SessionOptions, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::{HEADER_LEN, Header, PacketType, ReqType};

/// A message that differs from those with other tags.
fn message(len: usize, tag: u8) -> Vec<u8> {
    (tag..=u8::MAX).cycle().take(len).collect()
}

/// The messages of the requests that the client has just sent.
fn sent(pair: &Pair) -> Vec<Vec<u8>> {
    let out = pair.client.out.borrow();
    let is_request = |bytes: &&Vec<u8>| Header::decode(bytes).unwrap().kind == PacketType::Req;
    let requests = out.iter().filter(is_request);
    requests.map(|bytes| bytes[HEADER_LEN..].to_vec()).collect()
}

/// A pair whose next calls are ordinary ones: the first call asks for a round-trip sample, and the
/// first call in each slot takes an entry, and a buffer for its response.
fn pair() -> Pair {
    let mut pair = Pair::with_long_lanes();
    for calls in [1, 8] {
        (0..calls).for_each(|tag| _ = pair.call(ECHO, &[0; 1024], tag));
        pair.run();
    }
    pair.client.rpc.app_mut().done.clear();
    pair
}

#[test]
fn messages_of_all_lengths_of_a_lane_arrive_whole() {
    for len in [0, 1, 32, 33, 256, 257, 383, 384, 385, 1000, 1023, 1024] {
        let mut pair = pair();
        for others in [vec![len; 6], vec![len, 300, 32, len, 1000]] {
            let messages: Vec<_> = (1..)
                .zip(others)
                .map(|(tag, len)| message(len, tag))
                .collect();
            for (tag, message) in (0..).zip(&messages) {
                pair.call(ECHO, message, tag);
            }
            pair.run();
            let done = std::mem::take(&mut pair.client.rpc.app_mut().done);
            let wanted = (0..).zip(messages).map(|(tag, it)| (Tag(tag), Ok(it)));
            assert_eq!(done, wanted.collect::<Vec<_>>(), "length {len}");
        }
        assert_ne!(pair.client.rpc.counters().tx_staged, 0);
        pair.assert_clean();
    }
}

#[test]
fn the_request_of_a_call_that_is_cancelled_at_once_leaves_unchanged() {
    let mut pair = pair();
    let messages = [message(1000, 1), message(1000, 2), message(1000, 3)];
    pair.call(ECHO, &messages[0], 1);
    let cancelled = pair.call(ECHO, &messages[1], 2);
    pair.client.rpc.cx().cancel(cancelled).unwrap();
    pair.call(ECHO, &messages[2], 3);
    pair.step_client();
    assert_eq!(sent(&pair), messages);
    pair.run();
    assert_eq!(pair.done().len(), 3);
    assert!(matches!(
        pair.done().iter().find(|(tag, _)| *tag == Tag(2)),
        Some((_, Err(RpcError::Cancelled(_))))
    ));
    pair.assert_clean();
}

#[test]
fn messages_leave_unchanged_although_their_session_ends() {
    let mut pair = pair();
    let last = ReqType(20);
    pair.server.rpc.on(last, |_, req, cx| {
        let (session, data) = (req.session(), req.data());
        req.reply(cx, data.len(), |out| out.copy_from_slice(data));
        cx.disconnect(session).expect("it is open");
    });
    let messages = [message(1000, 1), message(600, 2)];
    pair.call(last, &messages[0], 1);
    pair.step_client();
    pair.call(ECHO, &messages[1], 2);
    let session = pair.session;
    pair.client.rpc.cx().disconnect(session).unwrap();
    pair.step_client();
    assert_eq!(sent(&pair), messages);
    deliver(&pair.client.out, &pair.server.inbox);
    pair.step_server();
    assert_eq!(pair.server.out.borrow()[0][HEADER_LEN..], messages[0]);
}

#[test]
fn a_request_that_a_peer_answers_before_it_has_left_does_not_leave() {
    let mut pair = pair();
    pair.call(ECHO, b"short", 1);
    pair.step_client();
    deliver(&pair.client.out, &pair.server.inbox);
    pair.step_server();
    let answer = pair.server.out.borrow()[0].clone();
    deliver(&pair.server.out, &pair.client.inbox);
    pair.step_client();
    // The peer guesses the number of the next call in the slot.
    let mut header = Header::decode(&answer).unwrap();
    header.req.0 += SessionOptions::DEFAULT.window;
    let guessed = [&header.encode(), &answer[HEADER_LEN..]].concat();
    pair.call(ECHO, &message(1000, 2), 2);
    pair.client.inbox.borrow_mut().push_back(guessed);
    pair.step_client();
    assert_eq!(pair.done().len(), 2);
    let out = pair.client.out.borrow_mut().pop_front().unwrap();
    assert_eq!(out[..HEADER_LEN], [0; HEADER_LEN]);
    pair.assert_clean();
}
