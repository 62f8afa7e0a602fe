//! Tests, without an endpoint, of the objects that are held until the transport is done with them.

use dunlin_msgbuf::PoolConfig;

use super::*;
use crate::call::Tag;
use crate::handle::Session;

fn pool() -> Pool {
    Pool::new(PoolConfig::default()).expect("memory for a pool")
}

#[test]
fn a_completion_waits_until_the_transport_is_done_with_its_request() {
    let (mut held, mut pool) = (Held::default(), pool());
    let mut buf = || pool.alloc(8).expect("memory");
    let done = Done {
        session: Session::NONE,
        tag: Tag(7),
        result: Ok(()),
        request: buf(),
        response: buf(),
    };
    held.end(done, TxSeq(5));
    held.on_done(TxSeq(4));
    assert!(held.pop_ending().is_none());
    assert!(held.is_waiting());
    held.on_done(TxSeq(5));
    let done = held.pop_ending().expect("the transport is done");
    assert_eq!(done.tag, Tag(7));
    assert!(!held.is_waiting());
}

#[test]
fn a_response_goes_back_to_the_pool_when_the_transport_is_done_with_it() {
    let (mut held, mut pool) = (Held::default(), pool());
    let [early, late] = [8, 8].map(|len| pool.alloc(len).expect("memory"));
    held.on_done(TxSeq(1));
    assert!(!held.recycle(early, TxSeq(1), &mut pool));
    assert!(held.recycle(late, TxSeq(2), &mut pool));
    assert_eq!(pool.outstanding(), 1);
    held.recycle_lingering(&mut pool);
    assert_eq!(pool.outstanding(), 1);
    held.on_done(TxSeq(2));
    held.recycle_lingering(&mut pool);
    assert_eq!(pool.outstanding(), 0);
}
