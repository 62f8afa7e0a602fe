//! Questions and answers survive encoding and decoding, and other bytes are refused.

use std::string::String;
use std::vec;

use proptest::prelude::*;

use super::*;
use crate::check;

#[test]
fn a_long_name_is_cut_between_two_characters() {
    let method = String::from("é").repeat(200);
    let question = MessageQuestion {
        method: &method,
        json: "1",
    };
    let mut out = vec![0; question.size()];
    question.encode(&mut out);
    let read = MessageQuestion::decode(&out).unwrap();
    assert_eq!((read.method, read.json), (&method[..254], "1"));
}

#[test]
fn other_bytes_are_neither_questions_nor_answers() {
    for bytes in [&b""[..], b"\x02a", b"\x01\xFF", b"\x01a\xFF"] {
        assert_eq!(MessageQuestion::decode(bytes), None, "{bytes:?}");
    }
    for bytes in [&b""[..], b"\x00\x01\x00", b"\x01\xFF", b"\x02\xFF", b"\x03"] {
        assert_eq!(MessageAnswer::decode(bytes), None, "{bytes:?}");
    }
    for bytes in [&b""[..], b"\x01"] {
        assert_eq!(JsonQuestion::decode(bytes), None, "{bytes:?}");
    }
    for bytes in [&b""[..], b"\x00\xFF", b"\x04"] {
        assert_eq!(JsonAnswer::decode(bytes), None, "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn accepted_bytes_are_written_again(mut bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        check::reflection(&bytes);
        if let Some(tag) = bytes.first_mut() {
            *tag %= 4;
        }
        check::reflection(&bytes);
    }
}
