//! Each function does the same as the plain one, for all lengths and for a difference at each
//! place.

use super::*;

/// Texts of up to 40 bytes, each as it is and with this byte at each place.
fn texts(wrong: u8) -> Vec<(Vec<u8>, bool)> {
    let all = b"abcdefghijklmnopqrstuvwxyz0123456789._-z";
    let mut texts = Vec::new();
    for len in 0..=all.len() {
        texts.push((all[..len].to_vec(), true));
        for at in 0..len {
            let mut text = all[..len].to_vec();
            text[at] = wrong;
            texts.push((text, false));
        }
    }
    texts
}

#[test]
fn one_wrong_byte_makes_a_text_unfit_for_keys() {
    for wrong in [b'A', b'/', b':', b'`', b'{', b' ', 0, 0x7F, 0x80, 0xFF] {
        for (text, fits) in texts(wrong) {
            assert_eq!(fit_keys(&text), fits, "{text:?}");
        }
    }
}

#[test]
fn each_byte_at_each_place_decides_whether_letters_fit() {
    for len in 1..=20 {
        let mut key = vec![b'k'; len];
        for at in 0..len {
            for byte in 0..=u8::MAX {
                key[at] = byte;
                let fits = matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
                assert_eq!(fit_keys(&key), fits, "{key:?}");
            }
            key[at] = b'k';
        }
    }
}

#[test]
fn each_byte_at_each_place_decides_whether_a_word_begins_with_letters() {
    for at in 0..8 {
        for byte in 0..=u8::MAX {
            let mut word = *b"abczmnyx";
            word[at] = byte;
            for len in 1..=8 {
                let begins = byte.is_ascii_lowercase() || at >= len;
                assert_eq!(begin_with_letters(word, len), begins, "{word:?} {len}");
            }
        }
    }
    for len in [0, 9, 10, 64, usize::MAX] {
        assert!(!begin_with_letters([b'k'; 8], len), "{len}");
    }
}

#[test]
fn one_byte_makes_texts_differ() {
    for (text, _) in texts(0x80) {
        let whole = &texts(0)[..];
        for (other, _) in whole.iter().filter(|(_, is_whole)| *is_whole) {
            assert_eq!(same(&text, other), text == *other, "{text:?} {other:?}");
        }
    }
}

#[test]
fn a_copy_is_the_text_and_nothing_beyond() {
    for (text, _) in texts(0) {
        let mut place = vec![0xEE; text.len() + 2];
        let end = text.len() + 1;
        copy(&text, &mut place[1..end]);
        assert_eq!(place[1..end], text);
        assert_eq!([place[0], place[end]], [0xEE; 2]);
    }
}
