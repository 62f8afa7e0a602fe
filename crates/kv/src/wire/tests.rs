//! Golden vectors, and bytes that are refused.

use dunlin_store::{Delta, MAX_VALUE, Mode, SLICE, Verb};
use proptest::prelude::*;

use super::answer::{Head, short_len, write_short};
use super::*;
use crate::check;

fn encoded(request: &Request<'_>) -> Vec<u8> {
    let mut bytes = vec![0xff; request.size()];
    request.encode(0x0403_0201, &mut bytes);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Requests and their bytes.
fn golden() -> Vec<(Request<'static>, String)> {
    let store = Store {
        verb: Verb::Append,
        key: b"key",
        value: b"value",
        flags: 0x1122_3344,
        lifetime: 60,
        if_version: Some(0x0807_0605_0403_0201),
    };
    let count = |delta| Request::Count {
        key: b"n",
        delta,
        if_version: None,
    };
    vec![
        (
            Request::Get { key: b"key" },
            "0101030001020304".to_owned() + "6b6579",
        ),
        (
            Request::Slice {
                key: b"k",
                stamp: 9,
                from: 65536,
            },
            "0102010001020304".to_owned() + "0900000000000000" + "00000100" + "00000000" + "6b",
        ),
        (
            Request::Write(store),
            "0106030101020304".to_owned()
                + "0102030405060708"
                + "44332211"
                + "3c000000"
                + "6b6579"
                + "76616c7565",
        ),
        (
            Request::Write(Store::set(b"k", b"")),
            "0103010001020304".to_owned() + "0000000000000000" + "00000000" + "00000000" + "6b",
        ),
        (
            count(Delta::Up(258)),
            "0108010001020304".to_owned() + "0000000000000000" + "0201000000000000" + "6e",
        ),
        (
            count(Delta::Down(1)),
            "0109010001020304".to_owned() + "0000000000000000" + "0100000000000000" + "6e",
        ),
        (
            Request::Delete {
                key: b"k",
                if_version: Some(2),
            },
            "010a010101020304".to_owned() + "0200000000000000" + "6b",
        ),
        (
            Request::Touch {
                key: b"k",
                lifetime: 1,
            },
            "010b010001020304".to_owned() + "01000000" + "00000000" + "6b",
        ),
    ]
}

#[test]
fn requests_have_golden_bytes() {
    for (request, golden) in golden() {
        let bytes = encoded(&request);
        assert_eq!(hex(&bytes), golden, "{request:?}");
        assert_eq!(Request::decode(&bytes), Ok((0x0403_0201, request)));
        check::message(&bytes);
        // Neither shorter nor longer bytes are a request, except that a write has no fixed end.
        for len in 0..bytes.len() {
            let short = Request::decode(&bytes[..len]);
            let is_write = matches!(request, Request::Write(_));
            let value = if is_write {
                bytes.len() - len
            } else {
                usize::MAX
            };
            assert!(short.is_err() || value <= 5, "{request:?} cut to {len}");
        }
    }
}

#[test]
fn other_messages_have_golden_bytes() {
    let keys: [&[u8]; 2] = [b"a", b"bc"];
    let mut bytes = vec![0xff; Keys::size(keys.into_iter())];
    Keys::encode(7, 4096, 2, keys.into_iter(), &mut bytes);
    assert_eq!(
        hex(&bytes),
        "01100200".to_owned() + "07000000" + "00100000" + "0161" + "026263"
    );
    let mut bytes = [0xff; 12];
    Whole::Flush(5).encode(7, &mut bytes);
    assert_eq!(hex(&bytes), "01120000".to_owned() + "07000000" + "05000000");
    let mut bytes = [0xff; 16];
    Whole::Scan(6).encode(7, &mut bytes);
    let golden = "01130000".to_owned() + "07000000" + "0600000000000000";
    assert_eq!(hex(&bytes), golden);
    let mut scanned = Scanned::begin();
    scanned.push(b"a");
    scanned.push(b"bc");
    let bytes = scanned.end(Some(9));
    let golden = "07000200".to_owned() + "00000000" + "0900000000000000" + "0161" + "026263";
    assert_eq!(hex(&bytes), golden);
    let keys = vec![b"a".to_vec(), b"bc".to_vec()];
    assert_eq!(Scanned::decode(&bytes), Ok((keys, Some(9))));
    assert_eq!(
        Scanned::decode(&Scanned::begin().end(None)),
        Ok((vec![], None))
    );
    let mut bytes = [0xff; 8];
    Whole::Hot.encode(7, &mut bytes);
    assert_eq!(hex(&bytes), "01140000".to_owned() + "07000000");
    let hot = HotKeys {
        samples: 9,
        keys: vec![(b"a".to_vec(), 5), (b"bc".to_vec(), 3)],
    };
    let bytes = hot.encode();
    let golden = "08000200".to_owned() + "00000000" + "0900000000000000";
    let golden = golden + "0500000000000000" + "0161" + "0300000000000000" + "026263";
    assert_eq!(hex(&bytes), golden);
    assert_eq!(HotKeys::decode(&bytes), Ok(hot));
    assert!(HotKeys::decode(&bytes[..bytes.len() - 1]).is_err());
    let map = Map::new(7, Mode::Store, [4, 9]).unwrap();
    let mut bytes = vec![0xff; map.size()];
    map.encode(1, &mut bytes);
    let golden =
        "01010100".to_owned() + "07000000" + "0100" + "0200" + "00001000" + "0400" + "0900";
    assert_eq!(hex(&bytes), golden);
    assert_eq!(Map::decode(&bytes), Ok((map, 1)));
}

#[test]
fn answers_have_golden_bytes() {
    let head = Head {
        flags: 3,
        version: 4,
        len: 2,
        lifetime: 5,
        stamp: None,
    };
    let mut bytes = vec![0xff; head.size()];
    head.write(&mut bytes).copy_from_slice(b"hi");
    let golden = "01000000".to_owned() + "03000000" + "0400000000000000" + "02000000" + "05000000";
    assert_eq!(hex(&bytes), golden + "6869");
    let Ok(Answer::Found(item)) = Answer::decode(&bytes) else {
        panic!("the answer is not an item");
    };
    assert_eq!((item.value, item.is_long()), (&b"hi"[..], false));
    let mut bytes = vec![0xff; short_len(2)];
    write_short(Status::Counted, &[1, 2], &mut bytes);
    assert_eq!(
        hex(&bytes),
        "0300000000000000".to_owned() + "0100000000000000" + "0200000000000000"
    );
    assert_eq!(Answer::decode(&bytes), Ok(Answer::Counted(1, 2)));
}

#[test]
fn a_value_that_is_longer_than_a_slice_carries_its_stamp() {
    let head = Head {
        flags: 0,
        version: 1,
        len: u32::try_from(SLICE + 1).unwrap(),
        lifetime: 0,
        stamp: Some(0xabcd),
    };
    let mut bytes = vec![0; head.size()];
    assert_eq!(head.write(&mut bytes).len(), SLICE);
    let Ok(Answer::Found(item)) = Answer::decode(&bytes) else {
        panic!("the answer is not an item");
    };
    assert!(item.is_long() && item.stamp == 0xabcd && item.value.len() == SLICE);
    assert_eq!(Answer::decode(&bytes[..bytes.len() - 1]), Err(Malformed));
}

#[test]
fn wrong_requests_are_refused() {
    let good = encoded(&Request::Get { key: b"key" });
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Request::decode(&bytes).map(|_| ())
    };
    assert_eq!(with(0, 1), Ok(()));
    let wrong = [
        (0, 2),
        (1, 0),
        (1, 12),
        (1, 255),
        (2, 0),
        (2, 2),
        (2, 4),
        (3, 1),
        (3, 2),
    ];
    for (at, byte) in wrong {
        assert_eq!(with(at, byte), Err(Malformed), "byte {at} is {byte}");
    }
    let mut long = encoded(&Request::Write(Store::set(b"k", b"")));
    long.resize(long.len() + MAX_VALUE, 0);
    assert!(Request::decode(&long).is_ok());
    assert!(Request::decode_set(&long, 0x0403_0201).is_some());
    long.push(0);
    assert_eq!(Request::decode(&long), Err(Malformed));
    assert!(Request::decode_set(&long, 0x0403_0201).is_none());
}

