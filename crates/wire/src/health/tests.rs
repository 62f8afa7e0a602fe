//! Answers survive encoding and decoding, and other bytes are refused.

use std::string::String;
use std::vec;

use proptest::prelude::*;

use super::*;

const ALL: [HealthStatus; 3] = [
    HealthStatus::NoSuchService,
    HealthStatus::Serving,
    HealthStatus::NotServing,
];

#[test]
fn a_long_reason_is_cut_between_two_characters() {
    let reason = String::from("é").repeat(200);
    let status = HealthStatus::NotServing;
    let mut out = [0; MAX_HEALTH_ANSWER];
    let len = HealthAnswer {
        status,
        reason: &reason,
    }
    .encode(&mut out);
    let read = HealthAnswer::decode(&out[..len]).unwrap();
    assert_eq!((read.status, read.reason), (status, &reason[..254]));
}

#[test]
fn other_bytes_are_no_answer() {
    let long = vec![1; MAX_HEALTH_ANSWER + 1];
    for bytes in [&b""[..], b"\x03", b"\x01\xFF", &long] {
        assert_eq!(HealthAnswer::decode(bytes), None, "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn an_answer_survives_encoding_and_decoding(pick in 0..3_usize, reason in "\\PC{0,60}") {
        let answer = HealthAnswer { status: ALL[pick], reason: &reason };
        let mut out = [0; MAX_HEALTH_ANSWER];
        let len = answer.encode(&mut out);
        prop_assert_eq!(HealthAnswer::decode(&out[..len]), Some(answer));
    }
}
