//! The check of metadata against one that looks at each byte, for entries of every kind that are
//! changed at each place and cut at each length.

use super::*;

/// The entries, if rule T2 allows them.
fn plain(mut bytes: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut entries = Vec::new();
    while let [key_len, low, high, rest @ ..] = bytes {
        let value_len = u16::from_le_bytes([*low, *high]);
        let (key, rest) = rest.split_at_checked((*key_len).into())?;
        let (value, rest) = rest.split_at_checked(value_len.into())?;
        let fits = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        let is_value = match key {
            b"traceparent" => value.len() == 26,
            _ => std::str::from_utf8(value).is_ok(),
        };
        if !(1..=64).contains(key_len) || !key.iter().all(fits) || !is_value {
            return None;
        }
        entries.push((key, value));
        bytes = rest;
    }
    (bytes.is_empty() && entries.len() <= 32).then_some(entries)
}

/// Compares both readings of the first `len` bytes as metadata.
fn check(bytes: &[u8], len: usize) {
    let expected = bytes.split_at_checked(len);
    let expected = expected.and_then(|(entries, message)| Some((plain(entries)?, message)));
    let (read, expected) = (split(bytes, len), expected);
    assert_eq!(read.is_some(), expected.is_some(), "{len} of {bytes:?}");
    let (Some((metadata, message)), Some((entries, rest))) = (read, expected) else {
        return;
    };
    assert_eq!(message, rest);
    assert_eq!(metadata.entries().collect::<Vec<_>>(), entries);
    let mut texts = metadata.iter();
    for (key, value) in &entries {
        let first = entries.iter().find(|(other, _)| other == key);
        let key = std::str::from_utf8(key).unwrap();
        if key == TRACE {
            assert_eq!(metadata.get(key), None);
            let trace = metadata.trace_parent().unwrap();
            assert_eq!(trace.bytes(), first.unwrap().1);
            continue;
        }
        assert_eq!(
            texts.next(),
            Some((key, std::str::from_utf8(value).unwrap()))
        );
        let first = first.map(|(_, value)| std::str::from_utf8(value).unwrap());
        assert_eq!(metadata.get(key), first, "{key}");
    }
    assert_eq!(texts.next(), None);
    assert_eq!(metadata.get("absent"), None);
}

fn entry(key: &str, value: &[u8]) -> Vec<u8> {
    let key_len = u8::try_from(key.len()).unwrap();
    let value_len = u16::try_from(value.len()).unwrap().to_le_bytes();
    [&[key_len], &value_len[..], key.as_bytes(), value].concat()
}

/// Entries of every kind, alone and together with others.
fn samples() -> Vec<Vec<u8>> {
    let usual = [entry("tenant", b"north"), entry("user", b"7f9c24e8")].concat();
    let trace = entry(TRACE, b"\0\x0a\xf7abcdefghijklmno\xffpqrstu\x01");
    let others = [
        trace.clone(),
        entry(TRACE, b"00-0af7651916cd43dd8448eb2"),
        entry("a", b""),
        entry("eightlet", b"\0\x7f"),
        entry("nineletters", b"more"),
        entry("request-id", b"8"),
        entry("city", "n\u{f6}rd".as_bytes()),
        entry("tenant", "twice \u{1F986}".as_bytes()),
    ];
    let mut samples = vec![Vec::new(), usual.clone()];
    for other in others {
        samples.push([&other[..], &usual].concat());
        samples.push([&usual[..], &other].concat());
        samples.push(other);
    }
    samples
}

#[test]
fn entries_with_a_changed_byte_are_read_as_a_reader_of_single_bytes_reads_them() {
    for message in [&b""[..], b"\x01\0\0k", b"a message of some bytes"] {
        for entries in samples() {
            let mut bytes = [&entries, message].concat();
            check(&bytes, entries.len());
            for at in 0..entries.len() {
                let before = bytes[at];
                for byte in 0..=u8::MAX {
                    bytes[at] = byte;
                    check(&bytes, entries.len());
                }
                bytes[at] = before;
            }
        }
    }
}

#[test]
fn entries_that_end_elsewhere_are_read_as_a_reader_of_single_bytes_reads_them() {
    for entries in samples() {
        // The message looks like a further entry, so an entry that lacks bytes may reach into it.
        let bytes = [&entries[..], &entry("user", b"7f9c24e8"), b"tail"].concat();
        for len in 0..=bytes.len() + 1 {
            check(&bytes, len);
        }
    }
}

#[test]
fn more_entries_or_longer_keys_than_allowed_are_refused() {
    for (key, value) in [
        ("k", &b""[..]),
        ("request-id", b"x"),
        ("k", "\u{e9}".as_bytes()),
    ] {
        for count in [31, 32, 33, 64] {
            let entries = entry(key, value).repeat(count);
            let bytes = [&entries[..], b"a message of some bytes"].concat();
            check(&bytes, entries.len());
            assert_eq!(split(&bytes, entries.len()).is_some(), count <= MAX_KEYS);
        }
    }
    for len in 1..=255 {
        let entries = entry(&"k".repeat(len), b"value");
        check(&entries, entries.len());
        assert_eq!(split(&entries, entries.len()).is_some(), len <= MAX_KEY);
    }
}

#[test]
fn long_values_are_read_whatever_they_contain() {
    for len in 0..300 {
        for end in ["", "\u{e9}"] {
            let value = "x".repeat(len) + end;
            let entries = entry("note", value.as_bytes());
            check(&entries, entries.len());
            check(&[&entries[..], b"message"].concat(), entries.len() + 1);
        }
    }
}
