//! Golden vectors, and bytes that are refused.

use proptest::prelude::*;

use super::*;
use crate::index::Total;
use crate::range::{Direction, MAX_KEY, Range, Start};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn encoded(request: &Request<'_>) -> Vec<u8> {
    let mut bytes = vec![0xff; request.size()];
    request.encode(&mut bytes);
    bytes
}

#[test]
fn operations_have_golden_bytes() {
    let golden = [
        (
            Request::Get { key: b"key" },
            "01010300".to_owned() + "6b6579",
        ),
        (
            Request::Put {
                key: b"k",
                value: b"vw",
            },
            "01020100".to_owned() + "6b" + "7677",
        ),
        (Request::Delete { key: b"k" }, "01030100".to_owned() + "6b"),
    ];
    for (request, golden) in golden {
        let bytes = encoded(&request);
        assert_eq!(hex(&bytes), golden, "{request:?}");
        assert_eq!(Request::decode(&bytes), Ok(request));
        for (at, byte) in [(0, 2), (1, 0), (1, 4), (2, 9), (3, 1)] {
            let mut wrong = bytes.clone();
            wrong[at] = byte;
            assert_eq!(
                Request::decode(&wrong),
                Err(Malformed),
                "byte {at} is {byte}"
            );
        }
    }
    let answers = [
        (Answer::Written, "00"),
        (Answer::Found(b"vw"), "017677"),
        (Answer::Found(b""), "01"),
        (Answer::Missing, "10"),
        (Answer::Refused(Status::TooLong), "12"),
    ];
    for (answer, golden) in answers {
        let mut bytes = vec![0xff; answer.size()];
        answer.encode(&mut bytes);
        assert_eq!(hex(&bytes), golden, "{answer:?}");
        assert_eq!(Answer::decode(&bytes), Ok(answer));
    }
    for wrong in [&[][..], &[0, 0], &[2], &[16, 0], &[99]] {
        assert_eq!(Answer::decode(wrong), Err(Malformed), "{wrong:?}");
    }
}

#[test]
fn scans_have_golden_bytes() {
    let all = Scan {
        range: Range::ALL,
        what: What::Total,
        limit: u32::MAX,
    };
    assert_eq!(
        hex(&all.encode()),
        "01020000".to_owned() + "00000000" + "ffffffff"
    );
    let backward = Scan {
        range: Range {
            start: Start::After(b"a"),
            end: Some(b"bc"),
        },
        what: What::Items(Direction::Backward),
        limit: 258,
    };
    let bytes = backward.encode();
    assert_eq!(
        hex(&bytes),
        "01010f00".to_owned() + "01020000" + "02010000" + "61" + "6263"
    );
    assert_eq!(Scan::decode(&bytes), Ok(backward));
    assert_eq!(Scan::decode(&all.encode()), Ok(all));
    for (at, byte) in [
        (0, 2),
        (1, 2),
        (1, 3),
        (2, 13),
        (2, 7),
        (2, 31),
        (3, 1),
        (4, 9),
        (6, 1),
    ] {
        let mut wrong = bytes.clone();
        wrong[at] = byte;
        assert_eq!(Scan::decode(&wrong), Err(Malformed), "byte {at} is {byte}");
    }
    let mut page = Page::new(2);
    assert!(page.add(b"a", b"xyz") && page.add(b"bc", b"") && !page.add(b"d", b""));
    let bytes = page.end();
    assert_eq!(
        hex(&bytes),
        "00010000".to_owned() + "02000000" + "010300" + "61" + "78797a" + "020000" + "6263"
    );
    let answer = ScanAnswer::decode(&bytes).expect("it was just made");
    let keys: Vec<&[u8]> = answer.entries().map(|it| it.key).collect();
    assert_eq!(keys, [&b"a"[..], b"bc"]);
    for len in 0..bytes.len() {
        assert_eq!(ScanAnswer::decode(&bytes[..len]), Err(Malformed), "{len}");
    }
    let total = Total { items: 1, sum: 2 };
    let bytes = ScanAnswer::encode_total(total);
    assert_eq!(
        hex(&bytes),
        "0200000000000000".to_owned() + "0100000000000000" + "0200000000000000"
    );
    assert_eq!(ScanAnswer::decode(&bytes), Ok(ScanAnswer::Total(total)));
}

#[test]
fn invalid_ranges_and_limits_are_refused() {
    let scan = |range, what, limit| Scan { range, what, limit }.check();
    let items = What::Items(Direction::Forward);
    let range = Range::new(b"a", b"b");
    assert_eq!(scan(range, items, MAX_LIMIT), Ok(()));
    assert_eq!(scan(range, What::Total, u32::MAX), Ok(()));
    assert_eq!(
        scan(Range::new(b"a", b"a"), items, 1),
        Ok(()),
        "it is empty"
    );
    assert_eq!(
        scan(Range::new(b"b", b"a"), items, 1),
        Err(Status::BadRange)
    );
    for (what, limit) in [
        (items, 0),
        (What::Total, 0),
        (items, MAX_LIMIT + 1),
        (items, u32::MAX),
    ] {
        assert_eq!(
            scan(range, what, limit),
            Err(Status::BadLimit),
            "{what:?} {limit}"
        );
    }
    let long = [7; MAX_KEY + 1];
    for key in [&[][..], &long] {
        assert_eq!(Request::Get { key }.check(), Err(Status::BadKey));
    }
    let value = [0; MAX_VALUE + 1];
    let put = |value| Request::Put { key: b"k", value }.check();
    assert_eq!(put(&value), Err(Status::TooLong));
    assert_eq!(put(&value[1..]), Ok(()));
}

proptest! {
    #[test]
    fn bytes_that_decode_encode_to_the_same(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = VERSION;
        }
        if let Ok(request) = Request::decode(&bytes) {
            prop_assert_eq!(encoded(&request), &bytes[..]);
        }
        if let Ok(scan) = Scan::decode(&bytes) {
            prop_assert_eq!(scan.encode(), &bytes[..]);
        }
        let _ = (Answer::decode(&bytes), ScanAnswer::decode(&bytes));
    }
}
