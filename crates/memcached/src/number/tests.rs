//! Numbers at the limits of their types, and words that are not numbers.

use super::{read, write};

#[test]
fn numbers_at_the_borders_are_read_and_those_beyond_are_refused() {
    assert_eq!(read::<u64>(b"18446744073709551615"), Some(u64::MAX));
    assert_eq!(read::<u64>(b"18446744073709551616"), None);
    assert_eq!(read::<u64>(b"-1"), None);
    assert_eq!(read::<u32>(b"4294967295"), Some(u32::MAX));
    assert_eq!(read::<u32>(b"4294967296"), None);
    assert_eq!(read::<i32>(b"-2147483648"), Some(i32::MIN));
    assert_eq!(read::<i32>(b"2147483648"), None);
    assert_eq!(read::<u64>(&[b'9'; 300]), None);
}

#[test]
fn white_space_and_signs_are_accepted_where_c_accepts_them() {
    for word in [&b"7"[..], b"+7", b"\t7", b"007", b"7\r", b"7\tx"] {
        assert_eq!(read::<i32>(word), Some(7), "{}", word.escape_ascii());
    }
    for word in [&b""[..], b"+", b"-", b"x7", b"7x", b"--7", b"+ 7", b"0x7"] {
        assert_eq!(read::<i32>(word), None, "{}", word.escape_ascii());
    }
}

#[test]
fn written_numbers_are_read_back() {
    for number in [0, 9, 10, 12_345, u64::MAX] {
        let mut text = Vec::new();
        write(&mut text, number);
        assert_eq!(text, number.to_string().into_bytes());
        assert_eq!(read::<u64>(&text), Some(number));
    }
}
