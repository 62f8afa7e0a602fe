//! The function agrees with the standard library for all lengths, with each byte at each place.

use super::ascii;

#[test]
fn one_byte_decides_at_each_place_of_each_length() {
    for len in 0..=40 {
        let mut bytes = vec![b'a'; len];
        assert_eq!(ascii(&bytes), std::str::from_utf8(&bytes).ok());
        for at in 0..len {
            for byte in 0..=u8::MAX {
                bytes[at] = byte;
                let text = std::str::from_utf8(&bytes).ok();
                assert_eq!(
                    ascii(&bytes),
                    text.filter(|text| text.is_ascii()),
                    "{bytes:?}"
                );
            }
            bytes[at] = b'a';
        }
    }
}

#[test]
fn text_that_is_not_ascii_is_not_given_out() {
    for len in 0..20 {
        let text = "x".repeat(len) + "\u{e9}";
        assert_eq!(ascii(text.as_bytes()), None);
        assert_eq!(
            ascii(&text.as_bytes()[..=len]),
            None,
            "cut within a character"
        );
    }
}
