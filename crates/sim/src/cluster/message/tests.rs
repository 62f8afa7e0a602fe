//! Requests can be read as they were written, and a response belongs to one call.

use super::{Ask, Kind, answer_of, is_answer_of};

#[test]
fn a_request_reads_as_it_was_written() {
    let ask = Ask {
        call: 0x0102_0304_0506_0708,
        answer_len: 70,
        param: 9,
    };
    let mut bytes = [0; 50];
    ask.write(&mut bytes);
    assert_eq!(Ask::read(&bytes), Some(ask));
    bytes[30] ^= 1;
    assert_eq!(Ask::read(&bytes), None);
    assert_eq!(Ask::read(&bytes[..15]), None);
}

#[test]
fn a_response_belongs_to_one_call() {
    for len in [0, 3, 8, 9, 100] {
        let mut bytes = vec![0; len];
        answer_of(77, &mut bytes);
        assert!(is_answer_of(77, &bytes));
        assert_eq!(is_answer_of(78, &bytes), len == 0, "of {len} bytes");
    }
}

#[test]
fn each_kind_has_its_own_request_type() {
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(kind.req_type().0), index);
    }
}
