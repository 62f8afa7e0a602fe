//! Batch handlers that answer their requests immediately, in an order of their own.

use dunlin_core::{Batch, Cx, RpcError, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::{ErrorCode, ReqType};

/// Answers the requests immediately, the last one first. Each answer repeats its request 300 times.
const NOW: ReqType = ReqType(60);

const FAILED: RpcError = RpcError::rejected(ErrorCode::HANDLER_FAILED, true);

fn backwards(app: &mut App, mut batch: Batch<'_>, cx: &mut Cx<'_>) {
    app.batches.push(batch.len());
    for index in (0..batch.len()).rev() {
        let item = batch.item(index).expect("it is not answered yet");
        let data = item.data();
        app.ran.push(data.to_vec());
        match data {
            b"none" => continue,
            b"panic" => panic!("a batch handler that panics"),
            b"panic in answer" => {
                item.reply_now(cx, 1, |_| panic!("a batch handler that panics"));
            }
            data => item.reply_now(cx, 300 * data.len(), |out| {
                out.chunks_mut(data.len())
                    .for_each(|part| part.copy_from_slice(data));
            }),
        }
        assert!(batch.item(index).is_none(), "it is answered");
    }
    assert!(batch.item(batch.len()).is_none());
}

/// A pair whose server prepares answers of this length.
fn pair(max_response: usize) -> Pair {
    let mut pair = Pair::new();
    let rpc = &mut pair.server.rpc;
    rpc.on_batch_up_to(NOW, max_response, backwards);
    pair
}

fn ends(pair: &Pair) -> Vec<(Tag, Result<Vec<u8>, RpcError>)> {
    let mut done = pair.done().to_vec();
    done.sort_by_key(|(tag, _)| *tag);
    done
}

#[test]
fn answers_at_once_have_any_length_and_order() {
    for max_response in [0, 64] {
        let mut pair = pair(max_response);
        for round in 0..3 {
            for (tag, data) in [(0, &b"a"[..]), (1, b"b"), (2, b"ccc"), (3, b"none")] {
                pair.call(NOW, data, 10 * round + tag);
            }
            pair.run();
        }
        assert_eq!(pair.server.rpc.app().batches, [4; 3]);
        assert_eq!(pair.server.rpc.app().ran[..2], [&b"none"[..], b"ccc"]);
        let expected = [
            Ok(vec![b'a'; 300]),
            Ok(vec![b'b'; 300]),
            Ok(vec![b'c'; 900]),
        ];
        for end in ends(&pair).chunks(4) {
            assert!(end[..3].iter().map(|(_, end)| end).eq(&expected));
            assert_eq!(end[3].1, Err(FAILED));
        }
        pair.assert_clean();
    }
}

#[test]
fn a_panic_fails_only_requests_that_were_not_answered_before() {
    for panic in [&b"panic"[..], b"panic in answer"] {
        let mut pair = pair(0);
        for (tag, data) in [(0, &b"a"[..]), (1, panic), (2, b"c")] {
            pair.call(NOW, data, tag);
        }
        pair.run();
        let expected = [Err(FAILED), Err(FAILED), Ok(vec![b'c'; 300])];
        assert!(ends(&pair).iter().map(|(_, end)| end).eq(&expected));
        pair.assert_clean();
    }
}

#[test]
fn an_answer_of_no_bytes_needs_no_buffer() {
    let mut pair = Pair::new();
    pair.server.rpc.on_batch_up_to(NOW, 0, |_, mut batch, _| {
        for (item, len) in batch.iter_mut().zip(0..) {
            assert_eq!(
                item.reply(len, |out| assert!(out.is_empty())).is_ok(),
                len == 0
            );
        }
    });
    pair.call(NOW, b"a", 0);
    pair.call(NOW, b"b", 1);
    pair.run();
    let too_long = RpcError::rejected(ErrorCode::RESPONSE_TOO_LARGE, true);
    assert_eq!(
        ends(&pair),
        [(Tag(0), Ok(Vec::new())), (Tag(1), Err(too_long))]
    );
    pair.assert_clean();
}
