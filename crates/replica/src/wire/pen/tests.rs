//! Numbers of all lengths, and bytes that are not a number.

use super::super::cursor::Cursor;
use super::super::format::Malformed;
use super::{put_number, size_of_number};

fn written(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_number(&mut bytes, number);
    assert_eq!(bytes.len(), size_of_number(number), "{number}");
    bytes
}

#[test]
fn numbers_at_both_ends_of_each_length_come_back() {
    for bits in 0..64 {
        for number in [1 << bits, (1 << bits) - 1, u64::MAX >> bits] {
            let bytes = written(number);
            let mut cursor = Cursor(&bytes);
            assert_eq!(cursor.number(), Ok(number));
            assert!(cursor.0.is_empty());
        }
    }
    assert_eq!(written(0), [0]);
    assert_eq!(written(127), [0x7f]);
    assert_eq!(written(128), [0x80, 1]);
    assert_eq!(written(u64::MAX).len(), 10);
}

#[test]
fn each_number_has_one_encoding() {
    let refused = |bytes: &[u8]| assert_eq!(Cursor(bytes).number(), Err(Malformed), "{bytes:x?}");
    refused(&[]);
    refused(&[0x80]);
    // Zero and one, each with an unnecessary byte.
    refused(&[0x80, 0]);
    refused(&[0x81, 0x80, 0]);
    // More than 64 bits.
    refused(&[[0xff; 9].as_slice(), &[2]].concat());
    refused(&[0xff; 11]);
}