#[test]
fn keys_have_1_to_250_bytes() {
    for (len, is_good) in [(0, false), (1, true), (250, true), (251, false)] {
        let key = vec![b'k'; len];
        let set = Request::Write(Store::set(&key, b"value"));
        for request in [Request::Get { key: &key }, set] {
            let bytes = encoded(&request);
            assert_eq!(Request::decode(&bytes).is_ok(), is_good, "{len} bytes");
            check::message(&bytes);
        }
    }
}

#[test]
fn maps_of_other_versions_are_refused() {
    let map = Map::new(7, Mode::Cache, [0]).unwrap();
    let mut bytes = vec![0; map.size()];
    map.encode(0, &mut bytes);
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Map::decode(&bytes).map(|_| ())
    };
    assert_eq!(with(0, 2), Err(MapError::Version));
    assert_eq!(with(2, 2), Err(MapError::Version));
    assert_eq!(with(1, 2), Err(MapError::Malformed));
    assert_eq!(with(8, 1), Err(MapError::Malformed), "no such partition");
    assert_eq!(with(10, 0), Err(MapError::Malformed));
    assert_eq!(Map::new(7, Mode::Cache, []), Err(MapError::Partitions));
}

#[test]
fn partitions_have_equal_shares() {
    let map = Map::new(7, Mode::Cache, 0..6).unwrap();
    let mut shares = [0_u32; 6];
    for number in 0..60_000_u32 {
        let place = map.place(&number.to_le_bytes());
        assert_eq!(place.partition, place.endpoint);
        shares[usize::from(place.partition)] += 1;
    }
    assert!(
        shares.iter().all(|share| (9_500..10_500).contains(share)),
        "{shares:?}"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        check::message(&bytes);
    }

    #[test]
    fn bytes_with_a_valid_header_are_a_message_or_are_refused(
        code in 0_u8..20,
        key_len in 0_u8..8,
        options in 0_u8..3,
        rest in prop::collection::vec(any::<u8>(), 0..48),
    ) {
        let mut bytes = vec![1, code, key_len, options, 7, 0, 0, 0];
        bytes.extend(rest);
        check::message(&bytes);
    }
}
