//! What becomes of calls that are cancelled while they wait for a slot.

use dunlin_core::{Config, Nanos, SessionOptions, Tag};

use crate::world::*;

const ONE_SLOT: SessionOptions = SessionOptions {
    window: 1,
    credits: 1,
};

#[test]
#[ignore = "bug: calls cancelled in a backlog are freed only when another call is sent"]
fn an_endpoint_with_nothing_left_to_do_sleeps() {
    let mut pair = Pair::with(Config::default(), ONE_SLOT);
    pair.call(ECHO, b"a", 1);
    let last = pair.call(ECHO, b"b", 2);
    assert!(pair.client.rpc.cx().cancel(last));
    pair.run();
    assert_eq!(pair.done().len(), 2);
    assert!(pair.done().contains(&(Tag(1), Ok(b"a".to_vec()))));
    pair.pass(Nanos::from_secs(2));
    assert_eq!(pair.client.rpc.next_wakeup(), Nanos::MAX);
}
