//! Fronts of every length and of other versions, and the golden vectors.

use dunlin_core::Nanos;

use super::{Front, HEAD, read};
use crate::check;
use crate::codec::DecodeError;
use crate::meta::Meta;

const VECTORS: &str = include_str!("../../vectors/fronts.txt");

/// The lines of a vector.
struct Vector(Vec<(&'static str, &'static str)>);

impl Vector {
    fn all() -> impl Iterator<Item = Self> {
        VECTORS.split("\n\n").filter_map(|part| {
            let lines = part.lines().filter(|line| !line.starts_with('#'));
            let lines: Vec<_> = lines.filter_map(|line| line.split_once(": ")).collect();
            (!lines.is_empty()).then_some(Self(lines))
        })
    }

    fn get(&self, key: &str) -> Option<&'static str> {
        let found = self.0.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| *value)
    }

    fn bytes(&self) -> Vec<u8> {
        let hex = self.get("hex").unwrap().as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap();
        let byte = |pair: &[u8]| u8::try_from(digit(pair[0]) << 4 | digit(pair[1])).unwrap();
        hex.chunks(2).map(byte).collect()
    }
}

/// The reader of the last release without metadata (e5df222). It knows only the first eight bytes.
fn read_before_metadata(bytes: &[u8]) -> Option<&[u8]> {
    let len = usize::from(*bytes.first()?);
    let message = bytes.get(len..)?;
    (len >= 8 && bytes.len() >= 8).then_some(message)
}

fn written(left: Option<Nanos>, meta: &Meta) -> Vec<u8> {
    let front = Front::with(left, meta);
    let mut bytes = vec![0xAA; front.size()];
    assert!(front.write(&mut bytes).is_empty());
    bytes
}

fn head(left: Nanos) -> Vec<u8> {
    written(Some(left), &Meta::default())
}

#[test]
fn golden_vectors_are_read_and_written() {
    let mut count = 0;
    for vector in Vector::all() {
        count += 1;
        let (name, front) = (vector.get("name").unwrap(), vector.bytes());
        let mut request = front.clone();
        request.extend(b"message");
        check::front(&request);
        let before = read_before_metadata(&request);
        let passes = vector.get("before_metadata") == Some("passes");
        assert_eq!(before, passes.then_some(&b"message"[..]), "{name}");
        let got = read(&request);
        let Some(left_us) = vector.get("left_us") else {
            assert_eq!(got, Err(DecodeError::Malformed), "{name}");
            continue;
        };
        let left_us: u64 = left_us.parse().unwrap();
        let left = (left_us != 0).then(|| Nanos::from_micros(left_us));
        let (got_left, metadata, message) = got.unwrap();
        assert_eq!((got_left, message), (left, &b"message"[..]), "{name}");
        let mut shown: Vec<_> = metadata
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        shown.extend(
            metadata
                .trace_parent()
                .map(|it| format!("traceparent={it}")),
        );
        let entries = vector.0.iter().filter(|(key, _)| *key == "entry");
        let entries: Vec<_> = entries.map(|(_, entry)| *entry).collect();
        assert_eq!(shown, entries, "{name}");
        assert_eq!(written(left, &metadata.to_owned()), front, "{name}");
    }
    assert_eq!(count, 23, "the file has this many vectors");
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
        let mut bytes = head(Nanos(sent));
        bytes.extend(b"message");
        let (left, metadata, message) = read(&bytes).unwrap();
        assert_eq!(
            (left, message),
            (Some(Nanos::from_micros(arrives_us)), &b"message"[..])
        );
        assert!(metadata.is_empty());
    }
}

#[test]
fn a_request_without_deadline_and_metadata_has_no_front() {
    let front = Front::with(None, const { &Meta::new() });
    let mut bytes = *b"message";
    assert_eq!(front.size(), 0);
    assert_eq!(front.type_of(dunlin_wire::ReqType(7)).0, 7);
    assert_eq!(front.write(&mut bytes), b"message");
}

#[test]
fn a_front_that_is_cut_or_impossible_is_refused() {
    let whole = head(Nanos::from_micros(7));
    for len in 0..HEAD {
        let needed = DecodeError::TooShort { len, needed: HEAD };
        assert_eq!(read(&whole[..len]), Err(needed));
    }
    for impossible in 0..HEAD {
        let mut bytes = whole.clone();
        bytes[0] = u8::try_from(impossible).unwrap();
        assert_eq!(read(&bytes), Err(DecodeError::Malformed));
    }
    let mut bytes = whole;
    bytes[0] = 200;
    assert_eq!(
        read(&bytes),
        Err(DecodeError::TooShort {
            len: HEAD,
            needed: 200
        })
    );
}
