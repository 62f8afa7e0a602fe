//! Tests of `ascii`: same results as the standard library, for each length and each place of a
//! byte.

use super::*;

/// Checks the mark of the bytes, and that they are read as the standard library reads them: whole,
/// and as a part of bytes that are not all ASCII.
fn check(bytes: &[u8]) {
    let expected = std::str::from_utf8(bytes).ok();
    let texts = Texts::new(bytes);
    assert_eq!(texts.are_ascii(), bytes.is_ascii(), "{bytes:?}");
    assert_eq!(texts.text(), expected, "{bytes:?}");
    let with_more = [bytes, b"\xFF"].concat();
    let (part, rest) = Texts::new(&with_more)
        .split_at_checked(bytes.len())
        .unwrap();
    assert_eq!((part.text(), rest.text()), (expected, None), "{bytes:?}");
}

#[test]
fn one_byte_decides_at_each_place_of_each_length() {
    for len in 0..=70 {
        let mut bytes = vec![b'a'; len];
        check(&bytes);
        for at in 0..len {
            for byte in 0..=u8::MAX {
                bytes[at] = byte;
                check(&bytes);
            }
            bytes[at] = b'a';
        }
    }
}

#[test]
fn characters_of_several_bytes_are_read_and_their_halves_are_not() {
    for len in 0..40 {
        let text = "x".repeat(len) + "\u{e9}";
        check(text.as_bytes());
        check(&text.as_bytes()[..=len]);
    }
}

#[test]
fn parts_are_texts_of_their_own() {
    for bytes in [&b"north7f9c"[..], "north\u{e9}".as_bytes()] {
        let texts = Texts::new(bytes);
        for len in 0..=bytes.len() {
            let (first, rest) = texts.split_at_checked(len).unwrap();
            assert_eq!(first.text(), std::str::from_utf8(&bytes[..len]).ok());
            assert_eq!(rest.text(), std::str::from_utf8(&bytes[len..]).ok());
            assert_eq!(rest.bytes(), &bytes[len..]);
        }
        assert!(texts.split_at_checked(bytes.len() + 1).is_none());
    }
}
