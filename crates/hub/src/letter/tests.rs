//! The memory that slots keep, and the bytes that attempts send.

use dunlin_mailbox::{Letter as _, Places};
use dunlin_msgbuf::{Pool, PoolConfig};
use dunlin_service::META;

use super::*;

/// The request of an attempt as it is sent.
fn written(letter: &mut Letter, left: Option<Nanos>) -> (ReqType, Vec<u8>) {
    let mut pool = Pool::new(PoolConfig::default()).unwrap();
    let request = letter.request(left, false, |len| pool.alloc(len));
    let (req_type, request) = request.unwrap();
    let bytes = request.data().to_vec();
    assert!(letter.return_request(request).is_none());
    (req_type, bytes)
}

/// Writes a request of `bytes` bytes into a slot, brings an event to the slot, and returns how many
/// bytes of memory the slot keeps.
fn kept(bytes: usize, event: impl FnOnce(&mut Letter)) -> usize {
    let mut letter = Letter::default();
    let place = Places::new(1).take().expect("it is the first");
    letter.on_call(0, ReqType(1), 0, None);
    letter.on_body(&vec![0; bytes]);
    letter.on_sent(place, || Nanos(0));
    event(&mut letter);
    letter.body.kept()
}

#[test]
fn a_slot_frees_the_memory_of_a_large_request_however_its_call_ends() {
    let ends: [fn(&mut Letter); 3] = [
        |letter| letter.on_end(Err(ChannelError::Full), KEPT),
        |letter| drop(letter.on_dropped(KEPT)),
        Letter::on_closed,
    ];
    for end in ends {
        assert_eq!(kept(1 << 20, end), 0);
        assert!(
            kept(1000, end) >= 1000,
            "the memory of a small request stays"
        );
    }
}

#[test]
fn a_typed_request_has_a_front_only_if_its_attempt_has_a_deadline() {
    let mut letter = Letter {
        req_type: ReqType(7),
        ..Letter::default()
    };
    letter.on_message(16, 3, |out| out.copy_from_slice(b"abc"));
    let attempts = [None, Some(5), None, Some(9)];
    for left_us in attempts {
        let left = left_us.map(Nanos::from_micros);
        let expected = match left_us {
            None => (ReqType(7), b"abc".to_vec()),
            Some(left) => {
                let meta = [8, 0, 0, 0, u8::try_from(left).unwrap(), 0, 0, 0];
                (ReqType(7 | META), [&meta[..], b"abc"].concat())
            }
        };
        assert_eq!(written(&mut letter, left), expected);
    }
    // A request that is not typed gets no front, even with a deadline: its bytes are the caller's.
    letter.on_body(b"0123456789");
    let left = Some(Nanos::from_micros(5));
    assert_eq!(
        written(&mut letter, left),
        (ReqType(7), b"0123456789".to_vec())
    );
}

#[test]
fn metadata_stay_with_their_call_and_its_copies() {
    let mut letter = Letter::default();
    letter.on_call(0, ReqType(7), 0, None);
    letter.on_body(b"abc");
    letter.on_meta(Key::new("k").unwrap(), "v").unwrap();
    let front = [13, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, b'k', b'v'];
    let expected = (ReqType(7 | META), [&front[..], b"abc"].concat());
    assert_eq!(written(&mut letter, None), expected);
    let mut copy = Letter::default();
    copy.on_call(0, ReqType(7), 0, None);
    copy.on_copy(&letter);
    assert_eq!(written(&mut copy, None), expected);
    // The next call in the slot has none.
    letter.on_call(0, ReqType(7), 0, None);
    letter.on_body(b"abc");
    assert_eq!(written(&mut letter, None), (ReqType(7), b"abc".to_vec()));
    // A request type that contains the bit for metadata cannot have metadata.
    letter.on_call(0, ReqType(7 | META), 0, None);
    assert_eq!(
        letter.on_meta(Key::new("k").unwrap(), "v"),
        Err(MetaError::Type)
    );
}
