//! Data that stays in the sender's memory: packets whose frames hold only a header.

use dunlin_core::{CallOptions, Nanos, RpcError, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::ReqType;

fn call(pair: &mut Pair, req_type: ReqType, data: &[u8], room: usize) {
    let rpc = &mut pair.client.rpc;
    let mut request = rpc.buf(data.len()).unwrap();
    request.data_mut().copy_from_slice(data);
    let response = rpc.buf(room).unwrap();
    let options = CallOptions::default();
    rpc.call_with(pair.session, req_type, request, response, Tag(1), options)
        .unwrap();
}

fn pass(pair: &mut Pair, steps: usize) {
    for _ in 0..steps {
        pair.clock.pass(Nanos(100_000));
        pair.run();
    }
}

fn both(pair: &Pair, references: References) {
    pair.client.references.set(references);
    pair.server.references.set(references);
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251).to_le_bytes()[0]).collect()
}

#[test]
fn messages_of_every_size_arrive_whole_by_reference() {
    let size = DATA_SIZE as usize;
    for len in [1, 32, size, size + 1, 40 * size + 5] {
        let mut pair = Pair::new();
        both(&pair, References::All);
        let data = bytes(len);
        call(&mut pair, ECHO, &data, len);
        pass(&mut pair, 50);
        assert_eq!(pair.done().len(), 1, "{len} bytes");
        assert!(pair.done()[0].1.as_ref().unwrap() == &data, "{len} bytes");
        assert!(pair.server.rpc.app().ran == [data], "the handler ran once");
        assert_eq!(pair.server.rpc.counters().drops.total(), 0);
        pair.assert_clean();
    }
}

#[test]
fn every_kind_of_handler_takes_data_by_reference() {
    for req_type in [BATCH, HOLD, BACKGROUND, REJECT, UNKNOWN] {
        let mut pair = Pair::new();
        both(&pair, References::All);
        call(&mut pair, req_type, &bytes(100), 100);
        pass(&mut pair, 5);
        pair.run_jobs();
        if req_type == HOLD {
            let (app, mut cx) = pair.server.rpc.with();
            app.held.pop().unwrap().reply_bytes(&mut cx, &bytes(100));
        }
        pass(&mut pair, 50);
        let is_answered = !matches!(req_type, REJECT | UNKNOWN);
        assert_eq!(pair.done().len(), 1, "{req_type:?}");
        assert_eq!(pair.done()[0].1.is_ok(), is_answered, "{req_type:?}");
        pair.assert_clean();
    }
}

#[test]
fn data_that_the_sender_withdraws_counts_as_lost_and_comes_again() {
    let size = DATA_SIZE as usize;
    for len in [32, 40 * size] {
        let mut pair = Pair::new();
        both(&pair, References::Revoked);
        let data = bytes(len);
        call(&mut pair, ECHO, &data, len);
        pass(&mut pair, 1);
        assert!(pair.server.rpc.app().ran.is_empty());
        assert!(pair.server.rpc.counters().drops.revoked > 0);
        pair.server.references.set(References::All);
        pass(&mut pair, 300);
        // The client cannot read the answer either.
        assert!(pair.done().is_empty());
        assert!(pair.client.rpc.counters().drops.revoked > 0);
        pair.client.references.set(References::All);
        pass(&mut pair, 2_000);
        assert_eq!(pair.done().len(), 1);
        assert!(pair.done()[0].1.as_ref().unwrap() == &data);
        assert_eq!(pair.server.rpc.app().ran.len(), 1, "the handler ran once");
    }
}

#[test]
fn references_of_another_length_are_dropped() {
    let mut pair = Pair::new();
    pair.server.references.set(References::All);
    call(&mut pair, ECHO, &bytes(100), 100);
    pair.step_client();
    let mut frame = pair.client.out.borrow_mut().pop_front().unwrap();
    frame.pop();
    pair.server.inbox.borrow_mut().push_back(frame);
    pair.step_server();
    assert_eq!(pair.server.rpc.counters().drops.size, 1);
    assert!(pair.server.rpc.app().ran.is_empty());
}

#[test]
fn references_with_bytes_after_the_header_are_dropped() {
    let mut pair = Pair::new();
    pair.server.references.set(References::Repeated);
    call(&mut pair, ECHO, &bytes(100), 100);
    pair.run();
    assert_eq!(pair.server.rpc.counters().drops.size, 1);
    assert!(pair.server.rpc.app().ran.is_empty());
    pair.server.references.set(References::All);
    pass(&mut pair, 300);
    assert_eq!(pair.done().len(), 1);
    pair.assert_clean();
}

#[test]
fn a_response_by_reference_that_does_not_fit_is_an_error() {
    let mut pair = Pair::new();
    pair.client.references.set(References::All);
    call(&mut pair, ECHO, &bytes(1000), 50);
    pass(&mut pair, 10);
    assert_eq!(
        pair.done()[0].1,
        Err(RpcError::ResponseTooLarge { size: 1000 })
    );
}
