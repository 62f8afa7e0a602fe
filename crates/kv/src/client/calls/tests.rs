//! The tags of calls, and the buffers that places keep.

use dunlin_core::{Nanos, Tag};
use dunlin_msgbuf::{Pool, PoolConfig};

use super::{Calls, Job, MAX_CLIENTS, SPARE, client_of};
use crate::client::{Options, Token};
use crate::wire::Request;

const AT: Nanos = Nanos::from_secs(1);

#[test]
fn a_tag_names_its_call_until_the_end() {
    let mut pool = Pool::new(PoolConfig::default()).unwrap();
    let number = u16::try_from(MAX_CLIENTS - 1).unwrap();
    let (mut calls, others) = (Calls::new(number), Calls::new(0));
    let (place, tag, spare) = calls.begin_plain(Token(7), AT);
    assert!(spare.is_none());
    assert_eq!(client_of(tag), Some(number));
    assert_eq!((calls.find(tag), others.find(tag)), (Some(place), None));
    assert_eq!(calls.plain_token(place), Some(Token(7)));
    for stranger in [0, tag.0 + 1, tag.0 ^ 1 << 36, tag.0 ^ 1 << 32, u64::MAX] {
        assert_eq!(calls.find(Tag(stranger)), None, "{stranger:x}");
    }
    assert!(calls.end_plain(place, pool.alloc(9).unwrap()).is_none());
    assert_eq!((calls.find(tag), calls.live()), (None, 0));
}

#[test]
fn a_place_keeps_the_buffer_of_a_short_request() {
    let mut pool = Pool::new(PoolConfig::default()).unwrap();
    let mut calls = Calls::new(0);
    let (place, ..) = calls.begin_plain(Token(1), AT);
    let long = pool.alloc(SPARE + 1).unwrap();
    assert!(calls.end_plain(place, long).is_some());
    let (place, _, spare) = calls.begin_plain(Token(2), AT);
    assert!(spare.is_none());
    assert!(calls.end_plain(place, pool.alloc(24).unwrap()).is_none());
    assert!(calls.begin_plain(Token(3), AT).2.is_some());
}

#[test]
fn a_plain_call_that_is_taken_back_becomes_a_full_call() {
    let mut pool = Pool::new(PoolConfig::default()).unwrap();
    let mut calls = Calls::new(0);
    let get = Request::Get { key: b"key" };
    let mut message = pool.alloc(get.size()).unwrap();
    get.encode(5, message.data_mut());
    let (place, plain, _) = calls.begin_plain(Token(7), AT);
    calls.take_back(place, message, |job, request, deadline| {
        Options::DEFAULT.keyed(job, request, deadline)
    });
    let call = calls.get_mut(place);
    assert!(matches!(call.job, Job::Plain(Token(7))));
    assert!(call.is_read && call.deadline == AT && call.request.is_some());
    assert_eq!(calls.find(plain), None, "it has another tag now");
    assert_eq!(calls.find(calls.tag(place)), Some(place));
    assert_eq!(calls.plain_token(place), None);
    calls.remove(place);
    assert_eq!(calls.live(), 0);
}
