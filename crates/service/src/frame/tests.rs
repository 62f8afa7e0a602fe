//! Metadata of every length and of other versions.

use dunlin_core::Nanos;

use super::{META_LEN, read, write_meta};
use crate::codec::DecodeError;

fn meta(deadline: Nanos) -> Vec<u8> {
    let mut bytes = [0xAA; META_LEN];
    write_meta(&mut bytes, deadline);
    bytes.to_vec()
}

#[test]
fn a_deadline_arrives_rounded_up_and_never_as_none() {
    for (sent, arrives_us) in [
        (0, 1),
        (1, 1),
        (1_000, 1),
        (1_001, 2),
        (u64::MAX, u64::from(u32::MAX)),
    ] {
        let mut bytes = meta(Nanos(sent));
        bytes.extend(b"message");
        let (left, message) = read(&bytes).unwrap();
        assert_eq!(
            (left, message),
            (Some(Nanos::from_micros(arrives_us)), &b"message"[..])
        );
    }
}

#[test]
fn metadata_of_a_later_version_are_passed_over() {
    let mut bytes = meta(Nanos::from_micros(7));
    bytes[0] = 12;
    bytes.extend([1, 2, 3, 4]);
    bytes.extend(b"message");
    assert_eq!(
        read(&bytes),
        Ok((Some(Nanos::from_micros(7)), &b"message"[..]))
    );
    bytes[4..8].fill(0);
    assert_eq!(read(&bytes), Ok((None, &b"message"[..])));
}

#[test]
fn metadata_that_are_cut_or_impossible_are_refused() {
    let whole = meta(Nanos::from_micros(7));
    for len in 0..META_LEN {
        let needed = DecodeError::TooShort {
            len,
            needed: META_LEN,
        };
        assert_eq!(read(&whole[..len]), Err(needed));
    }
    for impossible in 0..META_LEN {
        let mut bytes = whole.clone();
        bytes[0] = u8::try_from(impossible).unwrap();
        assert_eq!(read(&bytes), Err(DecodeError::Malformed));
    }
    let mut bytes = whole;
    bytes[0] = 200;
    assert_eq!(
        read(&bytes),
        Err(DecodeError::TooShort {
            len: META_LEN,
            needed: 200
        })
    );
}
