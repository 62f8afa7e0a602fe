//! The vectors of RFC 4648 §10, and text that is not base64.

use super::{decode, encode};

fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = [0; 64];
    decode(text, &mut out).map(|len| out[..len].to_vec())
}

#[test]
fn vectors_of_the_standard_encode_and_decode() {
    let pairs: [(&[u8], &[u8]); 6] = [
        (b"f", b"Zg=="),
        (b"fo", b"Zm8="),
        (b"foo", b"Zm9v"),
        (b"foob", b"Zm9vYg=="),
        (b"fooba", b"Zm9vYmE="),
        (b"foobar", b"Zm9vYmFy"),
    ];
    for (bytes, text) in pairs {
        let mut encoded = Vec::new();
        encode(&mut encoded, bytes);
        assert_eq!(encoded, text);
        assert_eq!(decoded(text).as_deref(), Some(bytes));
    }
}

#[test]
fn text_that_is_not_base64_is_refused() {
    for text in [&b""[..], b"Z", b"Zg", b"Zg=", b"====", b"Z===", b"!!!!"] {
        assert_eq!(decoded(text), None, "{}", text.escape_ascii());
    }
    assert_eq!(decoded(b"Zm-9v").as_deref(), Some(&b"foo"[..]));
}
