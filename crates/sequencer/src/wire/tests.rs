//! Golden vectors, and bytes that are refused.

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn take(expected: Option<u32>) -> Take {
    Take {
        sequence: 0x0201,
        epoch: 0x0605_0403,
        count: 7,
        expected,
    }
}

#[test]
fn takes_have_golden_bytes() {
    let golden = [
        (
            take(None),
            "01000102".to_owned() + "03040506" + "07000000" + "00000000",
        ),
        (
            take(Some(9)),
            "01010102".to_owned() + "03040506" + "07000000" + "09000000",
        ),
        (
            take(Some(0)),
            "01010102".to_owned() + "03040506" + "07000000" + "00000000",
        ),
    ];
    for (take, golden) in golden {
        let bytes = take.encode();
        assert_eq!(hex(&bytes), golden);
        assert_eq!(Take::decode(&bytes), Ok(take));
        for len in 0..bytes.len() {
            assert_eq!(Take::decode(&bytes[..len]), Err(Malformed), "{len}");
        }
    }
    for (at, byte) in [(0, 2), (1, 2), (12, 1)] {
        let mut bytes = take(None).encode();
        bytes[at] = byte;
        assert_eq!(Take::decode(&bytes), Err(Malformed), "byte {at} is {byte}");
    }
    let mut long = take(None).encode().to_vec();
    long.push(0);
    assert_eq!(Take::decode(&long), Err(Malformed));
}

#[test]
fn answers_have_golden_bytes() {
    let first = 0x0000_0009_0403_0201;
    let golden = [
        (take(None).answer(first), "0102030409000000"),
        (take(Some(9)).answer(first), "01020304"),
        (take(Some(8)).answer(first), "0102030409000000"),
        (Answer::Refused(Status::Deposed), "02"),
    ];
    for (answer, golden) in golden {
        let mut bytes = vec![0xff; answer.size()];
        answer.encode(&mut bytes);
        assert_eq!(hex(&bytes), golden, "{answer:?}");
        assert_eq!(Answer::decode(&bytes), Ok(answer));
    }
    // The client completes a number that it has predicted, and takes the whole number otherwise.
    assert_eq!(take(Some(9)).answer(first).first(9), Ok(first));
    assert_eq!(take(Some(8)).answer(first).first(8), Ok(first));
    for wrong in [&[][..], &[0], &[10], &[1; 2], &[1; 3], &[1; 5], &[1; 9]] {
        assert_eq!(Answer::decode(wrong), Err(Malformed), "{wrong:?}");
    }
}

#[test]
fn other_messages_have_golden_bytes() {
    let open = Open {
        known_epoch: 5,
        create: true,
        name: b"ab",
    };
    let bytes = open.encode();
    assert_eq!(hex(&bytes), "01010200".to_owned() + "05000000" + "6162");
    assert_eq!(Open::decode(&bytes), Ok(open));
    for (at, byte) in [(0, 2), (1, 2), (2, 1), (2, 3), (3, 1)] {
        let mut wrong = bytes.clone();
        wrong[at] = byte;
        assert_eq!(Open::decode(&wrong), Err(Malformed), "byte {at} is {byte}");
    }
    let opened = Opened {
        sequence: 3,
        epoch: 4,
        next: 5,
    };
    let bytes = opened.encode();
    assert_eq!(
        hex(&bytes),
        "00000300".to_owned() + "04000000" + "0500000000000000"
    );
    assert_eq!(Opened::decode(&bytes), Ok(Ok(opened)));
    assert_eq!(Opened::decode(&[6]), Ok(Err(Status::NoSequence)));
    assert_eq!(Opened::decode(&[0]), Err(Malformed));
    let figures = Figures {
        phase: Phase::TakingOver,
        epoch: 4,
        requests: 1,
        numbers: 2,
        saves: 3,
        waits: 4,
        sequences: vec![Progress {
            name: "a".parse().expect("it is a name"),
            next: 5,
            limit: 6,
        }],
    };
    let words = |numbers: &[u64]| -> String {
        let bytes = numbers.iter().flat_map(|it| it.to_le_bytes());
        hex(&bytes.collect::<Vec<u8>>())
    };
    let bytes = figures.encode();
    let golden =
        "00010100".to_owned() + "04000000" + &words(&[1, 2, 3, 4]) + "0161" + &words(&[5, 6]);
    assert_eq!(hex(&bytes), golden);
    for len in 0..bytes.len() {
        assert_eq!(Figures::decode(&bytes[..len]), Err(Malformed), "{len}");
    }
    assert_eq!(Figures::decode(&bytes), Ok(figures));
}

#[test]
fn names_are_short_and_visible() {
    let longest = "x".repeat(MAX_NAME);
    for name in ["a", "orders/eu-1", &longest] {
        assert_eq!(
            name.parse::<Name>().map(|it| it.to_string()),
            Ok(name.to_owned())
        );
    }
    let longer = "x".repeat(MAX_NAME + 1);
    for wrong in ["", "two words", "a\n", "\u{e9}", &longer] {
        assert_eq!(wrong.parse::<Name>(), Err(BadName), "{wrong}");
    }
}

#[test]
fn an_answer_beyond_64_bits_has_no_numbers() {
    assert_eq!(numbers_from(u64::MAX - 3, 3), Some(u64::MAX - 3..u64::MAX));
    assert_eq!(numbers_from(u64::MAX - 3, 4), None);
}
